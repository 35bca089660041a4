"""A session's host-ops table that keeps what an observer writes, and the op rules applied to it."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from flopledger.torch_observer._host_ops import OpArgument, OpRecord

REPOSITORY = Path(__file__).resolve().parents[2]
PHASES = ("forward", "backward", "recompute")


def find_built(name: str) -> Path | None:
    """A test binary: in `FLOPLEDGER_TEST_BUILD`, else in the newest build folder that has it."""
    named = os.environ.get("FLOPLEDGER_TEST_BUILD")
    folders = [Path(named)] if named else list((REPOSITORY / "build").glob("*"))
    found = [
        path for path in (folder / "tests/fakes" / name for folder in folders) if path.is_file()
    ]
    return max(found, key=lambda path: path.stat().st_mtime, default=None)


@dataclass(frozen=True)
class Signature:
    name: str
    arguments: tuple[tuple[int, int, tuple[int, ...], float], ...]


@dataclass(frozen=True)
class Cost:
    coverage: str
    op_class: str
    dtype: str
    executed: int
    excess: int
    reason: str


@dataclass
class Books:
    """Sums over records, by the op rules."""

    executed: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    excess: int = 0
    unknown: set[str] = field(default_factory=set)
    ops: int = 0
    composites: int = 0
    by_name: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    @property
    def total(self) -> int:
        return sum(self.executed.values())


def count(signatures: Iterable[Signature]) -> list[Cost]:
    """The rules of the library, through the command-line tool of the tests."""
    tool = find_built("flopledger_count_ops")
    assert tool is not None
    lines = "".join(
        json.dumps({"name": one.name, "arguments": one.arguments}) + "\n" for one in signatures
    )
    answer = subprocess.run([tool], input=lines, capture_output=True, text=True, check=True)
    costs = []
    for line in answer.stdout.splitlines():
        entry = json.loads(line)
        excess = sum(int(value) for value in entry.pop("excess").values())
        costs.append(Cost(**{**entry, "executed": int(entry["executed"]), "excess": excess}))
    return costs


class Recorder:
    """Thread: records may come from any; read them when nothing is running."""

    def __init__(self, capacity: int = 1 << 20) -> None:
        path = find_built("libflopledger_host_ops_recorder.so")
        assert path is not None
        library = self._library = ctypes.CDLL(str(path))
        library.recorder_create.restype = ctypes.c_void_p
        library.recorder_create.argtypes = [ctypes.c_uint64]
        for name, result in (
            ("table", ctypes.c_void_p),
            ("written", ctypes.c_uint64),
            ("aborted", ctypes.c_uint64),
            ("interned", ctypes.c_uint64),
            ("pushed", ctypes.c_uint64),
            ("popped", ctypes.c_uint64),
            ("make_old", None),
            ("signature_count", ctypes.c_uint64),
            ("records", ctypes.POINTER(OpRecord)),
            ("clear", None),
        ):
            function = getattr(library, f"recorder_{name}")
            function.restype, function.argtypes = result, [ctypes.c_void_p]
        library.recorder_name.restype = ctypes.c_char_p
        library.recorder_name.argtypes = [ctypes.c_void_p, ctypes.c_uint64]
        library.recorder_argument_count.restype = ctypes.c_uint64
        library.recorder_argument_count.argtypes = [ctypes.c_void_p, ctypes.c_uint64]
        library.recorder_argument.restype = None
        library.recorder_argument.argtypes = [
            ctypes.c_void_p,
            ctypes.c_uint64,
            ctypes.c_uint64,
            ctypes.POINTER(OpArgument),
        ]
        self._capacity = capacity
        self._self = library.recorder_create(capacity)

    @cached_property
    def table(self) -> int:
        """Address of the table; it lives until the process ends, as the contract wants."""
        return self._library.recorder_table(self._self)

    @property
    def aborted(self) -> int:
        return self._library.recorder_aborted(self._self)

    @property
    def interned(self) -> int:
        """Calls of `intern`, known signatures included."""
        return self._library.recorder_interned(self._self)

    @property
    def pushed(self) -> int:
        """Ops that said that what they launch on a device is their own."""
        return self._library.recorder_pushed(self._self)

    @property
    def popped(self) -> int:
        return self._library.recorder_popped(self._self)

    def make_old(self) -> None:
        """Cuts the table to the size that it had before it could be told of launches."""
        self._library.recorder_make_old(self._self)

    @property
    def written(self) -> int:
        return self._library.recorder_written(self._self)

    def clear(self) -> None:
        """Forgets the records, keeps the signatures."""
        self._library.recorder_clear(self._self)

    def records(self) -> list[OpRecord]:
        written = self.written
        assert written <= self._capacity, f"{written} records, room for {self._capacity}"
        return self._library.recorder_records(self._self)[:written]

    def signature(self, number: int) -> Signature:
        arguments = []
        for index in range(self._library.recorder_argument_count(self._self, number)):
            out = OpArgument()
            self._library.recorder_argument(self._self, number, index, ctypes.byref(out))
            integers = tuple(out.integers[i] for i in range(out.integer_count))
            arguments.append((out.kind, out.dtype, integers, out.real))
        name = self._library.recorder_name(self._self, number).decode()
        return Signature(name, tuple(arguments))

    def signatures(self) -> list[Signature]:
        """All of them by number; number 0 has an empty name."""
        total = self._library.recorder_signature_count(self._self)
        return [self.signature(number) for number in range(total)]

    def books(self) -> Books:
        signatures = self.signatures()
        costs = count(signatures)
        books = Books()
        for record in self.records():
            cost, name = costs[record.signature], signatures[record.signature].name
            books.ops += 1
            books.composites += cost.op_class == "composite"
            if cost.coverage == "unknown":
                books.unknown.add(name)
            elif cost.coverage == "counted":
                books.executed[PHASES[record.phase]] += cost.executed
                books.excess += cost.excess
                books.by_name[name] += cost.executed
        return books
