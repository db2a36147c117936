"""Export as plain arrays, label names, and an example program of twenty lines that ranks with NumPy."""

from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from wsabie.core.machine import collect_versions
from wsabie.models.annotators import Annotator
from wsabie.models.exporters.portable_model import PortableModel, ScoringTable, build_portable_model
from wsabie.storage.atomic_files import create_folder

README = """# {kind} model as plain arrays

{n_labels:,} labels, {n_features:,} features; written by wsabie {version}. Nothing here needs that package.

| file | holds |
|---|---|
{files}

`python predict.py ROWS [K]` prints the K best labels of each row, with their scores; it needs NumPy alone. {rows}
From Python: `ids, scores = predict.rank(rows, k)`.
"""

_SPARSE_ROWS = (
    "ROWS is a text file with `feature:value` pairs, a row a line; features are numbered from 0, in the order of "
    "training (`features.txt`, if it is there), each at most once in a row, and values are counts as they were then. "
    "Labels before them (svmlight) and a first line of three sizes are passed over."
)
_DENSE_ROWS = (
    "ROWS is a .npy file (n, {n}), or a text file with {n} numbers a line; features come in the order of training "
    "(`features.txt`, if it is there), with values as they were then."
)

_FILE_CONTENTS = {
    "V.npy": "what (scaled) rows are multiplied by",
    "W.npy": "what points are compared with, a row for each label, or for each term of one",
    "weight.npy": "what each feature is multiplied by; after the features the constant, if there is one",
    "shift.npy": "what is taken off each feature first",
    "offset.npy": "added after V",
    "bias.npy": "added to the scores",
    "centre.npy": "taken off points before they are compared",
    "targets.npy": "vectors of the classes of which points are mixed",
    "terms.npy": "which rows of W a label has; the best counts",
    "labels.txt": "names of labels 0, 1, ..., one a line; an empty line is a label that was merged or removed",
    "features.txt": "names of features 0, 1, ..., one a line",
    "predict.py": "the example",
}


def write_numpy_arrays(annotator: Annotator, out: Path) -> list[Path]:
    """Write the folder and return its files.

    Raises
    ------
    InputError
        The model is of another kind, or the folder cannot be written.
    """
    small, feature_names = build_portable_model(annotator.model), annotator.feature_names
    arrays = _collect_arrays(small)
    names = {"labels.txt": small.labels, **({} if feature_names is None else {"features.txt": feature_names})}
    names = {file: [" ".join(name.split()) for name in listed] for file, listed in names.items()}
    with create_folder(out) as draft:
        for name, array in arrays.items():
            content = BytesIO()  # np.save to a file would hide that a disk is full
            np.save(content, array, allow_pickle=False)
            (draft / f"{name}.npy").write_bytes(content.getbuffer())
        for file, lines in names.items():
            (draft / file).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        (draft / "predict.py").write_text(build_example_program(small, sorted(arrays)), encoding="utf-8")
        files = [*(f"{name}.npy" for name in arrays), *names, "predict.py"]
        rows = _SPARSE_ROWS if small.sparse else _DENSE_ROWS.format(n=small.n_features)
        readme = README.format(
            kind=small.kind, n_labels=sum(map(bool, small.labels)), n_features=small.n_features, rows=rows,
            version=collect_versions()["wsabie"],
            files="\n".join(f"| `{file}` | {_FILE_CONTENTS[file]} |" for file in files),
        )  # fmt: skip
        (draft / "README.md").write_text(readme, encoding="utf-8")
    return [out / file for file in [*files, "README.md"]]


def _collect_arrays(small: PortableModel) -> dict[str, Any]:
    against, scaling = small.against, small.scaling
    weight = () if small.sparse and (scaling.weight == 1).all() else scaling.weight
    arrays: dict[str, Any] = {"V": small.features, "offset": small.offset, "weight": weight, "shift": scaling.shift}
    if small.mixture is not None:
        arrays["targets"] = small.mixture.targets
    if against is not None:
        arrays |= {"W": against.table, "bias": against.bias, "centre": against.centre, "terms": against.terms}
    return {name: array for name, array in arrays.items() if array is not None and len(array)}


def build_example_program(small: PortableModel, arrays: list[str]) -> str:
    """Return the example program with the steps of this model only."""
    encode, reader = (_SPARSE, _READ_SPARSE) if small.sparse else (_list_dense_lines(small), _READ_DENSE)
    if "weight" not in arrays:
        encode = [line for line in encode if "weight" not in line]
    points = "np.array([encode(*row) for row in rows])" if small.sparse else "encode(np.asarray(rows, np.float32))"
    steps = [f"p = {points}", *(["p = p + offset"] if "offset" in arrays else []), *_list_steps(small)]
    names = ", ".join(f'"{name}"' for name in arrays)
    return _PROGRAM.format(
        names=", ".join(arrays),
        quoted=names if len(arrays) > 1 else f"{names},",
        comma="" if len(arrays) > 1 else ",",
        read="\n".join(reader),
        encode="\n".join(encode),
        steps="\n".join(f"    {step}" for step in steps),
    )


def _list_dense_lines(small: PortableModel) -> list[str]:
    method, lines = small.scaling.method, ["def encode(x):"]
    if method != "none":
        lines.append("    x = (x - shift) * weight[: len(shift)]")
    if small.scaling.n_added:
        lines.append("    x = np.hstack([x, np.full((len(x), 1), weight[-1])])")
        lines.append("    x /= np.linalg.norm(x, axis=1, keepdims=True)")
    return [*lines, "    return x @ V"]


def _list_steps(small: PortableModel) -> list[str]:
    steps, against = [], small.against
    if small.log_softmax:
        steps += ["p = p - p.max(axis=1, keepdims=True)", "p = p - np.log(np.exp(p).sum(axis=1, keepdims=True))"]
    if small.mixture is not None:
        steps.append(f'best = np.argsort(-p, axis=1, kind="stable")[:, :{small.mixture.top}]')
        steps.append("c = np.exp(np.take_along_axis(p, best, axis=1))")
        steps.append('p = np.einsum("ij,ijd->id", c / c.sum(axis=1, keepdims=True), targets[best])')
    steps += ["s = p"] if against is None else _list_comparison_steps(against)
    steps.append('ids = np.argsort(-s, axis=1, kind="stable")[:, :k]')
    steps.append("s = np.take_along_axis(s, ids, axis=1)")
    ids = "np.where(np.isneginf(s), -1, ids)" if small.some_hidden else "ids"
    return [*steps, f"return {ids}, s"]


def _list_comparison_steps(against: ScoringTable) -> list[str]:
    steps = [] if against.centre is None else ["p = p - centre"]
    if against.similarity == "cosine":
        steps.append("p = p / np.maximum(np.linalg.norm(p, axis=1, keepdims=True), 1e-3)")
    steps.append("s = p @ W.T")
    if against.similarity == "euclidean":
        steps.append("s = (p * p).sum(axis=1)[:, None] + (W * W).sum(axis=1) - 2 * s")
        steps.append("s = -np.sqrt(np.maximum(s, 0))")
    if against.terms is not None:
        steps.append("s = s[:, terms].max(axis=2)")
    return steps if against.bias is None else [*steps, "s = s + bias"]


_SPARSE = [
    "def encode(columns, values):",
    "    x = np.log1p(values)",
    "    x = x * weight[columns]",
    "    return x / max(np.sqrt(x @ x), 1e-12) @ V[columns]",
]
_READ_SPARSE = [
    "def read(file):",
    "    for number, line in enumerate(open(file)):",
    '        words = line.split("#")[0].split()  # those without a colon are labels',
    '        pairs = np.array([word.split(":") for word in words if ":" in word], float).reshape(-1, 2)',
    "        if number or len(pairs) or len(words) != 3:  # the first line may count rows, features and labels",
    "            yield pairs[:, 0].astype(int), pairs[:, 1].astype(np.float32)",
]
_READ_DENSE = [
    "def read(file):",
    '    return np.load(file) if file.endswith(".npy") else np.loadtxt(file, ndmin=2)',
]
_PROGRAM = '''"""The best labels of rows, by NumPy alone: python predict.py ROWS [K]"""

import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
LABELS = (HERE / "labels.txt").read_text(encoding="utf-8").split("\\n")[:-1]
{names}{comma} = (np.load(HERE / f"{{name}}.npy", mmap_mode="r") for name in ({quoted}))


{read}


{encode}


def rank(rows, k=10):
{steps}


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    try:
        found = rank(read(sys.argv[1]), int((sys.argv[2:] or [10])[0]))
    except (IndexError, OSError, ValueError) as error:
        sys.exit(f"{{' '.join(sys.argv)}}: {{error}}; the README.md beside this file says how rows are written")
    for ids, scores in zip(*found):
        print(*(f"{{LABELS[i]}} {{s:.4f}}" for i, s in zip(ids, scores) if i >= 0), sep="\\t")
'''
