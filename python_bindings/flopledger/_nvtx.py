"""The one slot that NVTX has for a listener in a process."""

from __future__ import annotations

import os
from pathlib import Path

from . import _core
from ._config import is_off

_VARIABLE = "NVTX_INJECTION64_PATH"


def claim() -> bool:
    """Takes the slot where it is free. Each copy of NVTX looks at its first range and never again,
    so this is done at the import.
    """
    if is_off(os.environ.get("FLOPLEDGER_NVTX", "")) or not _core.claim_nvtx():
        return False
    # os.environ is a copy, which child processes may be given.
    path = _core.nvtx_injection_path()
    if Path(os.environ.get(_VARIABLE, "")).resolve() != Path(path):
        os.environ[_VARIABLE] = path
    return True
