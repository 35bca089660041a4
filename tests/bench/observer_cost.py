"""What an observed op costs the training thread, for both observers, paired and interleaved.

    cmake --build --preset dev && python tests/bench/observer_cost.py [--rounds N] [--json FILE]

Every round measures nothing, the native observer and the dispatch mode one after the other, so that
a change of the machine's speed meets all three; figures are medians of the differences within a
round, in CPU time of the thread, with the middle half in brackets. The table that the observers
write to is the recorder of the tests: a copy into memory.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
from observer_support import KINDS, Recorder, Shape, Training, torch, torch_observer

Samples = dict[str, list[float]]


def measure(action, rounds: int) -> tuple[Samples, dict[str, int]]:
    """CPU nanoseconds of each round by observer, and records of one call."""
    samples: Samples = {"off": [], **{kind: [] for kind in KINDS}}
    records = {"off": 0}
    for kind in samples:  # first calls: tables, lazy state
        run_once(action, kind, records)
    for _ in range(rounds):
        for kind in samples:
            samples[kind].append(run_once(action, kind, records))
    return samples, records


def run_once(action, kind: str, records: dict[str, int]) -> float:
    if kind == "off":
        start = time.thread_time_ns()
        action()
        return float(time.thread_time_ns() - start)
    recorder = RECORDERS.setdefault(kind, Recorder())
    handle = torch_observer.install(recorder.table, prefer=kind)
    if handle.kind != kind:
        raise SystemExit(f"no {kind} observer: {handle.reason}")
    try:
        action()  # an observer that was just installed knows no signature yet
        recorder.clear()
        start = time.thread_time_ns()
        action()
        elapsed = time.thread_time_ns() - start
    finally:
        handle.remove()
    records[kind] = recorder.written
    return float(elapsed)


def summary(values: list[float]) -> tuple[float, float, float]:
    low, middle, high = statistics.quantiles(values, n=4)
    return middle, low, high


def report(name: str, samples: Samples, records: dict[str, int], calls: int) -> list[dict]:
    rows = []
    base = statistics.median(samples["off"])
    print(f"{name}: {base / calls / 1e3:.2f} us without an observer")
    for kind in KINDS:
        extra = [on - off for on, off in zip(samples[kind], samples["off"], strict=True)]
        middle, low, high = summary(extra)
        ops = records[kind] / calls
        print(
            f"  {kind:8} {ops:8.0f} records  +{100 * middle / base:6.2f} %   "
            f"{middle / records[kind]:8.0f} ns a record "
            f"[{low / records[kind]:.0f} to {high / records[kind]:.0f}]"
        )
        rows.append(
            {
                "name": f"observer/{name}/{kind}",
                "run_type": "aggregate",
                "aggregate_name": "median",
                "iterations": len(extra),
                "real_time": middle / records[kind],
                "cpu_time": middle / records[kind],
                "time_unit": "ns",
                "records": ops,
                "added_ratio": middle / base,
            }
        )
    return rows


def small_ops(calls: int):
    a, b, c = torch.ones(4, 4), torch.ones(4, 4), torch.empty(4, 4)

    def add():
        for _ in range(calls):
            c.add_(a)

    def matmul():
        for _ in range(calls):
            torch.mm(a, b, out=c)

    return {"add": add, "mm": matmul}


RECORDERS: dict[str, Recorder] = {}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=41)
    parser.add_argument("--calls", type=int, default=2000, help="calls of a small op in a round")
    parser.add_argument("--json", type=Path, help="Google Benchmark's format")
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(f"torch {torch.__version__}, {platform.machine()}, one thread")
    rows = []
    with torch.no_grad():
        for name, action in small_ops(options.calls).items():
            rows += report(name, *measure(action, options.rounds), options.calls)
    for mode in ("off", "non_reentrant"):
        training = Training(Shape(checkpoint=mode))
        name = "step" if mode == "off" else "step_checkpointed"
        rows += report(name, *measure(training.step, options.rounds), 1)
    if options.json:
        document = {"context": {"torch": torch.__version__}, "benchmarks": rows}
        options.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
