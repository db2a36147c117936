"""Readers of text: sparse rows, tables, JSON by element, annotations of pictures."""

import csv
import gzip
import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.libraries.measure import Work, compare
from wsabie.features.extractors.bag_of_words import BagOfWords
from wsabie.io.formats.coco import read_coco
from wsabie.io.formats.svmlight import SvmlightStream
from wsabie.io.parsers.json_values import iterate_elements
from wsabie.io.parsers.text_tables import iterate_table_rows
from wsabie.samples import get_documents_path
from wsabie.storage.rejects import Rejects

COPIES = 40


def read_documents() -> list[dict[str, Any]]:
    """Return the bundled documentation."""
    with gzip.open(get_documents_path(), "rt", encoding="utf-8") as stream:
        return [json.loads(line) for line in stream]


def run(folder: Path) -> None:
    """Write files made of the bundled documentation and read them in several ways."""
    _compare_sparse(folder)
    _compare_tables(folder)
    _compare_json(folder)


def _compare_sparse(folder: Path) -> None:
    path = folder / "rows.txt"
    bag = BagOfWords(1 << 16, hashing=True, weighting="counts")
    rng = np.random.default_rng(0)
    with path.open("w") as out:
        for number, document in enumerate(read_documents() * COPIES):
            columns, values = bag.extract_text(document["text"])
            weights = np.log1p(values) * rng.random(len(values))
            cells = " ".join(f"{c}:{v:.6g}" for c, v in zip(columns.tolist(), weights.tolist(), strict=True))
            out.write(f"{number % 50},{50 + number % 7} {cells}\n")

    def ours() -> Work:
        return lambda: SvmlightStream(path, Rejects()).read_all().X

    def sklearn() -> Work:
        from sklearn.datasets import load_svmlight_file

        return lambda: load_svmlight_file(str(path), multilabel=True, zero_based=True, dtype=np.float32)[0]

    expected = ours()()

    def note(X: Any) -> str:
        same = len(X.data) == len(expected.data) and bool((X.data == expected.data).all())  # type: ignore[attr-defined]
        return f"{X.shape}, same bits: {same}"

    title = f"sparse rows: {path.stat().st_size / 1e6:.1f} MB of svmlight text with several labels"
    compare(title, {"ours": ours, "scikit-learn load_svmlight_file": sklearn}, note)


def _compare_tables(folder: Path) -> None:
    table, lines = folder / "table.csv", folder / "table.jsonl"
    documents = read_documents() * COPIES
    with table.open("w", newline="") as out, lines.open("w") as json_out:
        writer = csv.writer(out)
        writer.writerow(documents[0])
        for document in documents:
            writer.writerow(";".join(v) if isinstance(v, list) else v for v in document.values())
            json_out.write(json.dumps(document, ensure_ascii=False) + "\n")

    def ours(path: Path) -> Work:
        return lambda: sum(1 for _ in iterate_table_rows(path, Rejects()))

    def plain() -> Work:
        def work() -> int:
            with table.open(newline="") as stream:
                return sum(1 for _ in csv.DictReader(stream))

        return work

    def pandas(path: Path) -> Work:
        import pandas as pd

        if path is lines:
            return lambda: len(pd.read_json(path, lines=True, dtype=False))
        return lambda: len(pd.read_csv(path, dtype=str))

    def arrow(path: Path) -> Work:
        from pyarrow import csv as arrow_csv
        from pyarrow import json as arrow_json

        if path is lines:
            return lambda: len(arrow_json.read_json(path).to_pylist())
        options = arrow_csv.ParseOptions(newlines_in_values=True)
        return lambda: len(arrow_csv.read_csv(path, parse_options=options).to_pylist())

    def msgspec() -> Work:
        from msgspec.json import decode

        def work() -> int:
            with lines.open("rb") as stream:
                return sum(1 for line in stream if decode(line))

        return work

    for path, extra in ((table, {"csv.DictReader": plain}), (lines, {"msgspec decode by line": msgspec})):
        compare(
            f"tables: {path.stat().st_size / 1e6:.1f} MB of {path.suffix[1:].upper()}, every row as a dict",
            {
                "ours": partial(ours, path),
                **extra,
                "pandas": partial(pandas, path),
                "pyarrow to dicts": partial(arrow, path),
            },
            lambda n: f"{n:,} rows",
        )


def _compare_json(folder: Path) -> None:
    path = folder / "annotations.json"
    pictures = 20_000
    rng = np.random.default_rng(0)
    images = [{"id": i, "file_name": f"{i}.jpg", "width": 512, "height": 512} for i in range(pictures)]
    names = [{"id": i, "name": f"part {i}"} for i in range(18)]
    marked = []
    for i in range(8 * pictures):
        x, y, *sides = rng.integers(0, 256, 4).tolist()
        corners = (rng.random(40) * 500).round(1).tolist()
        marked.append({"id": i, "image_id": i % pictures, "category_id": i % 18, "bbox": [x, y, *sides],
                       "segmentation": [corners], "area": 1.5, "iscrowd": 0})  # fmt: skip
    path.write_text(json.dumps({"images": images, "categories": names, "annotations": marked}))
    for i in range(pictures):
        (folder / f"{i}.jpg").touch()

    def ours() -> Work:
        return lambda: sum(1 for _ in iterate_elements(path, ["annotations"]))

    def ijson() -> Work:
        import ijson

        def work() -> int:
            with path.open("rb") as stream:
                return sum(1 for _ in ijson.items(stream, "annotations.item", use_float=True))

        return work

    def json_load() -> Work:
        return lambda: len(json.loads(path.read_text())["annotations"])

    title = f"JSON by element: {path.stat().st_size / 1e6:.1f} MB, {len(marked):,} annotations of pictures"
    compare(title, {"ours": ours, "ijson": ijson, "json.load, whole": json_load}, lambda n: f"{n:,} elements")

    def ours_coco() -> Work:
        return lambda: read_coco(path, rejects=Rejects()).items

    def pycocotools() -> Work:
        import contextlib
        import io

        from pycocotools.coco import COCO

        def work() -> Any:
            with contextlib.redirect_stdout(io.StringIO()):
                return COCO(str(path)).anns

        return work

    entrants = {"ours, pictures looked for": ours_coco, "pycocotools": pycocotools}
    compare("COCO: the same file as regions of pictures", entrants, lambda items: f"{len(items):,} regions")  # type: ignore[arg-type]
