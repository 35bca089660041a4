"""Where a part runs: on a CUDA device, or on the CPU as its stand-in in tests."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any


class Skip(Exception):
    """The part cannot run here, for a reason that is nobody's fault."""


class Failed(Exception):
    """The part ran, and what it found is wrong."""

    def __init__(self, why: str, facts: dict[str, Any]) -> None:
        super().__init__(why)
        self.facts = facts


@dataclass(frozen=True)
class Context:
    """Everything of the machine that a part may use."""

    device: str  # "cuda" or "cpu"
    folder: Path  # for what the part writes
    small: bool = False  # a few steps only: for tests, and to see whether it works at all

    @property
    def on_gpu(self) -> bool:
        return self.device == "cuda"

    def synchronize(self) -> None:
        if self.on_gpu:
            import torch

            torch.cuda.synchronize()

    def side_stream(self) -> contextlib.AbstractContextManager[Any]:
        """Launches inside go to another stream of the device."""
        if not self.on_gpu:
            return contextlib.nullcontext()
        import torch

        return torch.cuda.stream(torch.cuda.Stream())

    def pick(self, full: int, small: int) -> int:
        return small if self.small else full

    def jsonl(self, name: str) -> Path:
        path = self.folder / f"{name}.jsonl"
        path.unlink(missing_ok=True)
        return path


# On the GPU the kernels are seen by the device's own records; on the CPU the ops are the kernels.
def start_options(context: Context, **more: Any) -> dict[str, Any]:
    """What every part gives to ``flopledger.start``."""
    options: dict[str, Any] = {
        "peak": 1e15,
        "http": False,
        "log_every": 0,
        "log_level": "warning",
        "warmup_steps": 0,
        "observer": "none" if context.on_gpu else "native",
    }
    return {**options, **more}


@contextlib.contextmanager
def ledger(context: Context, name: str, **more: Any) -> Iterator[tuple[Any, Path]]:
    """A ledger with a step log, closed whatever happens."""
    import flopledger

    jsonl = context.jsonl(name)
    led = flopledger.start(**start_options(context, jsonl=str(jsonl), **more))
    try:
        yield led, jsonl
    finally:
        led.close()


def settled(led: Any, name: str, seconds: float = 5.0) -> dict[str, str]:
    """The capabilities, once the one named says `ok`, or after a while: the worker announces what
    it finds when it next looks.
    """
    end = time.monotonic() + seconds
    while led.capabilities.get(name) != "ok" and time.monotonic() < end:
        time.sleep(0.01)
    return led.capabilities


def mapped_libraries(part: str) -> list[str]:
    """Files of this process's memory map whose path holds `part`."""
    paths = set()
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
            fields = line.split(maxsplit=5)
            if len(fields) == 6 and part in Path(fields[5]).name:
                paths.add(fields[5])
    return sorted(paths)


def _driver() -> str:
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(
            ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader", "--id=0"],
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        )
        return done.stdout.strip()
    return ""


def machine(context: Context) -> dict[str, Any]:
    """What a figure has to be read with. No host name, no path."""
    import torch

    import flopledger

    facts: dict[str, Any] = {
        "device": context.device,
        "flopledger": flopledger.__version__,
        "torch": torch.__version__,
        "cores": len(os.sched_getaffinity(0)),
    }
    if context.on_gpu:
        properties = torch.cuda.get_device_properties(0)
        facts |= {
            "device_name": properties.name,
            "multiprocessors": properties.multi_processor_count,
            "memory_bytes": properties.total_memory,
            "compute_capability": f"{properties.major}.{properties.minor}",
            "cuda": torch.version.cuda,
            "driver": _driver(),
        }
    return facts
