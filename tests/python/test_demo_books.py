"""The demo's model through the whole system, against numbers worked out by hand."""

from __future__ import annotations

import json

import pytest
from ledger_support import demo, flopledger, ledger, reports, torch

# The demo: 4 blocks of width 256, 8 heads of 32, FFN 1024, 103 characters; 2 micro-batches of 4
# rows of 128 tokens a step, so 1024 tokens. A multiply-add is two.
LAYERS, HIDDEN, HEADS, FFN, VOCABULARY = 4, 256, 8, 1024, 103
BATCH, LENGTH, ACCUMULATE = 4, 128, 2
TOKENS = BATCH * LENGTH * ACCUMULATE
PAIRS = BATCH * ACCUMULATE * LENGTH * (LENGTH + 1) // 2

PROJECTIONS = 2 * TOKENS * HIDDEN * 4 * HIDDEN  # query, key, value and output
UP = DOWN = 2 * TOKENS * HIDDEN * FFN
CORE = 4 * HIDDEN * PAIRS  # scores and values: 2 x 2 x heads x head_dim a pair
BLOCK = PROJECTIONS + UP + DOWN + CORE
HEAD = 2 * TOKENS * HIDDEN * VOCABULARY
FORWARD = LAYERS * BLOCK + HEAD
USEFUL = 3 * FORWARD
EXCESS = LAYERS * CORE // 2  # the scores once more in the backward of fused attention

REPLAYED = {
    "none": 0,
    "reentrant": LAYERS * BLOCK,
    # Stops as soon as the last saved tensor is there: the block's last projection is not run again.
    "non-reentrant": LAYERS * (BLOCK - DOWN),
}


def test_the_hand_count_in_numbers():
    assert TOKENS == 1024
    assert PAIRS == 66_048
    assert PROJECTIONS == 536_870_912
    assert CORE == 67_633_152
    assert FORWARD == 6_766_985_216
    assert USEFUL == 20_300_955_648
    assert REPLAYED["reentrant"] == 6_712_983_552
    assert REPLAYED["non-reentrant"] == 4_565_499_904


def flops(step: dict, term: str) -> int:
    return int(step[f"{term}_flops"])


class Demo:
    """Steps of the demo's model inside of a ledger."""

    def __init__(self, checkpoint: str, length: int = LENGTH) -> None:
        torch.manual_seed(0)
        self.model = demo().Gpt(VOCABULARY, length, LAYERS, HIDDEN, HEADS, checkpoint)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        self.rows = torch.randint(VOCABULARY, (BATCH, length + 1))

    def micro_batch(self) -> None:
        logits = self.model(self.rows[:, :-1])
        loss = torch.nn.functional.cross_entropy(
            logits.reshape(-1, VOCABULARY), self.rows[:, 1:].reshape(-1)
        )
        loss.backward()

    def step(self, led, **tokens) -> None:
        with led.step() as step:
            for _ in range(ACCUMULATE):
                self.micro_batch()
                step.tokens(**(tokens or {"useful": BATCH * LENGTH}))
            self.optimizer.step()
            self.optimizer.zero_grad()


def declared():
    return flopledger.transformer(
        layers=LAYERS, hidden=HIDDEN, query_heads=HEADS, ffn=FFN, vocabulary=VOCABULARY
    )


def run(tmp_path, checkpoint, steps=2, observer="native", extra=None, **tokens):
    path = tmp_path / f"{checkpoint}-{observer}.jsonl"
    training = Demo(checkpoint)
    with ledger(model_flops=declared(), seq_len=LENGTH, jsonl=str(path), observer=observer) as led:
        assert led.observer == observer, led.capabilities
        for _ in range(steps):
            if extra is not None:
                with led.step() as step:
                    training.micro_batch()
                    extra()
                    step.tokens(useful=BATCH * LENGTH)
            else:
                training.step(led, **tokens)
    return reports(path)


@pytest.mark.parametrize("observer", ["native", "dispatch"])
@pytest.mark.parametrize("checkpoint", ["none", "reentrant", "non-reentrant"])
def test_every_term_of_the_identity_is_the_exact_number(tmp_path, checkpoint, observer):
    steps = run(tmp_path, checkpoint, observer=observer)
    assert len(steps) == 2
    for step in steps:
        assert flops(step, "useful") == USEFUL
        assert flops(step, "recomputed") == REPLAYED[checkpoint]
        assert flops(step, "excess") == EXCESS
        assert [part["cause"] for part in step["excess_by"]] == ["attention_score_recompute"]
        assert flops(step, "auxiliary") == 0
        assert flops(step, "padding") == 0
        assert flops(step, "unexplained") == 0
        assert flops(step, "executed") == USEFUL + REPLAYED[checkpoint] + EXCESS
        assert step["coverage_time_ratio"] >= 0.95
        assert step["gaps"] == []


@pytest.mark.parametrize("checkpoint", ["none", "reentrant", "non-reentrant"])
def test_flop_counter_mode_beside_it_differs_by_exact_numbers(tmp_path, checkpoint):
    """PyTorch's own counter on a CPU: no attention at all, and the replays counted."""
    from torch.utils.flop_counter import FlopCounterMode

    training = Demo(checkpoint)
    with FlopCounterMode(display=False) as counter:
        for _ in range(ACCUMULATE):
            training.micro_batch()
    linear = 3 * (FORWARD - LAYERS * CORE)
    replayed_linear = {
        "none": 0,
        "reentrant": LAYERS * (BLOCK - CORE),
        "non-reentrant": LAYERS * (BLOCK - CORE - DOWN),
    }[checkpoint]
    assert counter.get_total_flops() == linear + replayed_linear
    step = run(tmp_path, checkpoint, steps=1)[0]
    replayed_core = LAYERS * CORE if checkpoint != "none" else 0
    missing = 3 * LAYERS * CORE + replayed_core + EXCESS
    assert flops(step, "executed") - counter.get_total_flops() == missing


def test_padding_lowers_useful_fills_p_and_leaves_executed(tmp_path):
    lengths = [128, 100, 64, 28]
    full = run(tmp_path, "non-reentrant", steps=1)[0]
    padded = run(
        tmp_path, "none", steps=1, useful=sum(lengths), padded=BATCH * LENGTH, seqlens=lengths
    )[0]
    useful_pairs = ACCUMULATE * sum(length * (length + 1) // 2 for length in lengths)
    useful_tokens = ACCUMULATE * sum(lengths)
    per_token = 2 * (LAYERS * (4 * HIDDEN * HIDDEN + 2 * HIDDEN * FFN) + HIDDEN * VOCABULARY)
    expected = 3 * (per_token * useful_tokens + LAYERS * 4 * HIDDEN * useful_pairs)
    assert flops(padded, "useful") == expected < USEFUL
    assert flops(padded, "padding") == USEFUL - expected
    assert flops(padded, "executed") == USEFUL + EXCESS
    assert flops(padded, "unexplained") == 0
    assert flops(full, "executed") == USEFUL + EXCESS + REPLAYED["non-reentrant"]


@torch.library.custom_op("flopledger_test::busy", mutates_args=())
def busy(x: torch.Tensor) -> torch.Tensor:
    import time

    end = time.perf_counter() + 0.02
    while time.perf_counter() < end:
        pass
    return torch.empty_like(x)


def test_an_op_without_a_rule_widens_hfu_by_its_share_and_leaves_mfu(tmp_path):
    without = run(tmp_path, "none", steps=1)[0]
    x = torch.zeros(4)
    step = run(tmp_path, "reentrant", steps=1, extra=lambda: (busy(x), busy(x), busy(x)))[0]
    [gap] = step["gaps"]
    assert gap["name"] == "flopledger_test::busy"
    assert gap["reason"] == "no_rule"
    assert gap["launches"] == 3
    assert gap["time_ns"] >= 60_000_000
    # Exactly its share: of the time of all kernels, and of all launches, from the same log.
    time_of_all = sum(kernel["time_ns"] for kernel in step["kernels"])
    launches = sum(kernel["launches"] for kernel in step["kernels"])
    assert step["coverage_time_ratio"] == pytest.approx(1 - gap["time_ns"] / time_of_all, abs=1e-12)
    assert step["coverage_launch_ratio"] == pytest.approx(1 - 3 / launches, abs=1e-12)
    width = step["hfu_high_ratio"] - step["hfu_low_ratio"]
    assert width == pytest.approx(gap["time_ns"] / step["wall_ns"], rel=1e-9)
    # MFU: useful work over peak and wall, whatever could not be counted.
    assert flops(step, "useful") == USEFUL // ACCUMULATE
    expected = flops(step, "useful") / (1e12 * step["wall_ns"] / 1e9)
    assert step["mfu_ratio"] == pytest.approx(expected, rel=1e-6)
    assert without["hfu_high_ratio"] == without["hfu_low_ratio"]


def test_time_adds_up_to_the_wall_of_every_step(tmp_path):
    for step in run(tmp_path, "non-reentrant", steps=3):
        [device] = step["devices"]
        assert sum(device["state_ns"].values()) == step["wall_ns"]


def test_muon_like_matmuls_of_the_optimizer_are_auxiliary(tmp_path):
    class Orthogonal(torch.optim.Optimizer):
        """Three products of 256 x 256 matrices a step, as a Newton-Schulz iteration would."""

        def __init__(self, parameters):
            super().__init__(parameters, {})

        @torch.no_grad()
        def step(self, closure=None):
            x = torch.ones(256, 256)
            for _ in range(3):
                x = x @ x

    path = tmp_path / "muon.jsonl"
    training = Demo("none")
    training.optimizer = Orthogonal(training.model.parameters())
    with ledger(model_flops=declared(), seq_len=LENGTH, jsonl=str(path)) as led:
        training.step(led)
    [step] = reports(path)
    assert flops(step, "auxiliary") == 3 * 2 * 256**3
    assert flops(step, "recomputed") == 0
    assert flops(step, "unexplained") == 0


def test_evaluation_is_its_own_cause_and_no_useful_work(tmp_path):
    path = tmp_path / "eval.jsonl"
    training = Demo("none")
    with ledger(model_flops=declared(), seq_len=LENGTH, jsonl=str(path)) as led:
        with led.step() as step:
            for _ in range(ACCUMULATE):
                training.micro_batch()
                step.tokens(useful=BATCH * LENGTH)
            with led.section("eval"), torch.no_grad():
                training.model(training.rows[:, :-1])
    [step] = reports(path)
    assert flops(step, "useful") == USEFUL
    assert flops(step, "auxiliary") == FORWARD // ACCUMULATE
    assert flops(step, "unexplained") == 0
    causes = {line["cause"]: int(line["flops"]) for line in step["waterfall"]}
    assert causes["eval"] > 0
    assert sum(causes.values()) == flops(step, "peak")


def test_the_log_is_one_json_object_a_line_with_all_digits(tmp_path):
    run(tmp_path, "none", steps=2)
    lines = (tmp_path / "none-native.jsonl").read_text(encoding="utf-8").splitlines()
    kinds = [json.loads(line)["type"] for line in lines]
    assert kinds == ["run", "step", "step", "summary"]
