"""The command line program, run as a user runs it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def program() -> str:
    """FLOPLEDGER_PROGRAM, the one beside Python (from the wheel), or the newest of the builds."""
    beside = Path(sys.executable).parent / "flopledger"
    built = sorted(ROOT.glob("build/*/src/cli/flopledger"), key=lambda p: -p.stat().st_mtime)
    for candidate in (os.environ.get("FLOPLEDGER_PROGRAM"), beside, *built):
        if candidate and os.access(candidate, os.X_OK) and Path(candidate).is_file():
            return str(candidate)
    found = shutil.which("flopledger")
    if not found:
        pytest.skip("the program flopledger is neither installed nor built")
    return found


def flopledger(*arguments: object, status: int = 0, **options) -> subprocess.CompletedProcess:
    """Runs the program and expects its exit status."""
    done = subprocess.run(
        [program(), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
        **options,
    )
    assert done.returncode == status, f"status {done.returncode}: {done.stderr}{done.stdout}"
    return done
