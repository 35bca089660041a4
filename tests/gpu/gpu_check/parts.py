"""The parts of the check. Each takes a `Context`, returns raw facts, and raises `Failed` with them
if what it found is wrong, or `Skip` with the reason.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

from . import overhead
from .context import Context, Failed, Skip, ledger, mapped_libraries, settled
from .measuring import launches, lost, mismatches, steps_of
from .workloads import Negations, UnevenSteps, captured, finished, training

Part = Callable[[Context], dict[str, Any]]
KERNELS = "cupti_activity"  # the capability that says whether kernels are collected


def _require(found: bool, why: str, facts: dict[str, Any]) -> None:
    if not found:
        raise Failed(why, facts)


def capabilities(context: Context) -> dict[str, Any]:
    """What the collector found on this machine."""
    negations = Negations(context, 1024)
    with ledger(context, "capabilities") as (led, jsonl):
        for _ in range(3):
            with led.step():
                negations.run(10)
        context.synchronize()
        found = settled(led, KERNELS if context.on_gpu else "host_ops")
    facts = {
        "capabilities": found,
        "cupti_libraries": len(mapped_libraries("libcupti")),
        "steps": [_brief(step) for step in steps_of(jsonl)],
    }
    _require(len(facts["steps"]) == 3, "not every step was reported", facts)
    _require(facts["cupti_libraries"] <= 1, "two libcupti are mapped", facts)
    if context.on_gpu:
        reason = found.get(KERNELS, "no such capability")
        _require(reason == "ok", f"kernels are not collected: {reason}", facts)
    return facts


def _brief(step: dict[str, Any]) -> dict[str, Any]:
    """What is compared between the parts; the rest of the report stays in the step log."""
    kept = ("step", "result", "closed_by", "boundary", "wall_ns", "late_records", "losses")
    return {key: step.get(key) for key in kept} | {"launches": launches(step)}


def _run_uneven(context: Context, name: str, steps: int, wait: bool) -> dict[str, Any]:
    elements = context.pick(64 << 20, 1 << 10)
    work = UnevenSteps(context, elements)
    work.run(0)  # before the books: loads the kernels
    context.synchronize()
    with ledger(context, name) as (led, jsonl):
        for step in range(steps):
            with led.step(step):
                work.run(step)
            if wait:
                context.synchronize()
        done = finished(context)()
        with led.step(steps):  # closes the last one
            pass
        context.synchronize()
    reports = [step for step in steps_of(jsonl) if step["step"] < steps]
    seen = {step["step"]: launches(step) for step in reports}
    return {
        "waits_at_each_boundary": wait,
        "host_ran_ahead": not done,
        "mismatches": mismatches(work.truth(steps), seen),
        "lost": sum(lost(step) for step in reports),
        "kernel_time_sum_ns": [
            sum(device["kernel_time_sum_ns"] for device in step["devices"]) for step in reports
        ],
        "steps": [_brief(step) for step in reports],
    }


def fence(context: Context) -> dict[str, Any]:
    """Kernels of uneven steps, with and without waiting for the device at each boundary: both have
    to be the counts that were launched.
    """
    steps = context.pick(60, 6)
    facts = {
        "waiting": _run_uneven(context, "fence_waiting", steps, wait=True),
        "running": _run_uneven(context, "fence_running", steps, wait=False),
    }
    for name, run in facts.items():
        _require(run["lost"] == 0, f"{name}: records were lost", facts)
        _require(not run["mismatches"], f"{name}: kernels of a step are not its own", facts)
    if context.on_gpu:
        _require(
            facts["running"]["host_ran_ahead"],
            "the host did not run ahead of the device, so nothing was proven",
            facts,
        )
    return facts


def graphs(context: Context) -> dict[str, Any]:
    """Kernels of a CUDA graph, many on one launch."""
    per_graph = context.pick(2000, 20)
    negations = Negations(context, 1024)
    replay = captured(context, lambda: negations.run(per_graph))
    steps = context.pick(30, 3)
    truth = {step: per_graph * (1 + step % 3) for step in range(steps)}
    with ledger(context, "graphs") as (led, jsonl):
        for step, kernels in truth.items():
            with led.step(step):
                for _ in range(kernels // per_graph):
                    replay()
        context.synchronize()
    reports = steps_of(jsonl)
    facts = {
        "kernels_per_graph": per_graph,
        "mismatches": mismatches(truth, {step["step"]: launches(step) for step in reports}),
        "lost": sum(lost(step) for step in reports),
        "steps": [_brief(step) for step in reports],
    }
    _require(facts["lost"] == 0, "records were lost", facts)
    _require(not facts["mismatches"], "kernels of a graph are not all in their step", facts)
    return facts


def coverage(context: Context) -> dict[str, Any]:
    """A small transformer trained with its ops observed: what is counted, what is not, by name."""
    step_of_training, tokens = training(context, context.pick(512, 32), context.pick(8, 1))
    options: dict[str, Any] = {"model_flops": "6 * 1000 * T", "observer": "native", "seq_len": 128}
    with ledger(context, "coverage", **options) as (led, jsonl):
        for _ in range(context.pick(20, 3)):
            with led.step() as step:
                step_of_training()
                step.tokens(tokens)
        context.synchronize()
        observer = led.observer
    reports = steps_of(jsonl)
    keys = (
        *("step", "coverage_time_ratio", "coverage_launch_ratio", "executed_flops"),
        *("hfu_low_ratio", "hfu_high_ratio", "mfu_ratio", "kernels", "gaps", "gaps_left_out"),
    )
    facts = {
        "observer": observer,
        "steps": [{key: step.get(key) for key in keys} for step in reports],
    }
    _require(bool(reports), "no step was reported", facts)
    for step in reports:
        _require(launches(step) > 0, "a training step without a kernel", facts)
        ratio = step["coverage_launch_ratio"]
        _require(ratio is not None and 0 <= ratio <= 1, f"coverage is {ratio}", facts)
        unknown = [k for k in step["kernels"] if k["coverage"] == "unknown"]
        named = sum(gap["launches"] for gap in step["gaps"])
        whole = step["gaps_left_out"] == 0
        _require(
            not whole or named >= sum(k["launches"] for k in unknown),
            "kernels are unknown that no gap names",
            facts,
        )
    return facts


def _profiled(context: Context, run: Callable[[], None]) -> int:
    """Runs under torch.profiler; the kernels (on the CPU: ops) that it saw."""
    from torch.profiler import ProfilerActivity, profile

    activity = ProfilerActivity.CUDA if context.on_gpu else ProfilerActivity.CPU
    with profile(activities=[activity]) as profiler:
        run()
        context.synchronize()
    if context.on_gpu:
        return sum(
            "neg" in event.name and "elementwise" in event.name for event in profiler.events()
        )
    return sum(event.name == "aten::neg_" for event in profiler.events())


def profiler_beside(context: Context) -> dict[str, Any]:
    """Steps before, under and after a run of torch.profiler in the same process."""
    negations = Negations(context, 1024)
    each, steps = 100, context.pick(5, 2)
    with ledger(context, "profiler") as (led, jsonl):

        def train(first: int) -> None:
            for step in range(first, first + steps):
                with led.step(step):
                    negations.run(each)

        train(0)
        context.synchronize()
        seen_by_profiler = _profiled(context, lambda: train(steps))
        train(2 * steps)
        with led.step(3 * steps):
            pass
        context.synchronize()
        found = led.capabilities
    reports = [step for step in steps_of(jsonl) if step["step"] < 3 * steps]
    truth = dict.fromkeys(range(3 * steps), each)
    seen = {step["step"]: launches(step) for step in reports}
    facts = {
        "seen_by_profiler": seen_by_profiler,
        "launched_under_profiler": each * steps,
        "capabilities": found,
        "mismatches": mismatches(truth, seen),
        "lost": sum(lost(step) for step in reports),
        "steps": [_brief(step) for step in reports],
    }
    _require(len(reports) == 3 * steps, "not every step was reported", facts)
    before = [entry for entry in facts["mismatches"] if entry["step"] < steps]
    _require(not before, "kernels are missing before the profiler began", facts)
    # Beside another client of one and the same library, records may be missing; they must not be
    # missing in silence.
    silent = bool(facts["mismatches"]) and not facts["lost"]
    if context.on_gpu and found.get(KERNELS) != "ok":
        silent = False
    _require(not silent, "kernels are missing and nothing says so", facts)
    _require(
        seen_by_profiler == each * steps, "flopledger took records away from the profiler", facts
    )
    return facts


def nvtx_steps(context: Context) -> dict[str, Any]:
    """Steps from torch.cuda.nvtx (on the CPU, where it is a stub: from the package nvtx)."""
    if context.on_gpu:
        from torch.cuda import nvtx
    else:
        try:
            import nvtx
        except ImportError as error:
            raise Skip("the package nvtx is not installed") from error
    push = getattr(nvtx, "range_push", None) or nvtx.push_range
    pop = getattr(nvtx, "range_pop", None) or nvtx.pop_range
    negations = Negations(context, 1024)
    steps = context.pick(20, 3)
    with ledger(context, "nvtx", nvtx_steps="train step*") as (led, jsonl):
        for step in range(steps):
            push(f"train step {step}")
            push("a layer")
            negations.run(10 + step)
            pop()
            pop()
        context.synchronize()
        found = settled(led, "nvtx")
    reports = steps_of(jsonl)
    truth = {step: 10 + step for step in range(steps)}
    facts = {
        "capabilities": found,
        "mismatches": mismatches(truth, {step["step"]: launches(step) for step in reports}),
        "steps": [_brief(step) for step in reports],
    }
    _require(found.get("nvtx") == "ok", f"nvtx is {found.get('nvtx')}", facts)
    _require(not facts["mismatches"], "steps of ranges are not those of the program", facts)
    return facts


def capture(context: Context) -> dict[str, Any]:
    """A recording of uneven steps, for replay tests on machines without a GPU, and their truth."""
    work = UnevenSteps(context, context.pick(1 << 20, 1 << 10))
    work.run(0)
    context.synchronize()
    path = context.folder / "uneven_steps.capture"
    path.unlink(missing_ok=True)
    steps = context.pick(20, 3)
    with ledger(context, "capture", capture=str(path)) as (led, jsonl):
        for step in range(steps):
            with led.step(step):
                work.run(step)
        context.synchronize()
    size = path.stat().st_size if path.exists() else 0
    reports = steps_of(jsonl)
    truth = work.truth(steps)
    facts = {
        "capture_bytes": size,
        "truth": list(truth.values()),
        "mismatches": mismatches(truth, {step["step"]: launches(step) for step in reports}),
        "steps": [_brief(step) for step in reports],
    }
    _require(size > 0, "nothing was recorded", facts)
    return facts


def long_run(context: Context) -> dict[str, Any]:
    """Many records of graph launches: stamps that go bad and memory that grows, as others saw them
    after 25 million records, would show here.
    """
    if not context.on_gpu:
        raise Skip("device records are those of a GPU")
    import torch

    per_graph, per_step = 2000, 10
    steps, seconds = context.pick(1500, 2), 75.0  # 30 million records, or as many as that allows
    negations = Negations(context, 1024)
    replay = captured(context, lambda: negations.run(per_graph))
    free_before = torch.cuda.mem_get_info()[0]
    free = []
    with ledger(context, "long_run") as (led, jsonl):
        begin = time.monotonic()
        done = 0
        while done < steps and time.monotonic() - begin < seconds:
            with led.step(done):
                for _ in range(per_step):
                    replay()
            done += 1
            if done % 50 == 0:
                context.synchronize()
                free.append(free_before - torch.cuda.mem_get_info()[0])
        context.synchronize()
    reports = steps_of(jsonl)
    seen = sum(launches(step) for step in reports)
    invalid = sum(
        loss["count"]
        for step in reports
        for loss in step["losses"]
        if loss["reason"] == "invalid_time"
    )
    facts = {
        "kernels_launched": per_graph * per_step * done,
        "kernels_seen": seen,
        "invalid_times": invalid,
        "lost": sum(lost(step) for step in reports),
        "device_memory_added_bytes": free,
    }
    missing = facts["kernels_launched"] - seen
    _require(missing <= facts["lost"], "kernels are missing and nothing says so", facts)
    return facts


def overhead_of_collecting(context: Context) -> dict[str, Any]:
    """Step time without, with steps alone, and with device records: see `overhead`."""
    facts = overhead.measure(context)
    for name, kinds in facts["workloads"].items():
        for kind, result in kinds["added"].items():
            value = result["ratio"]["median"]
            _require(math.isfinite(value), f"{name}, {kind}: {value} is no figure", facts)
    return facts


PARTS: dict[str, tuple[Part, int]] = {  # with its time limit in seconds
    "capabilities": (capabilities, 60),
    "fence": (fence, 60),
    "graphs": (graphs, 60),
    "nvtx_steps": (nvtx_steps, 60),
    "profiler_beside": (profiler_beside, 60),
    "coverage": (coverage, 120),
    "capture": (capture, 60),
    "overhead": (overhead_of_collecting, 240),
    "long_run": (long_run, 120),
}
