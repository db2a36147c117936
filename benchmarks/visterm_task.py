"""The seeded visual-word tasks of `wsabie.studies.reproduce.visterms`, kept on disk between benchmarks.

`python -m benchmarks.visterm_task S` writes the task to `benchmarks/.cache/` (S takes about 20 s, M a few
minutes) and prints its figures as JSON, with those of a scorer that knows the noise-free generator.
"""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from wsabie.studies.reproduce.visterms import (
    LATENT,
    N_WORDS,
    SIZES,
    Task,
    World,
    figures,
    generate,
    noise_free_figures,
    read,
    save,
)

__all__ = ["CACHE", "LATENT", "N_WORDS", "SIZES", "Task", "World", "figures", "generate", "load", "noise_free_figures"]

CACHE = Path(__file__).resolve().parent / ".cache"


def load(name: str, cache: Path = CACHE) -> Task:
    """The task of that name, from `cache`, where it is put when it is not there yet."""
    file = cache / f"{name}.npz"
    if not file.exists():
        save(generate(name)[0], file)
    return read(file)


def main() -> None:
    """Write tasks and print their figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("task", nargs="+", choices=SIZES)
    parser.add_argument("--out", type=Path, default=CACHE, help="folder (default: %(default)s)")
    chosen = parser.parse_args()
    for name in chosen.task:
        task, world = generate(name)
        save(task, chosen.out / f"{name}.npz")
        known = {"task": name, **asdict(SIZES[name]), **figures(task), **noise_free_figures(task, world)}
        sys.stdout.write(json.dumps(known) + "\n")


if __name__ == "__main__":
    main()
