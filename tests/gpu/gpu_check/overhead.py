"""Step time with and without collecting: a process for each run, in turns.

A process, because a collector that has been stopped is not the same as one that never was there; in
turns, because clocks and temperature drift.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from .context import Context, Failed, ledger
from .measuring import added, run_interleaved, steps_of, summary
from .workloads import Matmuls, Negations, captured

KINDS = ("plain", "steps", "collected")
LAUNCHES = 2000  # a step


def _workloads(context: Context) -> dict[str, Any]:
    count = context.pick(LAUNCHES, 20)
    negations = Negations(context, 1024)
    matmuls = Matmuls(context, context.pick(2048, 32))
    return {
        # As fast as the host can launch: all that is added shows.
        "small_kernels_eager": lambda: negations.run(count),
        "matmuls_eager": lambda: matmuls.run(count),
        "matmuls_graph": captured(context, lambda: matmuls.run(count)),
    }


def _time_steps(context: Context, run: Any, steps: int, led: Any) -> float:
    """Seconds a step, from the first launch until the device has done the last."""

    def once() -> None:
        if led is None:
            run()
            return
        with led.step():
            run()

    for _ in range(3):
        once()
    context.synchronize()
    start = time.perf_counter()
    for _ in range(steps):
        once()
    context.synchronize()
    return (time.perf_counter() - start) / steps


def one_run(context: Context, kind: str) -> dict[str, float]:
    """Seconds a step of each workload, in this process."""
    steps = context.pick(30, 2)
    if kind == "plain":
        return {
            name: _time_steps(context, run, steps, None)
            for name, run in _workloads(context).items()
        }
    more = {} if kind == "collected" else {"observer": "none"}
    if kind == "steps" and context.on_gpu:
        more["device_records"] = "off"
    with ledger(context, f"overhead_{kind}", **more) as (led, jsonl):
        seconds = {
            name: _time_steps(context, run, steps, led) for name, run in _workloads(context).items()
        }
    closed = len(steps_of(jsonl))
    if closed < len(seconds) * steps:
        raise Failed(f"{closed} steps were reported", {"kind": kind, "seconds": seconds})
    return seconds


def _in_a_process(context: Context, kind: str) -> dict[str, float]:
    command = [sys.executable, "-m", "gpu_check", "run-overhead", kind]
    command += ["--device", context.device, "--out", str(context.folder)]
    command += ["--small"] if context.small else []
    done = subprocess.run(
        command,
        cwd=Path(__file__).resolve().parents[1],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if done.returncode != 0:
        raise Failed(
            f"the {kind} run ended with {done.returncode}", {"stderr": done.stderr[-4000:]}
        )
    return json.loads(done.stdout.splitlines()[-1])


def measure(context: Context) -> dict[str, Any]:
    """Raw seconds of every run, and what collecting adds by medians of pairs."""
    rounds = context.pick(5, 1)
    runs = run_interleaved(KINDS, rounds, lambda kind: _in_a_process(context, kind))
    launched = context.pick(LAUNCHES, 20)
    workloads: dict[str, Any] = {}
    for name in runs["plain"][0]:
        seconds = {kind: [run[name] for run in results] for kind, results in runs.items()}
        workloads[name] = {
            "seconds_per_step": {kind: summary(values) for kind, values in seconds.items()},
            "added": {
                kind: added(seconds["plain"], seconds[kind], per=launched)
                for kind in ("steps", "collected")
            },
        }
    return {"launches_per_step": launched, "rounds": rounds, "workloads": workloads}
