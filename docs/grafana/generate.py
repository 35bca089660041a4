#!/usr/bin/env python3
"""Writes the dashboards of this folder.

python3 docs/grafana/generate.py          writes training.json and fleet.json
python3 docs/grafana/generate.py --check  says whether they are what this script makes
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
RUN = 'run_id=~"$run"'
RANK = f'{RUN}, rank=~"$rank"'
RATE = "[$__rate_interval]"
RED, AMBER, GREEN = "red", "orange", "green"


def rate_sum(metric: str, by: str = "run_id", extra: str = "", selector: str = RANK) -> str:
    """Sum over ranks of a counter's rate."""
    return f"sum by ({by}) (rate({metric}{{{selector}{extra}}}{RATE}))"


def ratio(above: str, below: str, by: str = "run_id", extra: str = "", selector: str = RANK) -> str:
    """Ratio of sums; no sample where nothing happened."""
    upper = rate_sum(above, by, extra, selector)
    return f"{upper} / ({rate_sum(below, by, '', selector)} > 0)"


def mfu(by: str = "run_id", selector: str = RANK) -> str:
    return ratio(
        "flopledger_useful_flops_total", "flopledger_eligible_peak_flops_total", by, "", selector
    )


def hfu(by: str = "run_id", selector: str = RANK) -> str:
    """Each dtype's work over its own peak, as in docs/alerts."""
    executed = rate_sum("flopledger_executed_flops_total", "run_id, rank, dtype", "", selector)
    keys = "run_id, rank, dtype"
    peak = f"flopledger_eligible_peak_flops_per_second{{{selector}}}"
    of_run = f"max by ({keys}) (flopledger_convention_info{{{selector}}})"
    equivalent = (
        f"sum by (run_id, rank) ({executed} / on ({keys}) max by ({keys}) ({peak}))"
        f" * on (run_id, rank) max by (run_id, rank) ({peak} * on ({keys}) group_left () {of_run})"
    )
    below = rate_sum("flopledger_eligible_peak_flops_total", by, "", selector)
    return f"sum by ({by}) ({equivalent}) / ({below} > 0)"


def coverage(by: str = "run_id", selector: str = RANK) -> str:
    unknown = rate_sum("flopledger_kernel_seconds_total", by, ', coverage="unknown"', selector)
    everything = rate_sum("flopledger_kernel_seconds_total", by, "", selector)
    return f"1 - ({unknown} or 0 * {everything}) / ({everything} > 0)"


def recompute(selector: str = RANK) -> str:
    return ratio(
        "flopledger_recomputed_flops_total",
        "flopledger_executed_flops_total",
        selector=selector,
    )


class Board:
    """A dashboard in the classic JSON model, laid out in rows of 24 units."""

    def __init__(self, uid: str, title: str, description: str, variables: list[dict]):
        self.panels: list[dict] = []
        self.x = self.y = self.row_height = 0
        self.head = {
            "uid": uid,
            "title": title,
            "description": description,
            "tags": ["flopledger", "training"],
            "schemaVersion": 39,
            "version": 1,
            "editable": False,
            "graphTooltip": 1,
            "refresh": "30s",
            "timezone": "browser",
            "time": {"from": "now-3h", "to": "now"},
            "templating": {"list": variables},
            "annotations": {"list": [alert_annotation()]},
            "links": [],
        }

    def _place(self, width: int, height: int) -> dict:
        if self.x + width > 24:
            self.x, self.y, self.row_height = 0, self.y + self.row_height, 0
        place = {"x": self.x, "y": self.y, "w": width, "h": height}
        self.x += width
        self.row_height = max(self.row_height, height)
        return place

    def row(self, title: str) -> None:
        self.x, self.y, self.row_height = 0, self.y + self.row_height, 0
        self._add({"type": "row", "title": title, "collapsed": False, "panels": []}, 24, 1)
        self.x = 24

    def _add(self, panel: dict, width: int, height: int) -> None:
        panel["id"] = len(self.panels) + 1
        panel["gridPos"] = self._place(width, height)
        self.panels.append(panel)

    def panel(
        self, kind: str, title: str, description: str, unit: str, queries: list[tuple[str, str]],
        width: int = 8, height: int = 8, options: dict | None = None, **defaults,
    ) -> None:  # fmt: skip
        """One panel; `queries` are pairs of expression and legend."""
        targets = []
        for index, (expression, legend) in enumerate(queries):
            target = {
                "refId": chr(ord("A") + index),
                "datasource": SOURCE,
                "expr": expression,
                "legendFormat": legend,
            }
            if kind in ("table", "stat", "bargauge"):
                target |= {"instant": True, "range": False}
            if kind == "table":
                target["format"] = "table"
            if kind == "heatmap":
                target["format"] = "heatmap"
            targets.append(target)
        self._add(
            {
                "type": kind,
                "title": title,
                "description": description,
                "datasource": SOURCE,
                "targets": targets,
                "fieldConfig": {"defaults": {"unit": unit, **defaults}, "overrides": []},
                "options": options or {},
            },
            width,
            height,
        )

    def stat(self, title: str, description: str, unit: str, query: str, **defaults) -> None:
        legend = defaults.pop("legend", "{{run_id}}")
        self.panel(
            "stat", title, description, unit, [(query, legend)], 4, 4,
            {"reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
             "textMode": "auto", "colorMode": "value", "graphMode": "none"},
            **defaults,
        )  # fmt: skip

    def text(self) -> str:
        return json.dumps({**self.head, "panels": self.panels}, indent=1) + "\n"


def thresholds(*steps: tuple[str, float | None]) -> dict:
    return {"mode": "absolute", "steps": [{"color": c, "value": v} for c, v in steps]}


def stacked() -> dict:
    return {"custom": {"stacking": {"mode": "normal"}, "fillOpacity": 60, "lineWidth": 1}}


def alert_annotation() -> dict:
    return {
        "name": "Alerts",
        "datasource": SOURCE,
        "enable": True,
        "iconColor": "red",
        "expr": f'ALERTS{{alertname=~"Flopledger.+", alertstate="firing", {RUN}}}',
        "titleFormat": "{{alertname}}",
        "textFormat": "{{run_id}}",
    }


def datasource_variable() -> dict:
    return {
        "name": "datasource",
        "label": "Data source",
        "type": "datasource",
        "query": "prometheus",
        "refresh": 1,
        "current": {"text": "default", "value": "default"},
    }


def label_variable(name: str, label: str, query: str) -> dict:
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": SOURCE,
        "query": {"query": query, "refId": name},
        "definition": query,
        "refresh": 2,
        "sort": 3,
        "multi": True,
        "includeAll": True,
        "allValue": ".+",
        "current": {"text": "All", "value": "$__all"},
    }


def variables() -> list[dict]:
    return [
        datasource_variable(),
        label_variable("run", "Run", "label_values(flopledger_steps_total, run_id)"),
        label_variable("rank", "Rank", f"label_values(flopledger_steps_total{{{RUN}}}, rank)"),
    ]


def add_now(board: Board) -> None:
    share = {"min": 0, "max": 1, "decimals": 1}
    low = thresholds((RED, None), (AMBER, 0.9), (GREEN, 0.98))
    board.row("Now")
    board.stat("MFU", "What the model needed, over what the devices could do.", "percentunit",
               mfu(), **share)  # fmt: skip
    board.stat("HFU, lower bound", "What the devices executed; a point only at full coverage.",
               "percentunit", hfu(), **share)  # fmt: skip
    board.stat("Coverage", "Share of kernel time whose work is known or left out by rule.",
               "percentunit", coverage(), thresholds=low, **share)  # fmt: skip
    board.stat("Recompute", "Share of executed work that was forward work run again.",
               "percentunit", recompute(), **share)  # fmt: skip
    board.stat("Useful FLOP/s", "Sum over the ranks.", "flops",
               rate_sum("flopledger_useful_flops_total"))  # fmt: skip
    board.stat(
        "Ranks missing", "Ranks of the run that are not scraped.", "none",
        f"max by (run_id) (flopledger_world_size{{{RUN}}})"
        f" - count by (run_id) (count by (run_id, rank) (flopledger_steps_total{{{RUN}}}))",
        thresholds=thresholds((GREEN, None), (RED, 1)),
    )  # fmt: skip
    board.stat("Last step ended", "Age of the last step on any rank.", "s",
               "time() - max by (run_id)"
               f" (flopledger_last_step_end_timestamp_seconds{{{RANK}}})")  # fmt: skip
    board.stat("Last step", "Number of the last step.", "none",
               f"max by (run_id) (flopledger_last_step{{{RANK}}})")  # fmt: skip
    board.stat("Useful tokens/s", "Sum over the ranks; padding is not counted.", "short",
               rate_sum("flopledger_tokens_total", extra=', kind="useful"'))  # fmt: skip
    board.stat("Padding", "Share of computed tokens that carry no text.", "percentunit",
               ratio("flopledger_tokens_total", "flopledger_tokens_total",
                     extra=', kind="padding"'), **share)  # fmt: skip
    board.stat("Lost records", "Since the run began; what was lost lowers coverage.", "none",
               f"sum by (run_id) (flopledger_dropped_records_total{{{RANK}}})",
               thresholds=thresholds((GREEN, None), (AMBER, 1)))  # fmt: skip
    board.stat("Finished", "1 once the run has ended in good order.", "none",
               f"min by (run_id) (flopledger_run_finished{{{RANK}}})")  # fmt: skip


def add_trend(board: Board) -> None:
    board.row("Trend")
    board.panel(
        "timeseries", "MFU and HFU", "Ratios of sums over the chosen ranks.", "percentunit",
        [(mfu(), "MFU {{run_id}}"), (hfu(), "HFU at least {{run_id}}")], 12, min=0,
    )  # fmt: skip
    buckets = rate_sum("flopledger_step_duration_seconds_bucket", "run_id, le")
    mean = ratio("flopledger_step_duration_seconds_sum", "flopledger_step_duration_seconds_count")
    board.panel(
        "timeseries", "Step time", "Mean, and quantiles from the histogram's buckets.", "s",
        [(mean, "mean {{run_id}}"), (f"histogram_quantile(0.5, {buckets})", "median {{run_id}}"),
         (f"histogram_quantile(0.95, {buckets})", "95 % {{run_id}}")], 12, min=0,
    )  # fmt: skip
    board.panel(
        "heatmap", "Distribution of step time", "Steps by duration.", "s",
        [(rate_sum("flopledger_step_duration_seconds_bucket", "le"), "{{le}}")], 12,
    )  # fmt: skip
    board.panel(
        "timeseries", "Values of the program", "Loss and the like, as the program gave them.",
        "none", [(f"avg by (run_id, name) (flopledger_training_value{{{RANK}}})",
                  "{{name}} {{run_id}}")], 12,
    )  # fmt: skip


def add_work(board: Board) -> None:
    board.row("Where the peak went")
    lost = rate_sum("flopledger_lost_peak_flops_total", "run_id, cause")
    peak = rate_sum("flopledger_eligible_peak_flops_total")
    board.panel(
        "timeseries", "Lost peak by cause", "Together with MFU they make up the peak.",
        "percentunit",
        [(f"{lost} / on (run_id) group_left () ({peak} > 0)", "{{cause}} {{run_id}}")],
        12, 10, min=0, **stacked(),
    )  # fmt: skip
    parts = [
        ("flopledger_useful_flops_total", "useful"),
        ("flopledger_recomputed_flops_total", "recomputed"),
        ("flopledger_padding_flops_total", "padding"),
        ("flopledger_auxiliary_flops_total", "auxiliary"),
        ("flopledger_excess_flops_total", "excess"),
        ("flopledger_unexplained_flops_total", "unexplained"),
    ]
    queries = []
    for metric, name in parts:
        if name in ("excess", "unexplained"):
            up = rate_sum(metric, extra=', sign="positive"')
            down = rate_sum(metric, extra=', sign="negative"')
            queries.append((f"{up} - {down}", f"{name} {{{{run_id}}}}"))
        else:
            queries.append((rate_sum(metric), f"{name} {{{{run_id}}}}"))
    board.panel("timeseries", "Executed work by kind", "E = U + R + A + P + X + e.", "flops",
                queries, 12, 10, **stacked())  # fmt: skip
    board.panel(
        "timeseries", "Executed work by dtype and source", "Where the counts come from.", "flops",
        [(rate_sum("flopledger_executed_flops_total", "dtype, source"), "{{dtype}} {{source}}")],
        8, **stacked(),
    )  # fmt: skip
    board.panel(
        "timeseries", "Device time by state", "Exclusive states; they sum to 1 per device.",
        "percentunit",
        [(ratio("flopledger_device_seconds_total", "flopledger_step_wall_seconds_total",
                "run_id", ', state="' + state + '"'), state.replace("_", " ") + " {{run_id}}")
         for state in ("compute", "exposed_communication", "exposed_copy", "idle", "untracked")],
        8, min=0, **stacked(),
    )  # fmt: skip
    board.panel(
        "timeseries", "Kernel time by class", "Seconds of kernels per second.", "s",
        [(rate_sum("flopledger_kernel_seconds_total", "op_class"), "{{op_class}}")],
        8, **stacked(),
    )  # fmt: skip


def add_coverage(board: Board) -> None:
    board.row("Coverage and evidence")
    board.panel("timeseries", "Coverage by time", "1 - unknown / all.", "percentunit",
                [(coverage(), "{{run_id}}")], 8, max=1)  # fmt: skip
    board.panel("timeseries", "Kernels", "Launches per second by coverage.", "ops",
                [(rate_sum("flopledger_kernels_total", "coverage"), "{{coverage}}")],
                8, **stacked())  # fmt: skip
    board.panel("timeseries", "Lost and late records", "By place and reason.", "ops",
                [(rate_sum("flopledger_dropped_records_total", "where, reason"),
                  "{{where}} {{reason}}"),
                 (rate_sum("flopledger_late_records_total"), "late {{run_id}}")], 8)  # fmt: skip
    board.panel("state-timeline", "Collector", "State of each rank's collector.", "none",
                [(f"max by (run_id, state) (flopledger_collector_state{{{RANK}}})",
                  "{{state}} {{run_id}}")], 8)  # fmt: skip
    board.panel("table", "Capabilities", "What was found at start, and why something was not.",
                "none", [(f"count by (name, reason) (flopledger_capability{{{RANK}}})", "")],
                8)  # fmt: skip
    board.panel("table", "Findings", "Of the last step, by number of ranks.", "none",
                [(f"sum by (run_id, id) (flopledger_finding{{{RANK}}}) > 0", "")], 8)  # fmt: skip


def add_ranks(board: Board) -> None:
    board.row("Ranks")
    board.panel("timeseries", "MFU by rank", "A slow rank slows the others: see own time.",
                "percentunit", [(mfu("run_id, rank"), "{{rank}}")], 8)  # fmt: skip
    own = rate_sum("flopledger_device_seconds_total", "run_id, rank",
                   ', state!="exposed_communication"')  # fmt: skip
    board.panel("timeseries", "Own time by rank",
                "Time that is not spent waiting for other ranks: the highest one is the straggler.",
                "percentunit", [(own, "{{rank}}")], 8)  # fmt: skip
    board.panel("bargauge", "Window MFU by rank", "Over the last steps, as each rank shows it.",
                "percentunit", [(f"flopledger_window_mfu_ratio{{{RANK}}}", "{{rank}}")],
                8)  # fmt: skip
    board.panel("timeseries", "Window HFU and coverage by rank", "Over the last steps.",
                "percentunit",
                [(f"flopledger_window_hfu_ratio{{{RANK}}}", "HFU {{rank}}"),
                 (f"flopledger_window_coverage_ratio{{{RANK}}}", "coverage {{rank}}")],
                12)  # fmt: skip
    board.panel("timeseries", "Steps by result", "Steps per second.", "ops",
                [(rate_sum("flopledger_steps_total", "result"), "{{result}}")], 12)  # fmt: skip


def add_provenance(board: Board) -> None:
    board.row("How it is counted")
    for title, description, metric, width in (
        ("Convention", "How FLOPs are counted.", "flopledger_convention_info", 12),
        ("Device", "Whose peak is used, and where it comes from.", "flopledger_device_info", 12),
        ("Build", "Version of flopledger.", "flopledger_build_info", 6),
        ("Peak", "Of one device, dense.", "flopledger_eligible_peak_flops_per_second", 6),
    ):
        unit = "flops" if title == "Peak" else "none"
        board.panel("table", title, description, unit, [(f"{metric}{{{RANK}}}", "")], width, 6)
    board.panel(
        "timeseries", "Own time of flopledger", "Beside the training, not on its thread.",
        "percentunit", [(rate_sum("flopledger_overhead_seconds_total", "stage"), "{{stage}}")],
        6, 6,
    )  # fmt: skip
    board.panel(
        "timeseries", "Time left out of the figures", "By reason.", "s",
        [(f"sum by (reason) (flopledger_excluded_seconds_total{{{RANK}}})", "{{reason}}")], 6, 6,
    )  # fmt: skip


def training() -> Board:
    board = Board("flopledger-training", "flopledger: training",
                  "MFU, HFU, coverage and where the peak went, of one or a few runs.",
                  variables())  # fmt: skip
    for add in (add_now, add_trend, add_work, add_coverage, add_ranks, add_provenance):
        add(board)
    return board


def fleet() -> Board:
    board = Board("flopledger-fleet", "flopledger: fleet", "All runs, one line each.",
                  variables()[:2])  # fmt: skip
    board.row("All runs")
    whole = "sum(rate({}{{" + RUN + "}}" + RATE + "))"
    useful, peak = (
        whole.format(f"flopledger_{name}_flops_total") for name in ("useful", "eligible_peak")
    )
    board.stat("MFU of the fleet", "Sum of useful work over sum of peak, unlike devices included.",
               "percentunit", f"{useful} / ({peak} > 0)", legend="fleet", min=0, max=1)  # fmt: skip
    board.stat("Useful FLOP/s", "Of all runs.", "flops", useful, legend="fleet")
    board.stat("Peak FLOP/s in use", "Of all runs.", "flops", peak, legend="fleet")
    board.stat("Runs", "Runs that are scraped.", "none",
               f"count(count by (run_id) (flopledger_steps_total{{{RUN}}}))",
               legend="runs")  # fmt: skip
    board.stat("Ranks", "Ranks that are scraped.", "none",
               f"count(count by (run_id, rank) (flopledger_steps_total{{{RUN}}}))",
               legend="ranks")  # fmt: skip
    board.stat("Firing alerts", "Of flopledger's rules.", "none",
               f'count(ALERTS{{alertname=~"Flopledger.+", alertstate="firing", {RUN}}})'
               " or vector(0)", legend="alerts",
               thresholds=thresholds((GREEN, None), (RED, 1)))  # fmt: skip
    board.row("By run")
    for title, description, unit, query in (
        ("MFU", "Ratio of sums over ranks.", "percentunit", mfu(selector=RUN)),
        ("HFU, lower bound", "A point only at full coverage.", "percentunit", hfu(selector=RUN)),
        ("Coverage", "1 - unknown / all, by time.", "percentunit", coverage(selector=RUN)),
        ("Recompute", "Share of executed work.", "percentunit", recompute(RUN)),
        ("Useful FLOP/s", "Sum over ranks.", "flops",
         rate_sum("flopledger_useful_flops_total", selector=RUN)),
        ("Ranks", "That are scraped.", "none",
         f"count by (run_id) (count by (run_id, rank) (flopledger_steps_total{{{RUN}}}))"),
    ):  # fmt: skip
        board.panel("timeseries", title, description, unit, [(query, "{{run_id}}")], 8, 7)
    board.panel(
        "table", "Runs", "Peak in use now, FLOP/s.", "flops",
        [(rate_sum("flopledger_eligible_peak_flops_total", "run_id, dtype", selector=RUN), "")],
        24, 8,
    )  # fmt: skip
    return board


def main() -> int:
    boards = {"training.json": training().text(), "fleet.json": fleet().text()}
    if "--check" in sys.argv[1:]:
        stale = [n for n, text in boards.items() if (HERE / n).read_text("utf-8") != text]
        for name in stale:
            print(f"{name}: not what generate.py makes; run python3 docs/grafana/generate.py")
        return 1 if stale else 0
    for name, text in boards.items():
        (HERE / name).write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
