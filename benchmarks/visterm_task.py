"""The seeded visual-word tasks of `papers.synthetic_images`, kept on disk between benchmarks.

`python -m benchmarks.visterm_task S` writes the task to `benchmarks/.cache/` (S takes about 20 s, M a few
minutes) and prints its figures as JSON, with those of a scorer that knows the noise-free generator.
"""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from papers.synthetic_images import (
    LATENT,
    N_WORDS,
    SIZES,
    ImageTask,
    ImageTaskTruth,
    compute_noise_free_figures,
    compute_task_figures,
    generate_with_truth,
    read_task,
    save_task,
)

__all__ = [
    "CACHE",
    "LATENT",
    "N_WORDS",
    "SIZES",
    "ImageTask",
    "ImageTaskTruth",
    "compute_task_figures",
    "generate_with_truth",
    "load",
    "compute_noise_free_figures",
]

CACHE = Path(__file__).resolve().parent / ".cache"


def load(name: str, cache: Path = CACHE) -> ImageTask:
    """The task of that name, from `cache`, where it is put when it is not there yet."""
    file = cache / f"{name}.npz"
    if not file.exists():
        save_task(generate_with_truth(name)[0], file)
    return read_task(file)


def main() -> None:
    """Write tasks and print their figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("task", nargs="+", choices=SIZES)
    parser.add_argument("--out", type=Path, default=CACHE, help="folder (default: %(default)s)")
    options = parser.parse_args()
    for name in options.task:
        task, world = generate_with_truth(name)
        save_task(task, options.out / f"{name}.npz")
        facts = {
            "task": name,
            **asdict(SIZES[name]),
            **compute_task_figures(task),
            **compute_noise_free_figures(task, world),
        }
        sys.stdout.write(json.dumps(facts) + "\n")


if __name__ == "__main__":
    main()
