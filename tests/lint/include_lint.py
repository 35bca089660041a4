#!/usr/bin/env python3
"""Checks every #include of the product against the layer table (docs/adr/0009).

    python3 tests/lint/include_lint.py

An arrow that is not in LAYERS below is a failure, and so is a library outside of its folder. The
table is the one place where a new arrow is allowed, so that it shows in a review.
"""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from source_text import CPP_SUFFIXES, Finding, line_of, walk, without_comments


@dataclass(frozen=True)
class Layer:
    """What one folder may include."""

    folders: tuple[str, ...] = ()  # of the project, itself always included
    libraries: tuple[str, ...] = ()  # names of LIBRARIES
    posix: bool = True
    pure: bool = False  # no clock, threads or input/output: a function of its arguments


# Longest folder first wins. `api` is include/flopledger.
LAYERS: dict[str, Layer] = {
    "include/flopledger": Layer(posix=False),
    "src/base": Layer(("api",)),
    "src/flops": Layer(("base", "api"), ("json",), posix=False, pure=True),
    "src/collect": Layer(("base", "api")),
    "src/collect/cupti": Layer(("collect", "base", "api"), ("cupti",)),
    "src/collect/nvtx": Layer(("collect", "base", "api"), ("nvtx",)),
    "src/collect/trace": Layer(
        ("collect", "base", "api"), ("simdjson", "sqlite", "zlib", "isal", "protozero")
    ),
    "src/timeline": Layer(("base", "api"), posix=False, pure=True),
    "src/ledger": Layer(("flops", "timeline", "base", "api"), posix=False, pure=True),
    "src/export": Layer(("base", "api"), ("prometheus", "libevent", "fmt", "json")),
    "src/session": Layer(
        (
            *("collect", "collect/cupti", "collect/nvtx", "collect/trace"),
            *("flops", "timeline", "ledger", "export", "base", "api"),
        ),
        ("spdlog", "fmt"),
    ),
    "src/cli": Layer(("session", "flops", "export", "api"), ("cli11", "json", "fmt")),
    "python_bindings": Layer(("api",), ("nanobind", "python", "torch")),
}

LIBRARIES: dict[str, re.Pattern[str]] = {
    "spdlog": re.compile(r"^spdlog/"),
    "fmt": re.compile(r"^fmt/"),
    "prometheus": re.compile(r"^prometheus/"),
    "libevent": re.compile(r"^(event2/|event\.h$|ev[a-z]+\.h$)"),
    "cli11": re.compile(r"^CLI/"),
    "json": re.compile(r"^nlohmann/"),
    "expected": re.compile(r"^tl/"),
    "cupti": re.compile(r"^(cupti|cuda|nvperf|generated_cuda|generated_nvtx)[a-zA-Z0-9_]*\.h$"),
    "nvtx": re.compile(r"^(nvtx3/|nvToolsExt)"),
    "simdjson": re.compile(r"^simdjson"),
    "sqlite": re.compile(r"^sqlite3\.h$"),
    "zlib": re.compile(r"^zlib\.h$"),
    "isal": re.compile(r"^isa-l/"),
    "protozero": re.compile(r"^protozero/"),
    "nanobind": re.compile(r"^nanobind/"),
    "python": re.compile(r"^Python\.h$"),
    "torch": re.compile(r"^(ATen|c10|torch)/"),
}

# A library that a layer may use, but in its sources alone: headers stay free of it.
SOURCES_ONLY = {("src/flops", "json"), ("src/export", "json"), ("src/export", "prometheus")}

# A library that one file may use, on behalf of everybody.
SINGLE_FILE = {"expected": "include/flopledger/status.h"}

STANDARD = frozenset(
    """algorithm any array atomic barrier bit bitset cassert cctype cerrno cfenv cfloat charconv
    chrono cinttypes climits clocale cmath compare complex concepts condition_variable coroutine
    csetjmp csignal cstdarg cstddef cstdint cstdio cstdlib cstring ctime cuchar cwchar cwctype deque
    exception execution filesystem forward_list fstream functional future initializer_list iomanip
    ios iosfwd iostream istream iterator latch limits list locale map memory memory_resource mutex
    new numbers numeric optional ostream queue random ratio regex scoped_allocator semaphore set
    shared_mutex source_location span sstream stack stdexcept stop_token streambuf string
    string_view syncstream system_error thread tuple type_traits typeindex typeinfo unordered_map
    unordered_set utility valarray variant vector version
    assert.h ctype.h errno.h inttypes.h limits.h math.h stdarg.h stddef.h stdint.h stdio.h stdlib.h
    string.h time.h signal.h""".split()
)
POSIX = re.compile(
    r"^((sys|netinet|arpa|net|linux)/[a-z_0-9/]+\.h"
    r"|(dlfcn|fcntl|link|netdb|poll|pthread|sched|unistd|cxxabi|execinfo|glob|dirent|pwd|spawn)\.h)$"
)
# Missing from g++ 12's library, or broken with one of the two compilers.
BANNED = {
    "format": "g++ 12 has no <format>: use fmt in a source of export or session",
    "ranges": "views of <ranges> fail with clang and libstdc++ 12: write the loop",
    "expected": "needs C++23: Result<T> is in flopledger/status.h",
}
# Not <cstdio>: snprintf is there, too.
IMPURE = frozenset(
    """chrono ctime time.h thread mutex shared_mutex condition_variable future stop_token latch
    barrier semaphore fstream iostream istream ostream filesystem csignal signal.h syncstream
    random""".split()
)

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.MULTILINE)


def layer_of(path: str) -> str | None:
    """Folder of the layer table that a file belongs to."""
    owners = [folder for folder in LAYERS if path.startswith(folder + "/")]
    return max(owners, key=len, default=None)


def _folder_name(layer: str) -> str:
    return "api" if layer == "include/flopledger" else layer.removeprefix("src/")


class IncludeLint:
    """The lint over one tree."""

    def __init__(self, root: Path):
        self.root = root

    def run(self) -> list[Finding]:
        """Every arrow of the tree that is not in the table."""
        findings = []
        for path in walk(self.root, ("include", "src", "python_bindings"), CPP_SUFFIXES):
            findings += self.check_file(path)
        return findings

    def check_file(self, path: Path) -> list[Finding]:
        """The arrows out of one file that are not in the table."""
        name = path.relative_to(self.root).as_posix()
        layer = layer_of(name)
        if layer is None:
            return [Finding(name, 1, "the folder is not in the layer table of include_lint.py")]
        text = without_comments(path.read_text(encoding="utf-8"))
        findings = []
        for match in _INCLUDE.finditer(text):
            problem = self._problem(name, layer, match[1] == '"', match[2])
            if problem:
                line = line_of(text, match.start(2))
                findings.append(Finding(name, line, f"includes {match[2]}: {problem}"))
        return findings

    def _problem(self, name: str, layer: str, quoted: bool, header: str) -> str | None:
        target = self._target_layer(name, header)
        if target is not None:
            return self._project_problem(layer, target, quoted)
        if quoted:
            return "no such header in this tree; a library's header is included with <>"
        for library, pattern in LIBRARIES.items():
            if pattern.search(header):
                return self._library_problem(name, layer, library)
        return self._system_problem(layer, header)

    def _target_layer(self, name: str, header: str) -> str | None:
        """Layer of an included header of this tree; None if it is not one of ours."""
        if header == "flopledger/version.h":  # made from version.h.in
            return "include/flopledger"
        here = Path(name).parent.as_posix()
        for folder in ("include", "src", here):
            if (self.root / folder / header).is_file():
                return layer_of(f"{folder}/{header}")
        return None

    @staticmethod
    def _project_problem(layer: str, target: str, quoted: bool) -> str | None:
        if not quoted:
            return "a header of this tree is included with quotes"
        if target == layer or _folder_name(target) in LAYERS[layer].folders:
            return None
        allowed = ", ".join(LAYERS[layer].folders) or "nothing else of the project"
        return f"{layer} may include {allowed}; not {_folder_name(target)}"

    @staticmethod
    def _library_problem(name: str, layer: str, library: str) -> str | None:
        if library in SINGLE_FILE:
            only = SINGLE_FILE[library]
            return None if name == only else f"only {only} may include {library}"
        if library not in LAYERS[layer].libraries:
            owners = [folder for folder, row in LAYERS.items() if library in row.libraries]
            return f"{library} belongs to {', '.join(owners)}"
        if (layer, library) in SOURCES_ONLY and name.endswith(".h"):
            return f"{library} stays in the sources of {layer}, out of its headers"
        return None

    @staticmethod
    def _system_problem(layer: str, header: str) -> str | None:
        row = LAYERS[layer]
        if header in BANNED:
            return BANNED[header]
        if header in STANDARD:
            if row.pure and header in IMPURE:
                return f"{layer} is pure: no clock, threads, input or output"
            return None
        if POSIX.match(header):
            return None if row.posix else f"{layer} includes no system header"
        return "neither standard nor a library of the layer table"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parents[2])
    findings = IncludeLint(parser.parse_args().root).run()
    for finding in findings:
        print(finding)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
