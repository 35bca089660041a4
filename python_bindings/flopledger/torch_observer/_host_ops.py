"""The C table of `flopledger/host_ops.h` for Python: what an observer writes to."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Protocol

VERSION = 1

Argument = tuple[int, int, Sequence[int], float]
"""One argument of an op: kind, dtype (numbers of the C table), integers, real."""


class OpArgument(ctypes.Structure):
    _fields_ = (
        ("kind", ctypes.c_uint8),
        ("dtype", ctypes.c_uint8),
        ("reserved", ctypes.c_uint16),
        ("integer_count", ctypes.c_uint32),
        ("integers", ctypes.POINTER(ctypes.c_int64)),
        ("real", ctypes.c_double),
    )


class OpRecord(ctypes.Structure):
    _fields_ = (
        ("start_ns", ctypes.c_int64),
        ("end_ns", ctypes.c_int64),
        ("self_ns", ctypes.c_int64),
        ("signature", ctypes.c_uint32),
        ("phase", ctypes.c_uint8),
        ("reserved", ctypes.c_uint8 * 3),
    )


INTERN = ctypes.CFUNCTYPE(
    ctypes.c_uint32,
    ctypes.c_void_p,
    ctypes.c_char_p,
    ctypes.POINTER(OpArgument),
    ctypes.c_uint32,
)
WRITE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(OpRecord))
ABORTED = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)


class Table(ctypes.Structure):
    _fields_ = (
        ("version", ctypes.c_uint32),
        ("size", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("intern", INTERN),
        ("write", WRITE),
        ("aborted", ABORTED),
    )


class Writer(Protocol):
    """Where an observer in Python hands its records."""

    def intern(self, name: str, arguments: Sequence[Argument]) -> int: ...

    def write(
        self, start_ns: int, end_ns: int, self_ns: int, signature: int, phase: int
    ) -> None: ...

    def aborted(self, end_ns: int) -> None: ...


class HostOps:
    """A `Writer` on a C table at an address. The table outlives it."""

    def __init__(self, address: int) -> None:
        table = Table.from_address(address)
        if table.version != VERSION or table.size < ctypes.sizeof(Table):
            raise ValueError(
                f"host_ops_address points to a table of version {table.version} and "
                f"{table.size} bytes; accepted: version {VERSION}, at least "
                f"{ctypes.sizeof(Table)} bytes"
            )
        self._context = table.context
        self._intern = table.intern
        self._write = table.write
        self._aborted = table.aborted

    def intern(self, name: str, arguments: Sequence[Argument]) -> int:
        array = (OpArgument * len(arguments))()
        kept = []  # the integers, until the call is over
        for slot, (kind, dtype, integers, real) in zip(array, arguments, strict=True):
            values = (ctypes.c_int64 * len(integers))(*integers)
            kept.append(values)
            slot.kind, slot.dtype, slot.real = kind, dtype, real
            slot.integer_count = len(integers)
            slot.integers = ctypes.cast(values, ctypes.POINTER(ctypes.c_int64))
        return self._intern(self._context, name.encode(), array, len(arguments))

    def write(self, start_ns: int, end_ns: int, self_ns: int, signature: int, phase: int) -> None:
        record = OpRecord(start_ns, end_ns, self_ns, signature, phase)
        self._write(self._context, ctypes.byref(record))

    def aborted(self, end_ns: int) -> None:
        self._aborted(self._context, end_ns)
