"""Books of every floating-point operation of a training process.

    import flopledger

    led = flopledger.start(model_flops=flopledger.from_hf(model.config), peak="bf16", seq_len=1024)
    for batch in loader:
        with led.step() as s:
            loss = model(**batch).loss
            loss.backward()
            optimizer.step()
            s.tokens(useful=batch["input_ids"].numel())
    led.close()

MFU and HFU, what was recomputed and what nobody could count are logged, served at ``/metrics`` and
``/live``, and handed out by ``led.last()``. Errors of the configuration are raised by ``start``;
after that nothing of this package raises into the training loop.

The import makes flopledger the listener of this process's NVTX ranges: it sets
``NVTX_INJECTION64_PATH``, unless another tool has. It has to come before the first call of NVTX;
``FLOPLEDGER_NVTX=0`` leaves it out.
"""

from __future__ import annotations

from ._core import ModelFlops, PeakRate
from ._core import version as __version__
from ._ledger import Ledger, Step
from ._models import formula, from_hf, transformer
from ._nvtx import claim as _claim_nvtx
from ._peaks import look_up_peak, measure_peak
from ._start import close, get, start

_claim_nvtx()

__all__ = [
    "Ledger",
    "ModelFlops",
    "PeakRate",
    "Step",
    "__version__",
    "close",
    "formula",
    "from_hf",
    "get",
    "look_up_peak",
    "measure_peak",
    "start",
    "transformer",
]
