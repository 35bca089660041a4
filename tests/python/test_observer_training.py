"""The books of a real training run: every figure is worked out by hand in `fakes.small_gpt`."""

from __future__ import annotations

import pytest
from observer_support import KINDS, Shape, Training, books_of, observing, torch
from torch.utils.checkpoint import set_checkpoint_early_stop

MODES = ("off", "reentrant", "non_reentrant")


def replayed(shape: Shape) -> int:
    """Forward work that the engine runs again: a whole block, or up to where its last op starts."""
    return {
        "off": 0,
        "reentrant": shape.layers * shape.block,
        "non_reentrant": shape.layers * (shape.block - shape.mlp_out),
    }[shape.checkpoint]


def one_step(kind: str, shape: Shape, **options):
    training = Training(shape, **options)
    training.step()  # lazy state of the optimizer
    return books_of(kind, training.step)


def test_hand_count_of_the_default_shape():
    # 512 tokens, width 128, 4 heads of 32, 64 positions: written out once, in numbers.
    shape = Shape()
    assert shape.projections == 2 * 512 * 128 * 512 == 67_108_864
    assert shape.mlp_in == shape.mlp_out == 2 * 512 * 128 * 512 == 67_108_864
    assert shape.attention == 4 * 8 * 4 * 32 * (64 * 65 // 2) == 8_519_680
    assert shape.head == 2 * 512 * 128 * 97 == 12_713_984
    assert shape.forward == 4 * (3 * 67_108_864 + 8_519_680) + 12_713_984 == 852_099_072
    assert shape.useful == 2_556_297_216


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
def test_executed_work_is_useful_plus_replayed_plus_named_excess(kind, mode):
    shape = Shape(checkpoint=mode)
    books = one_step(kind, shape)
    excess = shape.layers * shape.attention // 2  # scores again in the attention's backward
    assert books.executed["recompute"] == replayed(shape)
    assert books.executed["forward"] == shape.forward
    assert books.executed["backward"] == 2 * shape.forward + excess
    assert books.excess == excess
    assert books.total - shape.useful - replayed(shape) - excess == 0  # e
    assert books.unknown == set()


def test_replayed_work_in_numbers():
    assert replayed(Shape(checkpoint="reentrant")) == 839_385_088
    assert replayed(Shape(checkpoint="non_reentrant")) == 570_949_632


@pytest.mark.parametrize("kind", KINDS)
def test_without_early_stop_the_whole_block_is_replayed(kind):
    shape = Shape(checkpoint="non_reentrant")
    training = Training(shape)
    training.step()
    with set_checkpoint_early_stop(False):
        books = books_of(kind, training.step)
    assert books.executed["recompute"] == shape.layers * shape.block


@pytest.mark.parametrize("mode", MODES)
def test_both_observers_agree_to_the_flop(mode):
    shape = Shape(checkpoint=mode, gated=True, rms_norm=True, dropout=0.1)
    native, dispatch = (one_step(kind, shape) for kind in KINDS)
    assert dict(native.executed) == dict(dispatch.executed)
    assert dict(native.by_name) == dict(dispatch.by_name)
    assert native.excess == dispatch.excess


def test_early_stop_aborts_one_op_a_block_and_the_fallback_never_sees_it():
    shape = Shape(checkpoint="non_reentrant")
    training = Training(shape)
    with observing("native") as recorder:
        training.step()
    assert recorder.aborted == shape.layers
    with observing("dispatch") as recorder:
        training.step()
    assert recorder.aborted == 0


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
def test_flop_counter_mode_differs_by_the_attention_alone(kind, mode):
    from torch.utils.flop_counter import FlopCounterMode

    shape = Shape(checkpoint=mode)
    training = Training(shape)
    training.step()
    with FlopCounterMode(display=False) as counter:
        training.step()
    theirs = counter.get_total_flops()
    ours = books_of(kind, training.step)

    replays = 0 if mode == "off" else 1
    attention = shape.layers * (
        shape.attention * (1 + replays)  # forward and its replay
        + 2 * shape.attention  # backward: gradients of query, key, value and probabilities
        + shape.attention // 2  # the scores again
    )
    linear = 3 * (shape.forward - shape.layers * shape.attention) + (
        replayed(shape) - replays * shape.layers * shape.attention
    )
    if "aten._scaled_dot_product_flash_attention_for_cpu" not in {
        str(op) for op in counter.get_flop_counts()["Global"]
    }:
        assert theirs == linear
        assert ours.total - theirs == attention
    else:
        pytest.skip(f"FlopCounterMode of torch {torch.__version__} counts attention on the CPU")


def test_the_second_step_interns_nothing():
    training = Training(Shape())
    for kind in KINDS:
        with observing(kind) as recorder:
            training.step()
            training.step()
            recorder.clear()
            training.step()
            assert recorder.interned == 0, kind
            assert recorder.written > 0


@pytest.mark.parametrize(
    ("shape", "options"),
    [
        (Shape(dropout=0.1), {}),
        (Shape(gated=True, rms_norm=True), {"optimizer": "adamw_fused"}),
        (Shape(rms_norm=True, dropout=0.2, checkpoint="reentrant"), {"optimizer": "adamw_loop"}),
        (Shape(gated=True), {"optimizer": "sgd"}),
        (Shape(checkpoint="non_reentrant"), {"optimizer": "sgd_loop"}),
        (Shape(checkpoint="non_reentrant", gated=True), {"autocast": True}),
        (
            Shape(checkpoint="reentrant", dropout=0.1),
            {"autocast": True, "optimizer": "adamw_fused"},
        ),
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", KINDS)
def test_every_op_of_a_training_run_has_a_rule(kind, shape, options):
    training = Training(shape, **options)
    rows = torch.randint(0, shape.vocabulary, (2 * shape.batch, shape.sequence + 1))
    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(rows), batch_size=shape.batch, shuffle=True, pin_memory=False
    )

    def epoch():
        for (ids,) in loader:
            training.step(ids)

    books = books_of(kind, epoch)
    assert books.unknown == set()
    assert books.total > 2 * shape.useful


@pytest.mark.parametrize("kind", KINDS)
def test_autocast_counts_once_and_in_the_low_precision(kind):
    shape = Shape()
    training = Training(shape, autocast=True)
    training.step()
    with observing(kind) as recorder:
        training.step()
    books = recorder.books()
    assert books.executed["forward"] == shape.forward
    names = {s.name for s in recorder.signatures() if s.name in ("aten::addmm", "aten::mm")}
    dtypes = {
        s.arguments[-1 if s.name == "aten::mm" else 1][1]
        for s in recorder.signatures()
        if s.name in names
    }
    assert dtypes == {4}  # bf16


@pytest.mark.parametrize("kind", KINDS)
def test_self_times_partition_the_wall_of_every_op(kind):
    training = Training(Shape(layers=1))
    training.step()
    with observing(kind) as recorder:
        training.step()
    records = sorted(recorder.records(), key=lambda r: (r.start_ns, -r.end_ns))
    assert all(0 <= r.self_ns <= r.end_ns - r.start_ns for r in records)
    wall = 0
    end = 0
    for record in records:  # outermost ones do not overlap; the rest lies inside of them
        if record.start_ns >= end:
            wall += record.end_ns - record.start_ns
            end = record.end_ns
        assert record.end_ns <= end
    assert sum(r.self_ns for r in records) == wall
