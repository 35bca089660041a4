"""Resident memory of a process with a ledger over many steps.

    python tests/bench/memory_growth.py [--steps 200000]

Prints one line per tenth of the steps: steps, MiB resident, MiB more than at the first line. The
pages are served and scraped; nothing is trained.
"""

from __future__ import annotations

import argparse
import urllib.request
from pathlib import Path

import flopledger


def resident_mib() -> float:
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return float("nan")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=200_000)
    options = parser.parse_args()
    before = resident_mib()
    led = flopledger.start(
        model_flops=flopledger.formula("6*N*T", N=124_000_000),
        peak=1e12,
        port=0,
        log_every=0,
        log_level="off",
        observer="none",
    )
    print(f"before start {before:8.1f} MiB")
    first = None
    for number in range(1, options.steps + 1):
        with led.step() as step:
            step.tokens(useful=1024)
            step.value("loss", 1.0 / number)
        if number % max(1, options.steps // 10) == 0:
            urllib.request.urlopen(led.address + "/metrics", timeout=10).read()
            now = resident_mib()
            first = now if first is None else first
            print(f"{number:10d} steps {now:8.1f} MiB {now - first:+8.2f}", flush=True)
    led.close()


if __name__ == "__main__":
    main()
