"""Builds the C++ observer for the torch that is installed, once per machine and user.

The shared object depends on torch's C++ ABI, so it is compiled here and not shipped. Whatever
stands in the way (no compiler, no write permission, a time limit) is a reason, never an exception.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import platform
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

BUILD_SECONDS = 180.0
_HERE = Path(__file__).resolve().parent
_SOURCES = ("observer.cc", "op_key.h", "counted_ops.inc")
_ELSEWHERE = "set FLOPLEDGER_CACHE_DIR to a folder of yours"
_FLAGS = ("-std=c++20", "-O2", "-DNDEBUG", "-fPIC", "-shared", "-fvisibility=hidden")


@dataclass(frozen=True)
class Build:
    """A shared object that can be loaded, or the reason why there is none."""

    path: Path | None
    reason: str
    command: tuple[str, ...] = ()


def cache_directory() -> Path:
    """`FLOPLEDGER_CACHE_DIR`, else the user's cache folder by the XDG rules."""
    own = os.environ.get("FLOPLEDGER_CACHE_DIR")
    if own:
        return Path(own)
    xdg = os.environ.get("XDG_CACHE_HOME")
    base = Path(xdg) if xdg else Path.home() / ".cache"
    return base / "flopledger"


def find_compiler() -> tuple[list[str] | None, str]:
    """The command of the C++ compiler, or a reason."""
    named = os.environ.get("CXX")
    if named:
        words = shlex.split(named)
        if words and shutil.which(words[0]):
            return words, ""
        return None, f"no compiler: CXX is {named!r}, which is not on the path"
    for name in ("c++", "g++", "clang++"):
        found = shutil.which(name)
        if found:
            return [found], ""
    return None, "no compiler: CXX is not set and none of c++, g++, clang++ is on the path"


def find_include() -> tuple[Path | None, str]:
    """The folder of `flopledger/host_ops.h`: in the installed package, or in the source tree."""
    candidates = (_HERE.parent / "include", _HERE.parents[2] / "include")
    for folder in candidates:
        if (folder / "flopledger" / "host_ops.h").is_file():
            return folder, ""
    return None, "flopledger/host_ops.h not found in " + " or ".join(map(str, candidates))


def _torch_paths() -> tuple[Path | None, Path | None, str]:
    import torch

    root = Path(torch.__file__).resolve().parent
    include, library = root / "include", root / "lib"
    if not (include / "ATen" / "record_function.h").is_file():
        return None, None, f"no torch headers: {include} has no ATen/record_function.h"
    return include, library, ""


def _identity(compiler: list[str], include: Path) -> str:
    """Everything that makes one shared object unfit where another fits."""
    import torch

    digest = hashlib.sha256()
    version = subprocess.run(
        [*compiler, "--version"], capture_output=True, text=True, timeout=20, check=False
    ).stdout
    facts = (
        torch.__version__,
        str(torch.version.git_version),
        str(torch._C._GLIBCXX_USE_CXX11_ABI),
        str(Path(torch.__file__).resolve().parent),
        version,
        *compiler,
        *_FLAGS,
        platform.machine(),
        sys.implementation.cache_tag or "",
    )
    for fact in facts:
        digest.update(fact.encode() + b"\0")
    for source in (*(_HERE / name for name in _SOURCES), include / "flopledger" / "host_ops.h"):
        digest.update(source.read_bytes() + b"\0")
    return digest.hexdigest()[:24]


def _prepare_folder(folder: Path) -> str:
    """Makes the folder; a reason if it cannot be trusted or written: code is loaded from it."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        facts = folder.stat()
    except OSError as error:
        return f"cannot use {folder}: {error.strerror}; {_ELSEWHERE}"
    if facts.st_uid != os.geteuid():
        return (
            f"{folder} belongs to user {facts.st_uid}, not to {os.geteuid()}: "
            "code from it is not loaded"
        )
    if facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return (
            f"{folder} can be written by others (mode {stat.S_IMODE(facts.st_mode):o}): "
            "chmod go-w it"
        )
    if not os.access(folder, os.W_OK | os.X_OK):
        return f"cannot write {folder}: permission denied; {_ELSEWHERE}"
    return ""


@contextlib.contextmanager
def _locked(path: Path, deadline: float):
    """Yields (held, waited). Other ranks build the same file: one does, the rest take it."""
    with path.open("a", encoding="ascii") as file:
        waited = False
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                waited = True
                if time.monotonic() > deadline:
                    yield False, True
                    return
                time.sleep(0.05)  # flock has no time limit of its own
        yield True, waited


def _run(command: list[str], seconds: float) -> str:
    """Runs the compiler; a reason if it failed. Its children end with it."""
    with tempfile.TemporaryFile() as output:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            return f"cannot run {command[0]}: {error.strerror}"
        try:
            code = process.wait(timeout=max(seconds, 0.0))
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return f"the compiler took longer than {seconds:.0f} s"
        if code == 0:
            return ""
        output.seek(0)
        lines = output.read().decode(errors="replace").strip().splitlines()
        first = next(
            (line for line in lines if "error" in line), lines[-1] if lines else "no output"
        )
        return f"{command[0]} failed with exit code {code}: {first[:300]}"


def _compile(command: list[str], target: Path, seconds: float) -> str:
    """Compiles beside the target and renames, so that nobody ever loads half a file."""
    partial = target.with_name(f"{target.name}.{os.getpid()}.partial")
    try:
        reason = _run([*command, "-o", str(partial)], seconds)
        if not reason:
            partial.replace(target)
        return reason
    except OSError as error:
        return f"cannot write {target}: {error.strerror}"
    finally:
        with contextlib.suppress(OSError):
            partial.unlink()


def _command(compiler: list[str], include: Path, torch_include: Path, library: Path) -> list[str]:
    import torch

    abi = int(torch._C._GLIBCXX_USE_CXX11_ABI)
    return [
        *compiler,
        *_FLAGS,
        f"-D_GLIBCXX_USE_CXX11_ABI={abi}",
        f"-I{include}",
        "-isystem",
        str(torch_include),
        str(_HERE / "observer.cc"),
        f"-L{library}",
        "-ltorch_cpu",
        "-lc10",
        "-Wl,-z,nodelete",
    ]


def find_or_build(*, build: bool = True, seconds: float = BUILD_SECONDS) -> Build:
    """The shared object for this torch: from the cache, else compiled now (about 10 s).

    With `build=False` nothing is compiled; the reason says what would be done.
    """
    deadline = time.monotonic() + seconds
    include, reason = find_include()
    if include is None:
        return Build(None, reason)
    torch_include, library, reason = _torch_paths()
    if torch_include is None or library is None:
        return Build(None, reason)
    compiler, reason = find_compiler()
    if compiler is None:
        return Build(None, reason)
    try:
        identity = _identity(compiler, include)
    except (OSError, subprocess.SubprocessError) as error:
        return Build(None, f"cannot identify the compiler {compiler[0]}: {error}")
    folder = cache_directory() / "torch_observer"
    target = folder / f"{identity}.so"
    command = _command(compiler, include, torch_include, library)
    reason = _prepare_folder(folder)
    if reason:
        return Build(None, reason, tuple(command))
    if target.is_file():
        return Build(target, "from the cache", tuple(command))
    if not build:
        return Build(None, "not built yet: it takes about 10 s, once", tuple(command))
    try:
        return _build_once(command, target, deadline)
    except OSError as error:
        return Build(None, f"cannot write {folder}: {error.strerror}", tuple(command))


def _build_once(command: list[str], target: Path, deadline: float) -> Build:
    failure = target.with_suffix(".failed")
    with _locked(target.with_suffix(".lock"), deadline) as (held, waited):
        if not held:
            return Build(None, "another process is still building the observer", tuple(command))
        if target.is_file():
            return Build(target, "built by another process", tuple(command))
        if waited and failure.is_file():  # who waited for a failure does not repeat it
            return Build(None, failure.read_text(encoding="utf-8"), tuple(command))
        reason = _compile(command, target, deadline - time.monotonic())
        if reason:
            failure.write_text(reason, encoding="utf-8")
            return Build(None, reason, tuple(command))
        failure.unlink(missing_ok=True)
        return Build(target, "built now", tuple(command))
