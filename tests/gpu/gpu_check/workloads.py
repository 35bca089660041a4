"""Steps whose launches are known: each call below is one kernel, and nothing else is."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from .context import Context


class Negations:
    """`count` changes of sign in place: one elementwise kernel each, without a scalar."""

    def __init__(self, context: Context, elements: int) -> None:
        import torch

        self._values = torch.zeros(elements, device=context.device)

    def run(self, count: int) -> None:
        for _ in range(count):
            self._values.neg_()


class Matmuls:
    """`count` products of square matrices into one buffer."""

    def __init__(self, context: Context, size: int) -> None:
        import torch

        dtype = torch.bfloat16 if context.on_gpu else torch.float32
        generator = torch.Generator(device=context.device).manual_seed(1)
        shape = (size, size)
        self._left = torch.randn(shape, device=context.device, dtype=dtype, generator=generator)
        self._right = torch.randn(shape, device=context.device, dtype=dtype, generator=generator)
        self._out = torch.empty_like(self._left)

    def run(self, count: int) -> None:
        import torch

        for _ in range(count):
            torch.mm(self._left, self._right, out=self._out)


def captured(context: Context, run: Callable[[], None]) -> Callable[[], None]:
    """`run` as a CUDA graph; on the CPU just `run`."""
    if not context.on_gpu:
        return run
    import torch

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        run()  # libraries allocate their workspaces at the first call
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    torch.cuda.synchronize()
    return graph.replay


class UnevenSteps:
    """Steps of unlike lengths, from two threads on two streams: what is given to the wrong step
    changes two counts.
    """

    def __init__(self, context: Context, elements: int) -> None:
        self._context = context
        self._main = Negations(context, elements)
        self._side = Negations(context, elements)

    @staticmethod
    def main_launches(step: int) -> int:
        return 20 + 7 * (step % 5)

    @staticmethod
    def side_launches(step: int) -> int:
        return 5 + 3 * (step % 4)

    def truth(self, steps: int) -> dict[int, int]:
        """Launches of each step."""
        return {step: self.main_launches(step) + self.side_launches(step) for step in range(steps)}

    def run(self, step: int) -> None:
        def beside() -> None:
            with self._context.side_stream():
                self._side.run(self.side_launches(step))

        thread = threading.Thread(target=beside)
        thread.start()
        self._main.run(self.main_launches(step))
        thread.join()  # the host has launched it; nobody waits for the device


def finished(context: Context) -> Callable[[], bool]:
    """Asks whether the device has done all that was launched up to here, without waiting."""
    if not context.on_gpu:
        return lambda: True
    import torch

    event = torch.cuda.Event()
    event.record()
    return event.query


def training(context: Context, width: int, layers: int) -> tuple[Callable[[], Any], int]:
    """A step of a small transformer with its optimizer, and the tokens that it takes."""
    import torch
    from torch import nn

    torch.manual_seed(1)
    batch, length, words = 4, 128, 512
    model = nn.Sequential(
        nn.Embedding(words, width),
        *(
            nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, batch_first=True)
            for _ in range(layers)
        ),
        nn.Linear(width, words),
    ).to(context.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    tokens = torch.randint(words, (batch, length), device=context.device)

    def step() -> Any:
        with torch.autocast(context.device, dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    return step, batch * length
