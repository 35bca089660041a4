"""Steps from the ranges of the Python NVTX package. Each in a process of its own: a copy of NVTX
looks for its listener once.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytest.importorskip("nvtx", reason="the nvtx package is not installed")
flopledger = pytest.importorskip("flopledger", reason="the flopledger wheel is not installed")
from flopledger import _core  # noqa: E402

LIBRARY = _core.nvtx_injection_path()
pytestmark = pytest.mark.skipif(not LIBRARY, reason="flopledger was built without NVTX headers")

START = """
def start(**options):
    import flopledger
    chosen = dict(model_flops="6 * 1000 * T", peak=1e12, seq_len=8, http=False, log_every=0,
                  warmup_steps=0, observer="none", jsonl=JSONL)
    return flopledger.start(**{**chosen, **options})
"""


def run(folder: Path, body: str, **environment: str) -> tuple[list[dict], str]:
    """The closed steps of a program, and what it said."""
    jsonl = folder / "steps.jsonl"
    text = f"JSONL = {str(jsonl)!r}\n{START}\n{textwrap.dedent(body)}"
    clean = {
        name: value
        for name, value in os.environ.items()
        if name != "NVTX_INJECTION64_PATH" and not name.startswith("FLOPLEDGER_")
    }
    done = subprocess.run(
        [sys.executable, "-c", text],
        env={**clean, **environment},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = []
    if jsonl.exists():
        lines = [json.loads(line) for line in jsonl.read_text(encoding="utf-8").splitlines()]
    return [line for line in lines if line["type"] == "step"], done.stdout + done.stderr


def numbers(steps: list[dict]) -> list[int]:
    return [step["step"] for step in steps]


DOMAIN_STEPS = """
    import nvtx
    domain = nvtx.get_domain("flopledger")
    def steps(count, first=10):
        for i in range(count):
            domain.push_range(domain.get_event_attributes(message="step", payload=first + i))
            with nvtx.annotate("data", domain="flopledger"):
                pass
            nvtx.mark("tokens", domain="flopledger", payload=16)
            domain.pop_range()
"""


# Making the domain is NVTX's first call: whoever wants to be heard comes before.
EARLY = "    import flopledger\n"


def test_our_domain_with_payloads(tmp_path: Path) -> None:
    steps, said = run(
        tmp_path,
        EARLY
        + DOMAIN_STEPS
        + """
    led = start()
    steps(3)
    led.close()
    print(led.capabilities["nvtx"])
    """,
    )
    assert numbers(steps) == [10, 11, 12], said
    for step in steps:
        assert step["result"] == "complete"
        assert step["tokens"]["useful"] == 16
        assert step["useful_flops"] == "96000"  # 6 x 1000 x 16
        assert step["mfu_ratio"] > 0
    assert "ok\n" in said


def test_names_by_pattern_in_the_default_domain(tmp_path: Path) -> None:
    steps, said = run(
        tmp_path,
        """
    import nvtx
    led = start(nvtx_steps="train step*", nvtx_phases="forward=fwd*")
    for i in range(1, 4):
        nvtx.push_range(f"train step {i}")
        with nvtx.annotate("fwd pass"):
            with nvtx.annotate("some layer"):
                pass
        nvtx.pop_range()
    rng = nvtx.start_range("train step 9")
    nvtx.end_range(rng)
    led.close()
    """,
    )
    assert numbers(steps) == [1, 2, 3, 9], said


def test_nvtx_first_or_python_first_is_one_library(tmp_path: Path) -> None:
    first, said = run(
        tmp_path,
        DOMAIN_STEPS
        + """
    steps(2)  # NVTX opens the library before anybody imports flopledger
    led = start()
    steps(3)
    led.close()
    maps = open("/proc/self/maps").read().splitlines()
    print("copies", len({line.split()[-1] for line in maps if "libflopledger" in line}))
    """,
        NVTX_INJECTION64_PATH=LIBRARY,
    )
    assert numbers(first) == [10, 11, 12], said
    assert "copies 1\n" in said


def test_the_import_claims_the_slot_for_children_too(tmp_path: Path) -> None:
    _, said = run(
        tmp_path,
        """
    import os, subprocess, sys
    import flopledger
    print("here", os.environ["NVTX_INJECTION64_PATH"])
    child = "import os; print('child', os.environ['NVTX_INJECTION64_PATH'])"
    subprocess.run([sys.executable, "-c", child], check=True)
    """,
    )
    assert said.splitlines().count(f"here {LIBRARY}") == 1
    assert said.splitlines().count(f"child {LIBRARY}") == 1


def test_opting_out(tmp_path: Path) -> None:
    steps, said = run(
        tmp_path,
        DOMAIN_STEPS
        + """
    import os
    led = start()
    steps(2)
    led.close()
    print(led.capabilities["nvtx"], os.environ.get("NVTX_INJECTION64_PATH"))
    """,
        FLOPLEDGER_NVTX="0",
    )
    assert steps == []
    assert "off None\n" in said


def test_c49_another_tool_holds_the_slot(tmp_path: Path) -> None:
    other = tmp_path / "libToolsInjection64.so"
    steps, said = run(
        tmp_path,
        """
    import os
    import flopledger
    led = start()
    with led.step() as s:
        s.tokens(8)
    led.close()
    print(led.capabilities["nvtx"], os.environ["NVTX_INJECTION64_PATH"])
    """,
        NVTX_INJECTION64_PATH=str(other),
    )
    assert len(steps) == 1
    assert f"busy {other}\n" in said
    assert said.count("NVTX ranges are not seen") == 1


def test_the_step_api_wins(tmp_path: Path) -> None:
    steps, said = run(
        tmp_path,
        EARLY
        + DOMAIN_STEPS
        + """
    led = start()
    for _ in range(3):
        with led.step() as s:
            steps(1)
            s.tokens(8)
    led.close()
    """,
    )
    assert numbers(steps) == [0, 1, 2], said
    assert [step["tokens"]["useful"] for step in steps] == [8, 8, 8]  # and 16 marked
    assert said.count("NVTX step ranges and token marks are ignored") == 1


def test_a_wrong_pattern_raises_at_start(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"nvtx_steps has 'st\*ep'; accepted: name, name\*"):
        flopledger.start(peak=1e12, http=False, nvtx_steps="st*ep")
    with pytest.raises(ValueError, match="nvtx_phases has 'fwd'; accepted: phase=pattern"):
        flopledger.start(peak=1e12, http=False, nvtx_phases="fwd")


def test_a_program_without_start_from_the_environment(tmp_path: Path) -> None:
    steps, said = run(
        tmp_path,
        DOMAIN_STEPS + "    steps(3)\n",
        NVTX_INJECTION64_PATH=LIBRARY,
        FLOPLEDGER_AUTOSTART="1",
        FLOPLEDGER_JSONL=str(tmp_path / "steps.jsonl"),
        FLOPLEDGER_HTTP="0",
        FLOPLEDGER_WARMUP_STEPS="0",
    )
    assert numbers(steps) == [10, 11, 12], said


def test_start_takes_the_place_of_the_session_from_the_environment(tmp_path: Path) -> None:
    steps, said = run(
        tmp_path,
        DOMAIN_STEPS
        + """
    steps(2)
    led = start()
    steps(3, first=20)
    led.close()
    """,
        NVTX_INJECTION64_PATH=LIBRARY,
        FLOPLEDGER_AUTOSTART="1",
        FLOPLEDGER_HTTP="0",
    )
    assert numbers(steps) == [20, 21, 22], said
    assert said.count("the run's books") == 2


def test_device_records_are_auto_or_off() -> None:
    with pytest.raises(ValueError, match="device_records is 'on'; accepted: auto, off"):
        flopledger.start(peak=1e12, http=False, device_records="on")
