"""A ledger without pages or log lines, and the demo's model beside it."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
flopledger = pytest.importorskip("flopledger", reason="the flopledger wheel is not installed")

ROOT = Path(__file__).resolve().parents[2]


def demo():
    """The module of the demo's training program."""
    name = "flopledger_demo"
    if name not in sys.modules:
        path = ROOT / "docs" / "examples" / "train_gpt.py"
        spec = importlib.util.spec_from_file_location(name, path)
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


@contextlib.contextmanager
def ledger(**options):
    """Started, and closed whatever happens. The peak is given: nothing is measured."""
    chosen = {
        "peak": 1e12,
        "http": False,
        "log_level": "off",
        "log_every": 0,
        "warmup_steps": 0,
        **options,
    }
    led = flopledger.start(**chosen)
    try:
        yield led
    finally:
        led.close()


def reports(path: Path) -> list[dict]:
    """The closed steps of a step log."""
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [line for line in lines if line["type"] == "step"]
