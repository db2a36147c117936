"""`python -m benchmarks.libraries [TOPIC ...]`: code of ours beside libraries that do the same, by turns in one run.

Libraries that are not installed are left out. Medians of seven rounds of processor time, growth of the resident set in
a process of its own, and what differs in the result. `docs/decisions` says what follows from it.
"""

import argparse
import importlib
import tempfile
from pathlib import Path

from benchmarks.machine import describe_machine

TOPICS = (
    "readers", "tags", "features", "ranking", "storage", "evaluation", "vocabulary", "jobs", "limits", "words",
    "models",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.libraries", description=__doc__.split("\n", 1)[0])
    parser.add_argument("topics", nargs="*", metavar="TOPIC", help=f"{', '.join(TOPICS)}; all without any")
    arguments = parser.parse_args()
    print(describe_machine())
    for topic in arguments.topics or TOPICS:
        with tempfile.TemporaryDirectory() as folder:
            importlib.import_module(f"benchmarks.libraries.{topic}").run(Path(folder))


if __name__ == "__main__":
    main()
