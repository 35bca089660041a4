"""Observers of PyTorch ops: each op with its shapes, times and phase goes to a session.

Two exist. The native one is a record-function callback in C++, compiled once for the torch that is
installed; it costs about a microsecond an op, sees every thread and leaves compiled code alone. The
dispatch mode needs no compiler, costs about twenty times as much, sees eager ops of one thread and
makes compiled code run eagerly.

    observer = install(table_address)
    observer.kind, observer.reason
    observer.remove()
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass

from ._build import Build, find_or_build
from ._host_ops import HostOps, Writer

__all__ = ["ObserverHandle", "Probe", "install", "probe"]

_PREFERENCES = ("auto", "native", "dispatch")
_ABI_VERSION = 1
_INSTALL_ERRORS = {
    1: "an observer is already installed in this process",
    2: "the host-ops table is of another version",
    3: "the host-ops table lacks a function",
    4: "torch refused the callback",
}


@dataclass(frozen=True)
class Probe:
    """What `install` would find; nothing is built or installed."""

    torch_version: str | None
    native: Build
    reason: str


@dataclass
class ObserverHandle:
    """An installed observer. `kind` is `native`, `dispatch` or `none`; `reason` says why."""

    kind: str
    reason: str
    _remove: Callable[[], None] | None = None

    def remove(self) -> None:
        """Stops observing. Safe to call twice."""
        remove, self._remove = self._remove, None
        if remove is not None:
            remove()


def _torch_version() -> tuple[str | None, str]:
    try:
        import torch
    except Exception as error:  # a broken torch is a reason, whatever it raises
        return None, f"torch cannot be imported: {error}"
    return torch.__version__, ""


def probe() -> Probe:
    """Says which observer `install` would take and why, without building anything."""
    version, reason = _torch_version()
    if version is None:
        return Probe(None, Build(None, reason), reason)
    native = find_or_build(build=False)
    return Probe(version, native, native.reason)


def _install_native(address: int) -> ObserverHandle:
    built = find_or_build()
    if built.path is None:
        return ObserverHandle("none", built.reason)
    try:
        library = ctypes.CDLL(str(built.path), mode=ctypes.RTLD_LOCAL)
        found = library.flopledger_observer_abi_version()
        if found != _ABI_VERSION:
            return ObserverHandle(
                "none", f"{built.path} has version {found}; accepted: {_ABI_VERSION}"
            )
        library.flopledger_observer_install.argtypes = [ctypes.c_void_p]
        code = library.flopledger_observer_install(address)
    except (OSError, AttributeError) as error:
        return ObserverHandle("none", f"cannot load {built.path}: {error}")
    if code != 0:
        return ObserverHandle("none", _INSTALL_ERRORS.get(code, f"unknown error {code}"))
    return ObserverHandle("native", built.reason, library.flopledger_observer_remove)


def _install_dispatch(writer: Writer, reason: str) -> ObserverHandle:
    from ._dispatch import DispatchObserver

    observer = DispatchObserver(writer)
    observer.install()
    return ObserverHandle("dispatch", reason, observer.remove)


def install(
    host_ops_address: int, prefer: str = "auto", writer: Writer | None = None
) -> ObserverHandle:
    """Installs an observer that feeds the C table at `host_ops_address` and returns its handle.

    `prefer` is `auto` (native, else dispatch), `native` or `dispatch` (that one or none). `writer`
    is a faster way to the same table for the dispatch mode, if the caller has one.

    Raises `ValueError` for an argument that makes no sense. What the machine lacks is no error: the
    handle's `kind` and `reason` say what came of it.
    """
    if prefer not in _PREFERENCES:
        raise ValueError(f"prefer is {prefer!r}; accepted: {', '.join(_PREFERENCES)}")
    if not isinstance(host_ops_address, int) or host_ops_address <= 0:
        raise ValueError(
            f"host_ops_address is {host_ops_address!r}; accepted: the address of a "
            "flopledger_host_ops table"
        )
    version, reason = _torch_version()
    if version is None:
        return ObserverHandle("none", reason)
    handle = ObserverHandle("none", "the dispatch mode was asked for")
    if prefer != "dispatch":
        handle = _install_native(host_ops_address)
        if handle.kind == "native" or prefer == "native":
            return handle
    try:
        return _install_dispatch(writer or HostOps(host_ops_address), handle.reason)
    except Exception as error:  # private interfaces of torch: they may be gone in another version
        return ObserverHandle("none", f"{handle.reason}; dispatch mode: {error}")
