"""The loader of the native observer: what it builds, when, and what it says when it cannot."""

from __future__ import annotations

import ctypes
import fcntl
import os
import shutil
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from observer_support import Recorder, find_built, torch, torch_observer

from flopledger.torch_observer import _build, _dispatch


@pytest.fixture
def cache(tmp_path, monkeypatch):
    folder = tmp_path / "cache folder"  # with a space
    monkeypatch.setenv("FLOPLEDGER_CACHE_DIR", str(folder))
    return folder


def script(path: Path, body: str) -> Path:
    path.write_text("#!/bin/sh\n" + textwrap.dedent(body))
    path.chmod(0o755)
    return path


@pytest.fixture(scope="session")
def real():
    """A finished observer, built once for all tests."""
    built = _build.find_or_build()
    if built.path is None:
        pytest.skip(f"no native observer: {built.reason}")
    return built.path


def copying_compiler(tmp_path: Path, real: Path) -> Path:
    """Stands for a compiler: takes its time, notes every run, copies a finished object."""
    return script(
        tmp_path / "compiler",
        f"""
        case "$1" in --version) echo "copying compiler 1"; exit 0 ;; esac
        echo run >> "{tmp_path}/runs"
        while [ "$1" != "-o" ]; do shift; done
        cat "{tmp_path}/gate" > /dev/null 2>&1
        cp "{real}" "$2"
        """,
    )


def test_counted_ops_of_the_observers_are_those_of_the_rules():
    listed = subprocess.run(
        [find_built("flopledger_count_ops"), "--counted"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert _dispatch.counted_op_names() == frozenset(listed.stdout.split())


def test_cache_folder_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("FLOPLEDGER_CACHE_DIR", str(tmp_path / "own"))
    assert _build.cache_directory() == tmp_path / "own"
    monkeypatch.delenv("FLOPLEDGER_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert _build.cache_directory() == tmp_path / "xdg" / "flopledger"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert _build.cache_directory() == tmp_path / ".cache" / "flopledger"


def test_no_compiler_falls_back_with_a_reason(cache, monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    recorder = Recorder()
    handle = torch_observer.install(recorder.table)
    try:
        assert handle.kind == "dispatch"
        assert "no-such-compiler" in handle.reason
        torch.mm(torch.ones(5, 7), torch.ones(7, 3))
    finally:
        handle.remove()
    assert recorder.books().total == 210
    native = torch_observer.install(recorder.table, prefer="native")
    assert native.kind == "none"
    assert "no-such-compiler" in native.reason


def test_empty_path_names_the_compilers_that_were_looked_for(cache, monkeypatch, tmp_path):
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "c++, g++, clang++" in torch_observer.probe().reason


def test_a_compiler_that_fails_is_quoted(cache, monkeypatch, tmp_path):
    broken = script(tmp_path / "broken", "echo 'observer.cc:1: error: no such header' >&2; exit 1")
    monkeypatch.setenv("CXX", str(broken))
    built = _build.find_or_build()
    assert built.path is None
    assert "exit code 1" in built.reason
    assert "error: no such header" in built.reason
    assert not list(cache.rglob("*.partial"))


def test_a_compiler_that_hangs_is_ended_with_its_children(cache, monkeypatch, tmp_path):
    os.mkfifo(tmp_path / "never")
    hanging = script(
        tmp_path / "hanging",
        f"""
        case "$1" in --version) exit 0 ;; esac
        cat "{tmp_path}/never" &
        echo $! > "{tmp_path}/child"
        wait
        """,
    )
    monkeypatch.setenv("CXX", str(hanging))
    built = _build.find_or_build(seconds=1.0)
    assert built.path is None
    assert "longer than" in built.reason
    child = int((tmp_path / "child").read_text())
    status = Path(f"/proc/{child}/status")
    alive = status.exists() and "State:\tZ" not in status.read_text()
    assert not alive


def test_a_folder_that_cannot_be_made_is_a_reason(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FLOPLEDGER_CACHE_DIR", str(tmp_path / "file"))
    built = _build.find_or_build()
    assert built.path is None
    assert "FLOPLEDGER_CACHE_DIR" in built.reason
    assert str(tmp_path / "file") in built.reason


def test_code_is_not_loaded_from_a_folder_that_others_can_write(cache):
    folder = cache / "torch_observer"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    built = _build.find_or_build()
    assert built.path is None
    assert "can be written by others" in built.reason


@pytest.mark.slow
def test_eight_ranks_build_once(cache, monkeypatch, tmp_path, real):
    os.mkfifo(tmp_path / "gate")
    monkeypatch.setenv("CXX", str(copying_compiler(tmp_path, real)))
    ranks = [
        subprocess.Popen(
            [
                sys.executable,
                "-c",
                "import sys; sys.path.insert(0, sys.argv[1]); import observer_support\n"
                "from flopledger.torch_observer import _build\n"
                "print('looking', flush=True)\n"
                "built = _build.find_or_build(); print(built.path, built.reason, sep='|')",
                str(Path(__file__).parent),
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(8)
    ]
    for rank in ranks:
        assert rank.stdout.readline() == "looking\n"
    with (tmp_path / "gate").open("w"):  # opens when the one compiler reads; then it may go on
        pass
    answers = [rank.communicate(timeout=120)[0].strip().split("|") for rank in ranks]
    assert (tmp_path / "runs").read_text().count("run") == 1
    assert len({path for path, _ in answers}) == 1
    assert sum(reason == "built now" for _, reason in answers) == 1


def test_who_waited_for_a_failed_build_does_not_repeat_it(cache, tmp_path, monkeypatch):
    folder = cache / "torch_observer"
    folder.mkdir(parents=True, mode=0o700)
    target = folder / "x.so"
    command = [str(script(tmp_path / "failing", "exit 3"))]
    with target.with_suffix(".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)

        def first_one_fails(_seconds):  # happens while the other one waits
            target.with_suffix(".failed").write_text("the first one failed")
            fcntl.flock(lock, fcntl.LOCK_UN)

        with monkeypatch.context() as patch:
            patch.setattr(_build.time, "sleep", first_one_fails)
            waited = _build._build_once(command, target, time.monotonic() + 60)
    assert waited.reason == "the first one failed"
    again = _build._build_once(command, target, time.monotonic() + 60)  # nobody to wait for
    assert "exit code 3" in again.reason


def test_a_build_of_another_process_is_not_waited_for_without_limit(cache, tmp_path):
    folder = cache / "torch_observer"
    folder.mkdir(parents=True, mode=0o700)
    target = folder / "x.so"
    with target.with_suffix(".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        built = _build._build_once(["false"], target, time.monotonic())
    assert built.path is None
    assert "still building" in built.reason


def test_the_second_build_comes_from_the_cache(cache, monkeypatch, tmp_path, real):
    (tmp_path / "gate").write_text("")
    monkeypatch.setenv("CXX", str(copying_compiler(tmp_path, real)))
    assert torch_observer.probe().reason.startswith("not built yet")
    first = _build.find_or_build()
    second = _build.find_or_build()
    assert first.reason == "built now"
    assert second.reason == "from the cache"
    assert first.path == second.path
    assert first.path.is_relative_to(cache)


def test_another_compiler_is_another_object(cache, monkeypatch, tmp_path, real):
    (tmp_path / "gate").write_text("")
    compiler = copying_compiler(tmp_path, real)
    monkeypatch.setenv("CXX", str(compiler))
    first = _build.find_or_build()
    compiler.write_text(compiler.read_text().replace("copying compiler 1", "copying compiler 2"))
    assert _build.find_or_build().path != first.path


def test_a_file_that_is_no_library_is_a_reason(cache, monkeypatch, tmp_path):
    nonsense = script(
        tmp_path / "nonsense",
        """
        case "$1" in --version) exit 0 ;; esac
        while [ "$1" != "-o" ]; do shift; done
        echo nonsense > "$2"
        """,
    )
    monkeypatch.setenv("CXX", str(nonsense))
    handle = torch_observer.install(Recorder().table, prefer="native")
    assert handle.kind == "none"
    assert "cannot load" in handle.reason


@pytest.mark.parametrize("address", [0, -1, None, "0x10"])
def test_an_address_that_is_none_is_refused(address):
    with pytest.raises(ValueError, match="host_ops_address is"):
        torch_observer.install(address)


def test_an_unknown_preference_names_the_accepted_ones():
    with pytest.raises(ValueError, match="'fast'; accepted: auto, native, dispatch"):
        torch_observer.install(Recorder().table, prefer="fast")


@pytest.mark.parametrize("kind", ["native", "dispatch"])
def test_a_table_of_another_version_is_refused(kind):
    recorder = Recorder()
    ctypes.c_uint32.from_address(recorder.table).value = 99
    handle = torch_observer.install(recorder.table, prefer=kind)
    assert handle.kind == "none"
    assert "version" in handle.reason


@pytest.mark.parametrize("kind", ["native", "dispatch"])
def test_removing_twice_ends_it_once(kind):
    recorder = Recorder()
    handle = torch_observer.install(recorder.table, prefer=kind)
    assert handle.kind == kind
    torch.ones(2, 2) @ torch.ones(2, 2)
    seen = recorder.written
    assert seen > 0
    handle.remove()
    handle.remove()
    torch.ones(2, 2) @ torch.ones(2, 2)
    assert recorder.written == seen


# Torch boxes inputs of an observed op on the heap; a callback that does nothing shows how often.
IDLE_CALLBACK = """
#include <ATen/record_function.h>
static std::unique_ptr<at::ObserverContext> start(const at::RecordFunction&) { return nullptr; }
static void end(const at::RecordFunction&, at::ObserverContext*) {}
static at::CallbackHandle handle;
#define EXPORT extern "C" __attribute__((visibility("default")))
EXPORT void install() {
  handle = at::addGlobalCallback(at::RecordFunctionCallback(start, end).needsInputs(true).scopes(
      {at::RecordScope::FUNCTION}));
}
EXPORT void remove_it() { at::removeCallback(handle); }
"""

ALLOCATIONS = """
import ctypes, sys
sys.path.insert(0, sys.argv[1])
from observer_support import observing, torch
calls = ctypes.CDLL(None).malloc_counter_calls
calls.restype = ctypes.c_ulong
a, b, c = torch.ones(5, 7), torch.ones(7, 3), torch.empty(5, 3)
x, y = torch.ones(4, 5, 7), torch.ones(4, 7, 3)
q = torch.ones(1, 2, 8, 4)

def steps(count):
    before = calls()
    for _ in range(count):
        torch.mm(a, b, out=c)
        torch.addmm(c, a, b)
        torch.bmm(x, y)
        torch.nn.functional.linear(x, a)
        torch.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True)
        a.add(a).relu_().sum()
    return calls() - before

with torch.no_grad():
    steps(100)
    idle = ctypes.CDLL(sys.argv[2])
    idle.install()
    steps(100)
    alone = steps(1000)
    idle.remove_it()
    with observing("native") as recorder:
        steps(100)
        recorder.clear()
        print(steps(1000) - alone, recorder.written)
"""


@pytest.mark.slow
def test_the_observer_allocates_nothing_for_an_op(tmp_path, real):
    preload = find_built("libflopledger_malloc_counter.so")
    if preload is None:
        pytest.skip("libflopledger_malloc_counter.so is not built: cmake --build --preset dev")
    # LD_PRELOAD is a list separated by spaces, and the build folder's name may have some.
    preload = shutil.copy(preload, tmp_path)
    (tmp_path / "idle.cc").write_text(IDLE_CALLBACK)
    observer = str(Path(_build.__file__).parent / "observer.cc")
    command = [
        str(tmp_path / "idle.cc") if word == observer else word
        for word in _build.find_or_build().command
    ]
    subprocess.run([*command, "-o", str(tmp_path / "idle.so")], check=True, timeout=300)
    answer = subprocess.run(
        [sys.executable, "-c", ALLOCATIONS, str(Path(__file__).parent), str(tmp_path / "idle.so")],
        env={**os.environ, "LD_PRELOAD": str(preload)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    more, ops = map(int, answer.stdout.split())
    assert ops > 20_000
    assert more == 0
