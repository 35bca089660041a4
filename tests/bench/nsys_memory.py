#!/usr/bin/env python3
"""Reads a large Nsight Systems export of our own making and says what that took.

    python3 tests/bench/nsys_memory.py build/release/src/cli/flopledger --kernels 2000000
    python3 tests/bench/nsys_memory.py build/release/src/cli/flopledger trace.sqlite trace.xplane.pb

Without files it makes an export with so many kernels, their launches and a range around every
fourth of them, in a folder for temporary files, and removes it. Prints for each file: its size, the
time of the whole process, MB/s, its largest resident size, and the kernels that were counted.
Fails (exit 1) if that count is not the one that was written, or the memory passes --limit-mib.
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROCESS = 16777360
TABLES = """
PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA page_size=4096;
CREATE TABLE StringIds(id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER NOT NULL, end INTEGER NOT NULL,
  deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, greenContextId INTEGER,
  streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
  demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, mangledName INTEGER,
  launchType INTEGER, cacheConfig INTEGER, registersPerThread INTEGER NOT NULL,
  gridX INTEGER NOT NULL, gridY INTEGER NOT NULL, gridZ INTEGER NOT NULL,
  blockX INTEGER NOT NULL, blockY INTEGER NOT NULL, blockZ INTEGER NOT NULL,
  staticSharedMemory INTEGER NOT NULL, dynamicSharedMemory INTEGER NOT NULL,
  localMemoryPerThread INTEGER NOT NULL, localMemoryTotal INTEGER NOT NULL,
  gridId INTEGER NOT NULL, sharedMemoryExecuted INTEGER, graphNodeId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INTEGER NOT NULL, end INTEGER NOT NULL,
  eventClass INTEGER NOT NULL, globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL,
  returnValue INTEGER NOT NULL, callchainId INTEGER);
CREATE TABLE NVTX_EVENTS(start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL,
  rangeId INTEGER, category INTEGER, color INTEGER, text TEXT, globalTid INTEGER,
  endGlobalTid INTEGER, textId INTEGER, domainId INTEGER, uint64Value INTEGER);
"""


def write_export(path: Path, kernels: int, per_step: int) -> None:
    """An export with the columns of a recent version; work lags its launches by a millisecond."""
    db = sqlite3.connect(path)
    db.executescript(TABLES)
    db.executemany(
        "INSERT INTO StringIds VALUES (?, ?)",
        [(i + 1, f"void gemm_kernel<{i}>(float*, float*)") for i in range(200)],
    )
    thread = (PROCESS << 24) + 144
    for first in range(0, kernels, 50000):
        rows = range(first, min(kernels, first + 50000))
        db.executemany(
            "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES "
            "(?,?,0,1,NULL,?,?,?,?,?,NULL,1,0,168,132,1,1,384,1,1,0,227328,0,99090432,?,233472,"
            "NULL)",
            (
                (
                    60_000_000_000 + i * 10_000 + 1_000_000,
                    60_000_000_000 + i * 10_000 + 1_008_000,
                    7 + i % 2,
                    1_000_000 + i * 3,
                    PROCESS << 24,
                    1 + i % 200,
                    1 + i % 200,
                    i,
                )
                for i in rows
            ),
        )
        db.executemany(
            "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?,?,0,?,?,1,0,NULL)",
            (
                (
                    60_000_000_000 + i * 10_000,
                    60_000_000_000 + i * 10_000 + 3_000,
                    thread,
                    1_000_000 + i * 3,
                )
                for i in rows
            ),
        )
        db.executemany(
            "INSERT INTO NVTX_EVENTS VALUES (?,?,59,NULL,NULL,NULL,?,?,NULL,NULL,0,NULL)",
            (
                (
                    60_000_000_000 + i * 10_000 - 1_000,
                    60_000_000_000 + i * 10_000 + 5_000
                    if i % per_step
                    else 60_000_000_000 + (i + per_step) * 10_000 - 1_000,
                    f"aten::mm, op_id = {i}" if i % per_step else f"step {i // per_step}",
                    thread,
                )
                for i in rows
                if i % 4 == 0
            ),
        )
    db.commit()
    db.close()


def replay(program: str, path: Path) -> tuple[float, int, int]:
    """Seconds, largest resident bytes and counted kernels of one replay."""
    start = time.monotonic()
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen([program, "replay", str(path), "--json"], stdout=out)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - start
        if os.waitstatus_to_exitcode(status) not in (0, 1):
            sys.exit(f"{program} replay {path}: exit {os.waitstatus_to_exitcode(status)}")
        out.seek(0)
        report = json.load(out)
    counted = sum(int(part["kernels"]) for part in report["files"])
    return seconds, usage.ru_maxrss * 1024, counted


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--kernels", type=int, default=1_000_000)
    parser.add_argument("--step-kernels", type=int, default=20_000)
    parser.add_argument("--limit-mib", type=int, default=256)
    arguments = parser.parse_args()
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        files = arguments.files
        expected = None
        if not files:
            files = [Path(folder) / "large.sqlite"]
            write_export(files[0], arguments.kernels, arguments.step_kernels)
            expected = arguments.kernels
        for path in files:
            seconds, resident, kernels = replay(arguments.program, path)
            size = path.stat().st_size
            print(
                f"{path.name}: {size / 1e6:.1f} MB, {kernels} kernels, {seconds:.2f} s, "
                f"{size / 1e6 / seconds:.0f} MB/s, {resident / 2**20:.0f} MiB"
            )
            failed |= resident > arguments.limit_mib * 2**20
            failed |= expected is not None and kernels != expected
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
