"""The denominator of a run: given, measured, looked up, or refused; never guessed."""

from __future__ import annotations

import types

import pytest
from ledger_support import flopledger, ledger, torch

from flopledger._peaks import resolve_peak


def device(monkeypatch, name: str, sm_count: int, major: int, minor: int) -> None:
    """A CUDA device as torch describes one."""
    properties = types.SimpleNamespace(
        name=name, multi_processor_count=sm_count, major=major, minor=minor
    )
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: properties)


def test_a_gpu_run_is_measured_against_the_gpu(monkeypatch):
    device(monkeypatch, "NVIDIA H100 PCIe", 114, 9, 0)
    dtype, [peak], reason = resolve_peak("bf16", None)
    assert (dtype, reason) == ("bf16", "")
    assert peak.flops_per_second == pytest.approx(756e12, rel=1e-3)
    assert peak.evidence == "published"


@pytest.mark.parametrize("wanted", [None, "measure", "bf16"])
def test_an_unknown_gpu_has_no_peak_and_no_fallback(monkeypatch, capfd, wanted):
    device(monkeypatch, "NVIDIA Z9999", 7, 12, 0)
    dtype, peaks, reason = resolve_peak(wanted, "bf16" if wanted != "bf16" else None)
    assert dtype == "bf16"
    assert peaks == []
    assert "NVIDIA Z9999" in reason
    with ledger(peak=wanted, dtype="bf16", observer="none", log_level="warning") as led:
        with led.step() as step:
            step.tokens(useful=1)
        led.close()
        assert led.capabilities["peak"] == "unknown_device"
        assert "flopledger/mfu" not in led.last()
    assert "NVIDIA Z9999" in capfd.readouterr().err


def test_a_cpu_is_measured_and_says_so():
    dtype, [peak], reason = resolve_peak("fp32-dense", None)
    assert (dtype, reason) == ("fp32", "")
    assert peak.evidence == "measured"
    assert "matrices" in peak.source
    assert 0 < peak.spread_low <= 1
    assert peak.flops_per_second > 1e9


def test_a_peak_of_a_named_device():
    _, [peak], _ = resolve_peak("NVIDIA H100 PCIe", "bf16")
    assert peak.flops_per_second == pytest.approx(756e12, rel=1e-3)
    with pytest.raises(ValueError, match="H100 PCIe"):
        resolve_peak("NVIDIA H100", "bf16")  # three parts carry this name
    with pytest.raises(ValueError, match="accepted: FLOP/s"):
        resolve_peak("abacus", "bf16")


@pytest.mark.parametrize(
    ("given", "expected"),
    [(140.4e12, 140.4e12), ("312 TFLOP/s", 312e12), ("1.2e12 FLOP/s", 1.2e12), (10**12, 1e12)],
)
def test_a_given_peak(given, expected):
    _, [peak], _ = resolve_peak(given, "bf16")
    assert peak.flops_per_second == expected
    assert peak.evidence == "user"


def test_look_up_by_sm_count_and_form_factor():
    peak = flopledger.look_up_peak(sm_count=114, form_factor="PCIe", dtype="bf16")
    assert peak.flops_per_second == pytest.approx(756e12, rel=1e-3)
    with pytest.raises(KeyError):
        flopledger.look_up_peak("NVIDIA Nothing")
