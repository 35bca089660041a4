"""What watches the framework while the ledger is open."""

from __future__ import annotations

import sys
from typing import Any

from . import _core


class Observation:
    """The observer of a framework and the optimizer's bracket; put in place once torch is there.

    The native observer stays for the whole run. The dispatch mode belongs to the thread that runs
    the steps and is entered for the length of each.
    """

    def __init__(self, session: _core.Session, prefer: str) -> None:
        self._session = session
        self._prefer = prefer
        self._handle: Any = None
        self._hooks: list[Any] = []
        self.kind = "none"
        if "torch" in sys.modules:
            self._install()
        elif prefer != "none":
            session.set_capability("host_ops", False, "torch_not_imported")

    def enter_step(self) -> None:
        if self._handle is None and self._prefer != "none" and "torch" in sys.modules:
            self._install()

    def leave_step(self) -> None:
        pass

    def remove(self) -> None:
        handle, self._handle = self._handle, None
        if handle is not None:
            handle.remove()
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()

    def _install(self) -> None:
        if self._prefer == "none":
            self._session.set_capability("host_ops", False, "not_wanted")
            return
        from .torch_observer import install

        self._handle = install(
            self._session.host_ops_address(), self._prefer, _core.HostOps(self._session)
        )
        self.kind = self._handle.kind
        self._session.set_capability("host_ops", self.kind != "none", self.kind)
        if self.kind != "native" and self._prefer != "dispatch":
            self._session.warn(f"op observer is {self.kind}: {self._handle.reason}")
        self._bracket_optimizers()

    def _bracket_optimizers(self) -> None:
        # Ops between these two are the optimizer's: a Muon matmul is not a forward one.
        try:
            from torch.optim import optimizer

            session = self._session
            self._hooks.append(
                optimizer.register_optimizer_step_pre_hook(
                    lambda *_: session.begin_section("optimizer")
                )
            )
            self._hooks.append(
                optimizer.register_optimizer_step_post_hook(
                    lambda *_: session.end_section("optimizer")
                )
            )
        except Exception as error:  # an older torch: its optimizer counts as forward
            self._session.warn(f"optimizer steps are not told apart: {error}")
