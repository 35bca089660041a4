#!/usr/bin/env python3
"""Plants violations and checks that the lints beside this file see them, and only them."""

from __future__ import annotations

import tempfile
import unittest
from pathlib import Path

import include_lint
import size_lint
import source_text
import wording_lint


class TreeTest(unittest.TestCase):
    """A small tree with the folders of the real one."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="flopledger lint ")
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        for name in (
            "include/flopledger/units.h",
            "src/base/clock.h",
            "src/collect/record_source.h",
            "src/collect/cupti/cupti_source.h",
            "src/timeline/step_builder.h",
            "src/flops/peak_table.h",
            "src/ledger/reconciler.h",
            "src/export/jsonl_sink.h",
            "src/session/engine.h",
        ):
            self.write(name, "#pragma once\n")

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def include_problems(self, name: str, *includes: str) -> list[str]:
        self.write(name, "".join(f"#include {include}\n" for include in includes))
        return [finding.text for finding in include_lint.IncludeLint(self.root).run()]


class IncludeLintTest(TreeTest):
    ALLOWED = (
        ("include/flopledger/a.h", "<string>", '"flopledger/units.h"', "<stdint.h>"),
        ("include/flopledger/status.h", "<tl/expected.hpp>"),
        ("src/base/a.cc", '"flopledger/units.h"', '"base/clock.h"', "<pthread.h>"),
        ("src/flops/a.cc", '"base/clock.h"', "<nlohmann/json.hpp>"),
        ("src/collect/cupti/a.cc", "<cupti.h>", '"collect/record_source.h"', "<cuda.h>"),
        ("src/collect/nvtx/a.cc", "<nvtx3/nvToolsExt.h>", '"base/clock.h"'),
        ("src/ledger/a.cc", '"flops/peak_table.h"', '"timeline/step_builder.h"', "<vector>"),
        ("src/export/a.cc", "<prometheus/registry.h>", "<event2/http.h>", "<fmt/core.h>"),
        ("src/session/a.cc", "<spdlog/spdlog.h>", '"collect/cupti/cupti_source.h"'),
        ("src/session/b.cc", '"export/jsonl_sink.h"', '"ledger/reconciler.h"', "<thread>"),
        ("src/cli/a.cc", "<CLI/CLI.hpp>", '"session/engine.h"', '"flopledger/version.h"'),
        ("python_bindings/module.cc", "<nanobind/nanobind.h>", '"flopledger/units.h"'),
        ("python_bindings/observer.cc", "<ATen/record_function.h>", "<torch/torch.h>"),
    )
    FORBIDDEN = (
        ("include/flopledger/a.h", '"base/clock.h"', "nothing else of the project"),
        ("include/flopledger/a.h", "<tl/expected.hpp>", "only include/flopledger/status.h"),
        ("include/flopledger/a.h", "<unistd.h>", "no system header"),
        ("include/flopledger/a.h", "<spdlog/spdlog.h>", "spdlog belongs to src/session"),
        ("src/base/a.cc", '"flops/peak_table.h"', "not flops"),
        ("src/base/a.cc", "<fmt/core.h>", "fmt belongs to src/export"),
        ("src/flops/a.h", "<nlohmann/json.hpp>", "out of its headers"),
        ("src/collect/a.cc", "<cupti.h>", "cupti belongs to src/collect/cupti"),
        ("src/collect/a.cc", '"timeline/step_builder.h"', "not timeline"),
        ("src/collect/a.cc", '"collect/cupti/cupti_source.h"', "not collect/cupti"),
        ("src/collect/cupti/a.cc", "<nvtx3/nvToolsExt.h>", "nvtx belongs to src/collect/nvtx"),
        ("src/timeline/a.cc", '"collect/record_source.h"', "not collect"),
        ("src/timeline/a.cc", "<thread>", "pure"),
        ("src/ledger/a.cc", "<chrono>", "pure"),
        ("src/ledger/a.cc", '"session/engine.h"', "not session"),
        ("src/export/a.cc", '"ledger/reconciler.h"', "not ledger"),
        ("src/export/a.cc", "<spdlog/spdlog.h>", "spdlog belongs to"),
        ("src/session/a.cc", "<event2/http.h>", "libevent belongs to src/export"),
        ("src/session/a.cc", "<prometheus/registry.h>", "prometheus belongs to src/export"),
        ("src/session/a.cc", "<CLI/CLI.hpp>", "cli11 belongs to src/cli"),
        ("src/cli/a.cc", '"collect/record_source.h"', "not collect"),
        ("src/session/a.cc", "<format>", "no <format>"),
        ("src/session/a.cc", "<boost/any.hpp>", "neither standard"),
        ("src/session/a.cc", "<base/clock.h>", "with quotes"),
        ("src/session/a.cc", '"vanished.h"', "no such header"),
        ("src/cache/a.cc", "<vector>", "not in the layer table"),
        ("python_bindings/module.cc", '"base/clock.h"', "not base"),
    )

    def test_arrows_of_the_table_pass(self):
        for name, *includes in self.ALLOWED:
            with self.subTest(name=name):
                self.assertEqual(self.include_problems(name, *includes), [])

    def test_every_other_arrow_fails(self):
        for name, include, text in self.FORBIDDEN:
            with self.subTest(name=name, include=include):
                problems = self.include_problems(name, include)
                (self.root / name).unlink()
                self.assertEqual(len(problems), 1, problems)
                self.assertIn(text, problems[0])

    def test_a_commented_include_is_none(self):
        self.write(
            "src/base/a.cc", '// #include "flops/peak_table.h"\n/*\n#include <cupti.h>\n*/\n'
        )
        self.assertEqual(include_lint.IncludeLint(self.root).run(), [])

    def test_the_line_is_named(self):
        self.write("src/base/a.cc", "\n\n  #  include <cupti.h>\n")
        (finding,) = include_lint.IncludeLint(self.root).run()
        self.assertEqual((finding.path, finding.line), ("src/base/a.cc", 3))


def body(lines: int) -> str:
    return "  f();\n" * lines


class SizeLintTest(unittest.TestCase):
    def problems(self, name: str, text: str) -> list[str]:
        return [finding.text for finding in size_lint.check_file(name, text)]

    def test_file_lengths_have_limits_by_kind(self):
        line = "int a;  ///< b\n"
        for name, limit in (
            ("include/flopledger/a.h", 250),
            ("src/a/a.h", 200),
            ("src/a/a.cc", 450),
        ):
            with self.subTest(name=name):
                self.assertEqual(self.problems(name, line * limit), [])
                (problem,) = self.problems(name, line * (limit + 1))
                self.assertIn(f"{limit + 1} lines", problem)

    def test_a_public_header_is_a_quarter_comment(self):
        self.assertEqual(self.problems("include/flopledger/a.h", "/// a\n" + "int a;\n" * 3), [])
        self.assertTrue(self.problems("include/flopledger/a.h", "/// a\n" + "int a;\n" * 4))
        self.assertEqual(self.problems("src/base/a.h", "int a;\n" * 100), [])

    def test_a_function_has_seventy_lines(self):
        for lead, signature in (
            ("", "void F() {\n"),
            ("", "template <typename T>\nvoid A<T>::F(std::array<int, 2> a = {1, 2}) const {\n"),
            ("", "A::A(int x) : x_(x), y_{x} {\n"),
            ("class B {\n public:\n", "  void F() {\n"),
            ("struct __attribute__((packed)) B {\n", "  void F() noexcept {\n"),
            ("namespace a::b {\n", "auto f = [](int x) {\n"),
        ):
            inside = 69 - signature.count("\n")
            for lines, fails in ((inside, False), (inside + 1, True)):
                with self.subTest(signature=signature, lines=lines):
                    text = lead + signature + body(lines) + "}\n"
                    self.assertEqual(bool(self.problems("src/a/a.cc", text)), fails)

    def test_braces_in_text_and_types_do_not_count(self):
        text = (
            "enum class E { kA, kB };\nstruct S {\n" + "  int a = 0;\n" * 80 + "};\n"
            "const char* kText = \"{\";  // {\nconst char kBrace = '{';\n"
            'auto kRaw = R"x({{{)x";\nint kTable[] = {\n' + "  1'000,\n" * 80 + "};\n"
        )
        self.assertEqual(self.problems("src/a/a.cc", text), [])

    def test_a_python_function_has_seventy_lines(self):
        self.assertEqual(self.problems("scripts/a.py", "def f():\n" + "    g()\n" * 69), [])
        self.assertTrue(self.problems("scripts/a.py", "def f():\n" + "    g()\n" * 70))
        self.assertIn("is no Python", self.problems("scripts/a.py", "def f(:\n")[0])


class WordingLintTest(unittest.TestCase):
    def test_planted_words_are_found(self):
        for name, line in (
            ("src/base/a.cc", 'open("/home/someone/file");'),
            ("docs/a.md", "look into /ro" + "ot/.cache/x"),  # this file is linted too
            ("scripts/a.sh", "touch /tmp/flopledger"),
            ("src/base/a.cc", "// TODO: later"),
            ("src/base/a.h", "class StepManager {"),
            ("src/base/a.h", "struct FLOPLEDGER_EXPORT DeviceInfo {"),
            ("src/base/a.cc", "  queue.process();"),
        ):
            with self.subTest(line=line):
                self.assertEqual(len(wording_lint.check_text(name, line + "\n")), 1)

    def test_plain_words_pass(self):
        for name, line in (
            ("scripts/a.sh", 'folder="${TMPDIR:-/tmp}/x"'),
            ("src/base/a.cc", 'read("/proc/self/status");  // /dev/null'),
            ("src/base/a.h", "class StepReport {"),
            ("docs/a.md", "https://example.org/home/page"),
            ("src/base/a.h", "struct DatabaseRow {"),
        ):
            with self.subTest(line=line):
                self.assertEqual(wording_lint.check_text(name, line + "\n"), [])


class SourceTextTest(unittest.TestCase):
    def test_lines_survive_the_removal_of_comments(self):
        text = 'int a; /* x\n y */ int b; // c\nauto s = "// no comment";\n'
        plain = source_text.without_comments(text)
        self.assertEqual(plain.count("\n"), text.count("\n"))
        self.assertIn('"// no comment"', plain)
        self.assertNotIn("y */", plain)


if __name__ == "__main__":
    unittest.main()
