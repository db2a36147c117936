"""Quality of models by image feature: `python -m benchmarks.image_features [NAMES ...]`.

Each is a list of names as `--features` takes it. The sample collection, split by group (seed 0) before anything is
learned; 3,000 visual words, pictures at 128 pixels, as `wsabie demo` takes them; the model with its defaults; labels
with two training pictures or more.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.machine import describe_machine, machine
from wsabie.cli.data.features import summarize_map
from wsabie.core.execution import ProcessExecutor, SerialExecutor
from wsabie.core.machine import count_available_cores
from wsabie.evaluation.splits import split
from wsabie.features.extractor_registry import create_extractor
from wsabie.features.extractors.composite_extractors import KernelPcaExtractor
from wsabie.io.records import FeatureTable
from wsabie.workflows.compare.comparison import compare_models
from wsabie.workflows.compare.comparison_task import build_comparison_task
from wsabie.workflows.compare.entrants import build_entrants
from wsabie.workflows.demos import MIN_PICTURES, N_VISUAL_WORDS, SIZE, open_sample_images
from wsabie.workflows.report.report_input import extract_split

NAMES = ("visual-words", "colour", "textons", "hog", "colour,textons,hog", "visual-words,colour,textons,hog")
METRICS = ("p@1", "p@10", "MAP")


def by_group(rows: FeatureTable) -> Any:
    return split(len(rows), by="group", ids=rows.ids, groups=rows.groups, seed=0)


def measure_extractor(
    names: str, part: str, balance: str | None, threads: int, components: int | None
) -> dict[str, Any]:
    """Held-out figures of one list of names, what a row of it is, and what a map to components loses."""
    options: dict[str, Any] = {
        "size": SIZE,
        **({"n_words": N_VISUAL_WORDS} if "visual-words" in names.split(",") else {}),
    }
    options |= {"n_components": components} if components else {}
    extractor = create_extractor(names, **options, **({"balance": balance} if balance and "," in names else {}))
    run = SerialExecutor() if threads == 1 else ProcessExecutor(threads)
    rows, sides = extract_split(open_sample_images(part), extractor, by_group, executor=run)
    train, valid, test = (rows.take(side) for side in (sides.train, sides.valid, sides.test))
    task = build_comparison_task(train, valid, test, min_rows=MIN_PICTURES)
    (entry,) = compare_models(task, build_entrants(["wsabie"], threads=threads)).entries
    means = entry.evaluation.means
    return {
        "features": rows.X.shape[1],
        "non_zeros": float(np.count_nonzero(rows.X) if isinstance(rows.X, np.ndarray) else rows.X.nnz) / len(rows),
        **{name: means[name] for name in METRICS},
        **(summarize_map(extractor.pca) if isinstance(extractor, KernelPcaExtractor) else {}),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--part", default="all", choices=("emoji", "drawings", "all"))
    parser.add_argument("--balance", choices=("length", "mass"))
    parser.add_argument("--components", type=int, help="of kernel PCA, in place of the rows themselves")
    parser.add_argument("--threads", type=int, default=count_available_cores())
    parser.add_argument("--out", type=Path, help="write the figures to this JSON file")
    options = parser.parse_args()
    print(describe_machine())
    figures = {}
    for names in options.names:
        figures[names] = measure_extractor(names, options.part, options.balance, options.threads, options.components)
        print(f"{names:<26}", ", ".join(f"{key} {value:.4g}" for key, value in figures[names].items()), flush=True)
    if options.out:
        balance = options.balance or ("mass" if options.components else "length")
        task = {"part": options.part, "balance": balance, "components": options.components}
        options.out.write_text(
            json.dumps({"schema": 1, "machine": machine(), "task": task, "figures": figures}, indent=1) + "\n"
        )


if __name__ == "__main__":
    main()
