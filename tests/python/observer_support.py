"""What the tests of the observers share: paths, a recorder, an observer that is always removed."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import sys
import types
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "tests"))
if importlib.util.find_spec("flopledger") is None:
    # Not installed: the observers need nothing but their own folder of the source tree.
    _package = types.ModuleType("flopledger")
    _package.__path__ = [str(REPOSITORY / "python_bindings" / "flopledger")]
    sys.modules["flopledger"] = _package
os.environ.setdefault("FLOPLEDGER_CACHE_DIR", str(REPOSITORY / "build" / "test-cache"))

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from fakes import host_ops_recorder  # noqa: E402
from fakes.host_ops_recorder import Books, Recorder, find_built  # noqa: E402
from fakes.small_gpt import Shape, Training  # noqa: E402

from flopledger import torch_observer  # noqa: E402

__all__ = [
    "KINDS",
    "REPOSITORY",
    "Books",
    "Recorder",
    "Shape",
    "Training",
    "books_of",
    "find_built",
    "host_ops_recorder",
    "observing",
    "torch",
    "torch_observer",
]

for _name in ("libflopledger_host_ops_recorder.so", "flopledger_count_ops"):
    if find_built(_name) is None:
        pytest.skip(f"{_name} is not built: cmake --build --preset dev", allow_module_level=True)

KINDS = ("native", "dispatch")
torch.set_num_threads(1)


@contextlib.contextmanager
def observing(kind: str, recorder: Recorder | None = None):
    """Yields a recorder that an observer of this kind feeds; skips where the kind cannot be had."""
    recorder = recorder or Recorder()
    handle = torch_observer.install(recorder.table, prefer=kind)
    try:
        if handle.kind != kind:
            pytest.skip(f"no {kind} observer: {handle.reason}")
        yield recorder
    finally:
        handle.remove()


def books_of(kind: str, action) -> Books:
    """What the observer saw of one call."""
    with observing(kind) as recorder:
        action()
    return recorder.books()
