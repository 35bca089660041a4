"""The fallback observer: a dispatch mode in Python.

It sees eager ops of the thread that installed it, below autograd and autocast; the inside of a
custom op is invisible to it, and compiled code runs eagerly while it is installed. An
`autograd.Function` runs its forward with grad mode off, which in a replay looks like backward.
"""

from __future__ import annotations

import ast
import time
from pathlib import Path
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode

from ._host_ops import Argument, Writer

# Numbers of the C table.
_NONE, _TENSOR, _INTEGER, _INTEGER_LIST, _BOOLEAN, _REAL, _TEXT = range(7)
_OTHER = 8
_FORWARD, _BACKWARD, _RECOMPUTE = range(3)
_MOST_INTEGERS = 16
_MOST_SIGNATURES = 4096

_DTYPES = {
    torch.float64: 0,
    torch.float32: 1,
    torch.float16: 3,
    torch.bfloat16: 4,
    torch.float8_e5m2: 5,
    torch.float8_e4m3fn: 5,
    torch.float8_e5m2fnuz: 5,
    torch.float8_e4m3fnuz: 5,
    torch.int8: 7,
}
if hasattr(torch, "float4_e2m1fn_x2"):
    _DTYPES[torch.float4_e2m1fn_x2] = 6

_PLAIN = (torch.Tensor, torch.nn.Parameter)
_PYTHON = torch._C.DispatchKey.Python
_DENSE_LAYOUTS = (torch.strided, vars(torch).get("_mkldnn"))

_ABSENT: Argument = (_NONE, _OTHER, (), 0.0)
_COMPOSITE = "flopledger::composite"
# Where the mode sees a caller whose kernel it cannot see: the kernel with the same arguments.
_KERNEL_OF = {"aten::convolution": "aten::_convolution"}


def counted_op_names() -> frozenset[str]:
    """Ops with a counting rule; of others the name is enough. One list for both observers."""
    text = (Path(__file__).resolve().parent / "counted_ops.inc").read_text(encoding="ascii")
    return frozenset(ast.literal_eval("(" + text + ")"))


class _StandsForAnother(Exception):
    """Raised by an argument without data: nothing runs."""


def _encode_tensor(tensor: torch.Tensor) -> Argument:
    if tensor.device.type == "meta":
        raise _StandsForAnother
    if type(tensor) not in _PLAIN and torch._C._dispatch_keys(tensor).has(_PYTHON):
        if type(tensor).__name__ == "FakeTensor":
            raise _StandsForAnother
        return _ABSENT  # a wrapper's shape is not the shape of the work on this device
    if tensor.is_nested or tensor.layout not in _DENSE_LAYOUTS:
        return _ABSENT
    return (_TENSOR, _DTYPES.get(tensor.dtype, _OTHER), tuple(tensor.shape), 0.0)


def _encode_list(values: list | tuple) -> Argument:
    if len(values) > _MOST_INTEGERS or not all(isinstance(value, int) for value in values):
        return _ABSENT
    return (_INTEGER_LIST, _OTHER, tuple(int(value) for value in values), 0.0)


def _encode(value: Any) -> Argument:
    # Real numbers by kind only, as in the C++ observer: a learning rate changes with every step.
    if value is None:
        return _ABSENT
    if isinstance(value, torch.Tensor):
        return _encode_tensor(value)
    if isinstance(value, bool):
        return (_BOOLEAN, _OTHER, (int(value),), 0.0)
    if isinstance(value, int):
        return (_INTEGER, _OTHER, (value,), 0.0)
    if isinstance(value, float):
        return (_REAL, _OTHER, (), 0.0)
    if isinstance(value, str):
        return (_TEXT, _OTHER, (), 0.0)
    if isinstance(value, list | tuple):
        return _encode_list(value)
    return _ABSENT


class _Op:
    """What is known of an overload after the first call."""

    __slots__ = ("counted", "defaults", "name", "signature")

    def __init__(self, overload: Any, counted: frozenset[str], writer: Writer) -> None:
        schema = overload._schema
        self.name = _KERNEL_OF.get(schema.name, schema.name)
        self.counted = self.name in counted
        self.defaults = [
            (argument.name, argument.default_value if argument.has_default_value() else None)
            for argument in schema.arguments
        ]
        self.signature = 0 if self.counted else writer.intern(self.name, ())

    def arguments(self, args: tuple, kwargs: dict) -> tuple[Argument, ...]:
        """In schema order with defaults filled in, as the C++ observer sees them."""
        values = [
            *args,
            *(kwargs.get(name, default) for name, default in self.defaults[len(args) :]),
        ]
        return tuple(map(_encode, values))


class DispatchObserver(TorchDispatchMode):
    """Writes a record for every op that reaches the dispatch mode of this thread."""

    def __init__(self, writer: Writer) -> None:
        super().__init__()
        self._writer = writer
        self._counted = counted_op_names()
        self._ops: dict[Any, _Op] = {}
        self._signatures: dict[tuple, int] = {}
        self._composite = writer.intern(_COMPOSITE, ())
        self._active = False

    def install(self) -> None:
        self._active = True
        self.__enter__()

    def remove(self) -> None:
        """Leaves the stack of modes if it is on top; below another mode it turns inert instead."""
        if self._active and _get_current_dispatch_mode() is self:
            self.__exit__(None, None, None)
        self._active = False

    def _signature(self, overload: Any, args: tuple, kwargs: dict) -> int:
        op = self._ops.get(overload)
        if op is None:
            op = self._ops[overload] = _Op(overload, self._counted, self._writer)
        if not op.counted:
            return op.signature
        try:
            arguments = op.arguments(args, kwargs)
        except _StandsForAnother:
            return self._composite
        key = (op.name, arguments)
        known = self._signatures.get(key)
        if known is None:
            if len(self._signatures) >= _MOST_SIGNATURES:
                self._signatures.clear()
            known = self._signatures[key] = self._writer.intern(op.name, arguments)
        return known

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if not self._active:
            return func(*args, **kwargs)
        signature = self._signature(func, args, kwargs)
        phase = _FORWARD
        if torch._C._current_graph_task_id() != -1:
            phase = _RECOMPUTE if torch.is_grad_enabled() else _BACKWARD
        start = time.monotonic_ns()
        try:
            result = func(*args, **kwargs)
        except BaseException:
            self._writer.aborted(time.monotonic_ns())
            raise
        end = time.monotonic_ns()
        self._writer.write(start, end, end - start, signature, phase)
        return result
