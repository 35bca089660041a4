"""The parts of tests/gpu/check.sh as tests:  python -m pytest tests/gpu -m gpu"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("flopledger", reason="flopledger is not installed")
sys.path.insert(0, str(Path(__file__).resolve().parent))
from gpu_check.context import Context, Skip  # noqa: E402
from gpu_check.parts import PARTS  # noqa: E402

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no CUDA device"),
]


@pytest.mark.parametrize("name", PARTS)
def test_part(name: str, tmp_path: Path) -> None:
    part, _ = PARTS[name]
    try:
        part(Context(device="cuda", folder=tmp_path, small=True))
    except Skip as skip:
        pytest.skip(str(skip))
