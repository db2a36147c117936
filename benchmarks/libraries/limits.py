"""Files that are made to cost time or memory: who refuses them, and after how long."""

import gzip
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import numpy as np
import pyarrow as pa
from PIL import Image
from pyarrow import parquet
from scipy.sparse import csr_matrix

from benchmarks.libraries.measure import Work, compare
from wsabie.core.validation import convert_to_csr
from wsabie.features.encoders.onnx_graph_check import check_graph
from wsabie.features.images.image_decoder import decode_image
from wsabie.io.formats.parquet_tables import open_parquet_table
from wsabie.io.parsers.text_files import open_decompressed
from wsabie.io.parsers.xml_elements import parse_xml

SCANS, SIDE, EXPANDED, ENTITIES, LETTERS = 200, 4000, 256 << 20, 100, 60_000
COPIES, NONZEROS = 20_000_000, 10_000_000


def run(folder: Path) -> None:
    """Open files that expand or loop, and a sparse matrix that points outside of itself."""
    _compare_pictures()
    _compare_texts(folder / "rows.txt.gz")
    _compare_elements()
    _compare_networks()
    _compare_tables(folder / "rows.parquet")
    _compare_matrices()


def _attempt(work: Callable[[], object]) -> Work:
    """Return work whose result says what came of it."""

    def attempt() -> str:
        try:
            work()
        except Exception as error:
            return f"refused: {' '.join(str(error).split())[:60]}"
        return "read"

    return attempt


def _compare_pictures() -> None:
    out = BytesIO()
    Image.new("L", (SIDE, SIDE), 128).save(out, "JPEG", progressive=True)
    content = out.getvalue()
    last, end = content.rindex(b"\xff\xda"), content.rindex(b"\xff\xd9")
    content = content[:end] + content[last:end] * SCANS + content[end:]

    def ours() -> Work:
        return _attempt(lambda: decode_image(content))

    def pillow() -> Work:
        def work() -> object:
            with Image.open(BytesIO(content)) as image:
                image.draft("RGB", (256, 256))
                return image.load()

        return _attempt(work)

    compare(f"JPEG of {SCANS} more scans, {len(content) / 1e3:.0f} kB", {"ours": ours, "pillow": pillow}, str)


def _compare_texts(path: Path) -> None:
    path.write_bytes(gzip.compress(b"a,b\n" * (EXPANDED // 4)))

    def ours() -> Work:
        def work() -> None:
            with open_decompressed(path) as stream:
                while stream.read(1 << 20):
                    pass

        return _attempt(work)

    def pandas() -> Work:
        import pandas as library

        return _attempt(lambda: library.read_csv(path, header=None))

    title = f"{path.stat().st_size / 1e3:.0f} kB of gzip that expand to {EXPANDED >> 20} MiB of text"
    compare(title, {"ours": ours, "pandas": pandas}, str)


def _compare_elements() -> None:
    entity = f'<!DOCTYPE a [<!ENTITY b "{"x" * LETTERS}">]>'
    content = f"{entity}<a>{'&b;' * ENTITIES}</a>".encode()

    def ours() -> Work:
        return _attempt(lambda: parse_xml(content, "a.xml"))

    def standard() -> Work:
        from xml.etree import ElementTree

        return _attempt(lambda: ElementTree.fromstring(content))  # noqa: S314 - it is the attack

    def defusedxml() -> Work:
        from defusedxml import ElementTree

        return _attempt(lambda: ElementTree.fromstring(content))

    def lxml() -> Work:
        from lxml import etree

        return _attempt(lambda: etree.fromstring(content))

    entrants = {"ours": ours, "xml.etree": standard, "defusedxml": defusedxml, "lxml": lxml}
    compare(f"XML of {len(content) / 1e3:.0f} kB with {ENTITIES} times an entity of {LETTERS:,} letters", entrants, str)


def _compare_networks() -> None:
    from onnx import TensorProto, helper, numpy_helper

    x, y, v, w = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 3]) for name in "xyvw")
    go, more = (helper.make_tensor_value_info(name, TensorProto.BOOL, []) for name in ("go", "more"))
    count = helper.make_tensor_value_info("i", TensorProto.INT64, [])
    copies = [helper.make_node("Identity", [name], [copy]) for name, copy in (("go", "more"), ("v", "w"))]
    body = helper.make_graph(copies, "body", [count, go, v], [more, w])
    loop = helper.make_node("Loop", ["steps", "", "x"], ["y"], body=body)
    steps = numpy_helper.from_array(np.array(2**62, np.int64), "steps")
    model = helper.make_model(helper.make_graph([loop], "network", [x], [y], [steps]))
    content = model.SerializeToString()

    def ours() -> Work:
        return _attempt(lambda: check_graph(content))

    def onnx() -> Work:
        import onnx as library

        return _attempt(lambda: library.checker.check_model(content, full_check=True))

    compare(f"ONNX network of {len(content)} bytes that loops 2^62 times", {"ours": ours, "onnx": onnx}, str)


def _compare_tables(path: Path) -> None:
    starts = pa.array(np.arange(0, COPIES + 1, COPIES // 100, dtype=np.int32))
    values = pa.ListArray.from_arrays(starts, pa.array(np.zeros(COPIES, np.float32)))
    parquet.write_table(pa.table({"features": values}), path, compression="zstd")

    def ours() -> Work:
        return _attempt(lambda: sum(1 for _ in open_parquet_table(path).iterate_batches(["features"], 100)))

    def arrow() -> Work:
        return _attempt(lambda: parquet.read_table(path))

    def polars() -> Work:
        import polars as library

        return _attempt(lambda: library.read_parquet(path))

    title = f"Parquet of {path.stat().st_size / 1e3:.0f} kB with {COPIES:,} copies of one number"
    compare(title, {"ours": ours, "pyarrow": arrow, "polars": polars}, str, with_memory=False)


def _compare_matrices() -> None:
    indices = np.zeros(NONZEROS, np.int32)
    indices[-1] = 1_000_000
    matrix = csr_matrix((np.ones(NONZEROS, np.float32), indices, np.array([0, NONZEROS])), (1, 10))

    def scikit() -> Work:
        from sklearn.utils import check_array

        return _attempt(lambda: check_array(matrix, accept_sparse="csr"))

    entrants = {
        "ours": lambda: _attempt(lambda: convert_to_csr(matrix, "X")),
        "scipy check_format": lambda: _attempt(matrix.check_format),
        "scikit-learn check_array": scikit,
    }
    compare(f"a column outside of a matrix of {NONZEROS:,} numbers", entrants, str)
