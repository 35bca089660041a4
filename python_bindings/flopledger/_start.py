"""Opening and closing the books of this process."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

from . import _core
from ._config import settings
from ._ledger import Ledger
from ._models import formula, from_hf
from ._observe import Observation
from ._peaks import resolve_peak

_OBSERVERS = ("auto", "native", "dispatch", "none")
_current: Ledger | None = None


def _declared(
    model_flops: Any,
) -> tuple[_core.ModelFlops | None, Callable[[Any], Mapping[str, int]] | None]:
    if model_flops is None:
        return None, None
    if isinstance(model_flops, _core.ModelFlops):
        return model_flops, None
    if isinstance(model_flops, str) and not model_flops.endswith(".json"):
        return formula(model_flops), None
    if isinstance(model_flops, str | os.PathLike | Mapping) or hasattr(model_flops, "to_dict"):
        return from_hf(model_flops), None
    if callable(model_flops):
        return None, model_flops
    raise ValueError(
        f"model_flops is a {type(model_flops).__name__}; accepted: from_hf(config), "
        "transformer(...), formula(...), a formula string, a configuration, or a callable that "
        "returns {'forward': ..., 'backward': ..., 'tokens': ...}"
    )


def _set_rank(options: _core.SessionOptions, ranks: tuple[int | None, ...]) -> None:
    rank, local_rank, world_size = ranks
    if rank is not None or world_size is not None:
        rank = int(rank or 0)
        options.set_rank(
            rank,
            rank if local_rank is None else int(local_rank),
            rank + 1 if world_size is None else int(world_size),
            "arguments",
        )
        return
    if "FLOPLEDGER_RANK" in os.environ or "torch" not in sys.modules:
        return
    distributed = getattr(sys.modules["torch"], "distributed", None)
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return
    rank = distributed.get_rank()
    local = int(os.environ.get("LOCAL_RANK", rank))
    options.set_rank(rank, local, distributed.get_world_size(), "torch.distributed")


def _set_options(options: _core.SessionOptions, chosen: dict[str, Any]) -> None:
    options.run_id = chosen["run"]
    options.sequence_length = chosen["seq_len"]
    options.warmup_steps = chosen["warmup_steps"]
    options.window_steps = chosen["window_steps"]
    options.log_every_steps = chosen["log_every"]
    options.log_level = chosen["log_level"]
    options.jsonl_path = chosen["jsonl"]
    options.capture_path = chosen["capture"]
    options.capture_max_bytes = chosen["capture_max_bytes"]
    options.http_enabled = chosen["http"]
    options.http_address = chosen["address"]
    options.http_port = chosen["port"]
    options.http_allow_remote = chosen["allow_remote"]
    options.http_discovery_folder = chosen["discovery"]
    options.host_ops = chosen["observer"] != "none"
    options.device_records = chosen["device_records"]
    options.nvtx = chosen["nvtx"]
    options.nvtx_steps = chosen["nvtx_steps"]
    options.nvtx_phases = chosen["nvtx_phases"]


def start(
    model_flops: Any = None,
    peak: Any = None,
    run: str | None = None,
    *,
    rank: int | None = None,
    local_rank: int | None = None,
    world_size: int | None = None,
    **arguments: Any,
) -> Ledger:
    """Opens the books of this process and returns the ledger.

    ``model_flops``: what the model needs: ``from_hf(config)``, ``transformer(...)``, a formula
    string over ``T`` and ``S``, or a callable ``batch -> {"forward", "backward", "tokens"}`` (or
    named parts with a forward and a backward each) for ``Step.work``. Without it there is HFU, and
    no MFU.
    ``peak``: what one device can do: FLOP/s, ``"312 TFLOP/s"``, a device of ``flopledger peaks``, a
    `PeakRate`, or a dtype: then, and by default, that of this device, from the sourced table for a
    GPU (or refused: there is no fallback), measured on a CPU and labelled so.
    ``run``: name of the run; the same on all ranks.

    Further settings, also as ``FLOPLEDGER_<NAME>`` or in ``flopledger.toml``: ``dtype`` of the
    matmuls, ``seq_len`` of a row, ``warmup_steps`` (1) that stay out of the ratios,
    ``window_steps`` (20), ``log_every`` (10; 0: no line), ``log_level``, ``jsonl`` (path of the
    step log), ``capture`` (path of a file with the raw records, for ``flopledger replay``) and
    ``capture_max_bytes`` (2**30) at which it ends, ``http``, ``address``, ``port`` (9410 + local
    rank), ``allow_remote``, ``discovery`` (folder for Prometheus' file_sd), ``observer`` (auto,
    native, dispatch, none), ``strict`` (raise instead of log), ``nvtx`` (listen to NVTX ranges),
    ``nvtx_steps`` (``"step*"``: ranges that are steps) and ``nvtx_phases`` (``"forward=fwd*"``);
    ``docs/nvtx.md`` has their forms. ``device_records``: ``"auto"`` records the kernels of GPUs
    through CUPTI, where the library and the driver are there, so that steps end when the device has
    finished and coverage is by kernel; ``"off"`` leaves CUPTI alone, for another profiler.

    Raises ``ValueError`` (or ``TypeError`` for an unknown name) that names the field, its value and
    what is accepted, ``OSError`` for a step log or capture that cannot be written, and
    ``RuntimeError`` if a ledger is open already.
    """
    global _current
    if _current is not None and not _current._closed:
        raise RuntimeError("a ledger is open in this process; close it first (get() returns it)")
    chosen = settings({"run": run, **arguments})
    if chosen["observer"] not in _OBSERVERS:
        raise ValueError(f"observer is {chosen['observer']!r}; accepted: {', '.join(_OBSERVERS)}")
    options = _core.SessionOptions()
    model, declare = _declared(model_flops)
    if model is not None:
        options.set_model(model)
    dtype, peaks, no_peak = resolve_peak(peak, chosen["dtype"] or None)
    options.dtype = dtype
    for each in peaks:
        options.add_peak(each)
    _set_rank(options, (rank, local_rank, world_size))
    _set_options(options, chosen)
    session = _core.Session.create(options)
    session.set_capability("peak", bool(peaks), "ok" if peaks else "unknown_device")
    if no_peak:
        session.warn(no_peak)
    _current = Ledger(session, Observation(session, chosen["observer"]), declare, chosen["strict"])
    return _current


def get() -> Ledger | None:
    """The ledger of this process, open or closed; None before ``start``."""
    return _current


def close() -> None:
    """Closes the ledger of this process, if there is one. Also done at exit."""
    if _current is not None:
        _current.close()


atexit.register(close)
