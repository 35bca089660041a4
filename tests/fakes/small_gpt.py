"""A small GPT for tests, with the switches of real ones, and its FLOPs worked out by hand."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint


@dataclass(frozen=True)
class Shape:
    layers: int = 4
    width: int = 128
    heads: int = 4
    vocabulary: int = 97
    batch: int = 8
    sequence: int = 64
    gated: bool = False
    rms_norm: bool = False
    dropout: float = 0.0
    checkpoint: str = "off"  # off, reentrant, non_reentrant
    full_mask: bool = False

    @property
    def tokens(self) -> int:
        return self.batch * self.sequence

    @property
    def hidden(self) -> int:
        return 4 * self.width

    # One layer, forward: two FLOPs a multiply-add.
    @property
    def projections(self) -> int:
        """Query, key and value in one, and the output."""
        return 2 * self.tokens * self.width * (3 * self.width + self.width)

    @property
    def mlp_in(self) -> int:
        return 2 * self.tokens * self.width * self.hidden * (2 if self.gated else 1)

    @property
    def mlp_out(self) -> int:
        return 2 * self.tokens * self.hidden * self.width

    @property
    def attention(self) -> int:
        """Scores and mixing over the pairs that the causal mask leaves."""
        pairs = self.sequence * (self.sequence + 1) // 2
        return 2 * 2 * self.batch * self.width * pairs

    @property
    def block(self) -> int:
        return self.projections + self.mlp_in + self.mlp_out + self.attention

    @property
    def head(self) -> int:
        return 2 * self.tokens * self.width * self.vocabulary

    @property
    def forward(self) -> int:
        return self.layers * self.block + self.head

    @property
    def useful(self) -> int:
        """Forward, and one gradient for every input and every weight."""
        return 3 * self.forward


class RmsNorm(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return F.rms_norm(x, x.shape[-1:], self.weight)


class Block(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        norm = RmsNorm if shape.rms_norm else nn.LayerNorm
        self.norm1, self.norm2 = norm(shape.width), norm(shape.width)
        self.qkv = nn.Linear(shape.width, 3 * shape.width)
        self.out = nn.Linear(shape.width, shape.width)
        self.mlp_in = nn.Linear(shape.width, shape.hidden * (2 if shape.gated else 1))
        self.mlp_out = nn.Linear(shape.hidden, shape.width)
        self.dropout = nn.Dropout(shape.dropout)

    def attend(self, x):
        batch, sequence, width = x.shape
        q, k, v = (
            part.view(batch, sequence, self.shape.heads, -1).transpose(1, 2)
            for part in self.qkv(x).split(width, dim=-1)
        )
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, sequence, width))

    def forward(self, x):
        x = x + self.dropout(self.attend(self.norm1(x)))
        hidden = self.mlp_in(self.norm2(x))
        if self.shape.gated:
            gate, value = hidden.chunk(2, dim=-1)
            hidden = F.silu(gate) * value
        else:
            hidden = F.gelu(hidden)
        projected = self.mlp_out(hidden)
        return x + (self.dropout(projected) if self.shape.dropout > 0 else projected)


class SmallGpt(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.tokens = nn.Embedding(shape.vocabulary, shape.width)
        self.positions = nn.Embedding(shape.sequence, shape.width)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.norm = RmsNorm(shape.width) if shape.rms_norm else nn.LayerNorm(shape.width)
        self.head = nn.Linear(shape.width, shape.vocabulary, bias=False)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1]))
        for block in self.blocks:
            if self.shape.checkpoint == "off":
                x = block(x)
            else:
                x = checkpoint(block, x, use_reentrant=self.shape.checkpoint == "reentrant")
        return self.head(self.norm(x))


class Training:
    """A model, an optimizer and fixed tokens: `step()` trains once."""

    def __init__(self, shape: Shape, optimizer: str = "adamw", autocast: bool = False) -> None:
        torch.manual_seed(0)
        self.shape = shape
        self.model = SmallGpt(shape)
        self.autocast = autocast
        parameters = self.model.parameters()
        self.optimizer = {
            "adamw": lambda: torch.optim.AdamW(parameters, lr=1e-3, foreach=True),
            "adamw_fused": lambda: torch.optim.AdamW(parameters, lr=1e-3, fused=True),
            "adamw_loop": lambda: torch.optim.AdamW(parameters, lr=1e-3, foreach=False),
            "sgd": lambda: torch.optim.SGD(parameters, lr=1e-3, momentum=0.9, foreach=True),
            "sgd_loop": lambda: torch.optim.SGD(parameters, lr=1e-3, nesterov=True, momentum=0.9),
        }[optimizer]()
        self.ids = torch.randint(0, shape.vocabulary, (shape.batch, shape.sequence + 1))

    def loss(self, ids):
        with torch.autocast("cpu", torch.bfloat16, enabled=self.autocast):
            logits = self.model(ids[:, :-1])
            return F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())

    def step(self, ids=None) -> float:
        loss = self.loss(self.ids if ids is None else ids)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.item()
