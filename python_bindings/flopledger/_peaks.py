"""The denominator: what the device could do."""

from __future__ import annotations

import platform
import sys
import time
from typing import Any

from . import _core
from ._core import PeakRate, check_dtype, dtypes, parse_peak_rate

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
    torch = sys.modules.get("torch")
    if torch is None:
        return "fp32"
    return check_dtype(str(torch.get_default_dtype()).removeprefix("torch."))


def look_up_peak(
    name: str = "",
    *,
    dtype: str = "bf16",
    sparse: bool = False,
    pci_device_id: int | None = None,
    sm_count: int = 0,
    form_factor: str = "",
    compute_capability: int = 0,
) -> PeakRate:
    """The published matmul rate of a device, in FLOP/s, with its source.

    A PCI device id decides; else SM count and form factor; else a whole name, where it decides
    (``"NVIDIA H100 PCIe"``; ``"NVIDIA H100"`` is three parts). Raises ``KeyError`` for a device or
    a mode that is not in the table, ``ValueError`` if several parts fit, with their names.
    """
    return _core.look_up_peak(
        name, dtype, sparse, pci_device_id, sm_count, form_factor, compute_capability
    )


def _cuda_peak(dtype: str) -> tuple[list[PeakRate], str]:
    """The peak of the CUDA device that torch uses, or none and why."""
    import torch

    properties = torch.cuda.get_device_properties(torch.cuda.current_device())
    try:
        found = look_up_peak(
            properties.name,
            dtype=dtype,
            sm_count=int(properties.multi_processor_count),
            compute_capability=10 * int(properties.major) + int(properties.minor),
        )
    except (KeyError, ValueError) as error:
        reason = error.args[0] if error.args else str(error)
        return [], f"no peak for {properties.name} in {dtype}, so no MFU and no HFU: {reason}"
    return [found], ""


def _peak_of_this_device(dtype: str) -> tuple[list[PeakRate], str]:
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        return _cuda_peak(dtype)
    try:
        return [measure_peak(dtype)], ""
    except RuntimeError as error:
        return [], f"no peak, so no MFU and no HFU: {error}"


def _peak_of_text(text: str, dtype: str) -> PeakRate:
    if text[:1].isdigit():
        return PeakRate(parse_peak_rate(text), dtype, source="given to start()")
    try:
        return look_up_peak(text, dtype=dtype)
    except KeyError:
        raise ValueError(
            f"peak is {text!r}; accepted: FLOP/s, '312 TFLOP/s', a dtype, a device of "
            "`flopledger peaks`, a PeakRate"
        ) from None


def resolve_peak(peak: Any, dtype: str | None) -> tuple[str, list[PeakRate], str]:
    """The run's dtype, its peaks, and why there are none, from what `start` was given.

    `peak` is None or a dtype (``"bf16"``, ``"fp32-dense"``): that of this device, from the table
    for a GPU, measured on a CPU; a number of FLOP/s or a text like ``"312 TFLOP/s"``; a device of
    the table; a `PeakRate`, or a list of them.
    """
    if isinstance(peak, PeakRate):
        return dtype or peak.dtype, [peak], ""
    if isinstance(peak, list | tuple) and peak and all(isinstance(p, PeakRate) for p in peak):
        return dtype or peak[0].dtype, list(peak), ""
    if isinstance(peak, str):
        words = peak.removesuffix("-dense")
        if words in dtypes():
            return words, *_peak_of_this_device(words)
    name = check_dtype(dtype or _default_dtype())
    if peak is None or peak == "measure":
        return name, *_peak_of_this_device(name)
    if isinstance(peak, str):
        return name, [_peak_of_text(peak, name)], ""
    if isinstance(peak, int | float) and not isinstance(peak, bool):
        rate = parse_peak_rate(repr(float(peak)))
        return name, [PeakRate(rate, name, source="given to start()")], ""
    raise ValueError(
        f"peak is {peak!r}; accepted: FLOP/s, '312 TFLOP/s', a dtype, a device, a PeakRate, a list "
        "of them"
    )
