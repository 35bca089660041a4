"""The program as a new user meets it: every example of every --help, wrong words, exit codes."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from cli_support import ROOT, flopledger, program
from step_logs import SECOND, Rank, busy_step, four_ranks

TRACES = ROOT.parent / "shared" / "traces"

CONFIG = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 1000,
    "hidden_act": "silu",
    "tie_word_embeddings": False,
}

# By hand: 6 x 1e9 x 1e4 / (2 x 1e14) = 30 %.
TABLE = (
    "source,row_id,params,layers,hidden,heads,head_dim_qk,seq,tokens_per_s,n_dev,peak_tflops,"
    "extra_inputs,metric,printed,tolerance,formula_id,recomputed,residual,verdict,note\n"
    "x,r,1e9,,,,,,10000,2,100,,MFU_pct,30.0,0.05,PALM_6N,30,0,reproduces,\n"
)

# Examples that end otherwise than with 0, and why.
STATUS = {
    "flopledger report logs/ --check": 1,  # one of the ranks is slow
}


def commands() -> list[str]:
    listed = re.search(r"Subcommands:\n(.*)", flopledger("--help").stdout, re.DOTALL)[1]
    names = re.findall(r"^  (\w+)  ", listed, re.MULTILINE)
    assert {"report", "diff", "serve", "doctor", "rules", "dashboard", "version"} <= set(names)
    return names


def examples(*words: str) -> list[str]:
    """The examples with which a help begins."""
    text = flopledger(*words, "--help").stdout
    assert text.startswith("Examples:\n"), "examples come first"
    head = text.split("\n\n", 1)[0]
    found = [line.strip() for line in head.splitlines()[1:] if line.startswith("  ")]
    assert found
    return found


def every_example() -> list[str]:
    try:
        return [e for name in commands() for e in examples(name)] + examples()
    except pytest.skip.Exception:
        return []


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A folder with everything that the examples name, and the program on the path."""
    folder = tmp_path_factory.mktemp("examples")
    (folder / "config.json").write_text(json.dumps(CONFIG))
    (folder / "table.csv").write_text(TABLE)
    steps = [busy_step(n, n * SECOND // 5, SECOND // 5, 10) for n in range(1, 6)]
    for name in ("run", "before", "after", "main", "branch"):
        Rank(peak=100, run_id=name).write(folder / f"{name}.jsonl", steps)
    for name in ("logs", "before", "after"):
        four_ranks(folder / name, run_id=name, steps=60)
    for name in ("targets", ".venv/bin", "bin"):
        (folder / name).mkdir(parents=True)
    (folder / ".venv/bin/python").symlink_to(sys.executable)
    (folder / "bin/flopledger").symlink_to(program())
    if TRACES.is_dir():
        for path in TRACES.iterdir():
            if path.is_file():
                (folder / path.name).symlink_to(path)
        for name in ("trace", "worker0.pt.trace", "before", "after"):
            (folder / f"{name}.json.gz").symlink_to(TRACES / "T31_mi250_toy_train.json.gz")
        (folder / "ranks.tar.gz").symlink_to(TRACES / "T14_v100_dlrm_8ranks.tar.gz")
        (folder / "cut.json.gz").symlink_to(TRACES / "malformed/01_gzip_cut_60pct.json.gz")
    return folder


def shell(place: Path, command: str, interrupt_after: str = "") -> tuple[int, str, str]:
    """Runs a line in bash; a server is interrupted once it has said where it is."""
    path = f"{place / 'bin'}:{os.environ['PATH']}"
    with subprocess.Popen(
        ["bash", "-c", f"exec {command}" if interrupt_after else command],
        cwd=place,
        env=os.environ | {"PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        seen = ""
        if interrupt_after:
            for line in process.stdout:
                seen += line
                if interrupt_after in line:
                    process.send_signal(signal.SIGINT)
                    break
        out, err = process.communicate(timeout=60)
        return process.returncode, seen + out, err


@pytest.mark.parametrize("example", every_example())
def test_every_example_runs(place, example):
    if (".gz" in example or " replay " in example) and not TRACES.is_dir():
        pytest.skip("the shared traces are not here")
    for tool in ("man", "jq"):
        if f"| {tool} " in example and shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    serves = example.startswith("flopledger serve") and "--exit-at-end" not in example
    status, out, err = shell(place, example, "live http://" if serves else "")
    assert status == STATUS.get(example, 0), f"{out}\n{err}"
    assert out or ">" in example or "source" in example
    target = re.search(r"> (\S+)$", example)
    if target:
        assert (place / target[1]).stat().st_size > 100


@pytest.mark.parametrize("name", commands() if every_example() else [])
def test_every_command_suggests_the_option_that_was_meant(name):
    text = flopledger(name, "--help").stdout
    for option in re.findall(r"^  (?:-\w,)?--([\w-]+)", text, re.MULTILINE):
        if option == "help":
            continue
        wrong = option[:-1] + "x" if len(option) > 3 else option + "x"
        positional = {"completion": ["bash"], "published": ["t"], "report": ["t"], "serve": ["t"]}
        words = {"diff": ["a", "b"], "replay": ["t"]} | positional
        message = flopledger(name, *words.get(name, []), f"--{wrong}", status=2).stderr
        assert f"unknown option '--{wrong}'" in message
        assert "did you mean '--" in message
        assert f"flopledger {name} --help" in message


@pytest.mark.parametrize(
    ("wrong", "right"),
    [("reprot", "report"), ("dif", "diff"), ("docter", "doctor"), ("dashbord", "dashboard"),
     ("rule", "rules"), ("sever", "serve"), ("versoin", "version"), ("explian", "explain")],
)  # fmt: skip
def test_a_wrong_command_suggests_the_right_one(wrong, right):
    message = flopledger(wrong, status=2).stderr
    assert f"did you mean '{right}'?" in message


def test_nothing_at_all_is_a_usage_error():
    assert "flopledger --help" in flopledger(status=2).stderr


def test_a_closed_set_names_its_members():
    message = flopledger("dashboard", "fleeet", status=2).stderr
    assert "fleet" in message
    assert "training" in message


def complete(place: Path, *words: str) -> list[str]:
    """What bash offers for the last word."""
    script = """
      source <(flopledger completion bash)
      COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
      _flopledger
      printf '%s\\n' "${COMPREPLY[@]}"
    """
    done = subprocess.run(
        ["bash", "-c", script, "bash", *words],
        cwd=place,
        env=os.environ | {"PATH": f"{place / 'bin'}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    assert done.stderr == ""
    return [word for word in done.stdout.split("\n") if word]


def test_bash_completes_what_the_program_knows(place):
    assert set(commands()) <= set(complete(place, "flopledger", ""))
    assert complete(place, "flopledger", "das") == ["dashboard"]
    for name in commands():
        text = flopledger(name, "--help").stdout
        options = {"--" + o for o in re.findall(r"^  (?:-\w,)?--([\w-]+)", text, re.MULTILINE)}
        assert set(complete(place, "flopledger", name, "--")) == options
    assert complete(place, "flopledger", "dashboard", "") == ["fleet", "training"] or set(
        complete(place, "flopledger", "dashboard", "")
    ) == {"fleet", "training"}
    assert complete(place, "flopledger", "report", "run.j") == ["run.jsonl"]
    assert complete(place, "flopledger", "report", "run.jsonl", "--html", "conf") == ["config.json"]
    assert complete(place, "flopledger", "serve", "run.jsonl", "--speed", "") == []


@pytest.mark.parametrize("shell_name", ["bash", "zsh", "fish"])
def test_completion_scripts_parse(shell_name, tmp_path):
    script = tmp_path / "completion"
    script.write_text(flopledger("completion", shell_name).stdout)
    if shutil.which(shell_name) is None:
        pytest.skip(f"{shell_name} is not installed")
    done = subprocess.run([shell_name, "-n", str(script)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_manual_names_every_command_and_option(tmp_path):
    page = tmp_path / "flopledger.1"
    page.write_text(flopledger("man").stdout)
    groff = shutil.which("groff")
    if groff is None:
        pytest.skip("groff is not installed (Debian package groff)")
    done = subprocess.run(
        [groff, "-man", "-ww", "-Tascii", "-P-cbou", str(page)], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    text = re.sub(r"(?<=\w)-\n\s+", "-", done.stdout)
    for name in commands():
        assert re.search(rf"^   {name}$", text, re.MULTILINE), name
        for option in re.findall(
            r"^  (?:-\w,)?(--[\w-]+)", flopledger(name, "--help").stdout, re.MULTILINE
        ):
            assert option in text or option == "--help"
    for status in (0, 1, 2, 3, 4, 70):
        assert re.search(rf"^       {status} ", text, re.MULTILINE)


def test_the_version_is_the_project_s():
    wanted = re.search(
        r"VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text().split("project(")[1]
    )[1]
    assert flopledger("version").stdout == f"flopledger {wanted}\n"
