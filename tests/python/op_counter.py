"""Counts the matrix work of a PyTorch program from the shapes of its ops alone: a second way to the
same figure, which knows nothing of layers or formulas."""

from __future__ import annotations

from collections import Counter

import torch
from torch.utils._python_dispatch import TorchDispatchMode

aten = torch.ops.aten


def _product(values) -> int:
    result = 1
    for value in values:
        result *= int(value)
    return result


def _mm(a, b) -> int:
    """FLOPs of a product of matrices, batched or not."""
    return 2 * _product(a.shape) * int(b.shape[-1])


def _convolution(weight, output) -> int:
    """FLOPs of a convolution by what it writes."""
    return 2 * _product(output) * _product(weight.shape[1:])


class OpCounter(TorchDispatchMode):
    """``with OpCounter() as ops: ...`` then ``ops.flops`` and, by kind, ``ops.kinds``.

    Batched products with an inner dimension of 1 are the angles of rotary embeddings: no model
    counts them, so they stand apart as ``rotary``.
    """

    def __init__(self) -> None:
        super().__init__()
        self.kinds: Counter[str] = Counter()

    @property
    def flops(self) -> int:
        return sum(count for kind, count in self.kinds.items() if kind != "rotary")

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        packet = func.overloadpacket
        if packet is aten.mm:
            self.kinds["matmul"] += _mm(args[0], args[1])
        elif packet is aten.bmm:
            rotary = int(args[0].shape[-1]) == 1
            self.kinds["rotary" if rotary else "matmul"] += _mm(args[0], args[1])
        elif packet in (aten.addmm, aten.baddbmm):
            self.kinds["matmul"] += _mm(args[1], args[2])
        elif packet is aten.convolution:
            self.kinds["convolution"] += _convolution(args[1], out.shape)
        elif packet is aten.convolution_backward:
            gradients = sum(bool(wanted) for wanted in args[-1][:2])
            self.kinds["convolution"] += gradients * _convolution(args[2], args[0].shape)
        elif "grouped_mm" in str(packet) or "scaled_dot_product" in str(packet):
            raise AssertionError(f"{packet} is not counted here; choose eager implementations")
        return out


def count_step(model, forward) -> tuple[OpCounter, OpCounter]:
    """Forward and backward of one step; ``forward(model)`` gives what is summed and derived."""
    with OpCounter() as ahead:
        output = forward(model)
        loss = output.float().sum()
    with OpCounter() as back:
        loss.backward()
    return ahead, back
