"""The Python surface: what users call, what they get back, and what is said when it is wrong."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import urllib.error
import urllib.request

import pytest
from ledger_support import flopledger, ledger, reports, torch

SMALL = {"layers": 1, "hidden": 8, "query_heads": 2, "ffn": 16, "vocabulary": 11}
# 8 tokens in 2 rows of 4; 10 pairs a row.
SMALL_FORWARD = 2 * 8 * (4 * 64 + 2 * 8 * 16 + 8 * 11) + 4 * 8 * 2 * 10


def get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=5) as answer:
        return answer.read().decode()


def steps(led, count: int = 3, **tokens) -> None:
    for _ in range(count):
        with led.step() as step:
            step.tokens(**(tokens or {"useful": 8}))


def test_declared_work_of_a_step_to_the_flop(tmp_path):
    path = tmp_path / "log.jsonl"
    with ledger(model_flops=flopledger.transformer(**SMALL), seq_len=4, jsonl=str(path)) as led:
        steps(led, 1)
    [step] = reports(path)
    assert int(step["useful_flops"]) == 3 * SMALL_FORWARD


@pytest.mark.parametrize(
    "tokens",
    [
        {"useful": 8},
        {"useful": 8, "padded": 8},
        {"seqlens": [4, 4]},
        {"cu_seqlens": [0, 4, 8]},
        {"useful": 8, "seq_len": 4},
        {"seqlens": torch.tensor([4, 4])},
    ],
)
def test_every_way_to_declare_the_same_tokens(tmp_path, tokens):
    path = tmp_path / "log.jsonl"
    with ledger(model_flops=flopledger.transformer(**SMALL), seq_len=4, jsonl=str(path)) as led:
        steps(led, 1, **tokens)
    [step] = reports(path)
    assert int(step["useful_flops"]) == 3 * SMALL_FORWARD
    assert int(step["padding_flops"]) == 0


def test_a_callable_declares_its_own_flops(tmp_path):
    path = tmp_path / "log.jsonl"
    huge = 2**70

    def flops(batch):
        return {"forward": huge, "backward": 2 * huge, "tokens": len(batch)}

    with ledger(model_flops=flops, jsonl=str(path)) as led, led.step() as step:
        step.work([1, 2, 3])
    [report] = reports(path)
    assert int(report["useful_flops"]) == 3 * huge
    assert report["tokens"]["useful"] == 3


def test_a_callable_may_name_its_parts(tmp_path):
    path = tmp_path / "log.jsonl"

    def flops(batch):
        return {"encoder": {"forward": 5, "backward": 10}, "head": {"forward": 2}, "tokens": 3}

    with ledger(model_flops=flops, jsonl=str(path)) as led, led.step() as step:
        step.work(None)
        step.work(None)
    [report] = reports(path)
    assert int(report["useful_forward_flops"]) == 14
    assert int(report["useful_backward_flops"]) == 20


@pytest.mark.parametrize("parts", [{"fwd": 3}, {"forward": -1}, {"head": {"up": 1}}, 17])
def test_a_callable_that_returns_something_else_is_refused(tmp_path, parts):
    path = tmp_path / "log.jsonl"
    with (
        ledger(model_flops=lambda batch: parts, jsonl=str(path)) as led,
        led.step() as step,
    ):
        step.work(None)
    [report] = reports(path)
    assert report["mfu_refusal"] == "declaration_lost"


def test_last_lags_by_one_step_and_leaves_out_what_is_not_known():
    with ledger(model_flops=flopledger.transformer(**SMALL), seq_len=4, observer="none") as led:
        assert led.last() == {}
        assert led.last_report() is None
        with led.step(10) as step:
            step.tokens(useful=8)
            step.value("loss", 1.5)
        with led.step():
            pass
        led.close()
        values = led.last()
        assert all(key.startswith("flopledger/") for key in values)
        assert all(isinstance(value, float | int) for value in values.values())
        assert "flopledger/hfu_low" not in values  # nothing was observed
        report = led.last_report()
        assert report["step"] == 11
        assert report["mfu_refusal"] == "no_tokens"
        assert report["hfu_refusal"] == "no_evidence"
        assert "MFU" in led.summary()


def test_an_exception_of_the_loop_propagates_unchanged(tmp_path):
    path = tmp_path / "log.jsonl"

    class Own(BaseException):
        pass

    error = Own("mine")
    with ledger(jsonl=str(path)) as led:
        with pytest.raises(Own) as caught, led.step():
            raise error
        steps(led, 1)
    assert caught.value is error
    assert caught.value.__cause__ is None
    assert [step["result"] for step in reports(path)] == ["incomplete", "complete"]
    assert reports(path)[0]["closed_by"] == "exception"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"peak": 312}, "312"),
        ({"peak": "312 parsecs"}, "parsecs"),
        ({"peak": True}, "peak is True"),
        ({"dtype": "fp12"}, "dtype is 'fp12'; accepted: fp64"),
        ({"observer": "magic"}, "observer is 'magic'; accepted: auto"),
        ({"device_records": "on"}, "device_records is 'on'; accepted: auto, off"),
        ({"warmup_steps": -1}, "warmup_steps is -1"),
        ({"port": 99999}, "99999"),
        ({"port": "ninety"}, "port is 'ninety'"),
        ({"log_level": "loud"}, "log_level is 'loud'"),
        ({"rank": 4, "world_size": 2}, "rank is 4"),
        ({"model_flops": 17}, "model_flops is a int"),
        ({"model_flops": {"model_type": "llama"}}, "hidden_size"),
        ({"address": "0.0.0.0", "http": True}, "0.0.0.0"),
    ],
)
def test_wrong_configuration_raises_at_start_and_names_the_field(arguments, message):
    with pytest.raises(ValueError, match=re.escape(message)), ledger(**arguments):
        pass
    # Nothing is left behind: the next start works.
    with ledger():
        pass


def test_a_log_that_cannot_be_written_raises_at_start():
    with (
        pytest.raises(OSError, match=r"/no/such/folder/log\.jsonl"),
        ledger(jsonl="/no/such/folder/log.jsonl"),
    ):
        pass


def test_an_unknown_argument_is_answered_with_the_nearest_one():
    with pytest.raises(TypeError, match="'warmup_step'; did you mean 'warmup_steps'"):
        flopledger.start(warmup_step=3)
    with pytest.raises(TypeError, match="hiden"):
        flopledger.transformer(hiden=8)


def test_an_unknown_variable_or_key_is_an_error_with_the_nearest_one(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FLOPLEDGER_PROT", "9")
    with pytest.raises(ValueError, match="FLOPLEDGER_PROT; did you mean 'FLOPLEDGER_PORT'"):
        flopledger.start()
    monkeypatch.delenv("FLOPLEDGER_PROT")
    if sys.version_info >= (3, 11):
        (tmp_path / "flopledger.toml").write_text("log_evry = 3\n", encoding="utf-8")
        with pytest.raises(ValueError, match="unknown key 'log_evry'; did you mean 'log_every'"):
            flopledger.start()


def test_precedence_argument_variable_file_default(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    from flopledger._config import settings

    (tmp_path / "flopledger.toml").write_text(
        "port = 1\nwarmup_steps = 2\nrun = 'file'\n", encoding="utf-8"
    )
    monkeypatch.setenv("FLOPLEDGER_WARMUP_STEPS", "3")
    monkeypatch.setenv("FLOPLEDGER_RUN", "variable")
    chosen = settings({"run": "argument"})
    assert chosen["run"] == "argument"
    assert chosen["warmup_steps"] == 3
    if sys.version_info >= (3, 11):
        assert chosen["port"] == 1
    assert chosen["log_every"] == 10


def test_a_ledger_says_how_it_counts():
    with ledger(model_flops=flopledger.transformer(**SMALL), seq_len=4) as led:
        assert led.conventions["convention"] == "house"
        assert "L=1 h=8" in led.conventions["model"]


def test_one_ledger_at_a_time():
    with ledger() as led:
        assert flopledger.get() is led
        with pytest.raises(RuntimeError, match="open in this process"):
            flopledger.start()
    led.close()  # twice is once


@pytest.mark.parametrize(
    "action",
    [
        lambda led, step: step.tokens(),
        lambda led, step: step.tokens(useful="many"),
        lambda led, step: step.tokens(useful=-1),
        lambda led, step: step.tokens(useful=9, padded=8),
        lambda led, step: step.tokens(seqlens=[1], cu_seqlens=[0, 1]),
        lambda led, step: step.tokens(cu_seqlens=[3, 1]),
        lambda led, step: step.tokens(useful=2**80),
        lambda led, step: step.work(object()),
        lambda led, step: step.value("loss", "high"),
        lambda led, step: led.section("nap").__enter__(),
    ],
)
def test_after_start_nothing_raises_and_strict_does(tmp_path, action):
    path = tmp_path / "log.jsonl"
    model = flopledger.transformer(**SMALL)
    with ledger(model_flops=model, seq_len=4, jsonl=str(path)) as led:
        with led.step() as step:
            action(led, step)
        steps(led, 1)
    assert int(reports(path)[-1]["useful_flops"]) == 3 * SMALL_FORWARD  # the next step is whole
    with (
        ledger(model_flops=model, seq_len=4, strict=True) as led,
        pytest.raises((ValueError, TypeError, OverflowError)),
        led.step() as step,
    ):
        action(led, step)


def test_impossible_tokens_refuse_the_steps_mfu(tmp_path):
    path = tmp_path / "log.jsonl"
    with ledger(model_flops=flopledger.transformer(**SMALL), seq_len=4, jsonl=str(path)) as led:
        steps(led, 1, useful=9, padded=8)
    [step] = reports(path)
    assert "mfu_ratio" not in step or step["mfu_ratio"] is None
    assert step["mfu_refusal"] == "declaration_lost"


def test_pages_are_served_and_gone_after_close():
    with ledger(model_flops=flopledger.transformer(**SMALL), seq_len=4, http=True, port=0) as led:
        steps(led)
        metrics = get(led.address + "/metrics")
        assert "# TYPE flopledger_useful_flops_total counter" in metrics
        assert "<html" in get(led.address + "/live").lower()
        assert json.loads(get(led.address + "/api/v1/run"))
        address = led.address
    with pytest.raises((urllib.error.URLError, ConnectionError)):
        get(address + "/metrics")


def test_a_taken_port_is_said_once_and_another_is_used(capfd):
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with ledger(http=True, port=port, log_level="info") as led:
            assert led.address and not led.address.endswith(f":{port}")
            assert led.capabilities["http"] == "port_taken"
            steps(led)
    said = [line for line in capfd.readouterr().err.splitlines() if str(port) in line]
    assert len(said) == 1


def run_script(text: str, *arguments: str, **options) -> subprocess.CompletedProcess:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(text), *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment,
        check=False,
        **options,
    )


def test_data_loader_workers_leave_the_books_alone(tmp_path):
    path = tmp_path / "log.jsonl"
    done = run_script(
        """
        import sys, torch, flopledger
        led = flopledger.start(
            model_flops=flopledger.formula("6*N*T", N=10), peak=1e12, jsonl=sys.argv[1], port=0,
            warmup_steps=0, log_every=0,
        )
        loader = torch.utils.data.DataLoader(torch.randn(64, 8), batch_size=8, num_workers=2)
        for batch in loader:
            with led.step() as step:
                torch.mm(batch, batch.t())
                step.tokens(useful=8)
        led.close()
        """,
        str(path),
    )
    assert done.returncode == 0, done.stderr
    steps_seen = reports(path)
    assert [step["step"] for step in steps_seen] == list(range(8))
    assert all(int(step["executed_flops"]) == 2 * 8 * 8 * 8 for step in steps_seen)
    assert all(int(step["useful_flops"]) == 6 * 10 * 8 for step in steps_seen)


def test_a_process_that_just_ends_still_closes_its_books(tmp_path):
    path = tmp_path / "log.jsonl"
    done = run_script(
        """
        import sys, flopledger
        led = flopledger.start(peak=1e12, jsonl=sys.argv[1], http=False, log_every=0)
        for _ in range(3):
            with led.step():
                pass
        """,
        str(path),
    )
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert lines[-1]["type"] == "summary"
    assert "the run's books" in done.stderr


def test_sigterm_ends_a_python_process_as_it_would_have(tmp_path):
    path = tmp_path / "log.jsonl"
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            textwrap.dedent(
                """
                import sys, time, flopledger
                led = flopledger.start(peak=1e12, jsonl=sys.argv[1], http=False, log_every=0)
                for number in range(10**9):
                    with led.step():
                        time.sleep(0.001)
                    if number == 5:
                        print("ready", flush=True)
                """
            ),
            str(path),
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=30) == -signal.SIGTERM
    process.stdout.close()
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [line["step"] for line in lines if line["type"] == "step"][:6] == list(range(6))
    assert lines[-1]["type"] == "summary"
