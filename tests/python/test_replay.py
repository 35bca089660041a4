"""`flopledger replay`: its JSON keeps to its schema, its faults name file, place and fix."""

from __future__ import annotations

import gzip
import json
import os
import pty
import re
import subprocess
from pathlib import Path

import pytest
from cli_support import ROOT, flopledger, program

SCHEMA = json.loads((ROOT / "docs" / "replay.schema.json").read_text())
TRACES = ROOT.parent / "shared" / "traces"
TYPES = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "number": (int, float),
    "null": type(None),
}


def fits(kind: str, value: object) -> bool:
    """Is the value of this JSON type? A truth value is no number here."""
    if kind == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, TYPES[kind]) and not (kind == "number" and isinstance(value, bool))


def check(value: object, schema: dict, place: str = "$") -> None:
    """The part of JSON Schema that ours uses."""
    if "$ref" in schema:
        schema = SCHEMA["$defs"][schema["$ref"].removeprefix("#/$defs/")]
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    assert any(fits(kind, value) for kind in kinds), f"{place} is {value!r}; accepted: {kinds}"
    assert value in schema.get("enum", [value]), f"{place} is {value!r}"
    if isinstance(value, dict):
        unknown = set(value) - set(schema["properties"])
        assert not unknown, f"{place} has {unknown}"
        missing = set(schema["required"]) - set(value)
        assert not missing, f"{place} lacks {missing}"
        for key, member in value.items():
            check(member, schema["properties"][key], f"{place}.{key}")
    if isinstance(value, list):
        for index, element in enumerate(value):
            check(element, schema["items"], f"{place}[{index}]")


def event(category: str, name: str, tid: object, start: object, length: object, **args) -> dict:
    keys = {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": tid}
    return keys | {"ts": start, "dur": length, "args": args}


def small_trace() -> dict:
    """Two steps of an mm [4,8] x [8,16] and its kernel; the second kernel ends later."""
    events = []
    for step in (0, 1):
        at = 1000 * step
        shapes = {"Input Dims": [[4, 8], [8, 16]], "Input type": ["float", "float"]}
        events += [
            event("user_annotation", f"ProfilerStep#{step + 5}", 1, at, 990),
            event("cpu_op", "aten::mm", 1, at + 10, 20, **shapes),
            event("cuda_runtime", "cudaLaunchKernel", 1, at + 12, 2, correlation=step + 1),
            event("kernel", "sgemm", 7, at + 40, 100, device=0, stream=7, correlation=step + 1),
        ]
    return {"schemaVersion": 1, "traceEvents": events}


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress(json.dumps(small_trace()).encode()))
    return path


def test_json_keeps_to_its_schema(trace):
    result = json.loads(flopledger("replay", "--json", trace).stdout)
    check(result, SCHEMA)
    [file] = result["files"]
    assert file["file"] == str(trace)
    assert file["flops_counted"] == 2 * (2 * 4 * 8 * 16)
    assert file["busy_all_ns"] == 200_000
    assert [step["name"] for step in file["steps"]] == ["ProfilerStep#5", "ProfilerStep#6"]
    assert [step["device_window_ns"] for step in file["steps"]] == [None, 1_000_000]
    assert file["steps"] == file["devices"][0]["steps"]


def test_every_recorded_trace_keeps_to_the_schema():
    files = sorted(path for path in TRACES.glob("*") if path.is_file() and path.suffix != ".md")
    if not files:
        pytest.skip(f"the recorded traces are not here: {TRACES}")
    for path in files:
        check(json.loads(flopledger("replay", "--json", path).stdout), SCHEMA)


def test_several_files_are_ranks_of_one_run(tmp_path):
    paths = []
    for rank in (0, 1):
        document = small_trace() | {"distributedInfo": {"rank": rank, "world_size": 2}}
        for each in document["traceEvents"]:
            each["ts"] += 100 * rank
        paths.append(tmp_path / f"rank{rank}.json")
        paths[-1].write_text(json.dumps(document))
    result = json.loads(flopledger("replay", "--json", *paths).stdout)
    check(result, SCHEMA)
    assert [step["window_ns"] for step in result["global_steps"]] == [1_090_000, 1_090_000]
    assert [rank["start_offset_ns"] for rank in result["global_steps"][0]["ranks"]] == [0, 100_000]


def test_the_text_is_for_people(trace):
    text = flopledger("replay", trace).stdout
    assert "2 kernels, 0 copies, 0 fills" in text
    assert "ProfilerStep#6" in text
    assert "2048" in text
    assert "\033" not in text


def test_a_declared_model_gets_mfu(trace):
    # 4 rows of 8 tokens, a peak of 1 GFLOP/s, a step of 1 ms: MFU is in the books.
    config = trace.parent / "config.json"
    config.write_text(
        json.dumps(
            {
                "model_type": "gpt2",
                "n_layer": 1,
                "n_embd": 8,
                "n_head": 2,
                "n_inner": None,
                "n_positions": 16,
                "vocab_size": 16,
            }
        )
    )
    declared = ["--config", config, "--batch", 4, "--seq", 8, "--dtype", "fp32"]
    command = ["replay", "--json", *declared, "--peak", "1 GFLOP/s", trace]
    books = json.loads(flopledger(*command).stdout)["files"][0]["books"]
    explained = flopledger("explain", "--config", config, "--batch", 4, "--seq", 8, "--json")
    useful = int(json.loads(explained.stdout)["total_flops"])
    assert books[1]["wall_ns"] == 1_000_000
    assert books[1]["mfu_ratio"] == pytest.approx(useful / 1e6, rel=1e-9)


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["absent.json"], 3, ["absent.json", "cannot be opened"]),
        (["--leniant"], 2, ["--leniant", "--lenient"]),
        (["--dtype", "bf61", "x"], 2, ["bf61", "accepted", "bf16"]),
        (["--peak", "312", "x"], 2, ["--peak"]),
        (["--batch", "3", "x"], 2, ["--config"]),
        ([], 2, ["FILE"]),
    ],
)
def test_faults_of_the_command_line(tmp_path, arguments, status, words):
    done = flopledger("replay", *arguments, status=status, cwd=tmp_path)
    for word in words:
        assert word in done.stderr
    assert done.stdout == ""


def test_faults_of_a_file_have_a_place_and_a_fix(tmp_path):
    text = json.dumps(small_trace(), indent=1)
    broken = tmp_path / "broken.json"
    broken.write_text(text.replace('"dur": 990', '"dur": nan', 1))
    done = flopledger("replay", broken, status=3)
    offset = broken.read_text().index("nan")
    line = broken.read_text()[:offset].count("\n") + 1
    assert f"{broken}: byte {offset}, line {line}: " in done.stderr
    assert "--lenient" in done.stderr
    assert "not_a_number" in flopledger("replay", "--lenient", broken).stdout


def test_help_begins_with_examples_that_work(trace):
    shown = flopledger("replay", "--help").stdout
    assert shown.startswith("Examples:")
    examples = [line.split() for line in shown.splitlines() if line.startswith("  flopledger ")]
    assert len(examples) >= 3
    for words in examples:
        words = words[1 : words.index("|")] if "|" in words else words[1:]
        if "--config" in words:
            continue  # test_a_declared_model_gets_mfu
        files = [str(trace) if ".json.gz" in word or ".tar.gz" in word else word for word in words]
        flopledger(*files, cwd=trace.parent)
    assert program()


def test_a_name_of_steps_is_taken_by_every_command_that_reads_traces(tmp_path):
    document = small_trace()
    for each in document["traceEvents"]:
        each["name"] = each["name"].replace("ProfilerStep#", "iteration ")
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(document))
    named = ["--step-name", "iteration *"]
    assert json.loads(flopledger("report", path, "--json").stdout)["steps"] == []
    body = json.loads(flopledger("report", path, "--json", *named).stdout)
    assert [step["step"] for step in body["steps"]] == [5, 6]
    assert "0.0 %" in flopledger("diff", path, path, *named).stdout
    at_once = ["--port", 0, "--speed", 0, "--exit-at-end"]
    served = flopledger("serve", path, *at_once, *named)
    assert "served 2 steps" in served.stdout


def test_progress_is_for_terminals_alone(tmp_path):
    document = small_trace()
    document["traceEvents"] *= 2000  # more than one window of text
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(document))
    quiet = flopledger("replay", "--json", path)
    assert quiet.stderr == ""

    terminal, its_end = pty.openpty()
    command = [program(), "replay", "--json", path]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=its_end) as process:
        os.close(its_end)
        seen = b""
        try:
            while more := os.read(terminal, 65536):
                seen += more
        except OSError:  # how Linux says that the other end is closed
            pass
        finally:
            os.close(terminal)
    assert process.returncode == 0
    assert re.search(rb"\r\[=+ *\] +\d+ %", seen), seen
    assert seen.endswith(b"\r\x1b[K"), "the line is not taken away at the end"
