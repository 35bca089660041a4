"""Runs one part of the check, or adds up what the parts have written.

python -m gpu_check list
python -m gpu_check run fence --out results
python -m gpu_check sum results
"""

from __future__ import annotations

import argparse
import json
import sys
import traceback
from pathlib import Path

from .measuring import OUTCOMES, document, problems, write

SKIPPED = 77


def _context(arguments: argparse.Namespace):
    from .context import Context

    folder = Path(arguments.out)
    folder.mkdir(parents=True, exist_ok=True)
    return Context(device=arguments.device, folder=folder, small=arguments.small)


def _run(arguments: argparse.Namespace) -> int:
    from .context import Failed, Skip, machine
    from .parts import PARTS

    context = _context(arguments)
    outcome, why, facts = "passed", "", {}
    try:
        part, _ = PARTS[arguments.part]
        facts = part(context)
    except Skip as skip:
        outcome, why = "skipped", str(skip)
    except Failed as failed:
        outcome, why, facts = "failed", str(failed), failed.facts
    except Exception as error:
        outcome, why = "failed", f"{type(error).__name__}: {error}"
        traceback.print_exc()
    result = document(arguments.part, outcome, why=why, facts=facts, machine=machine(context))
    write(context.folder / f"{arguments.part}.json", result)
    print(f"{outcome}{': ' + why if why else ''}")
    return {"passed": 0, "skipped": SKIPPED}.get(outcome, 1)


def _run_overhead(arguments: argparse.Namespace) -> int:
    from .overhead import one_run

    print(json.dumps(one_run(_context(arguments), arguments.kind)))
    return 0


def _list(_: argparse.Namespace) -> int:
    from .parts import PARTS

    for name, (_, limit) in PARTS.items():
        print(name, limit)
    return 0


def _note(arguments: argparse.Namespace) -> int:
    """Writes the document of a part that could not write its own."""
    folder = Path(arguments.out)
    result = document(arguments.part, "failed", why=arguments.why, facts={}, machine={})
    write(folder / f"{arguments.part}.json", result)
    return 0


def _sum(arguments: argparse.Namespace) -> int:
    from .parts import PARTS

    counts = dict.fromkeys(OUTCOMES, 0)
    found = []
    for path in (Path(arguments.out) / f"{name}.json" for name in PARTS):
        if not path.exists():
            continue
        try:
            result = json.loads(path.read_text(encoding="utf-8"))
            wrong = problems(result)
        except json.JSONDecodeError as error:
            result, wrong = {}, [str(error)]
        outcome = "failed" if wrong else result["outcome"]
        why = "; ".join(wrong) or result["why"]
        counts[outcome] += 1
        found.append(result)
        print(f"  {path.stem:<20} {outcome}{': ' + why if why else ''}")
    text = ", ".join(f"{count} {outcome}" for outcome, count in counts.items())
    print(text)
    write(Path(arguments.out) / "results.json", {"counts": counts, "parts": found})
    return 0 if counts["failed"] == 0 and counts["passed"] > 0 else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="gpu_check", description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    commands.add_parser("list", help="names and time limits").set_defaults(call=_list)

    run = commands.add_parser("run", help="one part")
    run.add_argument("part")
    run.set_defaults(call=_run)
    once = commands.add_parser("run-overhead", help="one run of the part overhead")
    once.add_argument("kind", choices=("plain", "steps", "collected"))
    once.set_defaults(call=_run_overhead)
    for each in (run, once):
        each.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
        each.add_argument("--out", required=True)
        each.add_argument("--small", action="store_true")

    note = commands.add_parser("note", help="a part that was ended from outside")
    note.add_argument("part")
    note.add_argument("why")
    note.add_argument("--out", required=True)
    note.set_defaults(call=_note)
    add = commands.add_parser("sum", help="add up the documents of a folder")
    add.add_argument("out")
    add.set_defaults(call=_sum)
    return parser


def main() -> int:
    arguments = _parser().parse_args()
    if arguments.call is _run:
        from .parts import PARTS

        if arguments.part not in PARTS:
            print(f"no part '{arguments.part}'; accepted: {', '.join(PARTS)}", file=sys.stderr)
            return 2
    return arguments.call(arguments)


if __name__ == "__main__":
    sys.exit(main())
