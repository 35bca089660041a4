"""The pages of a run, read by parties that did not write them."""

from __future__ import annotations

import http.server
import json
import re
import shutil
import subprocess
import threading
from html.parser import HTMLParser
from urllib.parse import urlsplit

import pytest
from export_support import dump_dom, fake_run, get

STEPS = 60


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A finished run of `STEPS` steps: its address and its step log."""
    jsonl = tmp_path_factory.mktemp("export") / "run.jsonl"
    with fake_run(STEPS, jsonl) as address:
        yield address, jsonl


class Document(HTMLParser):
    """Text by id, and what a reader without eyes has to go by."""

    VOID = frozenset("meta link br img input hr".split())

    def __init__(self, html: str):
        super().__init__()
        self.text: dict[str, str] = {}
        self.attributes: dict[str, dict] = {}
        self.tags: list[tuple[str, dict]] = []
        self.title = ""
        self._open: list[tuple[str, str | None]] = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.tags.append((tag, attributes))
        if "id" in attributes:
            self.text[attributes["id"]] = ""
            self.attributes[attributes["id"]] = attributes
        if tag not in self.VOID:
            self._open.append((tag, attributes.get("id")))

    def handle_endtag(self, tag):
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data):
        if self._open and self._open[-1][0] == "title" and not self.title:
            self.title = data
        for _, identity in self._open:
            if identity is not None:
                self.text[identity] += data


def percent(ratio: float) -> str:
    return f"{ratio * 100:.1f}"


def test_promtool_accepts_the_page(served):
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed (Debian package prometheus)")
    page = get(served[0] + "/metrics")
    result = subprocess.run(
        [promtool, "check", "metrics"], input=page, capture_output=True, text=True, timeout=60
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_an_independent_parser_reads_the_page(served):
    parser = pytest.importorskip("prometheus_client.parser", reason="no prometheus_client")
    page = get(served[0] + "/metrics")
    families = list(parser.text_string_to_metric_families(page))
    samples = [sample for family in families for sample in family.samples]
    assert 60 < len(samples) <= 200
    for family in families:
        assert family.name.startswith("flopledger_")
        assert family.documentation
        for sample in family.samples:
            assert sample.labels["run_id"] == "gpt-small-1"
            assert sample.labels["rank"] == "0"
            assert not {"instance", "job"} & set(sample.labels)
            assert 0 <= sample.value < float("inf")
    values = {(s.name, tuple(sorted(s.labels.items()))): s.value for s in samples}
    assert len(values) == len(samples)

    def total(name, **labels):
        return sum(
            s.value for s in samples if s.name == name and labels.items() <= s.labels.items()
        )

    assert total("flopledger_steps_total", result="complete") == STEPS - 1
    # useful + lost - above_peak = peak; exclusive states = wall.
    peak = total("flopledger_eligible_peak_flops_total")
    above = total("flopledger_lost_peak_flops_total", cause="above_peak")
    lost = total("flopledger_lost_peak_flops_total") - above
    useful = total("flopledger_useful_flops_total")
    assert useful + lost - above == pytest.approx(peak, rel=1e-12)
    assert total("flopledger_device_seconds_total") == pytest.approx(
        total("flopledger_step_wall_seconds_total"), rel=1e-12
    )
    assert total("flopledger_step_duration_seconds_count") == STEPS - 1


def test_the_page_and_the_step_log_tell_the_same(served):
    address, jsonl = served
    lines = [json.loads(line) for line in jsonl.read_text().splitlines()]
    assert [line["type"] for line in lines] == ["run", *["step"] * STEPS, "summary"]
    complete = [s for s in lines if s["type"] == "step" and s["result"] == "complete"]
    body = json.loads(get(address + "/api/v1/steps"))
    assert [s["step"] for s in body["steps"]] == list(range(STEPS))
    assert body["last"]["mfu_ratio"] == complete[-1]["mfu_ratio"]
    useful = sum(int(s["useful_flops"]) for s in complete)
    summary = lines[-1]
    assert useful == int(summary["useful_forward_flops"]) + int(summary["useful_backward_flops"])
    peak = sum(int(s["peak_flops"]) for s in complete)
    assert summary["mfu_ratio"] == pytest.approx(useful / peak, rel=1e-12)
    for step in complete:
        assert sum(int(line["flops"]) for line in step["waterfall"]) == int(step["peak_flops"])
        assert sum(step["devices"][0]["state_ns"].values()) == step["wall_ns"]
    points = json.loads(get(f"{address}/api/v1/steps?since={STEPS - 3}"))["steps"]
    assert [s["step"] for s in points] == [STEPS - 2, STEPS - 1]
    run = json.loads(get(address + "/api/v1/run"))
    assert run["state"]["run_finished"] is True
    assert run["totals"]["mfu_ratio"] == summary["mfu_ratio"]


def test_the_document_shows_what_the_api_says(served):
    address, _ = served
    document = Document(dump_dom(address + "/live"))
    body = json.loads(get(address + "/api/v1/steps"))
    last = body["last"]
    text = document.text
    assert text["mfu"] == f"{percent(last['mfu_ratio'])} %"
    assert text["hfu"] == f"{percent(last['hfu_low_ratio'])} – {percent(last['hfu_high_ratio'])} %"
    assert text["coverage"] == f"{percent(last['coverage_time_ratio'])} %"
    assert text["recompute"] == f"{percent(last['recompute_ratio'])} %"
    assert float(text["value"]) == pytest.approx(last["values"]["loss"], rel=1e-3)
    rate = last["tokens"]["useful"] / (last["wall_ns"] / 1e9)
    assert float(text["tokens"].removesuffix("k")) * 1000 == pytest.approx(rate, rel=1e-2)
    for gap in last["gaps"]:
        assert f"{gap['name']}{gap['reason'].replace('_', ' ')}{gap['launches']}" in text["gaps"]
    peak = int(last["peak_flops"])
    for line in last["waterfall"]:
        share = int(line["flops"]) / peak
        if share >= 0.001:
            assert f"{line['text']}{percent(share)} %" in text["waterfall"]
    wall = last["wall_ns"]
    for state, ns in last["devices"][0]["state_ns"].items():
        shown = f"{state.replace('_', ' ')} {percent(ns / wall)} %" in text["time-list"]
        assert shown == (ns > 0)
    assert "measured" in text["how"]
    assert "best of 5 matmuls" in text["how"]
    assert last["convention_hash"] in text["how"]
    assert text["status"] == "run finished"
    assert text["run"] == "gpt-small-1"
    # The chart has one point for each complete step that it was given.
    (line,) = [a for t, a in document.tags if t == "path" and a.get("class") == "mfu"]
    assert len(re.findall("[ML]", line["d"])) == STEPS - 1


def test_the_document_can_be_read_without_eyes(served):
    html = dump_dom(served[0] + "/live")
    document = Document(html)
    tags = document.tags
    assert "gpt-small-1" in document.title
    assert ("html", {"lang": "en"}) in tags
    assert document.attributes["status"]["role"] == "status"
    assert sum(tag == "h1" for tag, _ in tags) == 1
    for tag, attributes in tags:
        if tag == "section":
            label = attributes.get("aria-label") or document.text[attributes["aria-labelledby"]]
            assert label.strip()
        if tag == "svg" or attributes.get("role") == "img":
            assert attributes["aria-label"]
        if tag == "th":
            assert attributes["scope"] == "col"
    assert document.attributes["findings"].get("hidden", None) is not None, "nothing was found"
    assert "style=" not in get(served[0] + "/live"), "the policy forbids it"


def luminance(color: str) -> float:
    def linear(channel: float) -> float:
        return channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4

    red, green, blue = (linear(int(color[i : i + 2], 16) / 255) for i in (1, 3, 5))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_text_has_contrast_in_both_schemes(served):
    css = get(served[0] + "/assets/live.css")
    schemes = [
        dict(re.findall(r"--([\w]+): (#[0-9a-f]{6});", part)) for part in css.split("@media")[:2]
    ]
    for scheme in schemes:
        for ink in ("text", "quiet", "mfu", "hfu", "coverage", "good", "warn", "bad"):
            for paper in ("page", "panel"):
                light, dark = sorted((luminance(scheme[ink]), luminance(scheme[paper])))[::-1]
                ratio = (light + 0.05) / (dark + 0.05)
                assert ratio >= 4.5, f"{ink} on {paper}: {ratio:.2f}"


def test_no_request_goes_anywhere_else(served, tmp_path):
    address, _ = served
    log = tmp_path / "net.json"
    dump_dom(address + "/live", f"--log-net-log={log}")
    text = log.read_text()
    if not text.rstrip().endswith("}"):  # the browser was quicker than its log
        text = text.rstrip().rstrip(",") + "]}"
    events = json.loads(text)["events"]
    # Requests of the page itself: by the address bar, or by the page's own origin.
    urls = set()
    for event in events:
        parameters = event.get("params", {})
        if "url" in parameters and "method" in parameters:
            urls.add((parameters["url"], parameters.get("initiator", "")))
    own = {url for url, initiator in urls if url.startswith(address) or initiator == address}
    assert {urlsplit(url).path for url in own} >= {
        "/live",
        "/assets/live.css",
        "/assets/live.js",
        "/assets/chart.js",
        "/api/v1/steps",
        "/api/v1/run",
    }
    assert [url for url in own if not url.startswith(address)] == []
    for page in ("/live", "/assets/live.css", "/assets/live.js", "/assets/chart.js"):
        named = set(re.findall(r"https?://[^\s\"'`]+", get(address + page)))
        assert named <= {"http://www.w3.org/2000/svg"}, page


def test_waiting_for_the_first_step():
    with fake_run(-1) as address:
        document = Document(dump_dom(address + "/live"))
    assert document.text["status"] == "waiting for the first step"
    assert document.text["mfu"] == "–"
    assert document.text["run"] == "gpt-small-1"


def test_the_page_lives_on_when_the_api_fails(served):
    address, _ = served

    class Failing(http.server.BaseHTTPRequestHandler):
        """The real page over an API that answers 500."""

        def do_GET(self):
            if self.path.startswith("/api/"):
                self.send_error(500)
                return
            body = get(address + self.path).encode()
            kinds = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
            kind = kinds.get(self.path[self.path.rfind(".") :], "text/html; charset=utf-8")
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments):
            """Says nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Failing) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        document = Document(dump_dom(f"http://127.0.0.1:{server.server_port}/live"))
        server.shutdown()
    assert document.text["status"] == "connection lost"
    assert document.text["mfu"] == "–"
