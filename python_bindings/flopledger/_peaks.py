"""The denominator: what the device could do."""

from __future__ import annotations

import platform
import time
from typing import Any

from ._core import PeakRate, check_dtype, parse_peak_rate

_TORCH_DTYPES = {"fp64": "float64", "fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}
_SIZE = 1024
_REPETITIONS = 9
_SECONDS = 3.0


def _cpu_model() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine() or "CPU"


def measure_peak(dtype: str = "fp32", size: int = _SIZE) -> PeakRate:
    """Measures the matmul rate of this CPU.

    It is the fastest of a few products of two ``size`` x ``size`` matrices in ``dtype``, with the
    threads that torch uses now. The result is labelled `measured`
    and carries the slowest and the fastest repetition as fractions of it.

    Raises ``RuntimeError`` without torch, ``ValueError`` for a dtype that torch cannot multiply.
    """
    name = check_dtype(dtype)
    if name not in _TORCH_DTYPES:
        raise ValueError(
            f"dtype is {dtype!r}; a CPU peak is measured in {', '.join(_TORCH_DTYPES)}"
        )
    try:
        import torch
    except Exception as error:
        raise RuntimeError(
            f"a CPU peak is measured with torch, which is missing: {error}"
        ) from error
    kind = getattr(torch, _TORCH_DTYPES[name])
    seconds: list[float] = []
    with torch.no_grad():
        left = torch.randn(size, size).to(kind)
        right = torch.randn(size, size).to(kind)
        out = torch.empty(size, size, dtype=kind)
        torch.mm(left, right, out=out)
        deadline = time.monotonic() + _SECONDS
        while len(seconds) < _REPETITIONS and (len(seconds) < 3 or time.monotonic() < deadline):
            start = time.perf_counter()
            torch.mm(left, right, out=out)
            seconds.append(time.perf_counter() - start)
    flops = 2.0 * size**3
    best, worst = min(seconds), max(seconds)
    return PeakRate(
        flops_per_second=flops / best,
        dtype=name,
        source=f"fastest of {len(seconds)} products of {size} x {size} matrices at start, "
        f"{torch.get_num_threads()} threads",
        device_model=_cpu_model(),
        measured=True,
        spread_low=best / worst,
        spread_high=1.0,
    )


def _default_dtype() -> str:
    import sys

    torch = sys.modules.get("torch")
    if torch is None:
        return "fp32"
    return check_dtype(str(torch.get_default_dtype()).removeprefix("torch."))


def resolve_peak(peak: Any, dtype: str | None) -> tuple[str, list[PeakRate]]:
    """The run's dtype and its peaks, from what `start` was given.

    `peak` is None or a dtype (``"bf16"``, ``"fp32-dense"``): measured here; a number of FLOP/s or a
    text like ``"312 TFLOP/s"``; a `PeakRate`, or a list of them.
    """
    if isinstance(peak, PeakRate):
        return dtype or peak.dtype, [peak]
    if isinstance(peak, list | tuple):
        if not peak or not all(isinstance(each, PeakRate) for each in peak):
            raise ValueError(f"peak is {peak!r}; accepted in a list: PeakRate values")
        return dtype or peak[0].dtype, list(peak)
    if isinstance(peak, bool):
        raise ValueError(f"peak is {peak!r}; accepted: FLOP/s, '312 TFLOP/s', a dtype, a PeakRate")
    if isinstance(peak, int | float):
        name = check_dtype(dtype or _default_dtype())
        rate = parse_peak_rate(repr(float(peak)))
        return name, [PeakRate(rate, name, source="given to start()")]
    if isinstance(peak, str) and peak != "measure":
        words = peak.removesuffix("-dense")
        try:
            name = check_dtype(words)
        except ValueError:
            name = check_dtype(dtype or _default_dtype())
            return name, [PeakRate(parse_peak_rate(peak), name, source="given to start()")]
        return name, [measure_peak(name)]
    if peak is None or peak == "measure":
        name = check_dtype(dtype or _default_dtype())
        return name, [measure_peak(name)]
    raise ValueError(f"peak is {peak!r}; accepted: FLOP/s, '312 TFLOP/s', a dtype, a PeakRate")
