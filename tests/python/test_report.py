"""`flopledger report`: logs of many ranks to one set of books. Expected values are worked out."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from cli_support import ROOT, flopledger
from step_logs import SECOND, Rank, Step, busy_step, four_ranks


def report(*arguments: object) -> dict:
    return json.loads(flopledger("report", *arguments, "--json").stdout)


def test_unlike_ranks_are_summed_and_never_averaged(tmp_path):
    body = report(four_ranks(tmp_path / "logs"))
    # (2 x 989 x 0.4 + 2 x 312 x 0.1) / (2 x 989 + 2 x 312); ranks start 1 us apart, so that the
    # window of 50 steps of 1 s is 3 us longer than those of the ranks.
    window = 50 + 3e-6
    assert body["window_ns"] == 50 * SECOND + 3000
    peak = 2 * 989e12 + 2 * 312e12
    useful = (2 * 989e12 * 0.4 + 2 * 312e12 * 0.1) * 50
    assert body["mfu_ratio"] == pytest.approx(useful / peak / window, rel=1e-12)
    assert body["mfu_ratio"] == pytest.approx(0.32805532, abs=1e-8)
    assert body["hfu_low_ratio"] == pytest.approx(useful * 1.1 / peak / window, rel=1e-12)
    # Unknown kernels take 5 % of each rank's wall time.
    spread = body["hfu_high_ratio"] - body["hfu_low_ratio"]
    assert spread == pytest.approx(0.05 * 50 / window, rel=1e-9)
    assert body["recompute_ratio"] == pytest.approx(1 / 11, rel=1e-12)
    assert [rank["mfu_ratio"] for rank in body["ranks"]] == [0.4, 0.4, 0.1, 0.1]
    assert [p["ranks"] for p in body["peaks"]] == [2, 2]
    assert sum(int(line["flops"]) for line in body["waterfall"]) == int(body["peak_flops"])
    assert body["waterfall"][0]["cause"] == "rank_skew"
    assert int(body["waterfall"][0]["flops"]) == pytest.approx(peak * 3e-6, rel=1e-6)
    assert body["step_counts"] == {"complete": 50, "warmup": 0, "incomplete": 0}
    assert body["clock"] == "monotonic"


def test_the_slow_rank_is_named_by_what_it_does_not_wait_for(tmp_path):
    body = report(four_ranks(tmp_path / "logs", slow_rank=2))
    # All walls are 1 s; the others wait 0.175 s, rank 2 waits 0.01 s: 0.99 / 0.825 = 1.2.
    assert [s["rank"] for s in body["stragglers"]] == [2]
    assert body["stragglers"][0]["over_ratio"] == pytest.approx(0.2, rel=1e-9)
    assert body["stragglers"][0]["slowest_in_steps"] == 50
    assert {s["slowest_rank"] for s in body["steps"]} == {2}
    text = flopledger("report", tmp_path / "logs").stdout
    assert "straggler: rank 2 is 20.0 % slower than the others, slowest in 50 of 50 steps" in text


def test_case_c28_a_global_step_is_from_the_first_start_to_the_last_end(tmp_path):
    intervals = {0: (0.0, 2.0), 1: (0.0, 2.1), 2: (0.1, 2.4), 3: (0.0, 2.0)}
    for rank, (start, end) in intervals.items():
        step = Step(
            7, 10**9 + round(start * 1e9), 10**9 + round(end * 1e9), useful=300_000_000_000_000
        )
        Rank(rank, world=4, peak=312_000_000_000_000).write(tmp_path / f"{rank}.jsonl", [step])
    body = report(tmp_path)
    assert body["steps"][0]["wall_ns"] == 2_400_000_000
    assert body["steps"][0]["mfu_ratio"] == pytest.approx(0.40064, abs=1e-5)
    assert body["mfu_ratio"] == pytest.approx(0.40064, abs=1e-5)
    assert body["steps"][0]["slowest_rank"] == 2


def test_steps_that_overlap_between_ranks_count_once(tmp_path):
    """Rank 1 is half a step late throughout: the window is 10.5 s, not 10 x 1.5 s."""
    for rank in (0, 1):
        steps = [Step(n, n * SECOND + rank * SECOND // 2, 0, useful=50) for n in range(1, 11)]
        for step in steps:
            step.end = step.start + SECOND
        Rank(rank, world=2, peak=100).write(tmp_path / f"{rank}.jsonl", steps)
    body = report(tmp_path)
    assert body["window_ns"] == 10_500_000_000
    assert body["mfu_ratio"] == pytest.approx(1000 / (200 * 10.5), rel=1e-12)
    assert [s["wall_ns"] for s in body["steps"]] == [1_500_000_000] * 10


def test_a_step_is_complete_when_every_rank_closed_it(tmp_path):
    four_ranks(tmp_path, steps=10)
    Rank(3, world=4).write(
        tmp_path / "rank3.jsonl", [busy_step(n, n * SECOND, SECOND, 10) for n in range(1, 8)]
    )
    body = report(tmp_path)
    assert body["step_counts"] == {"complete": 7, "warmup": 0, "incomplete": 3}
    assert body["steps"][-1]["missing_ranks"] == [3]
    assert any("rank 3 lacks 3 steps" in warning for warning in body["warnings"])


def test_a_missing_rank_leaves_the_run_without_a_figure(tmp_path):
    four_ranks(tmp_path)
    (tmp_path / "rank1.jsonl").unlink()
    body = report(tmp_path)
    assert body["missing_ranks"] == [1]
    assert body["mfu_ratio"] is None
    assert body["mfu_refusal"] == "1 of 4 ranks are missing"
    useful, peak = 989 * 0.4 + 2 * 312 * 0.1, 989 + 2 * 312
    assert body["given_ranks"]["mfu_ratio"] == pytest.approx(useful / peak, rel=1e-6)
    assert "of the ranks given: " in flopledger("report", tmp_path).stdout
    flopledger("report", tmp_path, "--check", status=1)


def test_a_cut_last_line_is_accepted_and_said(tmp_path):
    steps = [busy_step(n, n * SECOND, SECOND, 10) for n in range(1, 6)]
    path = Rank(peak=100).write(tmp_path / "run.jsonl", steps, summary=False, cut=40)
    body = report(path)
    assert body["step_counts"]["complete"] == 4
    (warning,) = body["warnings"]
    assert warning.startswith(f"{path}: the last line is cut")


def test_foreign_lines_are_counted_with_their_place(tmp_path):
    path = Rank(peak=100).write(tmp_path / "run.jsonl", [busy_step(1, SECOND, SECOND, 10)])
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([lines[0], "not json\n", lines[1], '{"type": 3}\n', lines[2]]))
    (warning,) = report(path)["warnings"]
    assert "2 lines are not of a step log, the first is line 2" in warning


def test_a_rotated_log_is_one(tmp_path):
    rank = Rank(peak=100)
    steps = [busy_step(n, n * SECOND, SECOND, 10) for n in range(1, 10)]
    rank.write(tmp_path / "run.jsonl.2", steps[:3], summary=False)
    rank.write(tmp_path / "run.jsonl.1", steps[3:6], summary=False)
    rank.write(tmp_path / "run.jsonl", steps[6:])
    for words in ([tmp_path / "run.jsonl"], [tmp_path], [str(tmp_path / "run*")]):
        body = report(*words)
        assert body["step_counts"]["complete"] == 9, words
        assert body["warnings"] == []


def test_a_restart_counts_a_step_once(tmp_path):
    rank = Rank(peak=100)
    first = [busy_step(n, n * SECOND, SECOND, 10) for n in range(1, 8)]
    again = [busy_step(n, (n + 20) * SECOND, SECOND, 30) for n in range(5, 11)]
    rank.write(tmp_path / "a.jsonl", first, summary=False)
    rank.write(tmp_path / "b.jsonl", again)
    body = report(tmp_path)
    assert body["step_counts"]["complete"] == 10
    assert int(body["useful_flops"]) == 4 * 10 + 6 * 30
    assert any("3 steps are there twice" in warning for warning in body["warnings"])


def test_ranks_of_several_hosts_are_placed_by_their_wall_clocks(tmp_path):
    """Two hosts whose monotonic clocks began 1000 s apart and whose steps ran at the same time."""
    for rank, boot in ((0, 0), (1, -1000)):
        start = (10 - boot) * SECOND
        steps = [Step(n, start + n * SECOND, start + (n + 1) * SECOND, useful=40) for n in range(5)]
        Rank(rank, world=2, boot=boot, peak=100).write(tmp_path / f"{rank}.jsonl", steps)
    body = report(tmp_path)
    assert body["clock"] == "wall"
    assert body["window_ns"] == pytest.approx(5 * SECOND, abs=1000)
    assert body["mfu_ratio"] == pytest.approx(0.4, rel=1e-6)
    assert any("several hosts" in warning for warning in body["warnings"])


def test_unlike_conventions_have_no_common_ratio(tmp_path):
    four_ranks(tmp_path)
    steps = [busy_step(n, 5 * SECOND + n * SECOND, SECOND, 10) for n in range(1, 51)]
    Rank(3, world=4, convention="MEGATRON", convention_hash="bb").write(
        tmp_path / "rank3.jsonl", steps
    )
    body = report(tmp_path)
    assert body["mfu_ratio"] is None
    assert "different conventions: house (rank 0) and MEGATRON (rank 3)" in body["mfu_refusal"]


def test_without_a_peak_or_a_formula_it_says_so(tmp_path):
    step = busy_step(1, SECOND, SECOND, 10)
    Rank(peak=0).write(tmp_path / "a.jsonl", [step])
    assert (
        "N/A (no peak for the dtype (rank 0))" in flopledger("report", tmp_path / "a.jsonl").stdout
    )
    Rank(model=None).write(tmp_path / "b.jsonl", [step])
    assert "N/A (no model formula (rank 0))" in flopledger("report", tmp_path / "b.jsonl").stdout


def test_a_range_of_steps(tmp_path):
    four_ranks(tmp_path)
    body = report(tmp_path, "--steps", "10:19")
    assert body["step_counts"]["complete"] == 10
    assert [body["steps"][0]["step"], body["steps"][-1]["step"]] == [10, 19]
    message = flopledger("report", tmp_path, "--steps", "9:2", status=2).stderr
    assert "'9:2'; accepted: FIRST:LAST" in message


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["no_such.jsonl"], "no_such.jsonl: no such file; wanted are step logs, traces"),
        (["none*.jsonl"], "none*.jsonl: nothing matches"),
        (["empty"], "empty: no *.jsonl in this folder"),
        (["text.jsonl"], "text.jsonl: no run line in 6 bytes"),
        (["later.jsonl"], "later.jsonl: the step log has a later schema version"),
        (["a.jsonl", "b.jsonl"], "2 runs: 'run-a' (a.jsonl), 'run-b' (b.jsonl); choose one with"),
        (["a.jsonl", "--run", "run-x"], "--run is 'run-x'; the files are of: 'run-a'"),
    ],
)
def test_bad_input_is_named(tmp_path, words, message):
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.jsonl").write_text("hello\n")
    (tmp_path / "later.jsonl").write_text('{"schema_version": 99, "type": "run"}\n')
    for name in ("a", "b"):
        Rank(run_id=f"run-{name}").write(tmp_path / f"{name}.jsonl", [Step(1, 0, SECOND)])
    done = flopledger("report", *words, status=3, cwd=tmp_path)
    assert message in done.stderr
    assert done.stdout == ""


def test_one_of_two_runs_can_be_chosen(tmp_path):
    for name in ("a", "b"):
        Rank(run_id=f"run-{name}").write(tmp_path / f"{name}.jsonl", [Step(1, 0, SECOND)])
    assert report(tmp_path, "--run", "run-b")["run"]["run_id"] == "run-b"


def test_the_text_is_plain_where_nobody_looks(tmp_path):
    """No colours in a pipe, and no control characters from a kernel's name."""
    step = busy_step(1, SECOND, SECOND, 10)
    step.gaps = [("evil\x1b[2J\x07kernel", "no_rule", 1, 5)]
    Rank(peak=100).write(tmp_path / "run.jsonl", [step])
    text = flopledger("report", tmp_path / "run.jsonl").stdout
    assert "\x1b" not in text
    assert "evil\\x1b[2J\\x07kernel" in text


GOLDEN = """\
run run-a, 1 of 1 ranks, steps 1 to 2: 2 complete, 0 warmup, 0 incomplete
  MFU          30.0 %
  HFU          33.0 - 38.0 %
  coverage     93.8 %
  recompute    9.1 %
  step         1.000 s mean, 1.000 s median, 1.000 s to 1.000 s for 9 in 10
  window       2.000 s in complete steps, first start to last end over the ranks
  tokens       1.00k useful tok/s, 0.0 % padding
  peak         1 kFLOP/s bf16 on test device, published: data sheet
  convention   house (00000000000000aa)
  model        6*N*T
where the peak went
    67.0 %  ####################            matmul_below_peak: matmuls slower than the peak
    30.0 %  #########                       useful: useful work
     3.0 %  #                               recompute: forward work run again for the backward pass
not counted
     0.100 s  8 launches  acme::fused_rotary (no_rule)
  lost records none
"""


def test_the_whole_text_of_a_small_run(tmp_path):
    steps = [busy_step(n, n * SECOND, SECOND, 300) for n in (1, 2)]
    path = Rank(peak=1000).write(tmp_path / "run.jsonl", steps)
    assert flopledger("report", path).stdout == GOLDEN


def test_html_needs_a_place_to_be_written_to(tmp_path):
    path = Rank().write(tmp_path / "run.jsonl", [Step(1, 0, SECOND)])
    done = flopledger("report", path, "--html", tmp_path / "no/such/report.html", status=3)
    assert "report.html: cannot be written (No such file or directory)" in done.stderr
    assert flopledger("report", path, "--html", "-").stdout.startswith("<!doctype html>")
    assert Path(path).exists()


def documented(section: str) -> set[str]:
    """Every key that docs/cli.md names between this heading and the next."""
    text = (ROOT / "docs/cli.md").read_text()
    part = text.split(f"### `{section}`", 1)[1].split("\n## ", 1)[0]
    return set(re.findall(r"`(\w+)`", part))


def keys_of(body, outer="") -> set[str]:
    """Every key of an object, those of the step log's own objects left out."""
    keys = set()
    for key, value in body.items():
        keys.add(key)
        if key in ("run", "device_ns"):
            continue
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, dict):
                keys |= keys_of(each, key)
    return keys


def test_every_key_is_documented(tmp_path):
    logs = four_ranks(tmp_path / "a", run_id="a")
    (tmp_path / "a/rank0.jsonl").unlink()
    assert keys_of(report(logs)) - documented("report --json") == set()
    other = four_ranks(tmp_path / "b", run_id="b", slow_rank=1)
    body = json.loads(flopledger("diff", logs, other, "--json").stdout)
    assert keys_of(body) - documented("diff --json") == set()
