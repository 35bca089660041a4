"""Step logs by hand, in the format of docs/jsonl.md: one rank of a run that never was."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

SECOND = 1_000_000_000
UNIX_ORIGIN = 1_780_000_000  # wall clock at monotonic 0


@dataclass
class Step:
    """Times in ns; `states` sum to the wall time, `lines` to the peak."""

    number: int
    start: int
    end: int
    useful: int = 0
    states: dict[str, int] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    kernels: list[tuple[str, str, int, int]] = field(default_factory=list)
    gaps: list[tuple[str, str, int, int]] = field(default_factory=list)
    findings: list[tuple[str, float, str]] = field(default_factory=list)
    losses: list[tuple[str, str, int]] = field(default_factory=list)
    tokens: int = 1000
    recomputed: int = 0
    result: str = "complete"

    @property
    def wall(self) -> int:
        return self.end - self.start


@dataclass
class Rank:
    """What does not change from step to step."""

    rank: int = 0
    world: int = 1
    run_id: str = "run-a"
    peak: int = 100  # FLOP/s; 0: unknown
    dtype: str = "bf16"
    device: str = "test device"
    evidence: str = "published"
    source: str = "data sheet"
    convention: str = "house"
    convention_hash: str = "00000000000000aa"
    model: str | None = "6*N*T"
    boot: int = 0  # wall clock seconds at this host's monotonic 0, after UNIX_ORIGIN

    def head(self, kind: str) -> dict:
        return {"schema_version": 1, "type": kind, "run_id": self.run_id, "rank": self.rank}

    def run_line(self) -> dict:
        peaks = [
            {
                "device_model": self.device,
                "dtype": self.dtype,
                "sparse": False,
                "flops_per_second": self.peak,
                "source": self.source,
                "evidence": self.evidence,
                "spread_low_ratio": None,
                "spread_high_ratio": None,
            }
        ]
        return self.head("run") | {
            "version": "0.1.0",
            "local_rank": self.rank,
            "world_size": self.world,
            "rank_source": "arguments",
            "model": self.model,
            "convention": self.convention,
            "convention_hash": self.convention_hash,
            "peak_dtype": self.dtype,
            "peaks": peaks if self.peak else [],
        }

    def step_line(self, step: Step) -> dict:
        peak = self.peak * step.wall // SECOND
        declared = self.model is not None
        executed = step.useful + step.recomputed
        observed = bool(step.kernels)
        known = sum(ns for _, cover, _, ns in step.kernels if cover != "unknown")
        all_time = sum(ns for *_, ns in step.kernels)
        unknown = (all_time - known) / step.wall if step.wall else 0
        lines = step.lines or {"matmul_below_peak": peak - executed, "useful": step.useful}
        if peak and not step.lines and step.recomputed:
            lines["recompute"] = step.recomputed
        low = executed / peak if peak and observed else None
        states = step.states or {"compute": step.wall}
        return (
            self.head("step")
            | {
                "step": step.number,
                "result": step.result,
                "closed_by": "next_boundary",
                "start_ns": str(step.start),
                "end_ns": str(step.end),
                "wall_ns": step.wall,
                "excluded_before_ns": 0,
                "end_unix_seconds": UNIX_ORIGIN + self.boot + step.end / SECOND,
                "tokens": {"useful": step.tokens, "padded": step.tokens, "even_split": False},
                "mfu_ratio": step.useful / peak if peak and declared else None,
                "hfu_low_ratio": low,
                "hfu_high_ratio": None if low is None else low + unknown,
                "mfu_refusal": "none"
                if peak and declared
                else "no_peak"
                if declared
                else "no_declaration",
                "hfu_refusal": "none" if low is not None else "no_evidence",
                "coverage_time_ratio": known / all_time if all_time else None,
                "coverage_launch_ratio": None,
                "recompute_ratio": step.recomputed / executed if executed else None,
            }
            | self._flops(step, executed, peak)
            | self._events(step, states, lines, all_time, peak)
        )

    def _flops(self, step: Step, executed: int, peak: int) -> dict:
        observed = bool(step.kernels)
        declared = self.model is not None
        return {
            "executed_flops": str(executed if observed else 0),
            "executed_equivalent_flops": str(executed if observed else 0),
            "useful_flops": str(step.useful) if declared else None,
            "useful_forward_flops": str(step.useful // 3) if declared else None,
            "useful_backward_flops": str(step.useful - step.useful // 3) if declared else None,
            "recomputed_flops": str(step.recomputed),
            "auxiliary_flops": "0",
            "padding_flops": "0",
            "excess_flops": "0",
            "unexplained_flops": "0" if declared else None,
            "peak_flops": str(peak) if peak else None,
            "peak_dtype": self.dtype,
            "executed_by": [{"dtype": self.dtype, "source": "op_shapes", "flops": str(executed)}]
            if observed
            else [],
            "excess_by": [],
        }

    def _events(self, step: Step, states: dict, lines: dict, all_time: int, peak: int) -> dict:
        return {
            "devices": [
                {
                    "device": 0,
                    "state_ns": states,
                    "state_section_ns": {k: {"other": v} for k, v in states.items()},
                    "kernel_time_sum_ns": all_time,
                }
            ],
            "op_time_by_phase_ns": {},
            "kernels": [
                {"op_class": c, "coverage": cover, "launches": n, "time_ns": ns}
                for c, cover, n, ns in step.kernels
            ],
            "gaps": [
                {"name": name, "reason": why, "launches": n, "time_ns": ns}
                for name, why, n, ns in step.gaps
            ],
            "gaps_left_out": 0,
            "findings": [{"id": i, "ratio": r, "suspect": s} for i, r, s in step.findings],
            "waterfall": [
                {"cause": c, "flops": str(f), "kind": "choice", "text": c} for c, f in lines.items()
            ]
            if peak
            else [],
            "losses": [{"where": w, "reason": r, "count": n} for w, r, n in step.losses],
            "values": {},
            "late_records": 0,
            "overhead_ns": 0,
            "convention": self.convention,
            "convention_hash": self.convention_hash,
        }

    def write(self, path: Path, steps: list[Step], *, summary: bool = True, cut: int = 0) -> Path:
        """Writes the log; `cut` bytes are missing at its end."""
        lines = [self.run_line(), *(self.step_line(step) for step in steps)]
        if summary:
            lines.append(self.head("summary") | {"excluded_ns": {}})
        text = "".join(json.dumps(line) + "\n" for line in lines)
        path.write_text(text[: len(text) - cut] if cut else text, encoding="utf-8")
        return path


def busy_step(number: int, start: int, wall: int, useful: int, *, waiting: int = 0) -> Step:
    """A step with kernels, a gap and time that it waits for other ranks."""
    unknown = wall // 10
    compute = wall - waiting - wall // 5
    return Step(
        number=number,
        start=start,
        end=start + wall,
        useful=useful,
        states={
            "compute": compute,
            "exposed_communication": waiting,
            "exposed_copy": 0,
            "idle": wall - compute - waiting,
            "untracked": 0,
        },
        kernels=[
            ("matmul", "counted", 40, compute - unknown),
            ("normalization", "outside", 20, unknown // 2),
            ("unknown", "unknown", 4, unknown // 2),
        ],
        gaps=[("acme::fused_rotary", "no_rule", 4, unknown // 2)],
        recomputed=useful // 10,
    )


def four_ranks(folder: Path, steps: int = 50, *, slow_rank: int = 2, run_id: str = "run-a") -> Path:
    """A synchronous run on two kinds of devices; one rank is 20 % slower than the others."""
    folder.mkdir(parents=True, exist_ok=True)
    wall = SECOND
    for rank in range(4):
        waiting = wall // 100 if rank == slow_rank else wall // 100 + wall * 33 // 200
        entry = Rank(
            rank=rank,
            world=4,
            run_id=run_id,
            peak=989_000_000_000_000 if rank < 2 else 312_000_000_000_000,
            device="NVIDIA H100 SXM5" if rank < 2 else "NVIDIA A100 SXM4",
        )
        useful = entry.peak * 2 // 5 if rank < 2 else entry.peak // 10
        entry.write(
            folder / f"rank{rank}.jsonl",
            [
                busy_step(n, 5 * SECOND + n * wall + rank * 1000, wall, useful, waiting=waiting)
                for n in range(1, steps + 1)
            ],
        )
    return folder
