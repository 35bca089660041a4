#!/usr/bin/env python3
"""Checks that libflopledger.so lets out its interface and nothing else, and is an NVTX injection.

python3 tests/install/exported_symbols.py nm build/dev/libflopledger.so
"""

from __future__ import annotations

import re
import subprocess
import sys

OURS = re.compile(
    r"^((non-virtual thunk to |guard variable for )?flopledger::"
    r"|(vtable|typeinfo|typeinfo name) for flopledger::|flopledger_|InitializeInjection)"
)


def main() -> int:
    nm, library = sys.argv[1:]
    command = [nm, "--dynamic", "--demangle", "--defined-only", library]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    names = [line.split(" ", 2)[2] for line in output.splitlines()]
    foreign = [name for name in names if not OURS.match(name)]
    for name in foreign:
        print(f"leaves the library, but is no part of the interface: {name}")
    if not any(name.startswith("flopledger::") for name in names):
        print("nothing of the interface leaves the library")
        return 1
    # By name, since NVTX looks it up; another entry would be a promise that nobody keeps.
    entries = [name for name in names if name.startswith("InitializeInjection")]
    if entries != ["InitializeInjectionNvtx2"]:
        print(f"entries of injections are {entries}; wanted: InitializeInjectionNvtx2 alone")
        return 1
    return 1 if foreign else 0


if __name__ == "__main__":
    sys.exit(main())
