#!/usr/bin/env python3
"""Runs every lint and writes the outcome as JUnit XML, one case a lint.

    python3 tests/lint/run_lints.py --junit lint.xml

A tool that is not there is a skipped case with its reason, never a silent pass. The tools are
looked for in --tools first (the virtual environment's bin folder), then on the PATH.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

from source_text import CPP_SUFFIXES, walk

ROOT = Path(__file__).resolve().parents[2]
CPP_FOLDERS = ("include", "src", "python_bindings", "tests", "docs/examples")
CLANG_MAJOR = "22"  # another version formats and warns differently


@dataclass
class Outcome:
    """One lint: what it said, and whether it could run at all."""

    name: str
    failed: bool = False
    skipped: str = ""
    output: str = ""
    seconds: float = 0.0


class Tools:
    """The programs that the lints call."""

    def __init__(self, folder: Path | None):
        self.folder = folder

    def find(self, name: str) -> str | None:
        """Path of a program, or None."""
        if self.folder and (self.folder / name).is_file():
            return str(self.folder / name)
        return shutil.which(name)

    def find_clang(self, name: str) -> tuple[str | None, str]:
        """Path of a clang tool of the pinned version, or None and the reason."""
        path = self.find(name)
        if path is None:
            return None, f"{name} is not installed (scripts/test.sh installs it)"
        version = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
        found = re.search(r"version (\d+)", version.stdout)
        if not found or found[1] != CLANG_MAJOR:
            return None, f"{name} is version {found[1] if found else '?'}; wanted: {CLANG_MAJOR}"
        return path, ""


def call(name: str, command: list[str]) -> Outcome:
    """Runs one command; a status other than 0 is a failure."""
    start = time.monotonic()
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    output = (done.stdout + done.stderr).strip()
    return Outcome(name, done.returncode != 0, "", output, time.monotonic() - start)


def own_lint(script: str) -> Outcome:
    """One of the lints beside this file."""
    return call(script, [sys.executable, str(Path(__file__).parent / f"{script}.py")])


def clang_format(tools: Tools) -> Outcome:
    """Layout of the C++ files."""
    path, reason = tools.find_clang("clang-format")
    if path is None:
        return Outcome("clang_format", skipped=reason)
    files = [str(f) for f in walk(ROOT, CPP_FOLDERS, CPP_SUFFIXES)]
    return call("clang_format", [path, "--dry-run", "-Werror", *files])


def ruff(tools: Tools, command: str) -> Outcome:
    """Lint or layout of the Python files."""
    path = tools.find("ruff")
    if path is None:
        return Outcome(f"ruff_{command}", skipped="ruff is not installed")
    arguments = ["check"] if command == "check" else ["format", "--check"]
    return call(f"ruff_{command}", [path, *arguments, "--no-cache", "."])


def shellcheck(tools: Tools) -> Outcome:
    """The shell scripts."""
    path = tools.find("shellcheck")
    if path is None:
        return Outcome("shellcheck", skipped="shellcheck is not installed")
    files = [str(f) for f in walk(ROOT, ("scripts", ".ci", "tests"), (".sh", ""))]
    return call("shellcheck", [path, "-x", *[f for f in files if _is_shell(Path(f))]])


def _is_shell(path: Path) -> bool:
    with path.open("rb") as file:
        return path.suffix == ".sh" or file.readline().startswith(
            (b"#!/bin/bash", b"#!/usr/bin/env bash")
        )


def clang_tidy(tools: Tools, build: Path, jobs: int) -> Outcome:
    """The product's sources under .clang-tidy, by the compile commands of `build`."""
    path, reason = tools.find_clang("clang-tidy")
    if path is None:
        return Outcome("clang_tidy", skipped=reason)
    if not (build / "compile_commands.json").is_file():
        return Outcome(
            "clang_tidy", skipped=f"no compile_commands.json in {build.name}: build it first"
        )
    start = time.monotonic()
    sources = [str(f) for f in walk(ROOT, ("src",), (".cc",))]
    # The commands are g++'s; and libstdc++ 12 sorts with what C++20 deprecates.
    unknown_to_clang = [
        "--extra-arg=-Wno-unknown-warning-option",
        "--extra-arg=-Wno-deprecated-declarations",
    ]

    def check(source: str) -> tuple[int, str]:
        done = subprocess.run(
            [path, "--quiet", "-p", str(build), *unknown_to_clang, source],
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout

    with ThreadPoolExecutor(jobs) as pool:
        results = list(pool.map(check, sources))
    output = "\n".join(text.strip() for code, text in results if code)
    failed = any(code for code, _ in results)
    return Outcome("clang_tidy", failed, "", output, time.monotonic() - start)


def write_junit(outcomes: list[Outcome], path: Path) -> None:
    """Writes the outcomes as one JUnit suite."""
    suite = ElementTree.Element("testsuite", name="lint", tests=str(len(outcomes)))
    for outcome in outcomes:
        case = ElementTree.SubElement(
            suite, "testcase", classname="lint", name=outcome.name, time=f"{outcome.seconds:.3f}"
        )
        if outcome.failed:
            ElementTree.SubElement(case, "failure", message="see the text").text = outcome.output
        if outcome.skipped:
            ElementTree.SubElement(case, "skipped", message=outcome.skipped)
    path.parent.mkdir(parents=True, exist_ok=True)
    ElementTree.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tools", type=Path, help="folder with clang-format, clang-tidy and ruff")
    parser.add_argument("--junit", type=Path, help="write the outcome here")
    parser.add_argument("--tidy", type=Path, metavar="BUILD", help="run clang-tidy alone, by BUILD")
    parser.add_argument("--filter", default="", help="run the lints whose name matches alone")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    tools = Tools(arguments.tools)
    lints = {f"{n}_lint": partial(own_lint, f"{n}_lint") for n in ("include", "size", "wording")}
    for name in ("lint_selftest", "scripts_selftest"):
        lints[name] = partial(own_lint, name)
    lints["clang_format"] = partial(clang_format, tools)
    lints["ruff_check"] = partial(ruff, tools, "check")
    lints["ruff_format"] = partial(ruff, tools, "format")
    lints["shellcheck"] = partial(shellcheck, tools)
    if arguments.tidy:
        lints = {"clang_tidy": partial(clang_tidy, tools, arguments.tidy.resolve(), arguments.jobs)}
    outcomes = [run() for name, run in lints.items() if re.search(arguments.filter, name)]
    for outcome in outcomes:
        state = (
            "FAILED"
            if outcome.failed
            else f"skipped: {outcome.skipped}"
            if outcome.skipped
            else "ok"
        )
        print(f"{outcome.name:16} {state}")
        if outcome.failed:
            print(outcome.output)
    if arguments.junit:
        write_junit(outcomes, arguments.junit)
    return 1 if any(outcome.failed for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
