"""A run that never was, served by a program of the build, and a headless browser to see it."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import urllib.request
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def fake_run_program() -> Path:
    """FLOPLEDGER_FAKE_RUN, or the newest one of the builds."""
    named = os.environ.get("FLOPLEDGER_FAKE_RUN")
    if named:
        return Path(named)
    built = sorted(
        ROOT.glob("build/*/tests/fakes/flopledger_fake_run"), key=lambda p: p.stat().st_mtime
    )
    if not built:
        pytest.skip("flopledger_fake_run is not built (cmake --build --preset dev)")
    return built[-1]


@contextlib.contextmanager
def fake_run(steps: int, jsonl: Path | None = None):
    """Serves `steps` steps, all of them published and the run finished; gives the address."""
    command = [str(fake_run_program()), "0", str(steps), "0"]
    if jsonl is not None:
        command.append(str(jsonl))
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            address = process.stdout.readline().strip().removesuffix("/live")
            for line in process.stdout if steps >= 0 else ():
                if line.startswith("  own time"):  # the end of the summary
                    break
            yield address
        finally:
            process.terminate()
            process.stdout.close()


def get(url: str) -> str:
    """Body of a page."""
    with urllib.request.urlopen(url, timeout=10) as response:
        return response.read().decode()


def dump_dom(url: str, *arguments: str, milliseconds: int = 4000) -> str:
    """The document after its scripts have run for a while."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        pytest.skip("chromium is not installed (Debian package chromium)")
    with tempfile.TemporaryDirectory() as profile:
        command = [
            *(browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run"),
            *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
            *(f"--user-data-dir={profile}", f"--virtual-time-budget={milliseconds}"),
            *("--window-size=1200,900", *arguments, "--dump-dom", url),
        ]
        return subprocess.run(
            command, check=True, capture_output=True, text=True, timeout=120
        ).stdout
