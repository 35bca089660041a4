"""Finding and reading the tree's source files, for the lints beside this file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

CPP_SUFFIXES = (".h", ".cc")
_GENERATED = re.compile(r"^(build|out|dist|\.venv|\.git$|\.[a-z_]*cache$|__pycache__$)|\.egg-info$")


@dataclass(frozen=True)
class Finding:
    """One violation: where it is, and what to do about it."""

    path: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}"


def walk(root: Path, folders: tuple[str, ...], suffixes: tuple[str, ...]) -> Iterator[Path]:
    """Yields the files below `folders` of `root`, sorted, without generated ones.

    An empty suffix stands for files without one.
    """
    for folder in folders:
        top = root / folder
        candidates = [top] if top.is_file() else sorted(top.rglob("*"))
        for path in candidates:
            parts = path.relative_to(root).parts
            if any(_GENERATED.search(part) for part in parts) or not path.is_file():
                continue
            if path.suffix in suffixes:
                yield path


_TOKEN = re.compile(
    r"""(?P<raw>R"(?P<delimiter>[^\s()\\]{0,16})\(.*?\)(?P=delimiter)")
      | (?P<line>//(?:\\\n|[^\n])*)
      | (?P<block>/\*.*?\*/)
      | (?P<string>"(?:\\.|[^"\\\n])*")
      | (?P<char>(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+')""",
    re.DOTALL | re.VERBOSE,
)


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


def without_comments(text: str) -> str:
    """C++ text with its comments blanked out, line by line; strings stay."""
    return _TOKEN.sub(
        lambda m: _blank(m[0]) if m["line"] is not None or m["block"] is not None else m[0], text
    )


def code_only(text: str) -> str:
    """C++ text with comments and the contents of literals blanked out, line by line."""

    def blank(match: re.Match[str]) -> str:
        token = match[0]
        if match["line"] is not None or match["block"] is not None:
            return _blank(token)
        quote = token[-1]
        return quote + _blank(token[1:-1]) + quote

    return _TOKEN.sub(blank, text)


def line_of(text: str, offset: int) -> int:
    """One-based line of an offset."""
    return text.count("\n", 0, offset) + 1
