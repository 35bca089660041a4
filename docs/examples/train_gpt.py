"""Trains a small GPT on text that comes with Python, and keeps its books.

    python train_gpt.py                       about a minute
    python train_gpt.py --steps 200           200 optimizer steps
    python train_gpt.py --keep-serving        the page stays until Ctrl-C

The text is the language reference in `pydoc_data.topics`. Every block is checkpointed, so part of
the work is done twice: watch HFU stay above MFU by just that.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from pydoc_data import topics

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

import flopledger


class Block(nn.Module):
    def __init__(self, hidden: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm_attention = nn.LayerNorm(hidden)
        self.query_key_value = nn.Linear(hidden, 3 * hidden, bias=False)
        self.projection = nn.Linear(hidden, hidden, bias=False)
        self.norm_ffn = nn.LayerNorm(hidden)
        self.up = nn.Linear(hidden, 4 * hidden, bias=False)
        self.down = nn.Linear(4 * hidden, hidden, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, hidden = x.shape
        qkv = self.query_key_value(self.norm_attention(x))
        query, key, value = (
            part.view(batch, length, self.heads, -1).transpose(1, 2)
            for part in qkv.chunk(3, dim=-1)
        )
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.projection(mixed.transpose(1, 2).reshape(batch, length, hidden))
        return x + self.down(functional.gelu(self.up(self.norm_ffn(x))))


class Gpt(nn.Module):
    def __init__(
        self, vocabulary: int, length: int, layers: int, hidden: int, heads: int, replay: str
    ) -> None:
        super().__init__()
        self.replay = replay
        self.token = nn.Embedding(vocabulary, hidden)
        self.position = nn.Embedding(length, hidden)
        self.blocks = nn.ModuleList(Block(hidden, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(hidden)
        self.head = nn.Linear(hidden, vocabulary, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.token(tokens) + self.position(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            if self.replay == "none":
                x = block(x)
            else:
                x = checkpoint(block, x, use_reentrant=self.replay == "reentrant")
        return self.head(self.norm(x))


def read_text() -> tuple[torch.Tensor, int]:
    """The language reference as numbers of characters, and how many characters there are."""
    text = "\n\n".join(topics.topics[name] for name in sorted(topics.topics))
    alphabet = sorted(set(text))
    number = {character: index for index, character in enumerate(alphabet)}
    return torch.tensor([number[character] for character in text]), len(alphabet)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60, help="train for so long (60)")
    parser.add_argument("--steps", type=int, default=0, help="or for so many steps")
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--batch", type=int, default=4, help="rows per micro-batch (4)")
    parser.add_argument("--length", type=int, default=128, help="tokens per row (128)")
    parser.add_argument("--accumulate", type=int, default=2, help="micro-batches per step (2)")
    parser.add_argument(
        "--checkpoint",
        choices=("non-reentrant", "reentrant", "none"),
        default="non-reentrant",
        help="how blocks are replayed in the backward pass",
    )
    parser.add_argument(
        "--dtype",
        choices=("auto", "fp32", "bf16"),
        default="auto",
        help="of the weights and matmuls; auto: bf16 where this CPU multiplies it in hardware",
    )
    parser.add_argument("--observer", choices=("auto", "native", "dispatch"), default="auto")
    parser.add_argument("--log-every", type=int, default=10, help="steps between log lines (10)")
    parser.add_argument("--port", type=int, default=9410)
    parser.add_argument("--jsonl", default="flopledger-demo.jsonl", help="path of the step log")
    parser.add_argument(
        "--keep-serving", action="store_true", help="serve the page until Ctrl-C after the training"
    )
    return parser.parse_args()


def choose_dtype(wanted: str) -> str:
    """bf16 is the faster one where the CPU has instructions for it, and slow everywhere else."""
    if wanted != "auto":
        return wanted
    try:
        flags = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return "fp32"
    return "bf16" if "amx_bf16" in flags or "avx512_bf16" in flags else "fp32"


def train(options: argparse.Namespace) -> None:
    dtype = choose_dtype(options.dtype)
    torch.manual_seed(0)
    text, vocabulary = read_text()
    shape = (options.length, options.layers, options.hidden, options.heads)
    model = Gpt(vocabulary, *shape, options.checkpoint)
    if dtype == "bf16":
        model = model.to(torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    declared = flopledger.transformer(
        layers=options.layers,
        hidden=options.hidden,
        query_heads=options.heads,
        ffn=4 * options.hidden,
        vocabulary=vocabulary,
    )
    led = flopledger.start(
        model_flops=declared,
        peak=dtype,
        run="gpt-demo",
        seq_len=options.length,
        port=options.port,
        jsonl=str(Path(options.jsonl).resolve()),
        observer=options.observer,
        log_every=options.log_every,
    )
    parameters = sum(parameter.numel() for parameter in model.parameters())
    print(f"live page  {led.address}/live", flush=True)
    print(f"metrics    {led.address}/metrics", flush=True)
    print(f"step log   {led.jsonl_path}", flush=True)
    print(
        f"training   {parameters / 1e6:.1f} M parameters on {len(text):,} characters in {dtype}, "
        f"op observer: {led.observer}",
        flush=True,
    )
    window = options.length + 1
    end = time.monotonic() + options.seconds
    number = 0
    while number < options.steps if options.steps else time.monotonic() < end:
        with led.step(number) as step:
            total = 0.0
            for _ in range(options.accumulate):
                with led.section("data"):
                    starts = torch.randint(len(text) - window, (options.batch,))
                    rows = torch.stack([text[start : start + window] for start in starts])
                logits = model(rows[:, :-1])
                loss = functional.cross_entropy(
                    logits.float().reshape(-1, vocabulary), rows[:, 1:].reshape(-1)
                )
                (loss / options.accumulate).backward()
                total += loss.item() / options.accumulate
                step.tokens(useful=options.batch * options.length)
            optimizer.step()
            optimizer.zero_grad()
            step.value("loss", total)
        number += 1
    if options.keep_serving:
        print(f"trained; still serving {led.address}/live, Ctrl-C ends it", flush=True)
        try:
            while True:
                time.sleep(3600)
        except KeyboardInterrupt:
            pass
    led.close()
    print(f"step log   {led.jsonl_path}", flush=True)


if __name__ == "__main__":
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    train(parse_arguments())
