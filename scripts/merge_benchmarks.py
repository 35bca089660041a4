#!/usr/bin/env python3
"""Joins the JSON files of several benchmark programs into one, and prints a table.

    python3 scripts/merge_benchmarks.py build/bench-results all.json

The format is Google Benchmark's own (context, benchmarks), so that its compare.py reads it. A name
that two programs use is an error: a name is what a figure is compared by.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path


def merge(folder: Path) -> dict:
    """The context of the first file and the benchmarks of all."""
    merged: dict = {}
    owners: dict[str, str] = {}
    for path in sorted(folder.glob("*_bench.json")):
        text = path.read_text(encoding="utf-8")
        if not text.strip():  # nothing of this program matched the filter
            continue
        result = json.loads(text)
        merged.setdefault("context", result["context"])
        for benchmark in result["benchmarks"]:
            name = benchmark["run_name"]
            if owners.setdefault(name, path.stem) != path.stem:
                raise ValueError(f"{name} is in {owners[name]} and in {path.stem}")
        merged.setdefault("benchmarks", []).extend(result["benchmarks"])
    return merged


def table(benchmarks: list[dict]) -> str:
    """One line a benchmark: the median and the coefficient of variation."""
    rows: dict[str, dict] = {}
    for benchmark in benchmarks:
        row = rows.setdefault(benchmark["run_name"], {})
        if benchmark.get("error_occurred"):
            row["error"] = benchmark.get("error_message", "failed")
        elif benchmark.get("run_type") == "aggregate":
            row[benchmark["aggregate_name"]] = benchmark
        else:
            row.setdefault("single", benchmark)
    width = max(len(name) for name in rows)
    lines = [f"{'benchmark':{width}}  {'CPU time':>14}  {'varies by':>9}"]
    for name, row in rows.items():
        if "error" in row:
            lines.append(f"{name:{width}}  {row['error']}")
            continue
        figure = row.get("median", row.get("single"))
        time = f"{figure['cpu_time']:.4g} {figure['time_unit']}"
        spread = f"{row['cv']['cpu_time']:.1%}" if "cv" in row else "?"
        lines.append(f"{name:{width}}  {time:>14}  {spread:>9}")
    return "\n".join(lines)


def main() -> int:
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    folder, output = Path(sys.argv[1]), Path(sys.argv[2])
    merged = merge(folder)
    if not merged.get("benchmarks"):
        print("no benchmark was run", file=sys.stderr)
        return 1
    output.write_text(json.dumps(merged, indent=2) + "\n", encoding="utf-8")
    print(table(merged["benchmarks"]))
    print(f"JSON: {output}")
    return 1 if any(b.get("error_occurred") for b in merged["benchmarks"]) else 0


if __name__ == "__main__":
    sys.exit(main())
