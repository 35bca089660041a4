"""`flopledger doctor`: what is here, what is not, and what to do about it."""

from __future__ import annotations

import itertools
import json
import os
import socket
import stat
import sys

import pytest
from cli_support import flopledger

NAMES = (
    "driver gpu cupti counters counter_lock nvtx cuda_injection port log_folder python torch jax "
    "flopledger_package"
).split()


def checks(*words, status=0, **environment) -> dict[str, dict]:
    done = flopledger("doctor", "--json", *words, status=status, env=os.environ | environment)
    body = json.loads(done.stdout)
    assert [check["name"] for check in body["checks"]] == NAMES
    for check in body["checks"]:
        assert check["found"]
        assert (check["fix"] is None) == check["ok"]
    return {check["name"]: check for check in body["checks"]} | {"rungs": body["rungs"]}


def test_the_python_that_is_named_is_asked():
    python = checks("--python", sys.executable)["python"]
    assert python["ok"]
    assert python["found"].startswith(".".join(map(str, sys.version_info[:3])))
    missing = checks("--python", "no-such-python")
    assert not missing["python"]["ok"]
    assert "'no-such-python' is not there" in missing["python"]["found"]
    assert missing["torch"]["found"] == "no Python"


def test_a_python_that_talks_nonsense_is_not_believed(tmp_path):
    script = tmp_path / "python"
    script.write_text("#!/bin/sh\necho hello\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    assert not checks("--python", script)["python"]["ok"]


def test_versions_are_those_of_the_packages():
    found = checks("--python", sys.executable)
    try:
        import torch
    except ImportError:
        assert not found["torch"]["ok"]
        assert "pip install torch" in found["torch"]["fix"]
    else:
        assert found["torch"]["found"] == torch.__version__
        assert any(rung.startswith("4: ") for rung in found["rungs"])


def test_a_taken_port_is_found():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        check = checks("--port", port)["port"]
        assert not check["ok"]
        assert str(port) in check["found"]
    assert checks("--port", 0)["port"]["ok"]


def test_a_folder_for_the_log(tmp_path):
    assert checks("--log-folder", tmp_path)["log_folder"]["ok"]
    check = checks("--log-folder", tmp_path / "none")["log_folder"]
    assert "is no folder" in check["found"]
    assert "make it" in check["fix"]


def test_another_tool_s_injection_is_seen():
    other = checks(NVTX_INJECTION64_PATH="/opt/nsight/libToolsInjection64.so")["nvtx"]
    assert not other["ok"]
    assert "names another tool" in other["found"]
    assert "unset NVTX_INJECTION64_PATH" in other["fix"]
    assert checks(NVTX_INJECTION64_PATH="/x/libflopledger.so")["nvtx"]["ok"]
    assert not checks(CUDA_INJECTION64_PATH="/opt/libOther.so")["cuda_injection"]["ok"]


def test_libcupti_is_found_and_not_called(tmp_path):
    """A file of that name is enough: nothing of CUPTI is opened without a driver."""
    folder = tmp_path / "extras/CUPTI/lib64"
    folder.mkdir(parents=True)
    library = folder / "libcupti.so.13"
    library.write_bytes(b"not a library")
    check = checks("--python", "no-such-python", CUDA_HOME=str(tmp_path))["cupti"]
    assert check["found"].startswith(str(library))
    if not checks()["driver"]["ok"]:
        assert not check["ok"]
        assert "not usable without a driver" in check["found"]


def test_a_required_capability_decides_the_exit_code(tmp_path):
    flopledger("doctor", "--require", "log_folder", "--log-folder", tmp_path)
    done = flopledger(
        "doctor", "--require", "log_folder", "--log-folder", tmp_path / "none", status=4
    )
    assert "required, but missing: log_folder" in done.stderr
    assert "no  log_folder" in done.stdout


def test_an_unknown_capability_suggests_a_known_one():
    done = flopledger("doctor", "--require", "cupty", status=2)
    assert "did you mean 'cupti'?" in done.stderr
    for name in NAMES:
        assert name in done.stderr


def test_every_failure_has_a_fix_in_the_text():
    lines = flopledger("doctor", "--python", "no-such-python").stdout.splitlines()
    for line, following in itertools.pairwise(lines):
        if line.startswith("no "):
            assert following.strip().startswith("fix: "), line
    assert any(line.startswith("  0: steps, tokens, MFU") for line in lines)


@pytest.mark.gpu
def test_a_gpu_host_reaches_the_second_rung():
    found = checks("--python", sys.executable)
    assert found["driver"]["ok"]
    assert found["gpu"]["ok"]
