"""Kinds of models and optimizers beside the GPT: nothing of them is a gap, both observers agree."""

from __future__ import annotations

import copy
import io

import pytest
import torch.nn.functional as F
from observer_support import KINDS, books_of, torch
from torch import nn

rand = torch.randn


def convolutional():
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 8, 3, groups=8),
        nn.GroupNorm(2, 8),
        nn.Hardswish(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8, 5),
        nn.Dropout(0.1),
    )
    optimizer = torch.optim.RMSprop(model.parameters())
    x, y = rand(4, 3, 16, 16), torch.randint(0, 5, (4,))
    for _ in range(2):
        F.cross_entropy(model(x), y, label_smoothing=0.1).backward()
        optimizer.step()
        optimizer.zero_grad()
    model.eval()
    with torch.no_grad():
        (model(x).argmax(1) == y).float().mean().item()


def newton_schulz_optimizer():
    if not hasattr(torch.optim, "Muon"):
        pytest.skip(f"torch {torch.__version__} has no Muon")
    layer = nn.Linear(16, 32, bias=False)
    optimizer = torch.optim.Muon(layer.parameters(), lr=0.1)
    layer(rand(4, 16)).sum().backward()
    optimizer.step()


def recurrent():
    for kind in (nn.GRU, nn.RNN):
        kind(4, 8, 2, bidirectional=True)(rand(5, 2, 4))[0].sum().backward()
    packed = nn.utils.rnn.pack_sequence([rand(5, 4), rand(3, 4)])
    nn.LSTM(4, 8)(packed)[0].data.sum().backward()


def sparse_embedding():
    table = nn.Embedding(10, 4, sparse=True)
    optimizer = torch.optim.SparseAdam(table.parameters())
    table(torch.tensor([1, 2, 2])).sum().backward()
    optimizer.step()
    nn.EmbeddingBag(10, 4)(torch.tensor([[1, 2]])).sum().backward()


def mixture_of_experts():
    x, gate = rand(8, 4).requires_grad_(), rand(4, 3).requires_grad_()
    experts = rand(3, 4, 4).requires_grad_()
    weight, chosen = (x @ gate).softmax(-1).topk(2, -1)
    out = torch.zeros_like(x)
    for expert in range(3):
        rows, slots = torch.where(chosen == expert)
        out = out.index_add(0, rows, (x[rows] @ experts[expert]) * weight[rows, slots, None])
    out.pow(2).sum().backward()


def housekeeping():
    model = nn.Linear(4, 4)
    average = copy.deepcopy(model)
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    model.load_state_dict(torch.load(file))
    for old, new in zip(average.parameters(), model.parameters(), strict=True):
        old.data.lerp_(new.data, 0.1)
    scaler = torch.amp.GradScaler("cpu")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scaler.scale(model(rand(2, 4)).sum()).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_value_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    x = rand(3, 4)
    torch.multinomial(torch.ones(4), 2)
    torch.sort(x)
    torch.isfinite(x).all().item()
    x.tolist()


def rotary_and_losses():
    q = rand(2, 3, 4, 8)
    turns = torch.polar(torch.ones(4, 4), torch.ones(4, 4))
    torch.view_as_real(torch.view_as_complex(q.reshape(2, 3, 4, 4, 2)) * turns).flatten(3)
    x = rand(3, 4).requires_grad_()
    parts = [
        F.kl_div(x.log_softmax(1), x.softmax(1)),
        F.binary_cross_entropy_with_logits(x, x.sigmoid().detach()),
        torch.cumsum(x, 1).sum(),
        x.gather(1, torch.zeros(3, 1, dtype=torch.long)).sum(),
        F.pad(x, (1, 1)).sum(),
        x.roll(1).sum(),
        torch.where(x > 0, x, -x).sum(),
        x.max(1)[0].sum(),
        F.interpolate(x[None, None], scale_factor=2.0).sum(),
        x.std() + x.var(),
        x[:, 1:].flip(0).sum(),
        torch.stack([x, x]).sum(),
        x.tril().sum(),
        x[x > 0].sum(),
        x.repeat(2, 1).sum(),
        x.unfold(1, 2, 1).sum(),
    ]
    sum(parts).backward()


@pytest.mark.parametrize(
    "action",
    [
        convolutional,
        newton_schulz_optimizer,
        recurrent,
        sparse_embedding,
        mixture_of_experts,
        housekeeping,
        rotary_and_losses,
    ],
)
def test_no_op_is_a_gap_and_both_observers_agree(action):
    def run():
        torch.manual_seed(0)  # the same experts are chosen
        action()

    native, dispatch = (books_of(kind, run) for kind in KINDS)
    assert native.unknown == set()
    assert dispatch.unknown == set()
    assert native.total == dispatch.total


@pytest.mark.parametrize("kind", KINDS)
def test_matmuls_of_the_optimizer_are_outside_of_the_engine(kind):
    # Weight [32, 16], taken as [16, 32] for five steps of X X^T, A A, B X; one gradient.
    layer = 2 * 4 * 16 * 32
    steps = 5 * (2 * 16 * 32 * 16 + 2 * 16 * 16 * 16 + 2 * 16 * 16 * 32)
    books = books_of(kind, newton_schulz_optimizer)
    assert dict(books.executed) == {"forward": layer + steps, "backward": layer}
