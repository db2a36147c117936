"""Members of group pictures labelled together: `python -m benchmarks.group_pictures [--seeds 3] [--out FILE]`.

Half of the figures of the bundled emoji of people train a model of objects and parts, with the list of who is married
to whom as its relation; group pictures are made of the other half (`papers.runs.object_parts.group_images`).
"""

import argparse
import json
from pathlib import Path

import numpy as np

from benchmarks.machine import describe_machine, machine
from papers.runs.object_parts.group_images import run_study
from wsabie.core.execution import ProcessExecutor, SerialExecutor
from wsabie.core.machine import count_available_cores

COLUMNS = ("both", "each", "all four", "married")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--pictures", type=int, default=200, help="with one couple, and as many with two")
    parser.add_argument("--null", action="store_true", help="training gets wrong couples")
    parser.add_argument("--threads", type=int, default=count_available_cores())
    parser.add_argument("--out", type=Path, help="write the figures to this JSON file")
    arguments = parser.parse_args()
    print(describe_machine())
    run = SerialExecutor() if arguments.threads == 1 else ProcessExecutor(arguments.threads)
    options = {"n": arguments.pictures, "null": arguments.null, "executor": run, "threads": arguments.threads}
    runs = [run_study(seed, **options) for seed in range(arguments.seeds)]
    print("| |", " | ".join(COLUMNS), "|\n|---|" + "---|" * len(COLUMNS))
    for name in runs[0]:
        figures = np.array([[run_figures[name][column] for column in COLUMNS] for run_figures in runs])
        spread = figures.std(0, ddof=1) if len(runs) > 1 else np.zeros(len(COLUMNS))
        cells = [f"{mean:.3f} ± {sd:.3f}" for mean, sd in zip(figures.mean(0), spread, strict=True)]
        print(f"| {name} |", " | ".join(cells), "|")
    if arguments.out:
        figures = {
            "schema": 1,
            "machine": machine(),
            "pictures": arguments.pictures,
            "null": arguments.null,
            "seeds": runs,
        }
        arguments.out.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
