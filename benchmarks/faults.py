"""Attacks on everything that writes and reads: `python -m benchmarks.faults [--only NAME ...]`, or `make faults`.

kills: commands that write are killed at chosen moments. full-disks: they find no space. collection: its
database is empty, cut, older, foreign or read-only. changed-files: every format of ours is changed. small-inputs: small
files that ask for much. hostile-arrays: sparse matrices that lie. slow-callers: idle and slow callers of a service.

After each, nothing that was acknowledged may be lost, there is no traceback, memory stays under 2 GB, and the same
command again completes; otherwise the exit code is 1, and each fault is printed with the command that repeats it.
"""

import argparse
import json
import sys
from pathlib import Path

from tests.faults.attacks import (
    changed_files,
    collection_faults,
    full_disks,
    hostile_arrays,
    kills,
    slow_callers,
    small_inputs,
)
from tests.faults.attacks.report import Summary, run_attack, table_of
from tests.faults.lab import open_lab

from benchmarks.machine import describe_machine, machine
from wsabie.core.machine import count_available_cores

ATTACKS = {
    module.NAME: module
    for module in (kills, full_disks, collection_faults, changed_files, small_inputs, hostile_arrays, slow_callers)
}


def main() -> int:
    """Run attacks, print a table, and return the exit code."""
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="python -m benchmarks.faults", description=__doc__, formatter_class=form)
    parser.add_argument("--only", action="append", choices=ATTACKS, metavar="NAME", help=f"one of {', '.join(ATTACKS)}")
    parser.add_argument("--seed", type=int, default=0, help="draws other moments, levels and changes")
    parser.add_argument("--try", type=int, dest="number", help="only the case of this number, with --only")
    parser.add_argument("--short", action="store_true", help="a few quick tries of each attack, as in the test suite")
    parser.add_argument(
        "--jobs", type=int, default=count_available_cores(), help="cases at a time (default: all cores)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--out", type=Path, help="write the figures to this JSON file")
    options = parser.parse_args()
    if options.number is not None and len(options.only or ()) != 1:
        parser.error("--try wants one --only NAME")
    if not options.json:
        print(describe_machine())
    summaries = _run(options)
    document = {
        "schema": 1,
        "machine": machine(),
        "seed": options.seed,
        "attacks": [summary.as_json() for summary in summaries],
    }
    if options.out:
        options.out.write_text(json.dumps(document, indent=1) + "\n")
    print(json.dumps(document) if options.json else table_of(summaries), flush=True)
    return int(any(summary.faults for summary in summaries))


def _run(options: argparse.Namespace) -> list[Summary]:
    with open_lab() as lab:
        return [
            run_attack(lab, ATTACKS[name], options.seed, short=options.short, number=options.number, jobs=options.jobs)
            for name in options.only or ATTACKS
        ]


if __name__ == "__main__":
    sys.exit(main())
