#!/usr/bin/env python3
"""Replay against the floor, plain json.load and HolisticTraceAnalysis, on the same files.

    cmake --preset release && cmake --build --preset release
    python3 tests/bench/replay_bench.py [--without-hta] [--repetitions N] [FILE...]

Each contender is a whole process; the figures are the median wall and processor time and the
largest memory over the repetitions, which take turns so that a busy moment hits all alike. Without
FILE: three recorded traces of ../shared/traces. HolisticTraceAnalysis 0.5.0 comes from PyPI into a
virtual environment of its own, gone at the end. Close what else the machine does.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TRACES = ROOT.parent / "shared" / "traces"
DEFAULT = ("T03_v100_resnet50", "T06_a100_dlrm_nccl", "T08_a100_cuda_graphs")
HTA = "HolisticTraceAnalysis==0.5.0"

JSON_LOAD = """
import gzip, json, sys
json.load(gzip.open(sys.argv[1]))
"""
HTA_BREAKDOWN = """
import sys
from hta.trace_analysis import TraceAnalysis
analysis = TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir="")
analysis.get_temporal_breakdown(visualize=False)
analysis.get_gpu_kernel_breakdown(visualize=False)
"""


@dataclass
class Contender:
    name: str
    command: list[str]
    wall: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)
    peak_kib: int = 0
    failure: str = ""

    def run(self) -> None:
        """One process, with what it used."""
        begin = time.perf_counter()
        with tempfile.TemporaryFile() as complaints:
            process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL, stderr=complaints)
            _, status, usage = os.wait4(process.pid, 0)
            wall = time.perf_counter() - begin
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode != 0:
                complaints.seek(0)
                lines = complaints.read().decode(errors="replace").splitlines()
                self.failure = lines[-1] if lines else f"status {process.returncode}"
                return
        self.wall.append(wall)
        self.processor.append(usage.ru_utime + usage.ru_stime)
        self.peak_kib = max(self.peak_kib, usage.ru_maxrss)


def contenders(trace: Path, hta_python: Path | None) -> list[Contender]:
    build = ROOT / "build" / "release"
    result = [
        Contender("floor", [str(build / "tests" / "bench" / "trace_floor"), str(trace)]),
        Contender(
            "flopledger replay",
            [str(build / "src" / "cli" / "flopledger"), "replay", "--json", str(trace)],
        ),
        Contender("json.load", [sys.executable, "-c", JSON_LOAD, str(trace)]),
    ]
    if hta_python:
        result.append(Contender("HTA 0.5.0", [str(hta_python), "-c", HTA_BREAKDOWN, str(trace)]))
    return result


def measure(trace: Path, hta_python: Path | None, repetitions: int) -> None:
    """Prints one table."""
    with gzip.open(trace) as text:
        text_bytes = sum(len(block) for block in iter(lambda: text.read(1 << 20), b""))
    packed_bytes = trace.stat().st_size
    rivals = contenders(trace, hta_python)
    for _ in range(repetitions):
        for rival in rivals:
            # The slow ones need fewer looks.
            if not rival.failure and not (len(rival.wall) >= 3 and rival.wall[0] > 1):
                rival.run()
    print(f"\n{trace.name}: {text_bytes / 1e6:.1f} MB of JSON, {packed_bytes / 1e6:.2f} MB of gzip")
    print(f"{'':20}{'wall':>10}{'processor':>12}{'memory':>10}{'JSON':>12}{'gzip':>12}{'':>10}")
    ours = next(rival for rival in rivals if rival.name == "flopledger replay")
    for rival in rivals:
        if rival.failure or not rival.wall:
            print(f"{rival.name:20}failed: {rival.failure}")
            continue
        wall = statistics.median(rival.wall)
        ratio = wall / statistics.median(ours.wall) if ours.wall else float("nan")
        print(
            f"{rival.name:20}{wall * 1e3:7.1f} ms{statistics.median(rival.processor) * 1e3:9.1f} ms"
            f"{rival.peak_kib / 1024:6.1f} MiB{text_bytes / wall / 1e6:7.0f} MB/s"
            f"{packed_bytes / wall / 1e6:7.1f} MB/s{ratio:8.2f} x"
        )


def install_hta(folder: Path) -> Path:
    """HolisticTraceAnalysis in an environment of its own; its Python."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    subprocess.run([str(python), "-m", "pip", "install", "-q", HTA], check=True)
    return python


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--without-hta", action="store_true")
    parser.add_argument("--hta-python", type=Path, help="a Python that has it already")
    parser.add_argument("--repetitions", type=int, default=15)
    parser.add_argument("--json", action="store_true", help="the machine, as one object, first")
    parser.add_argument("files", nargs="*", type=Path)
    options = parser.parse_args()
    files = options.files or [TRACES / f"{name}.json.gz" for name in DEFAULT]
    files = [path for path in files if path.exists()]
    if not files:
        print(f"no traces: {TRACES} is not here, and no FILE is given", file=sys.stderr)
        return 2
    absent = [
        command[0]
        for _, command in ((c.name, c.command) for c in contenders(files[0], None))
        if not os.access(command[0], os.X_OK)
    ]
    if absent:
        print(f"not built: {', '.join(absent)} (preset release)", file=sys.stderr)
        return 4
    if options.json:
        print(json.dumps({"cpus": os.cpu_count(), "load": os.getloadavg()}))
    with tempfile.TemporaryDirectory() as folder:
        python = options.hta_python
        if not options.without_hta and python is None:
            python = install_hta(Path(folder))
        for path in files:
            measure(path, None if options.without_hta else python, options.repetitions)
    return 0


if __name__ == "__main__":
    sys.exit(main())
