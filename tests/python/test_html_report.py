"""The page of a report: from a file, in a browser, without a network."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from cli_support import ROOT, flopledger
from export_support import dump_dom
from step_logs import SECOND, Rank, Step, busy_step, four_ranks
from test_export_pages import Document

HOSTILE = '</script><script>document.title="owned"</script><img src=x onerror=alert(1)>'


def page_of(folder: Path, *words: object) -> Path:
    page = folder / "report.html"
    flopledger("report", *words, "--html", page)
    return page


def figures(document: Document, name: str) -> list[dict]:
    return [attributes for tag, attributes in document.tags if tag == name]


@pytest.fixture(scope="module")
def four(tmp_path_factory):
    """A run of four ranks: its page, what the browser made of it, and the figures."""
    folder = tmp_path_factory.mktemp("four")
    page = page_of(folder, four_ranks(folder / "logs"))
    body = json.loads(flopledger("report", folder / "logs", "--json").stdout)
    return page, Document(dump_dom(page.as_uri())), body


def test_the_pictures_show_the_figures(four):
    _, document, body = four
    text = document.text
    assert text["mfu"] == f"{body['mfu_ratio'] * 100:.1f} %"
    low, high = body["hfu_low_ratio"] * 100, body["hfu_high_ratio"] * 100
    assert text["hfu"] == f"{low:.1f} – {high:.1f} %"
    assert text["coverage"] == f"{body['coverage_time_ratio'] * 100:.1f} %"
    peak = int(body["peak_flops"])
    for line in body["waterfall"]:
        share = int(line["flops"]) / peak
        if share > 0.001:
            assert f"{line['text']}{share * 100:.1f} %" in text["waterfall"]
    assert "rank 2 is 20.0 % slower" in text["finding-list"]
    assert "acme::fused_rotary" in text["gaps"]
    assert "matmul" in text["classes"]
    assert "unknown" in text["classes"]
    assert body["run"]["convention_hash"] in text["how"]
    assert "2 ranks: 989 TFLOP/s bf16 on NVIDIA H100 SXM5" in text["how"]
    assert "2 ranks: 312 TFLOP/s bf16 on NVIDIA A100 SXM4" in text["how"]
    (path,) = [a for a in figures(document, "path") if a.get("class") == "mfu"]
    assert len(re.findall("[ML]", path["d"])) == 50


def test_the_timeline_is_the_exclusive_partition(four):
    """50 columns of each rank, each as high as its lane, split by the shares of the states."""
    _, document, _ = four
    rectangles = figures(document, "rect")
    lanes = [r for r in rectangles if r.get("class") == "lane"]
    assert len(lanes) == 4
    high = float(lanes[0]["height"])
    for state, share, count in (
        ("s0", 0.625, 150),
        ("s0", 0.79, 50),
        ("s1", 0.175, 150),
        ("s1", 0.01, 50),
        ("s3", 0.2, 200),
    ):
        matching = [
            r
            for r in rectangles
            if r.get("class") == state and abs(float(r["height"]) - share * high) < 0.006
        ]
        assert len(matching) == count, (state, share)


def test_it_asks_nobody_and_needs_no_file(four, tmp_path):
    page, _, _ = four
    html = page.read_text()
    assert "default-src 'none'" in html
    assert set(re.findall(r"https?://[^\s\"'`<]+", html)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"<(link|img|iframe)\b|<script[^>]+src=|@import|url\(", html)
    log = tmp_path / "net.json"
    alone = tmp_path / "alone.html"
    alone.write_text(html)
    dump_dom(alone.as_uri(), f"--log-net-log={log}")
    requested = set(re.findall(r'"url":"(https?://[^"]+)"[^}]*"initiator":"file', log.read_text()))
    assert requested == set()


def console(page: Path, *arguments: str) -> str:
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        pytest.skip("chromium is not installed (Debian package chromium)")
    with tempfile.TemporaryDirectory() as profile:
        done = subprocess.run(
            [browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
             "--disable-background-networking", f"--user-data-dir={profile}",
             "--virtual-time-budget=3000", "--enable-logging=stderr", *arguments,
             "--dump-dom", page.as_uri()],
            capture_output=True, text=True, timeout=120, check=True,
        )  # fmt: skip
    return "\n".join(line for line in done.stderr.splitlines() if "CONSOLE" in line)


@pytest.mark.parametrize("width", [1200, 390])
def test_the_console_stays_silent(four, width):
    assert console(four[0], f"--window-size={width},900") == ""


def test_names_of_others_are_text(tmp_path):
    step = busy_step(1, SECOND, SECOND, 10)
    step.gaps = [(HOSTILE, "no_rule", 1, 5)]
    step.findings = [("coverage_gap", 0.5, f"no count for {HOSTILE}")]
    Rank(peak=100, run_id=f"run {HOSTILE} @DATA@ @TEXT@", device=HOSTILE, model=HOSTILE,
         source=HOSTILE).write(tmp_path / "run.jsonl", [step])  # fmt: skip
    page = page_of(tmp_path, tmp_path / "run.jsonl")
    html = page.read_text()
    assert html.lower().count("</script") == 2  # the page's own two elements
    assert "<img" not in html
    document = Document(dump_dom(page.as_uri()))
    assert document.title.startswith("run </script>")
    assert [tag for tag, _ in document.tags if tag in ("script", "img")] == ["script"] * 2
    assert HOSTILE in document.text["gaps"]
    assert HOSTILE in document.text["finding-list"]
    assert HOSTILE in document.text["run"]
    assert console(page) == ""


def test_what_is_not_known_is_not_drawn(tmp_path):
    """Steps alone: no peak, no formula, nothing observed."""
    step = Step(1, 0, SECOND, tokens=0)
    Rank(peak=0, model=None).write(tmp_path / "run.jsonl", [step])
    page = page_of(tmp_path, tmp_path / "run.jsonl")
    text = Document(dump_dom(page.as_uri())).text
    for name in ("mfu", "hfu", "coverage", "recompute", "tokens"):
        assert text[name] == "–"
    assert "not known: no peak for the dtype" in text["mfu-note"]
    assert text["waterfall"] == "Needs a peak."
    assert "Nothing was observed." in text["classes"]
    assert text["step"] == "1.000 s"
    assert console(page) == ""


def test_a_log_without_a_step_opens(tmp_path):
    Rank(peak=100).write(tmp_path / "run.jsonl", [])
    page = page_of(tmp_path, tmp_path / "run.jsonl")
    assert Document(dump_dom(page.as_uri())).text["status"] == "no steps"
    assert console(page) == ""


def test_it_can_be_read_without_scripts_and_without_eyes(four):
    page, document, _ = four
    html = page.read_text()
    text = re.search(r"<noscript><pre>(.*?)</pre></noscript>", html, re.DOTALL)[1]
    assert "where the peak went" in text
    assert ("html", {"lang": "en"}) in document.tags
    assert sum(tag == "h1" for tag, _ in document.tags) == 1
    for tag, attributes in document.tags:
        if tag == "section":
            label = attributes.get("aria-label") or document.text[attributes["aria-labelledby"]]
            assert label.strip()
        if tag == "svg":
            assert attributes["aria-label"]
        if tag == "th":
            assert attributes["scope"] == "col"


def test_a_long_run_on_many_ranks_stays_small(tmp_path):
    """40 ranks x 300 steps: points and columns are drawn together, slow ranks first."""
    for rank in range(40):
        wait = SECOND // 2 if rank != 33 else 0
        steps = [busy_step(n, n * SECOND, SECOND, 40, waiting=wait) for n in range(300)]
        Rank(rank, world=40, peak=100).write(tmp_path / f"{rank}.jsonl", steps)
    page = page_of(tmp_path, tmp_path)
    assert page.stat().st_size < 1_500_000
    data = json.loads(re.search(r'id="data">(.*?)</script>', page.read_text(), re.DOTALL)[1])
    assert len(data["lanes"]) == 24
    assert data["lanes_left_out"] == 16
    assert data["lanes"][0]["rank"] == 33
    assert max(len(lane["cells"]) for lane in data["lanes"]) <= 160
    # Columns hold the sums of their steps.
    waiting = sum(cell["state_ns"][1] for cell in data["lanes"][1]["cells"])
    assert waiting == 300 * SECOND // 2


def test_a_trace_has_the_same_page(tmp_path):
    """Ground truths of the shared traces: eight ranks; device windows of steps."""
    traces = ROOT.parent / "shared" / "traces"
    if not traces.is_dir():
        pytest.skip("the shared traces are not here")
    page = tmp_path / "trace.html"
    flopledger("replay", traces / "T14_v100_dlrm_8ranks.tar.gz", "--html", page)
    document = Document(dump_dom(page.as_uri()))
    assert document.text["run"] == "T14_v100_dlrm_8ranks.tar.gz"
    assert len([r for r in figures(document, "rect") if r.get("class") == "lane"]) == 8
    assert "8 ranks: no peak: " in document.text["finding-list"]
    assert "no peak: no peak" not in document.text["finding-list"]
    assert console(page) == ""
    body = json.loads(flopledger("report", traces / "T03_v100_resnet50.json.gz", "--json").stdout)
    assert [step["step"] for step in body["steps"]] == [5, 6, 7, 8, 9, 10]
    # Device windows of the steps after the first, to the nanosecond.
    windows = [175_153_000, 179_733_000, 174_564_000, 182_172_000, 165_983_000]
    assert [step["wall_ns"] for step in body["steps"]][1:] == windows
