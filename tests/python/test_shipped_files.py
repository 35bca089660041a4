"""The rules and the dashboards that the program prints: by promtool, and by rules of our own."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys

import pytest
from cli_support import ROOT, flopledger

ALERTS = ROOT / "docs/alerts"
GRAFANA = ROOT / "docs/grafana"
BOARDS = ("training", "fleet")


def promtool(*arguments: str, cwd=None) -> subprocess.CompletedProcess:
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("promtool is not installed (Debian package prometheus)")
    return subprocess.run(
        [program, *arguments], cwd=cwd, capture_output=True, text=True, timeout=120
    )


def test_the_program_prints_the_shipped_rules(tmp_path):
    printed = flopledger("rules").stdout
    assert printed == (ALERTS / "flopledger.rules.yml").read_text()
    (tmp_path / "rules.yml").write_text(printed)
    done = promtool("check", "rules", "rules.yml", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"SUCCESS: \d+ rules found", done.stdout)


def test_the_printed_rules_pass_their_unit_tests(tmp_path):
    (tmp_path / "flopledger.rules.yml").write_text(flopledger("rules").stdout)
    (tmp_path / "rules.test.yml").write_text(flopledger("rules", "--tests").stdout)
    done = promtool("test", "rules", "rules.test.yml", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


SPOILT = [
    ("0.85 * run:", "0.5 * run:"),  # no drop is seen
    (">= 45", ">= 0"),  # a young run has a baseline
    ("flopledger_world_size[1h]", "flopledger_world_size[1m]"),  # gone and forgotten
    ("max_over_time(flopledger_run_finished[1h])", "vector(0)"),  # a good end pages
    ("10 * max by", "1 * max by"),  # long steps are stalls
    ("< 0.9", "< 0.7"),
    ('flopledger_convention_info{convention="house"}', "flopledger_convention_info"),
    ("[15m])) > 0", "[15m])) > 100"),
    ('state!="exposed_communication"', 'state=~".+"'),
]


@pytest.mark.slow
@pytest.mark.parametrize(("good", "bad"), SPOILT, ids=[good for good, _ in SPOILT])
def test_the_unit_tests_notice_a_spoilt_rule(tmp_path, good, bad):
    rules = (ALERTS / "flopledger.rules.yml").read_text()
    assert good in rules
    (tmp_path / "flopledger.rules.yml").write_text(rules.replace(good, bad))
    shutil.copy(ALERTS / "flopledger.rules.test.yml", tmp_path)
    done = promtool("test", "rules", "flopledger.rules.test.yml", cwd=tmp_path)
    assert done.returncode == 1, done.stdout


def test_every_alert_has_a_section_that_its_runbook_names():
    readme = (ALERTS / "README.md").read_text()
    sections = {m.lower() for m in re.findall(r"^## (\w+)$", readme, re.MULTILINE)}
    rules = (ALERTS / "flopledger.rules.yml").read_text()
    names = re.findall(r"- alert: (\w+)", rules)
    assert len(names) >= 8
    assert re.findall(r"runbook: docs/alerts/README.md#(\w+)", rules) == [
        name.lower() for name in names
    ]
    assert {name.lower() for name in names} <= sections
    tests = (ALERTS / "flopledger.rules.test.yml").read_text()
    for name in names:
        fires = rf'alertname=\\?"{name}\\?", ?alertstate=\\?"firing'
        assert re.search(fires, tests), f"{name} never fires in a test"


def catalogue() -> set[str]:
    """Every sample name that docs/metrics.md, made from the catalogue, has."""
    names = set()
    for line in (ROOT / "docs/metrics.md").read_text().splitlines():
        row = re.match(r"\| `(flopledger_\w+)` \| (\w+) \|", line)
        if row:
            endings = ("_bucket", "_sum", "_count") if row[2] == "histogram" else ("",)
            names |= {row[1] + ending for ending in endings}
    assert len(names) > 30
    return names


def metrics_in(text: str) -> set[str]:
    return set(re.findall(r"(?<![\w:])flopledger_\w+", text))


def test_the_rules_use_metrics_that_exist():
    rules = (ALERTS / "flopledger.rules.yml").read_text()
    body = "\n".join(line for line in rules.splitlines() if not re.match(r"\s*(#|- name:)", line))
    assert metrics_in(body) - catalogue() - {"flopledger_steps_total"} == set()


def board(name: str) -> dict:
    return json.loads(flopledger("dashboard", name).stdout)


def queries(dashboard: dict):
    """Panel and expression of every query, those of the annotations too."""
    for panel in dashboard["panels"]:
        for target in panel.get("targets", ()):
            yield panel, target["expr"]
    for annotation in dashboard["annotations"]["list"]:
        yield annotation, annotation["expr"]


def expand(expression: str) -> str:
    """As Grafana does, with one run and all ranks chosen."""
    for name, value in (("$__rate_interval", "5m"), ("$run", "gpt.+"), ("$rank", ".+")):
        expression = expression.replace(name, value)
    assert "$" not in expression
    return expression


def lint(dashboard: dict, known: set[str]) -> list[str]:
    """What is wrong with a dashboard."""
    faults = []
    variables = {v["name"]: v for v in dashboard["templating"]["list"]}
    source = variables.get("datasource", {})
    if source.get("type") != "datasource" or source.get("label") != "Data source":
        faults.append("no variable 'datasource' of type datasource, labelled Data source")
    multi = {n for n, v in variables.items() if v.get("multi")}
    for name in multi:
        if variables[name].get("includeAll") and variables[name].get("allValue") != ".+":
            faults.append(f"variable {name}: All does not mean .+")
        if variables[name].get("refresh") != 2:
            faults.append(f"variable {name} is not read anew when the time range changes")
    if dashboard.get("editable") is not False or "id" in dashboard:
        faults.append("editable, or with an id of one installation")
    if not 39 <= dashboard["schemaVersion"] <= 42:
        faults.append("schema version")
    if "__inputs" in dashboard:
        faults.append("__inputs, which provisioning does not fill in")
    ids = [panel["id"] for panel in dashboard["panels"]]
    if len(ids) != len(set(ids)):
        faults.append("two panels with one id")
    for panel in dashboard["panels"]:
        title = panel.get("title")
        if panel["type"] == "row":
            continue
        if not title or not panel.get("description") or not panel.get("targets"):
            faults.append(f"panel {panel['id']} {title}: no title, description or query")
        if not panel["fieldConfig"]["defaults"].get("unit"):
            faults.append(f"{title}: no unit")
    for panel, expression in queries(dashboard):
        title = panel.get("title", panel.get("name"))
        if panel["datasource"]["uid"] != "${datasource}":
            faults.append(f"{title}: a data source of one installation")
        faults += [f"{title}: no metric {m}" for m in sorted(metrics_in(expression) - known)]
        for label, operator, name in re.findall(r'(\w+)(=~|!~|!=|=)"\$(\w+)"', expression):
            if name not in variables:
                faults.append(f"{title}: no variable {name}")
            if name in multi and operator not in ("=~", "!~"):
                faults.append(f"{title}: {label}{operator}${name} matches one value only")
        for selector in re.findall(r"flopledger_\w+(\{[^}]*\})?", expression):
            if "$run" not in selector:
                faults.append(f"{title}: a selector without $run")
        for interval in re.findall(r"\[([^\]]*)\]", expression):
            if interval != "$__rate_interval":
                faults.append(f"{title}: a fixed interval {interval}")
        for metric, interval in re.findall(
            r"(flopledger_\w+_(?:total|bucket|sum|count))\{[^}]*\}(\[)?", expression
        ):
            rated = f"rate({metric}" in expression
            plain = re.search(rf"(count|sum) by \([^)]*\) \({metric}\{{", expression)
            if not interval and not plain and rated:
                faults.append(f"{title}: {metric} without rate")
    return faults


@pytest.mark.parametrize("name", BOARDS)
def test_the_dashboards_have_no_findings(name):
    assert flopledger("dashboard", name).stdout == (GRAFANA / f"{name}.json").read_text()
    assert lint(board(name), catalogue()) == []


def test_the_dashboards_are_what_their_script_makes():
    done = subprocess.run(
        [sys.executable, GRAFANA / "generate.py", "--check"], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, "")


def test_the_lint_finds_a_multi_value_variable_with_equals():
    """Case C57: rank="$rank" is flagged, =~ and the single-valued job are not."""
    dashboard = board("training")
    dashboard["templating"]["list"].append({"name": "job", "type": "query", "multi": False})
    panel = next(p for p in dashboard["panels"] if p.get("targets"))
    panel["title"] = "case"
    panel["targets"] = [
        {"expr": 'flopledger_last_step{job="$job", run_id=~"$run", rank="$rank"}', "refId": "A"}
    ]
    assert lint(dashboard, catalogue()) == ["case: rank=$rank matches one value only"]


def test_the_lint_finds_what_else_breaks_a_dashboard():
    dashboard = board("fleet")
    dashboard["__inputs"] = []
    panel = next(p for p in dashboard["panels"] if p.get("targets"))
    panel["title"] = "case"
    panel["datasource"] = {"type": "prometheus", "uid": "abc"}
    panel["fieldConfig"]["defaults"]["unit"] = ""
    panel["targets"] = [{"expr": "rate(flopledger_no_such_total[5m])", "refId": "A"}]
    assert lint(dashboard, catalogue()) == [
        "__inputs, which provisioning does not fill in",
        "case: no unit",
        "case: a data source of one installation",
        "case: no metric flopledger_no_such_total",
        "case: a selector without $run",
        "case: a fixed interval 5m",
    ]


def test_every_metric_is_on_a_panel():
    shown = set()
    for name in BOARDS:
        for _, expression in queries(board(name)):
            shown |= metrics_in(expression)
    # The ratio of the last seconds before a scrape says no more than the rest.
    assert catalogue() - shown == {"flopledger_step_wall_seconds_total"} - shown


def test_every_expression_parses(tmp_path):
    """As the rules of a file that promtool reads with Prometheus' own parser."""
    lines = ["groups:", "- name: boards", "  rules:"]
    count = 0
    for name in BOARDS:
        for _, expression in queries(board(name)):
            lines += [f"  - record: 'board:{name}{count}'", "    expr: |-"]
            lines.append("      " + expand(expression))
            count += 1
    (tmp_path / "boards.yml").write_text("\n".join(lines) + "\n")
    done = promtool("check", "rules", "boards.yml", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"SUCCESS: {count} rules found" in done.stdout
