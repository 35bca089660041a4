"""The capture of a session, from Python: a file that begins as one, and what is refused."""

from __future__ import annotations

import struct
import zlib

import pytest
from ledger_support import ledger

MAGIC = b"\x89FLOPCAP"


def blocks(data: bytes) -> list[tuple[int, bytes]]:
    """Kind and content of every block, by the layout of docs/capture.md."""
    assert data[:8] == MAGIC
    version, checksum = struct.unpack("<II", data[8:16])
    assert version == 1
    assert checksum == zlib.crc32(data[:12])
    found = []
    at = 16
    while at < len(data):
        mark, kind, size, checksum = struct.unpack("<4sIII", data[at : at + 16])
        assert mark == b"FBLK"
        content = data[at + 16 : at + 16 + size]
        assert zlib.crc32(data[at + 4 : at + 12] + content) == checksum
        found.append((kind, content))
        at += 16 + size
    return found


def test_a_session_writes_a_capture(tmp_path):
    path = tmp_path / "run.flopcap"
    with ledger(capture=str(path), run="captured") as led:
        for _ in range(5):
            with led.step() as step:
                step.tokens(useful=8)
    kinds = [kind for kind, _ in blocks(path.read_bytes())]
    assert kinds[0] == 1, "the run is described first"
    assert kinds[-1] == 7, "the end is said last"
    assert 6 in kinds, "batches"
    assert b"captured" in blocks(path.read_bytes())[0][1]


def test_a_capture_that_cannot_be_written_is_refused_at_the_start(tmp_path):
    missing = tmp_path / "missing" / "run.flopcap"
    with pytest.raises(OSError, match=r"run\.flopcap"), ledger(capture=str(missing)):
        pass
    path = str(tmp_path / "run.flopcap")
    refused = pytest.raises(ValueError, match="capture_max_bytes is 9; accepted: 65536")
    with refused, ledger(capture=path, capture_max_bytes=9):
        pass
