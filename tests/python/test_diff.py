"""`flopledger diff`: what changed between two runs, and what only looks like it."""

from __future__ import annotations

import json
import random

import pytest
from cli_support import flopledger
from step_logs import SECOND, Rank, Step, four_ranks

PEAK = 1000


def run(path, *, wall=SECOND, useful=300, stall=0, steps=20, noise=0.0, seed=1, tokens=1000, **who):
    """A run whose steps spend `stall` ns waiting for data, the rest at work below the peak."""
    rank = Rank(**({"peak": PEAK} | who))
    chance = random.Random(seed)
    made, start = [], SECOND
    for number in range(steps):
        busy = int(wall * (1 + noise * chance.uniform(-1, 1)))
        peak = rank.peak * (busy + stall) // SECOND
        waiting = rank.peak * stall // SECOND
        lines = {
            "data": waiting,
            "matmul_below_peak": peak - waiting - useful,
            "useful": useful,
        }
        step = Step(number, start, start + busy + stall, useful, lines=lines, tokens=tokens)
        step.states = {"compute": busy, "idle": stall}
        step.kernels = [("matmul", "counted", 1, busy)]
        start = step.end
        made.append(step)
    return rank.write(path, made)


def diff(*arguments, status=0) -> dict:
    return json.loads(flopledger("diff", *arguments, "--json", status=status).stdout)


def test_the_cause_that_grew_is_first(tmp_path):
    a = run(tmp_path / "a.jsonl")
    b = run(tmp_path / "b.jsonl", stall=SECOND // 10)
    body = diff(a, b)
    assert body["verdict"] == "slower"
    assert body["change_ratio"] == pytest.approx(0.1, rel=1e-9)
    assert body["unit"] == "useful_token"
    first = body["causes"][0]
    assert first["cause"] == "data"
    assert first["change_seconds"] * 1000 == pytest.approx(0.1, rel=1e-9)  # of 1000 tokens
    for key in ("before_seconds", "after_seconds"):
        total = sum(cause[key] for cause in body["causes"])
        assert total == pytest.approx(body[key.split("_")[0]]["seconds_per_unit"], rel=1e-9)
    assert body["changed_terms"] == []
    assert body["mfu_factor"] == pytest.approx(1 / 1.1, rel=1e-6)
    assert body["speed_factor"] == pytest.approx(1 / 1.1, rel=1e-9)


@pytest.mark.parametrize(
    ("who", "terms", "factor"),
    [
        ({"peak": 2 * PEAK}, {"peak"}, "peak_factor"),
        (
            {"convention": "PALM", "convention_hash": "bb", "useful": 400},
            {"convention"},
            "work_factor",
        ),
        ({"model": "8*N*T", "useful": 400}, {"formula"}, "work_factor"),
        ({"dtype": "fp8", "peak": 2 * PEAK}, {"peak", "peak_dtype"}, "peak_factor"),
        ({"device": "another", "peak": PEAK // 2}, {"device", "peak"}, "peak_factor"),
    ],
)
def test_another_denominator_is_no_speed_up(tmp_path, who, terms, factor):
    a = run(tmp_path / "a.jsonl")
    b = run(tmp_path / "b.jsonl", **who)
    body = diff(a, b)
    assert body["verdict"] == "within_noise"
    assert body["change_ratio"] == pytest.approx(0, abs=1e-12)
    assert body["speed_factor"] == pytest.approx(1)
    assert {term["what"] for term in body["changed_terms"]} == terms
    assert body["mfu_factor"] == pytest.approx(body[factor], rel=1e-9)
    assert abs(body["mfu_factor"] - 1) > 0.2
    text = flopledger("diff", a, b).stdout
    assert "no change of speed beyond the noise" in text
    assert "what is counted differs; this moves ratios and is no change of speed" in text
    flopledger("diff", a, b, "--check")


def test_a_step_with_half_the_tokens_is_no_speed_up(tmp_path):
    a = run(tmp_path / "a.jsonl", tokens=1000, useful=300)
    b = run(tmp_path / "b.jsonl", tokens=500, useful=150, wall=SECOND // 2)
    body = diff(a, b)
    assert body["verdict"] == "within_noise"
    assert [term["what"] for term in body["changed_terms"]] == ["tokens"]
    assert body["changed_terms"][0]["after"] == "500 a step"


def test_the_product_of_the_factors_is_the_change_of_mfu(tmp_path):
    a = run(tmp_path / "a.jsonl")
    b = run(tmp_path / "b.jsonl", wall=SECOND * 4 // 5, useful=330, peak=1500, model="other")
    body = diff(a, b)
    assert body["speed_factor"] == pytest.approx(1.25, rel=1e-9)
    assert body["work_factor"] == pytest.approx(1.1, rel=1e-9)
    assert body["peak_factor"] == pytest.approx(2 / 3, rel=1e-9)
    assert body["mfu_factor"] == pytest.approx(1.25 * 1.1 * 2 / 3, rel=1e-9)


def test_a_change_within_the_noise_is_called_that(tmp_path):
    a = run(tmp_path / "a.jsonl", noise=0.2, seed=1, steps=30)
    b = run(tmp_path / "b.jsonl", noise=0.2, seed=2, steps=30, wall=SECOND * 101 // 100)
    body = diff(a, b)
    assert body["verdict"] == "within_noise"
    assert 0.02 < body["noise_ratio"] < 0.12
    slow = run(tmp_path / "c.jsonl", noise=0.2, seed=2, steps=30, wall=SECOND * 13 // 10)
    assert diff(a, slow)["verdict"] == "slower"
    assert diff(slow, a)["verdict"] == "faster"


def test_the_check_fails_a_slow_run_and_only_that(tmp_path):
    a = run(tmp_path / "a.jsonl")
    slow = run(tmp_path / "slow.jsonl", stall=SECOND // 20)
    flopledger("diff", a, a, "--check")
    flopledger("diff", slow, a, "--check")
    flopledger("diff", a, slow, "--check", status=1)
    flopledger("diff", a, slow, "--check", "--tolerance", 6)
    flopledger("diff", a, slow)
    assert (
        "--tolerance requires --check"
        in flopledger("diff", a, slow, "--tolerance", 6, status=2).stderr
    )


def test_one_step_cannot_be_compared(tmp_path):
    a = run(tmp_path / "a.jsonl", steps=1)
    body = diff(a, run(tmp_path / "b.jsonl"))
    assert body["verdict"] == "unknown"
    flopledger("diff", a, a, "--check", status=1)


def test_without_a_peak_the_states_of_the_devices_are_compared(tmp_path):
    a = run(tmp_path / "a.jsonl", peak=0)
    b = run(tmp_path / "b.jsonl", peak=0, stall=SECOND // 10)
    body = diff(a, b)
    assert body["causes_by"] == "device_state"
    assert body["causes"][0]["cause"] == "idle"
    assert body["causes"][0]["change_seconds"] * 1000 == pytest.approx(0.1, rel=1e-9)
    assert body["mfu_factor"] is None


def test_runs_over_many_ranks_are_compared_as_wholes(tmp_path):
    a = four_ranks(tmp_path / "a", run_id="a")
    b = four_ranks(tmp_path / "b", run_id="b", steps=40)
    body = diff(a, b)
    assert body["verdict"] == "within_noise"
    assert body["mfu_factor"] == pytest.approx(1, rel=1e-6)


def test_the_text_says_what_changed(tmp_path):
    a = run(tmp_path / "a.jsonl")
    b = run(tmp_path / "b.jsonl", stall=SECOND // 10, peak=2 * PEAK)
    lines = flopledger("diff", a, b).stdout.splitlines()
    assert lines[0] == "A run-a (1 ranks, 20 complete steps)"
    assert lines[2].startswith("B is slower: +10.0 % time for 1000 useful tokens (noise 0.0 %;")
    assert lines[4].split() == "peak A 1 x 1 kFLOP/s bf16 (published: data sheet)".split()
    assert lines[6] == (
        "MFU x 0.455 = speed x 0.909, FLOPs for 1000 useful tokens x 1.000, peak x 0.500"
    )
    # With unlike peaks the split of matmul work would change with the peak alone.
    assert [cause["cause"] for cause in diff(a, b)["causes"]] == ["data", "matmul_work"]
    assert any(line.split()[:2] == ["+0.100", "s"] and "data" in line for line in lines)


def test_bad_input_is_named(tmp_path):
    a = run(tmp_path / "a.jsonl")
    assert "no.jsonl: no such file" in flopledger("diff", a, tmp_path / "no.jsonl", status=3).stderr
    assert "B is required" in flopledger("diff", a, status=2).stderr
