"""The object that a training loop holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from types import TracebackType
from typing import Any

from . import _core
from ._observe import Observation


class Step:
    """One optimizer step, as a context: ``with led.step() as s:``.

    It lasts from here to the next one; an exception that leaves the block makes it incomplete and
    propagates unchanged.
    """

    __slots__ = ("_ledger", "_number")

    def __init__(self, ledger: Ledger, number: int | None) -> None:
        self._ledger = ledger
        self._number = number

    def __enter__(self) -> Step:
        self._ledger._begin(self._number)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ledger._end(kind is not None)

    def tokens(
        self,
        useful: int | None = None,
        padded: int | None = None,
        *,
        seqlens: Iterable[int] | None = None,
        cu_seqlens: Iterable[int] | None = None,
        seq_len: int | None = None,
    ) -> None:
        """Declares the tokens of one micro-batch; call it once per micro-batch.

        ``useful``: real tokens. ``padded``: all tokens that are computed, padding included
        (default: no padding). ``seqlens``: useful tokens per row or per packed document;
        ``cu_seqlens``: their cumulative sums from 0. ``seq_len``: length of a row (default: of
        ``start``). All host integers; a tensor on a device would wait for it.
        """
        self._ledger._tokens(useful, padded, seqlens, cu_seqlens, seq_len)

    def work(self, batch: Any) -> None:
        """Declares the FLOPs that the callable given to ``start`` returns for this batch."""
        self._ledger._work(batch)

    def value(self, name: str, value: float) -> None:
        """A number to publish beside the books: the loss, the learning rate."""
        self._ledger.value(name, value)


class _Section:
    __slots__ = ("_name", "_session")

    def __init__(self, session: _core.Session, name: str) -> None:
        self._session = session
        self._name = name

    def __enter__(self) -> None:
        self._session.begin_section(self._name)

    def __exit__(self, *error: object) -> None:
        self._session.end_section(self._name)


def _lengths(seqlens: Iterable[int] | None, cu_seqlens: Iterable[int] | None) -> list[int] | None:
    if seqlens is not None and cu_seqlens is not None:
        raise ValueError("both seqlens and cu_seqlens are given; accepted: one of them")
    if seqlens is not None:
        return [int(length) for length in seqlens]
    if cu_seqlens is None:
        return None
    ends = [int(end) for end in cu_seqlens]
    if not ends or ends[0] != 0:
        raise ValueError(f"cu_seqlens begins with {ends[:1]}; accepted: sums that begin with 0")
    lengths = [after - before for before, after in pairwise(ends)]
    if any(length < 0 for length in lengths):
        raise ValueError(f"cu_seqlens falls: {ends}; accepted: sums that never fall")
    return lengths


def _sum_parts(parts: Mapping[str, Any]) -> tuple[int, int, int]:
    """Forward FLOPs, backward FLOPs and tokens of what a user's callable returned.

    Either the two sums, or parts by name, each with its own ``{"forward": ..., "backward": ...}``.
    """
    named = dict(parts)
    tokens = int(named.pop("tokens", 0))
    passes = {"forward": 0, "backward": 0}
    for name, value in named.items():
        if name in passes:
            passes[name] += int(value)
            continue
        if not isinstance(value, Mapping) or not set(value) <= set(passes):
            raise ValueError(
                f"the callable returned {name!r}: {value!r}; accepted: 'forward', 'backward' and "
                "'tokens' as integers, or named parts as {'forward': ..., 'backward': ...}"
            )
        for direction, flops in value.items():
            passes[direction] += int(flops)
    if any(flops < 0 for flops in passes.values()) or tokens < 0:
        raise ValueError(f"the callable returned {parts!r}; accepted: numbers of 0 or more")
    return passes["forward"], passes["backward"], tokens


class Ledger:
    """The books of one run. Made by ``start``; call it from the training thread.

    After ``start`` its methods never raise into the loop: what cannot be taken is refused, said
    once in the log, and visible as a missing figure. With ``strict=True`` (for tests) they raise.
    """

    def __init__(
        self,
        session: _core.Session,
        observation: Observation,
        declare: Callable[[Any], Mapping[str, int]] | None,
        strict: bool,
    ) -> None:
        self._session = session
        self._observation = observation
        self._declare = declare
        self._strict = strict
        self._closed = False

    def step(self, number: int | None = None) -> Step:
        """The next step, or step ``number``."""
        return Step(self, number)

    def section(self, name: str) -> _Section:
        """A named part of the run, inside of steps or between them: ``with led.section("eval"):``.

        Its time stays in the wall time and is a lost cause of its own. Names: forward, backward,
        recompute, optimizer, communication, data, checkpoint, eval, other.
        """
        if self._strict:
            _core.check_section(name)
        try:
            return _Section(self._session, _core.check_section(name))
        except ValueError as error:
            self._complain(error)
            return _Section(self._session, "other")

    def value(self, name: str, value: float) -> None:
        """A number to publish beside the books; belongs to the step that is open."""
        try:
            self._session.set_value(str(name), float(value))
        except Exception as error:
            self._complain(error)

    def last(self) -> dict[str, float]:
        """The last closed step as flat numbers, ``flopledger/mfu`` and so on, for your own logger.

        A step closes when the next one begins, so this lags by one. What is not known is left out.
        """
        return self._session.last_values()

    def last_report(self) -> dict[str, Any] | None:
        """The last closed step with every digit: FLOPs as integers, gaps, findings, refusals."""
        return self._session.last_report()

    def summary(self) -> str:
        """The table that is also printed at the end."""
        return self._session.summary()

    @property
    def address(self) -> str:
        """``http://127.0.0.1:9410``, or empty if nothing is served."""
        return self._session.address()

    @property
    def jsonl_path(self) -> str:
        """Path of the step log, or empty."""
        return self._session.jsonl_path()

    @property
    def run_id(self) -> str:
        return self._session.run_id()

    @property
    def conventions(self) -> dict[str, str]:
        """How this run counts: name of the convention, and the model whose formula is declared."""
        return {"convention": self._session.convention(), "model": self._session.model()}

    @property
    def observer(self) -> str:
        """What sees the ops: ``native``, ``dispatch`` or ``none``."""
        return self._observation.kind

    @property
    def capabilities(self) -> dict[str, str]:
        """What was found at start, by name, with ``ok`` or the reason why not."""
        return self._session.capabilities()

    def close(self) -> None:
        """Closes the last step, flushes, prints the summary, stops serving. Twice is once."""
        if self._closed:
            return
        self._closed = True
        self._observation.remove()
        self._session.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _complain(self, error: Exception) -> None:
        if self._strict:
            raise error
        self._session.warn(f"{type(error).__name__}: {error}")

    def _begin(self, number: int | None) -> None:
        self._observation.enter_step()
        self._session.begin_step(number)

    def _end(self, failed: bool) -> None:
        self._session.end_step(failed)
        self._observation.leave_step()

    def _tokens(
        self,
        useful: int | None,
        padded: int | None,
        seqlens: Iterable[int] | None,
        cu_seqlens: Iterable[int] | None,
        seq_len: int | None,
    ) -> None:
        try:
            lengths = _lengths(seqlens, cu_seqlens)
            if useful is None and lengths is None:
                raise ValueError("neither useful nor seqlens is given; accepted: at least one")
            total = sum(lengths) if lengths is not None else int(useful or 0)
            real = total if useful is None else int(useful)
            if self._strict and (real < 0 or real > (real if padded is None else int(padded))):
                raise ValueError(f"useful is {real}; accepted: 0 to padded ({padded})")
            self._session.tokens(real, int(padded or 0), int(seq_len or 0), lengths)
        except Exception as error:
            self._session.refuse_declaration()
            self._complain(error)

    def _work(self, batch: Any) -> None:
        try:
            if self._declare is None:
                raise ValueError("work() needs a callable as model_flops of start()")
            forward, backward, tokens = _sum_parts(self._declare(batch))
            self._session.declare_work(forward, backward, tokens)
        except Exception as error:
            self._session.refuse_declaration()
            self._complain(error)
