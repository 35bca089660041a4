"""`flopledger serve`: a log as a run that is going on; and a real Prometheus that scrapes it."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import pytest
from cli_support import ROOT, flopledger, program
from export_support import get
from step_logs import SECOND, Rank, busy_step, four_ranks
from test_shipped_files import BOARDS, board, queries


@contextlib.contextmanager
def serving(*words: object):
    """Starts the server; gives its process and the addresses of its ranks."""
    with subprocess.Popen(
        [program(), "serve", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        addresses = []
        try:
            yield process, addresses
        finally:
            if process.poll() is None:
                process.kill()


def next_line(process) -> str:
    line = process.stdout.readline()
    assert line, process.stderr.read()
    return line.rstrip("\n")


def address_in(line: str) -> str:
    return re.match(r"live (http://\S+)/live  metrics ", line)[1]


def sample(page: str, name: str) -> float:
    values = [float(v) for v in re.findall(rf"^{name}(?:{{[^}}]*}})? (\S+)$", page, re.MULTILINE)]
    assert values, name
    return sum(values)


def wait_until(condition, seconds: float = 20):
    """Polls for what another process will do; fails after the limit."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError("it did not come about")


def log(path: Path, steps: int = 20, **who) -> Path:
    made = [busy_step(n, n * SECOND, SECOND, 30) for n in range(1, steps + 1)]
    return Rank(**({"peak": 100} | who)).write(path, made)


def test_all_steps_at_once_give_the_totals_of_the_log(tmp_path):
    with serving(log(tmp_path / "run.jsonl"), "--speed", 0, "--port", 0) as (process, _):
        address = address_in(next_line(process))
        assert next_line(process) == "all steps are out; Ctrl-C ends"
        page = get(address + "/metrics")
        assert sample(page, "flopledger_useful_flops_total") == 20 * 30
        assert sample(page, "flopledger_eligible_peak_flops_total") == 20 * 100
        assert sample(page, "flopledger_run_finished") == 1
        body = json.loads(get(address + "/api/v1/steps"))
        assert [step["step"] for step in body["steps"]] == list(range(1, 21))
        assert body["last"]["gaps"][0]["name"] == "acme::fused_rotary"
        assert "text/html" in urllib.request.urlopen(address + "/live").headers["Content-Type"]
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
        assert (process.returncode, out, err) == (0, "served 20 steps\n", "")


def test_a_log_that_was_cut_is_a_run_that_has_not_finished(tmp_path):
    steps = [busy_step(n, n * SECOND, SECOND, 30) for n in range(1, 6)]
    path = Rank(peak=100).write(tmp_path / "run.jsonl", steps, summary=False, cut=20)
    with serving(path, "--speed", 0, "--port", 0) as (process, _):
        address = address_in(next_line(process))
        next_line(process)
        page = get(address + "/metrics")
        assert sample(page, "flopledger_run_finished") == 0
        assert sample(page, "flopledger_steps_total") == 4


def test_the_pace_is_that_of_the_log(tmp_path):
    """Steps of 1 s at ten times real time: the third is not out before a fifth of a second."""
    path = log(tmp_path / "run.jsonl", steps=1000)
    began = time.monotonic()
    with serving(path, "--speed", 10, "--port", 0) as (process, _):
        address = address_in(next_line(process))
        seen = wait_until(lambda: sample(get(address + "/metrics"), "flopledger_steps_total") >= 3)
        assert seen
        assert time.monotonic() - began >= 0.2
        early = sample(get(address + "/metrics"), "flopledger_steps_total")
        assert early <= (time.monotonic() - began) * 10 + 1
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=20)
        assert process.returncode == 0
        assert int(re.search(r"served (\d+) steps", out)[1]) < 1000


def test_a_loop_goes_on_and_no_counter_falls(tmp_path):
    path = log(tmp_path / "run.jsonl", steps=3)
    with serving(path, "--speed", 100, "--loop", "--port", 0) as (process, _):
        address = address_in(next_line(process))
        seen = 0.0

        def past_two_rounds():
            nonlocal seen
            now = sample(get(address + "/metrics"), "flopledger_steps_total")
            assert now >= seen
            seen = now
            return now > 7

        wait_until(past_two_rounds)
        page = get(address + "/metrics")
        assert sample(page, "flopledger_last_step") > 3
        assert sample(page, "flopledger_run_finished") == 0
        # The age of the last step is that of a run which goes on.
        assert abs(time.time() - sample(page, "flopledger_last_step_end_timestamp_seconds")) < 10


def test_each_rank_has_a_port_and_a_discovery_file(tmp_path):
    four_ranks(tmp_path / "logs")
    targets = tmp_path / "targets"
    targets.mkdir()
    with serving(tmp_path / "logs", "--speed", 0, "--port", 0, "--discovery", targets) as (
        process,
        _,
    ):
        addresses = [address_in(next_line(process)) for _ in range(4)]
        assert len(set(addresses)) == 4
        files = sorted(targets.glob("*.json"))
        assert [f.name for f in files] == [f"run-a-{rank}.json" for rank in range(4)]
        named = {json.loads(f.read_text())[0]["targets"][0] for f in files}
        assert named == {a.removeprefix("http://") for a in addresses}
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) == 0
    assert list(targets.iterdir()) == []


def test_it_stays_on_this_machine_unless_told(tmp_path):
    path = log(tmp_path / "run.jsonl")
    done = flopledger("serve", path, "--address", "0.0.0.0", "--exit-at-end", status=2)
    assert "0.0.0.0" in done.stderr
    assert "allow" in done.stderr


def test_a_taken_port_is_said(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = flopledger(
            "serve", log(tmp_path / "run.jsonl"), "--port", port, "--speed", 0, "--exit-at-end"
        )
        assert str(port) in done.stderr
        assert "served 20 steps" in done.stdout


def test_bad_input_is_named(tmp_path):
    empty = Rank().write(tmp_path / "empty.jsonl", [])
    assert "no step in it, nothing to serve" in flopledger("serve", empty, status=3).stderr
    assert "no.jsonl: no such file" in flopledger("serve", tmp_path / "no.jsonl", status=3).stderr
    loop = flopledger("serve", log(tmp_path / "run.jsonl"), "--loop", "--speed", 0, status=2)
    assert "--loop needs a --speed above 0" in loop.stderr


def test_a_trace_is_served_like_a_log():
    trace = ROOT.parent / "shared/traces/T06_a100_dlrm_nccl.json.gz"
    if not trace.exists():
        pytest.skip("the shared traces are not here")
    with serving(trace, "--speed", 0, "--port", 0) as (process, _):
        address = address_in(next_line(process))
        next_line(process)
        page = get(address + "/metrics")
        assert sample(page, "flopledger_steps_total") == 6
        assert "text/html" in urllib.request.urlopen(address + "/live").headers["Content-Type"]


PROMETHEUS = """
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [rules.yml]
scrape_configs:
  - job_name: flopledger
    file_sd_configs: [{files: ['TARGETS/*.json'], refresh_interval: 1s}]
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def prometheus(folder: Path, targets: Path):
    """A real server over the targets, with the shipped rules on a window of seconds."""
    binary = shutil.which("prometheus")
    if binary is None:
        pytest.skip("prometheus is not installed (Debian package prometheus)")
    rules = flopledger("rules").stdout.replace("[5m]", "[5s]")
    (folder / "rules.yml").write_text(rules)
    config = folder / "prometheus.yml"
    config.write_text(PROMETHEUS.replace("TARGETS", str(targets)))
    port = free_port()
    with subprocess.Popen(
        [binary, f"--config.file={config}", f"--storage.tsdb.path={folder / 'data'}",
         f"--web.listen-address=127.0.0.1:{port}", "--log.level=error"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(timeout=30)


def ask(server: str, expression: str) -> list[dict]:
    url = f"{server}/api/v1/query?" + urllib.parse.urlencode({"query": expression})
    try:
        body = json.loads(get(url))
    except urllib.error.HTTPError as error:
        raise AssertionError(f"{expression}: {error.read().decode()}") from error
    assert body["status"] == "success", body
    return body["data"]["result"]


# Nothing of the kind happens in this run.
MAY_BE_EMPTY = ("ALERTS{", "flopledger_finding", "flopledger_training_value")


@pytest.mark.slow
def test_every_expression_has_a_value_on_a_real_prometheus(tmp_path):
    """Four ranks on two kinds of devices: what the boards and rules show is what the log says."""
    logs = four_ranks(tmp_path / "logs", steps=50)
    targets = tmp_path / "targets"
    targets.mkdir()
    words = (logs, "--loop", "--speed", 5, "--port", 0, "--discovery", targets)
    with serving(*words), prometheus(tmp_path, targets) as server:
        mfu = "run:flopledger_mfu:ratio_rate5m"

        def steady():
            with contextlib.suppress(urllib.error.URLError, ConnectionError):
                get(server + "/-/ready")  # 503 until it is
                found = ask(server, f"count_over_time({mfu}[30s])")
                return found and float(found[0]["value"][1]) >= 8
            return False

        wait_until(steady, 90)
        (only,) = ask(server, mfu)
        # (2 x 989 x 0.4 + 2 x 312 x 0.1) / (2 x 989 + 2 x 312), and with a tenth recomputed.
        assert float(only["value"][1]) == pytest.approx(426.8 / 1301, rel=1e-3)
        (hfu,) = ask(server, "run:flopledger_hfu:ratio_rate5m")
        assert float(hfu["value"][1]) == pytest.approx(1.1 * 426.8 / 1301, rel=1e-3)
        (slow,) = ask(server, "run:flopledger_straggler:ratio_rate5m")
        assert float(slow["value"][1]) == pytest.approx(0.2, abs=0.05)
        assert ask(server, 'ALERTS{alertstate="firing"}') == []
        empty = []
        for name in BOARDS:
            for panel, expression in queries(board(name)):
                for old, new in (("$__rate_interval", "5s"), ("$run", ".+"), ("$rank", ".+")):
                    expression = expression.replace(old, new)
                if not ask(server, expression) and not any(m in expression for m in MAY_BE_EMPTY):
                    empty.append((name, panel.get("title"), expression))
        assert empty == []
