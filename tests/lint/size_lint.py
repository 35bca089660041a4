#!/usr/bin/env python3
"""Checks the size budget: file lengths, function lengths, comment share of the public headers.

    python3 tests/lint/size_lint.py

A file that outgrows its limit has two jobs, or one job that is not understood yet.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from pathlib import Path

from source_text import CPP_SUFFIXES, Finding, code_only, line_of, walk, without_comments

PUBLIC_HEADER_LINES = 250
PUBLIC_HEADER_COMMENT_SHARE = 0.25
PRIVATE_HEADER_LINES = 200
SOURCE_LINES = 450
FUNCTION_LINES = 70

_CPP_FOLDERS = ("include", "src", "python_bindings", "docs/examples", "tests")
_PYTHON_FOLDERS = ("python_bindings", "docs", "scripts", "tests")
# Words that open a scope in which functions may be defined.
_SCOPE = re.compile(r"\b(namespace|class|struct|union|extern)\b")
_PREPROCESSOR = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*", re.MULTILINE)


def comment_share(text: str) -> float:
    """Lines that carry a comment, alone or behind code, over all lines that are not empty."""
    commented = filled = 0
    for before, after in zip(text.splitlines(), without_comments(text).splitlines(), strict=True):
        if before.strip():
            filled += 1
            commented += before != after
    return commented / max(1, filled)


def cpp_functions(text: str) -> list[tuple[int, int]]:
    """First line and number of lines of every function defined in a C++ text.

    Reads braces, not grammar: a brace group at namespace or class level whose head has parentheses
    is a function; what is inside of it (lambdas, local types) is a part of it.
    """
    code = _PREPROCESSOR.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), code_only(text))
    functions = []
    scopes: list[tuple[str, int]] = []  # kind and start offset of the open brace groups
    head_start = 0
    for match in re.finditer(r"[{};]|\b(?:public|private|protected)\s*:", code):
        token = match[0]
        kinds = [kind for kind, _ in scopes]
        if token == "{":
            head = code[head_start : match.start()]
            start = head_start + len(head) - len(head.lstrip())
            scopes.append((_kind_of(head, kinds), start))
        elif token == "}":
            kind, start = scopes.pop() if scopes else ("scope", 0)
            if kind == "body":
                first = line_of(code, start)
                functions.append((first, line_of(code, match.start()) - first + 1))
        elif token == ";" and "value" in kinds:
            continue
        # A value is a part of the head that it stands in: `int a{1}, b{2};`, `: member_{x} {`.
        if token not in "{}" or (scopes[-1][0] if token == "{" else kind) != "value":
            head_start = match.end()
    return functions


def _kind_of(head: str, enclosing: list[str]) -> str:
    """What a brace group is, by the text before it: scope, body, value, or inner part of a body."""
    if "body" in enclosing:
        return "inner"
    plain = re.sub(r"<[^<>]*>", " ", head)
    if "value" in enclosing or plain.count("(") > plain.count(")"):
        return "value"
    if _SCOPE.search(plain) and "(" not in re.sub(r"__attribute__\s*\(\(.*?\)\)", "", plain):
        return "scope"
    if re.search(r"\benum\b", plain) or "(" not in plain:
        return "value"
    if re.search(r"\)\s*(noexcept\s*)?:[^:].*\w\s*$", plain, re.DOTALL):
        return "value"  # a member in a constructor's list
    return "body"


def python_functions(text: str) -> list[tuple[int, int]]:
    """First line and number of lines of every function of a Python text."""
    return [
        (node.lineno, node.end_lineno - node.lineno + 1)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def _length_limit(name: str) -> tuple[int, str]:
    if name.startswith("include/"):
        return PUBLIC_HEADER_LINES, "a public header"
    if name.endswith(".h"):
        return PRIVATE_HEADER_LINES, "a private header"
    return SOURCE_LINES, "a source"


def check_file(name: str, text: str) -> list[Finding]:
    """Every limit that one file breaks."""
    findings = []
    limit, kind = _length_limit(name)
    lines = len(text.splitlines())
    if lines > limit:
        findings.append(Finding(name, lines, f"{lines} lines; {kind} has at most {limit}"))
    if name.startswith("include/"):
        share = comment_share(text)
        if share < PUBLIC_HEADER_COMMENT_SHARE:
            wanted = f"{PUBLIC_HEADER_COMMENT_SHARE:.0%}"
            findings.append(Finding(name, 1, f"{share:.0%} comment; a public header has {wanted}"))
    try:
        functions = python_functions(text) if name.endswith(".py") else cpp_functions(text)
    except SyntaxError as error:
        return [*findings, Finding(name, error.lineno or 1, f"is no Python: {error.msg}")]
    for first, length in functions:
        if length > FUNCTION_LINES:
            message = f"a function of {length} lines; at most {FUNCTION_LINES}"
            findings.append(Finding(name, first, message))
    return findings


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parents[2])
    root = parser.parse_args().root
    findings = []
    files = [*walk(root, _CPP_FOLDERS, CPP_SUFFIXES), *walk(root, _PYTHON_FOLDERS, (".py",))]
    for path in files:
        name = path.relative_to(root).as_posix()
        findings += check_file(name, path.read_text(encoding="utf-8"))
    for finding in findings:
        print(finding)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
