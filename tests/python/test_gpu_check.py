"""The GPU check where there is no GPU: its arithmetic, its answers to wrong arguments, its parts
on the CPU as a stand-in.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "gpu"))
from gpu_check import measuring  # noqa: E402


def check(*arguments: str, timeout: int = 300) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", str(ROOT / "tests" / "gpu" / "check.sh"), *arguments],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def test_runs_are_interleaved_and_each_round_begins_with_another() -> None:
    assert measuring.interleaved(["a", "b", "c"], 3) == list("abcbcacab")
    assert measuring.interleaved(["plain", "on"], 1) == ["plain", "on"]
    with pytest.raises(ValueError, match="rounds is 0"):
        measuring.interleaved(["a"], 0)
    with pytest.raises(ValueError, match=r"kinds are \[\]"):
        measuring.interleaved([], 1)

    order: list[str] = []

    def measure(kind: str) -> dict[str, float]:
        order.append(kind)
        return {"seconds": float(len(order))}

    results = measuring.run_interleaved(["a", "b"], 2, measure)
    assert order == ["a", "b", "b", "a"]
    assert results == {
        "a": [{"seconds": 1.0}, {"seconds": 4.0}],
        "b": [{"seconds": 2.0}, {"seconds": 3.0}],
    }


def test_medians_and_quartiles() -> None:
    # 1 2 3 4 5: the middle half reaches from 2 to 4.
    result = measuring.summary([5, 1, 4, 2, 3])
    assert (result["count"], result["median"]) == (5, 3)
    assert (result["quartile_low"], result["quartile_high"]) == (2, 4)
    assert result["values"] == [5, 1, 4, 2, 3]
    assert measuring.summary([7.0])["quartile_high"] == 7.0
    assert measuring.summary([])["median"] is None


def test_what_collecting_adds() -> None:
    # Pairs: +2, +4, +6 over 2000 launches; 2 %, 4 % and 6 %.
    result = measuring.added([100.0, 100.0, 100.0], [102.0, 104.0, 106.0], per=2000)
    assert result["difference"]["median"] == pytest.approx(0.002)
    assert result["ratio"]["median"] == pytest.approx(0.04)
    assert result["resolved"]
    # C45: five pairs of 0.14475 s and 0.152834 s are 5.585 %.
    c45 = measuring.added([0.14475] * 5, [0.152834] * 5)
    assert round(c45["ratio"]["median"] * 100, 3) == 5.585
    # As often above as below: no figure.
    assert not measuring.added([100.0] * 4, [99.0, 101.0, 98.0, 102.0])["resolved"]
    with pytest.raises(ValueError, match="accepted: as many as collected, above 0"):
        measuring.added([], [])
    with pytest.raises(ValueError, match="above 0"):
        measuring.added([0.0], [1.0])


def test_mismatches_name_the_step_and_both_counts() -> None:
    assert measuring.mismatches({0: 5, 1: 6}, {0: 5, 1: 6}) == []
    assert measuring.mismatches({0: 5, 1: 6, 2: 7}, {0: 6, 1: 5, 3: 1}) == [
        {"step": 0, "truth": 5, "seen": 6},
        {"step": 1, "truth": 6, "seen": 5},
        {"step": 2, "truth": 7, "seen": None},
        {"step": 3, "truth": None, "seen": 1},
    ]


def test_a_document_says_what_is_wrong_with_it() -> None:
    good = measuring.document("fence", "passed", facts={"x": 1}, machine={})
    assert measuring.problems(good) == []
    assert measuring.problems([]) == ["the document is a list; accepted: an object"]
    assert measuring.problems({**good, "outcome": "fine"}) == [
        "outcome is 'fine'; accepted: passed, failed, skipped"
    ]
    assert measuring.problems({**good, "outcome": "failed"}) == ["outcome is failed without a why"]
    assert measuring.problems({**good, "schema_version": 2}) == ["schema_version is 2; accepted: 1"]
    assert "not JSON" in measuring.problems({**good, "facts": {"x": float("nan")}})[0]
    with pytest.raises(ValueError, match="without a why"):
        measuring.document("fence", "skipped", facts={}, machine={})


def test_reports_are_read_from_the_step_log(tmp_path: Path) -> None:
    step = {
        "type": "step",
        "kernels": [
            {"op_class": "matmul", "launches": 3},
            {"op_class": "elementwise", "launches": 4},
        ],
        "losses": [{"count": 2}, {"count": 5}],
        "late_records": 1,
    }
    log = tmp_path / "log.jsonl"
    log.write_text(json.dumps({"type": "run"}) + "\n" + json.dumps(step) + '\n{"type": "st')
    (read,) = measuring.steps_of(log)
    assert measuring.launches(read) == 7
    assert measuring.launches(read, ["matmul"]) == 3
    assert measuring.lost(read) == 8


def test_help_and_wrong_arguments() -> None:
    done = check("--help")
    assert done.returncode == 0
    assert "77 skipped: no GPU here" in done.stdout
    for arguments, status, message in (
        (["--wat"], 2, "unknown argument '--wat'; accepted: --wheel"),
        (["--wheel"], 2, "--wheel needs a value"),
        (["--device", "tpu"], 2, "--device is 'tpu'; accepted: cuda, cpu"),
        (["--wheel", "no.whl"], 4, "--wheel is 'no.whl', which is no file"),
        (["--libraries", "no"], 4, "--libraries is 'no', which is no folder"),
        (["--python", "no-python"], 4, "--python is 'no-python', which is no program"),
    ):
        done = check(*arguments)
        assert done.returncode == status, arguments
        assert message in done.stderr, arguments
        assert done.stdout == ""


def test_without_torch_something_is_missing(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('none here')\n")
    done = subprocess.run(
        ["bash", str(ROOT / "tests" / "gpu" / "check.sh"), "--python", sys.executable],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 4
    assert "torch cannot be imported: none here" in done.stderr


def test_without_a_gpu_it_is_skipped_and_says_so() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    done = check("--python", sys.executable)
    assert done.returncode == 77
    assert done.stdout.startswith("skipped: torch ")


def on_the_cpu(out: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    pytest.importorskip("torch", reason="torch is not installed")
    pytest.importorskip("flopledger", reason="the flopledger wheel is not installed")
    return check(
        *("--python", sys.executable, "--device", "cpu", "--small", "--out", str(out)),
        *arguments,
    )


def test_an_unknown_part_is_refused(tmp_path: Path) -> None:
    done = on_the_cpu(tmp_path, "--part", "fences")
    assert done.returncode == 2
    assert "--part is 'fences'; accepted: capabilities fence" in done.stderr


def test_one_part_on_the_cpu_writes_what_it_found(tmp_path: Path) -> None:
    done = on_the_cpu(tmp_path, "--part", "fence")
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads((tmp_path / "fence.json").read_text(encoding="utf-8"))
    assert measuring.problems(result) == []
    assert result["outcome"] == "passed"
    running = result["facts"]["running"]
    # By hand: 20 + 7 x (i mod 5) on one thread, 5 + 3 x (i mod 4) on the other.
    assert [step["launches"] for step in running["steps"]] == [25, 35, 45, 55, 53, 28]
    together = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert together == {"counts": {"passed": 1, "failed": 0, "skipped": 0}, "parts": [result]}


@pytest.mark.slow
def test_all_parts_on_the_cpu(tmp_path: Path) -> None:
    done = on_the_cpu(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    results = {
        path.stem: json.loads(path.read_text(encoding="utf-8"))
        for path in tmp_path.glob("*.json")
        if path.name != "results.json"
    }
    assert {name for name, result in results.items() if result["outcome"] == "skipped"} == {
        "long_run"
    }
    workload = results["overhead"]["facts"]["workloads"]["small_kernels_eager"]
    assert set(workload["seconds_per_step"]) == {"plain", "steps", "collected"}
    assert results["coverage"]["facts"]["steps"][0]["coverage_launch_ratio"] > 0
    assert not any(path.suffix == ".part" for path in tmp_path.iterdir())


def test_a_part_that_fails_fails_the_check(tmp_path: Path) -> None:
    failed = measuring.document("fence", "failed", why="wrong", facts={}, machine={})
    measuring.write(tmp_path / "fence.json", failed)
    (tmp_path / "graphs.json").write_text("{")
    (tmp_path / "somebody_elses.json").write_text("{")
    done = subprocess.run(
        [sys.executable, "-m", "gpu_check", "sum", str(tmp_path)],
        cwd=ROOT / "tests" / "gpu",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "0 passed, 2 failed, 0 skipped" in done.stdout
    assert "failed: wrong" in done.stdout
