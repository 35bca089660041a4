#!/usr/bin/env python3
"""Sums up the JUnit files and the phases of one run of scripts/test.sh.

    python3 scripts/summarise_tests.py build/test-results

Prints the failed tests, the skipped ones with their reasons, the time of each phase and, as the
last line, `N passed, N failed, N skipped`. A phase that failed without a failed test (a build, a
crashed runner) counts as one failure. Exit status 1 if anything failed or nothing was executed.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree


@dataclass
class Summary:
    """What a run did, by test."""

    passed: int = 0
    failed: list[str] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)  # test, reason
    phases: list[tuple[str, int, int]] = field(default_factory=list)  # name, status, seconds

    def last_line(self) -> str:
        """The sum, in the form that programs look for."""
        return f"{self.passed} passed, {len(self.failed)} failed, {len(self.skipped)} skipped"

    def succeeded(self) -> bool:
        """Something was executed, and none of it failed."""
        return not self.failed and self.passed > 0


def skip_reason(case: ElementTree.Element) -> str:
    """Why a test was skipped: GoogleTest says it in the output, pytest in the message."""
    output = case.findtext("system-out") or ""
    spoken = re.search(r": Skipped\n(.+?)(?:\n\n|\n\[|\Z)", output, re.DOTALL)
    if spoken:
        return " ".join(spoken[1].split())
    node = case.find("skipped")
    message = (node.get("message") or "").strip() if node is not None else ""
    return message or "no reason given"


def add_junit(summary: Summary, path: Path) -> int:
    """Adds the cases of a JUnit file; returns how many of them failed."""
    failures = 0
    for case in ElementTree.parse(path).iter("testcase"):
        name = f"{path.stem}: {case.get('classname') or ''}::{case.get('name')}"
        if case.get("status") == "fail" or any(
            case.find(x) is not None for x in ("failure", "error")
        ):
            summary.failed.append(name)
            failures += 1
        elif case.find("skipped") is not None or case.get("status") in ("notrun", "disabled"):
            summary.skipped.append((name, skip_reason(case)))
        else:
            summary.passed += 1
    return failures


def summarise(folder: Path) -> Summary:
    """Reads the results folder of one run."""
    summary = Summary()
    failures: Counter[str] = Counter()
    for path in sorted(folder.glob("*.xml")):
        try:
            failures[path.stem] = add_junit(summary, path)
        except ElementTree.ParseError as error:
            summary.failed.append(f"{path.stem}: its JUnit file is broken ({error})")
    phases = folder / "phases.tsv"
    for line in phases.read_text(encoding="utf-8").splitlines() if phases.is_file() else []:
        name, status, seconds = line.split("\t")
        summary.phases.append((name, int(status), int(seconds)))
        if int(status) and not failures[re.sub(r"\W", "_", name)]:
            summary.failed.append(f"phase {name}: ended with status {status}")
    return summary


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    summary = summarise(Path(sys.argv[1]))
    if summary.failed:
        print("Failed:")
        print("".join(f"  {name}\n" for name in summary.failed), end="")
    if summary.skipped:
        print("Skipped:")
        reasons = Counter(reason for _, reason in summary.skipped)
        for reason, count in reasons.most_common():
            names = [name for name, why in summary.skipped if why == reason]
            more = f" and {count - 1} more" if count > 1 else ""
            print(f"  {names[0]}{more}: {reason}")
    total = sum(seconds for _, _, seconds in summary.phases)
    times = ", ".join(f"{name} {seconds} s" for name, _, seconds in summary.phases if seconds)
    print(f"Time: {total} s ({times})")
    if not summary.passed and not summary.failed:
        print("No test was executed.")
    print(summary.last_line())
    return 0 if summary.succeeded() else 1


if __name__ == "__main__":
    sys.exit(main())
