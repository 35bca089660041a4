#!/usr/bin/env python3
"""Checks the scripts of scripts/: arguments, what they do where they may not install, and sums."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
sys.path.insert(0, str(SCRIPTS))

import merge_benchmarks  # noqa: E402
import summarise_tests  # noqa: E402


def bash(*command: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = dict(os.environ)
    if path:
        environment["PATH"] = path + os.pathsep + environment["PATH"]
    return subprocess.run(
        ["bash", *command], env=environment, capture_output=True, text=True, check=False
    )


class FolderTest(unittest.TestCase):
    """A test with a folder of its own, with a space in its name."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="flopledger scripts ")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def write(self, name: str, text: str, mode: int = 0o644) -> None:
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        path.chmod(mode)


class ArgumentsTest(unittest.TestCase):
    def test_help_has_examples_and_is_no_error(self):
        for script in ("demo.sh", "test.sh", "bench.sh"):
            with self.subTest(script=script):
                done = bash(str(SCRIPTS / script), "--help")
                self.assertEqual(done.returncode, 0)
                self.assertIn("examples:", done.stdout)
                self.assertEqual(done.stderr, "")

    def test_wrong_arguments_are_named_with_the_accepted_ones(self):
        for script, *arguments in (
            ("demo.sh", "--seconds", "soon"),
            ("demo.sh", "--steps", "0"),
            ("demo.sh", "--steps"),
            ("test.sh", "--fast"),
            ("test.sh", "--filter"),
            ("bench.sh", "--csv"),
            ("bench.sh", "--json"),
            ("bench.sh", "--repetitions", "many"),
        ):
            with self.subTest(script=script, arguments=arguments):
                done = bash(str(SCRIPTS / script), *arguments)
                self.assertEqual(done.returncode, 2)
                self.assertRegex(done.stderr, f"^{script}: .*(accepted|needs a)")
                self.assertIn(arguments[-1], done.stderr)


class PackagesTest(FolderTest):
    """install_packages of lib.sh, with the system's programs replaced."""

    def setUp(self):
        super().setUp()
        self.write("dpkg-query", "#!/bin/sh\n[ $4 = here ] && echo 'install ok installed'\n", 0o755)
        self.write("apt-get", f'#!/bin/sh\necho "$@" >>"{self.folder}/calls"\n', 0o755)
        self.log = self.folder / "logs"

    def install(self, *packages: str) -> subprocess.CompletedProcess[str]:
        program = f'source "{SCRIPTS}/lib.sh"; LOGS="{self.log}"; set -eu; install_packages "$@"'
        return bash("-c", program, "demo.sh", *packages, path=str(self.folder))

    def calls(self) -> str:
        calls = self.folder / "calls"
        return calls.read_text(encoding="utf-8") if calls.is_file() else ""

    def test_what_is_there_is_not_installed_again(self):
        self.write("id", "#!/bin/sh\necho 1000\n", 0o755)
        done = self.install("here")
        self.assertEqual((done.returncode, done.stdout, self.calls()), (0, "", ""))

    def test_root_installs_what_is_missing_alone(self):
        self.write("id", "#!/bin/sh\necho 0\n", 0o755)
        self.assertEqual(self.install("here", "absent").returncode, 0)
        (line,) = [line for line in self.calls().splitlines() if " install " in line]
        self.assertTrue(line.endswith("install -y --no-install-recommends absent"), line)

    def test_without_root_and_sudo_the_line_to_run_is_printed(self):
        self.write("id", "#!/bin/sh\necho 1000\n", 0o755)
        self.write("sudo", "#!/bin/sh\nexit 1\n", 0o755)
        done = self.install("absent", "here", "gone")
        self.assertEqual(done.returncode, 4)
        self.assertIn("neither root nor sudo", done.stderr)
        self.assertTrue(done.stdout.endswith("--no-install-recommends absent gone\n"), done.stdout)
        self.assertEqual(self.calls(), "")

    def test_a_failed_command_shows_its_end_and_its_log(self):
        program = (
            f'source "{SCRIPTS}/lib.sh"; LOGS="{self.log}"; logged "a b" sh -c "echo x; exit 3"'
        )
        done = bash("-c", program, "demo.sh", "echo x; exit 3")
        self.assertEqual(done.returncode, 3)
        self.assertIn("    | x\n", done.stdout)
        self.assertIn(str(self.log / "a_b.log"), done.stdout)


class SummaryTest(FolderTest):
    CTEST = (
        '<testsuite><testcase name="A.B" classname="A.B" status="run"/>'
        '<testcase name="A.C" classname="A.C" status="notrun">'
        '<skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/>'
        "<system-out>a_test.cc:7: Skipped\nno GPU on\nthis machine\n\n[  SKIPPED ]</system-out>"
        "</testcase></testsuite>"
    )
    PYTEST = (
        '<testsuites><testsuite><testcase name="t" classname="m"/><testcase name="u" classname="m">'
        '<failure message="x"/></testcase><testcase name="v" classname="m">'
        '<skipped message="no promtool"/></testcase></testsuite></testsuites>'
    )

    def test_everything_is_counted_once(self):
        self.write("ctest_dev.xml", self.CTEST)
        self.write("pytest.xml", self.PYTEST)
        self.write("phases.tsv", "ctest dev\t0\t3\npytest\t1\t4\nbuild asan\t2\t5\n")
        summary = summarise_tests.summarise(self.folder)
        self.assertEqual(summary.last_line(), "2 passed, 2 failed, 2 skipped")
        self.assertEqual(
            sorted(reason for _, reason in summary.skipped),
            ["no GPU on this machine", "no promtool"],
        )
        self.assertIn("phase build asan: ended with status 2", summary.failed)
        self.assertFalse(summary.succeeded())

    def test_a_run_without_a_test_fails(self):
        self.write("phases.tsv", "build dev\t0\t3\n")
        self.assertFalse(summarise_tests.summarise(self.folder).succeeded())
        self.write("ctest_dev.xml", '<testsuite><testcase name="a" status="notrun"/></testsuite>')
        self.assertFalse(summarise_tests.summarise(self.folder).succeeded())

    def test_a_torn_file_is_a_failure(self):
        self.write("ctest_dev.xml", "<testsuite><testcase")
        self.assertEqual(len(summarise_tests.summarise(self.folder).failed), 1)

    def test_the_sum_is_the_last_line(self):
        self.write("ctest_dev.xml", self.CTEST)
        command = [sys.executable, str(SCRIPTS / "summarise_tests.py"), str(self.folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0)
        self.assertTrue(done.stdout.endswith("\n1 passed, 0 failed, 1 skipped\n"), done.stdout)


class BenchmarksTest(FolderTest):
    def result(self, *names: str) -> str:
        rows = [
            {"run_name": name, "name": name, "cpu_time": 2.0, "time_unit": "ns"} for name in names
        ]
        return json.dumps({"context": {"num_cpus": 2}, "benchmarks": rows})

    def test_files_are_joined_in_google_benchmarks_form(self):
        self.write("a_bench.json", self.result("A"))
        self.write("b_bench.json", self.result("B", "C"))
        self.write("c_bench.json", "")
        merged = merge_benchmarks.merge(self.folder)
        self.assertEqual(merged["context"], {"num_cpus": 2})
        self.assertEqual([row["name"] for row in merged["benchmarks"]], ["A", "B", "C"])

    def test_a_name_belongs_to_one_program(self):
        self.write("a_bench.json", self.result("A"))
        self.write("b_bench.json", self.result("A"))
        with self.assertRaisesRegex(ValueError, "A is in a_bench and in b_bench"):
            merge_benchmarks.merge(self.folder)


if __name__ == "__main__":
    unittest.main()
