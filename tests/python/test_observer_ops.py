"""What single ops put into the books: forms of one computation, wrappers, threads, failures."""

from __future__ import annotations

import os
import threading

import pytest
import torch.nn.functional as F
from observer_support import KINDS, Recorder, books_of, observing, torch, torch_observer
from torch.utils.checkpoint import checkpoint

rand = torch.randn


def both(action) -> tuple[int, int]:
    """Executed FLOPs as the two observers see them."""
    native, dispatch = (books_of(kind, action) for kind in KINDS)
    assert not native.unknown
    assert not dispatch.unknown
    return native.total, dispatch.total


@pytest.mark.parametrize(
    ("action", "flops"),
    [
        (lambda: torch.einsum("bhid,bhjd->bhij", rand(2, 3, 5, 4), rand(2, 3, 7, 4)), 1680),
        (lambda: torch.baddbmm(rand(2, 5, 7), rand(2, 5, 6), rand(2, 6, 7)), 840),
        (lambda: rand(5, 7) @ rand(7, 3), 210),
        (lambda: torch.matmul(rand(2, 5, 7), rand(7, 3)), 420),
        (lambda: rand(5, 7) @ rand(7), 70),
        (lambda: rand(7) @ rand(7), 14),
        (lambda: torch.addbmm(rand(5, 7), rand(2, 5, 6), rand(2, 6, 7)), 840),
        (lambda: torch.addmv(rand(5), rand(5, 7), rand(7)), 70),
        (lambda: torch.tensordot(rand(3, 4, 5), rand(4, 5, 6), 2), 2 * 3 * 20 * 6),
        (lambda: torch.linalg.multi_dot([rand(2, 3), rand(3, 4), rand(4, 5)]), 48 + 80),
        (lambda: F.linear(rand(2, 4, 5), rand(6, 5), rand(6)), 2 * 8 * 5 * 6),
        (lambda: F.bilinear(rand(4, 3), rand(4, 5), rand(1, 3, 5)), None),
        (lambda: torch.mm(rand(5, 7), rand(7, 3), out=torch.empty(5, 3)), 210),
        (lambda: rand(5, 3).addmm_(rand(5, 7), rand(7, 3)), 210),
    ],
)
def test_every_form_of_a_contraction_counts_once(action, flops):
    if flops is None:
        assert "aten::_trilinear" in books_of("dispatch", action).unknown  # a gap, not a zero
        return
    assert both(action) == (flops, flops)


@pytest.mark.parametrize(
    ("heads", "mask", "causal", "pairs"),
    [(5, False, False, 81), (5, False, True, 45), (5, True, False, 81)],
)
@pytest.mark.parametrize("backend", ["FLASH_ATTENTION", "MATH"])
def test_attention_counts_once_whatever_the_backend(heads, mask, causal, pairs, backend):
    from torch.nn.attention import SDPBackend, sdpa_kernel

    q, k, v = (rand(2, heads, 9, 4) for _ in range(3))
    bias = rand(9, 9) if mask else None

    def action():
        with sdpa_kernel(getattr(SDPBackend, backend)):
            F.scaled_dot_product_attention(q, k, v, attn_mask=bias, is_causal=causal)

    pairs = 81 if backend == "MATH" else pairs  # two matmuls of the whole square
    flops = 4 * 2 * heads * pairs * 4
    assert both(action) == (flops, flops)


def test_causal_with_more_keys_than_queries_is_what_the_kernel_computes():
    # The CPU kernel aligns the diagonal with the upper left corner: query 0 sees key 0 alone.
    q, k, v = rand(1, 1, 3, 4), rand(1, 1, 7, 4), rand(1, 1, 7, 4)
    out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    torch.testing.assert_close(out[0, 0, 0], v[0, 0, 0])
    flops = 4 * 4 * (1 + 2 + 3)
    assert both(lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True)) == (flops, flops)


CONVOLUTIONS = [
    # function, input, weight, options, forward FLOPs by hand
    (F.conv1d, (2, 8, 10), (8, 8, 3), {}, 2 * 2 * 8 * 8 * 8 * 3),
    (F.conv2d, (2, 8, 10, 10), (16, 8, 3, 3), {"stride": 2, "padding": 1}, 2 * 2 * 25 * 16 * 8 * 9),
    (F.conv2d, (2, 8, 10, 10), (16, 4, 3, 3), {"groups": 2}, 2 * 2 * 64 * 16 * 4 * 9),
    (F.conv2d, (2, 8, 10, 10), (8, 1, 3, 3), {"groups": 8}, 2 * 2 * 64 * 8 * 9),
    (F.conv2d, (2, 8, 10, 10), (16, 8, 3, 3), {"dilation": 2}, 2 * 2 * 36 * 16 * 8 * 9),
    (F.conv2d, (2, 8, 10, 10), (16, 8, 3, 3), {"padding": "same"}, 2 * 2 * 100 * 16 * 8 * 9),
    (F.conv3d, (1, 4, 5, 5, 5), (8, 4, 3, 3, 3), {}, 2 * 27 * 8 * 4 * 27),
    (F.conv_transpose1d, (2, 8, 5), (8, 4, 3), {"stride": 2}, 2 * 2 * 5 * 8 * 4 * 3),
    (
        F.conv_transpose2d,
        (2, 8, 5, 5),
        (8, 4, 3, 3),
        {"groups": 2, "stride": 2},
        2 * 2 * 25 * 8 * 4 * 9,
    ),
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize(("function", "x", "w", "options", "forward"), CONVOLUTIONS)
def test_convolution_counts_once_whatever_the_backend(function, x, w, options, forward, dtype):
    inputs = rand(x, dtype=dtype).requires_grad_()
    weight = rand(w, dtype=dtype).requires_grad_()

    def action():
        function(inputs, weight, **options).sum().backward()

    for kind in KINDS:
        books = books_of(kind, action)
        assert not books.unknown
        assert books.executed["forward"] == forward, kind
        assert books.executed["backward"] == 2 * forward, kind


@pytest.mark.parametrize("kind", KINDS)
def test_frozen_weight_costs_one_gradient(kind):
    x, w = rand(4, 5).requires_grad_(), rand(6, 5)
    books = books_of(kind, lambda: F.linear(x, w).sum().backward())
    assert dict(books.executed) == {"forward": 240, "backward": 240}


@pytest.mark.parametrize("kind", KINDS)
def test_recurrent_layer(kind):
    layer = torch.nn.LSTM(10, 16)
    x = rand(7, 3, 10).requires_grad_()
    books = books_of(kind, lambda: layer(x)[0].sum().backward())
    # Four gates of 16 from 10 inputs and 16 hidden values, 7 steps, batch 3.
    forward = 2 * 7 * 3 * (64 * 10 + 64 * 16)
    assert not books.unknown
    assert books.executed["forward"] == forward
    assert books.executed["backward"] == 2 * forward


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("action", "flops"),
    [
        (lambda: torch.bmm(rand(2, 5, 6), rand(2, 6, 7)), 840),
        (lambda: torch.mm(rand(5, 7), rand(7, 3)), 210),
        (lambda: F.conv1d(rand(2, 8, 10), rand(8, 8, 3)), 2 * 2 * 8 * 8 * 8 * 3),
        (lambda: F.linear(rand(2, 4, 5), rand(6, 5)), 480),
    ],
)
def test_autocast_dispatches_twice_and_counts_once(kind, action, flops):
    with torch.autocast("cpu", torch.bfloat16):
        assert books_of(kind, action).total == flops


def test_vmap_counts_the_batched_kernel():
    a, b = rand(4, 5, 7), rand(4, 7, 3)
    action = lambda: torch.vmap(torch.mm)(a, b)  # noqa: E731
    for kind in KINDS:
        assert books_of(kind, action).total == 4 * 210, kind


def test_gradient_transforms_count_once():
    w = rand(7, 3)
    action = lambda: torch.func.grad(lambda x: (x @ w).sum())(rand(5, 7))  # noqa: E731
    for kind in KINDS:
        assert books_of(kind, action).total == 420, kind


@pytest.mark.parametrize("kind", KINDS)
def test_shapes_without_data_are_no_work(kind):
    from torch._subclasses.fake_tensor import FakeTensorMode

    def action():
        torch.mm(torch.empty(5, 7, device="meta"), torch.empty(7, 3, device="meta"))
        with FakeTensorMode():
            torch.mm(torch.empty(5, 7), torch.empty(7, 3))

    books = books_of(kind, action)
    assert books.total == 0
    assert books.unknown == set()


def test_a_dispatch_mode_of_the_user_does_not_double_the_count():
    from torch.utils.flop_counter import FlopCounterMode

    def action():
        with FlopCounterMode(display=False):
            torch.mm(rand(5, 7), rand(7, 3))

    assert both(action) == (210, 210)


@pytest.mark.parametrize("kind", KINDS)
def test_selective_checkpointing_replays_what_was_not_saved(kind):
    from torch.utils.checkpoint import (
        CheckpointPolicy,
        create_selective_checkpoint_contexts,
    )

    w1, w2 = rand(7, 5).requires_grad_(), rand(5, 3).requires_grad_()
    x = rand(4, 7).requires_grad_()

    def policy(context, op, *args, **kwargs):
        saved = op == torch.ops.aten.mm.default and args[1].shape[1] == 3
        return CheckpointPolicy.MUST_SAVE if saved else CheckpointPolicy.PREFER_RECOMPUTE

    def action():
        out = checkpoint(
            lambda a: torch.sin(torch.sin(a @ w1) @ w2),
            x,
            use_reentrant=False,
            context_fn=lambda: create_selective_checkpoint_contexts(policy),
        )
        out.sum().backward()

    books = books_of(kind, action)
    first, second = 2 * 4 * 7 * 5, 2 * 4 * 5 * 3
    assert books.executed["forward"] == first + second
    assert books.executed["recompute"] == first
    assert books.executed["backward"] == 2 * (first + second)


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return 2 * (x @ w)

    @staticmethod
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        return 2 * grad @ w.t(), 2 * x.t() @ grad


@pytest.mark.parametrize("reentrant", [True, False])
def test_replayed_autograd_function_is_recompute(reentrant):
    x, w = rand(4, 7).requires_grad_(), rand(7, 5).requires_grad_()

    def action():
        checkpoint(
            lambda a: Doubled.apply(a, w).exp() * 2, x, use_reentrant=reentrant
        ).sum().backward()

    flops = 2 * 4 * 7 * 5
    native = books_of("native", action)
    assert native.unknown == {"Doubled"}
    assert dict(native.executed) == {
        "forward": flops,
        "recompute": flops,
        "backward": 2 * flops,
    }
    # A limit of the fallback: the function runs its forward with grad mode off, as backward does.
    dispatch = books_of("dispatch", action)
    assert dispatch.total == native.total
    assert dispatch.executed["recompute"] == 0


@pytest.mark.parametrize("kind", KINDS)
def test_create_graph_is_the_one_ambiguity_of_the_phase(kind):
    x, w = rand(4, 7).requires_grad_(), rand(7, 5).requires_grad_()

    def action():
        (gradient,) = torch.autograd.grad((x @ w).pow(2).sum(), x, create_graph=True)
        gradient.sum().backward()

    books = books_of(kind, action)
    flops = 2 * 4 * 7 * 5
    # The gradient for x runs with grad mode on and looks like a replay. Backward of it and of the
    # product follows: two matmuls each. The total is exact.
    assert dict(books.executed) == {
        "forward": flops,
        "recompute": flops,
        "backward": 4 * flops,
    }


@torch.library.custom_op("flopledger_test::hidden_product", mutates_args=())
def hidden_product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a @ b


@pytest.mark.parametrize(("kind", "seen"), [("native", 210), ("dispatch", 0)])
def test_a_custom_op_is_a_gap_by_its_name(kind, seen):
    a, b = rand(5, 7), rand(7, 3)
    books = books_of(kind, lambda: hidden_product(a, b))
    assert books.unknown == {"flopledger_test::hidden_product"}
    assert books.total == seen  # the fallback does not see the inside of a custom op


def test_the_own_time_of_a_python_function_is_a_gap():
    x, w = rand(4, 7).requires_grad_(), rand(7, 5).requires_grad_()
    books = books_of("native", lambda: Doubled.apply(x, w))
    assert books.unknown == {"Doubled"}  # it may call a kernel that no dispatcher sees
    assert books.total == 2 * 4 * 7 * 5


@pytest.mark.parametrize("kind", KINDS)
def test_an_op_that_raises_did_not_run(kind):
    def action():
        with pytest.raises(RuntimeError, match="mat1 and mat2"):
            F.linear(rand(5, 7), rand(3, 8))

    with observing(kind) as recorder:
        action()
    assert recorder.aborted == 1
    assert recorder.books().total == 0


def test_native_sees_worker_threads():
    a, b = rand(5, 7), rand(7, 3)

    def action():
        thread = threading.Thread(target=lambda: torch.mm(a, b))
        thread.start()
        thread.join()

    assert books_of("native", action).total == 210
    assert books_of("dispatch", action).total == 0


def test_only_ops_on_a_gpu_say_what_they_launch():
    a, b = rand(5, 7), rand(7, 3)
    recorder = Recorder()
    with observing("native", recorder):
        torch.mm(a, b)
        assert recorder.pushed == 0, "on a CPU the op is the kernel, and telling would cost time"
        if torch.cuda.is_available():
            c, d = a.cuda(), b.cuda()
            torch.mm(c, d)
            assert recorder.pushed == recorder.popped == 1, "the copies have no rule"
            torch.nn.functional.linear(c, d.t())
            assert recorder.pushed == recorder.popped == 3, "linear and the product inside of it"


def test_a_table_of_an_older_session_is_taken():
    a, b = rand(5, 7), rand(7, 3)
    recorder = Recorder()
    recorder.make_old()
    with observing("native", recorder):
        torch.mm(a, b)
    assert recorder.books().total == 210


def test_numbers_belong_to_the_table_they_came_from():
    a, b = rand(5, 7), rand(7, 3)
    first, second = Recorder(), Recorder()
    with observing("native", first):
        torch.mm(a, b)
        torch.mm(a.t(), a)
    written = first.written
    with observing("native", second):
        torch.mm(a, b)
    torch.mm(a, b)
    assert first.written == written
    assert second.books().total == 210


def test_only_one_native_observer_at_a_time():
    with observing("native"):
        handle = torch_observer.install(Recorder().table, prefer="native")
        assert handle.kind == "none"
        assert "already installed" in handle.reason


def test_dispatch_mode_below_another_mode_turns_inert():
    from torch.utils.flop_counter import FlopCounterMode

    recorder = Recorder()
    handle = torch_observer.install(recorder.table, prefer="dispatch")
    with FlopCounterMode(display=False) as counter:
        handle.remove()
        torch.mm(rand(5, 7), rand(7, 3))
        assert counter.get_total_flops() == 210
    assert recorder.books().total == 0
    from torch.utils._python_dispatch import _get_current_dispatch_mode, _pop_mode

    if _get_current_dispatch_mode() is not None:  # leave no mode behind for other tests
        _pop_mode()


def test_a_forked_child_writes_nothing():
    a, b = rand(5, 7), rand(7, 3)
    with observing("native") as recorder:
        torch.mm(a, b)
        before = recorder.written
        child = os.fork()
        if child == 0:
            torch.mm(a, b)
            os._exit(0 if recorder.written == before else 1)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        torch.mm(a, b)
        assert recorder.written > before


@pytest.mark.parametrize("kind", KINDS)
def test_scalars_that_change_with_every_step_make_no_new_signatures(kind):
    x = rand(4)
    with observing(kind) as recorder:
        for step in range(20):
            x.add_(x, alpha=0.1 / (step + 1))
            x.narrow(0, step % 4, 1).mul_(1.0 + step)
            torch.addmm(x[:3], rand(2, 5), rand(5, 3), alpha=0.5 / (step + 1))
    names = [s.name for s in recorder.signatures()]
    assert len(names) == len(set(names))
