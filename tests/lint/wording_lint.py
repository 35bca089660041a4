#!/usr/bin/env python3
"""Checks the words of the tree: no paths of one machine, no notes to self, no vague names.

python3 tests/lint/wording_lint.py
"""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from source_text import Finding, walk

_ALL = (
    *("CMakeLists.txt", "CMakePresets.json", "README.md", "CONTRIBUTING.md", "CHANGELOG.md"),
    *("pyproject.toml", ".pre-commit-config.yaml", ".clang-tidy", ".ci", "cmake", "docs"),
    *("include", "python_bindings", "scripts", "src", "tests"),
)
_PRODUCT = ("include", "src", "python_bindings", "scripts", "cmake", "docs/examples")
_SUFFIXES = (
    *("", ".h", ".cc", ".in", ".py", ".pyi", ".sh", ".md", ".txt", ".cmake", ".json", ".toml"),
    *(".yaml", ".yml", ".html", ".js", ".css"),
)


@dataclass(frozen=True)
class Rule:
    """A pattern that must not be in the files of some folders."""

    folders: tuple[str, ...]
    pattern: re.Pattern[str]
    text: str


RULES = (
    Rule(
        _ALL,
        re.compile(r"(?<![\w.$}/-])/(home|root|Users|workspace|work|mnt)/[\w.]"),
        "a path of one machine: take it from an argument, an option or the environment",
    ),
    Rule(
        _PRODUCT,
        re.compile(r"(?<![\w.$}:/-])/tmp/"),
        "a fixed temporary folder: use mktemp, tempfile or an option",
    ),
    Rule(
        _PRODUCT,
        re.compile(r"\b(TODO|FIXME|XXX|HACK)\b"),
        "a note to self: do it, or file an issue and say what holds today",
    ),
    Rule(
        ("include", "src", "python_bindings"),
        re.compile(
            r"\b(?:class|struct)\s+(?:[A-Z_]{4,}\s+)?\w*(?:Manager|Helper|Utils?|Data|Info)\b\s*[:{(;]"
        ),
        "a name that says nothing: name the thing after its job",
    ),
    Rule(
        ("include", "src"),
        re.compile(r"\b[Pp]rocess\(\)"),
        "process() says nothing: Decode, Build, Attribute, Resolve, Reconcile, Publish",
    ),
)


def check_text(name: str, text: str) -> list[Finding]:
    """Every rule that one file breaks."""
    findings = []
    for rule in RULES:
        if not any(name == folder or name.startswith(folder + "/") for folder in rule.folders):
            continue
        for number, line in enumerate(text.splitlines(), start=1):
            if rule.pattern.search(line):
                findings.append(Finding(name, number, rule.text))
    return findings


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parents[2])
    root = parser.parse_args().root
    findings = []
    for path in walk(root, _ALL, _SUFFIXES):
        if path.parent == Path(__file__).resolve().parent:
            continue  # the lints and their planted violations name what they look for
        name = path.relative_to(root).as_posix()
        findings += check_text(name, path.read_text(encoding="utf-8"))
    for finding in findings:
        print(finding)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
