"""The arithmetic of the measurements: no torch and no GPU, so that it is tested anywhere."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

SCHEMA_VERSION = 1
OUTCOMES = ("passed", "failed", "skipped")


def interleaved(kinds: Sequence[str], rounds: int) -> list[str]:
    """The order of runs: every kind once a round, each round begun by the next kind, so that the
    drift of clocks and temperature meets all of them alike.
    """
    if rounds < 1 or not kinds:
        raise ValueError(f"kinds are {list(kinds)}, rounds is {rounds}; accepted: at least one")
    order = []
    for turn in range(rounds):
        first = turn % len(kinds)
        order += [*kinds[first:], *kinds[:first]]
    return order


def run_interleaved(
    kinds: Sequence[str], rounds: int, measure: Callable[[str], Mapping[str, float]]
) -> dict[str, list[dict[str, float]]]:
    """The results of each kind, in the order in which they were measured."""
    results: dict[str, list[dict[str, float]]] = {kind: [] for kind in kinds}
    for kind in interleaved(kinds, rounds):
        results[kind].append(dict(measure(kind)))
    return results


def summary(values: Sequence[float]) -> dict[str, Any]:
    """Median and how far the middle half is apart; the values themselves stay beside them."""
    if not values:
        return {
            "count": 0,
            "median": None,
            "quartile_low": None,
            "quartile_high": None,
            "values": [],
        }
    ordered = sorted(values)
    low, high = ordered[0], ordered[-1]
    if len(ordered) > 1:
        low, _, high = statistics.quantiles(ordered, n=4, method="inclusive")
    return {
        "count": len(ordered),
        "median": statistics.median(ordered),
        "quartile_low": low,
        "quartile_high": high,
        "values": list(values),
    }


def added(plain: Sequence[float], collected: Sequence[float], per: int = 1) -> dict[str, Any]:
    """What collecting adds: the median over pairs of neighbouring runs, absolute (over `per` units)
    and as a ratio. `resolved` says whether the middle half of the differences leaves zero out: a
    difference that does not is noise, and no figure.
    """
    pairs = list(zip(plain, collected, strict=True))
    if not pairs or any(before <= 0 for before, _ in pairs):
        raise ValueError(f"plain is {list(plain)}; accepted: as many as collected, above 0")
    differences = summary([(after - before) / per for before, after in pairs])
    ratios = summary([after / before - 1 for before, after in pairs])
    low, high = differences["quartile_low"], differences["quartile_high"]
    return {
        "difference": differences,
        "ratio": ratios,
        "per": per,
        "resolved": low > 0 or high < 0,
    }


def mismatches(truth: Mapping[int, int], seen: Mapping[int, int]) -> list[dict[str, Any]]:
    """Steps whose count is not the truth's; a step that one side lacks has None there."""
    return [
        {"step": step, "truth": truth.get(step), "seen": seen.get(step)}
        for step in sorted(truth.keys() | seen.keys())
        if truth.get(step) != seen.get(step)
    ]


def document(
    part: str, outcome: str, *, why: str = "", facts: Mapping[str, Any], machine: Mapping[str, Any]
) -> dict[str, Any]:
    """What a part writes: its outcome, the raw figures, and the machine they are of."""
    result = {
        "schema_version": SCHEMA_VERSION,
        "part": part,
        "outcome": outcome,
        "why": why,
        "machine": dict(machine),
        "facts": dict(facts),
    }
    wrong = problems(result)
    if wrong:
        raise ValueError("; ".join(wrong))
    return result


def problems(result: Any) -> list[str]:
    """What is wrong with a part's document; empty if it can be read by others."""
    if not isinstance(result, Mapping):
        return [f"the document is a {type(result).__name__}; accepted: an object"]
    wrong = []
    kinds = {"schema_version": int, "part": str, "outcome": str, "why": str}
    kinds |= {"machine": Mapping, "facts": Mapping}
    for key, kind in kinds.items():
        if not isinstance(result.get(key), kind):
            wrong.append(f"{key} is {result.get(key)!r}; accepted: {kind.__name__}")
    if result.get("schema_version") != SCHEMA_VERSION:
        wrong.append(
            f"schema_version is {result.get('schema_version')!r}; accepted: {SCHEMA_VERSION}"
        )
    if result.get("outcome") not in OUTCOMES:
        wrong.append(f"outcome is {result.get('outcome')!r}; accepted: {', '.join(OUTCOMES)}")
    if result.get("outcome") in ("failed", "skipped") and not result.get("why"):
        wrong.append(f"outcome is {result['outcome']} without a why")
    try:
        json.dumps(result, allow_nan=False)
    except (TypeError, ValueError) as error:
        wrong.append(f"not JSON: {error}")
    return wrong


def write(path: Path, result: Mapping[str, Any]) -> None:
    """Whole or not at all."""
    unfinished = path.with_suffix(".part")
    unfinished.write_text(json.dumps(result, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    unfinished.replace(path)


def steps_of(jsonl: Path) -> list[dict[str, Any]]:
    """The closed steps of a step log; a last line that was cut is left out."""
    steps = []
    for line in jsonl.read_text(encoding="utf-8").splitlines():
        try:
            entry = json.loads(line)
        except json.JSONDecodeError:
            continue
        if entry.get("type") == "step":
            steps.append(entry)
    return steps


def launches(step: Mapping[str, Any], op_classes: Sequence[str] = ()) -> int:
    """Kernels that a step's report holds, of the given classes or of all."""
    return sum(
        int(entry["launches"])
        for entry in step["kernels"]
        if not op_classes or entry["op_class"] in op_classes
    )


def lost(step: Mapping[str, Any]) -> int:
    """Records that the report itself says are missing."""
    return sum(int(entry["count"]) for entry in step["losses"]) + int(step["late_records"])
