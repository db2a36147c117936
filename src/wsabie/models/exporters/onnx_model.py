"""Export as one ONNX graph: rows in, the k best labels and their scores out; optionally in int8.

Dense models have one input "rows" float32 (n, d). Sparse models have two, padded to the longest row: "indices" int64
(n, m) and "values" float32 (n, m); zero values do not count, whichever feature they name. ONNX Runtime gathers this
form fastest, and it needs no row offsets, for which ONNX has no operator. The number of labels is fixed, because an
input with a default would make ONNX Runtime warn whenever the file is opened.

With int8 each row of a table (a feature's, a label's) is rounded to 255 steps of its largest number. The graph converts
it back, so rows and scores stay float32 and the result of a row depends on no other row.
"""

import json
import os
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from wsabie.core.arrays import Float32
from wsabie.core.errors import InputError
from wsabie.core.machine import collect_versions
from wsabie.models.annotators import Annotator
from wsabie.models.exporters.export_formats import require_free_path
from wsabie.models.exporters.portable_model import ClassMixture, PortableModel, ScoringTable, build_portable_model
from wsabie.storage.atomic_files import check_writable, explain_write_errors, replace_file

OPSET, IR = 18, 8
"""Versions that ONNX Runtime 1.14 and later read."""
MAX_FILE_BYTES = (1 << 31) - (1 << 26)
"""Most bytes of arrays in a single file, because a protobuf message has less than 2 GiB."""
_SMALL = 1 << 10
MAX_INLINE_BYTES = 1 << 22
"""Most bytes of a list of names inside the file; longer lists get a file beside it."""
_SHORTEST_ROW, _SHORTEST_POINT = 1e-12, 1e-3


def write_onnx_model(annotator: Annotator, out: Path, *, k: int = 10, int8: bool = False) -> list[Path]:
    """Write the graph, and files beside it for data that are too large; all or nothing is written.

    Files that an interrupted export left beside it are replaced.

    Parameters
    ----------
    annotator : Annotator
    out : Path
        Path of the .onnx file.
    k : int
        Labels of a row, at most all labels.
    int8 : bool
        Write tables of bytes.

    Returns
    -------
    list of Path
        The new files, the .onnx file last.

    Raises
    ------
    InputError
        The package onnx is missing, the model is of another kind, or the files cannot be written.
    """
    small = build_portable_model(annotator.model)
    graph = _Graph(int8)
    outputs = _fill_graph(small, graph, k)
    inline_names, side_texts = _split_names(small, annotator.feature_names, out)
    metadata = {
        "kind": small.kind,
        "int8": str(int8).lower(),
        "rows": "sparse" if small.sparse else "dense",
        **inline_names,
    }
    data = out.with_name(f"{out.name}.data")
    large = graph.n_bytes > MAX_FILE_BYTES
    content = graph.model(small, outputs, metadata, data.name if large else None)
    contents: dict[Path, Iterable[Any]] = {file: [text.encode()] for file, text in side_texts.items()}
    if large:
        contents[data] = (array.data for array in graph.outside())
    contents[out] = [content]
    _write_all(contents)
    return [*contents]


def _write_all(contents: dict[Path, Iterable[Any]]) -> None:
    """Write all files or none; the last one is renamed into place after the others."""
    require_free_path(*(file for file in contents if file.is_dir()))
    for file in contents:
        check_writable(file)  # this also removes drafts of interrupted exports, which may fill the disk
    with ExitStack() as stack:
        drafts = {file: stack.enter_context(replace_file(file)) for file in reversed(contents)}
        for file, parts in contents.items():
            with explain_write_errors(file), drafts[file].open("wb") as stream:
                for part in parts:
                    stream.write(part)  # `tofile` does not say that a disk is full
                stream.flush()
                os.fsync(stream.fileno())


def _split_names(small: PortableModel, features: list[str] | None, out: Path) -> tuple[dict[str, str], dict[Path, str]]:
    """Return names of labels and features: those inside the file, and the texts of files beside it."""
    inline_names, side_texts = {}, {}
    for name, listed in (("labels", small.labels), ("features", features)):
        text = json.dumps(listed, ensure_ascii=False)
        if listed is not None and len(text.encode()) <= MAX_INLINE_BYTES:
            inline_names[name] = text
        elif listed is not None:
            side_texts[out.with_name(f"{out.name}.{name}.txt")] = "".join(
                f"{' '.join(entry.split())}\n" for entry in listed
            )
    return inline_names, side_texts


class _Graph:
    """Nodes and arrays of a growing graph."""

    def __init__(self, int8: bool) -> None:
        try:
            import onnx
        except ImportError as error:
            raise InputError("an ONNX file is written by onnx, which is not installed; run: pip install 'wsabie[onnx]'"
                             ) from error  # fmt: skip
        self.onnx, self.int8 = onnx, int8
        self.nodes: list[Any] = []
        self.arrays: dict[str, Any] = {}

    @property
    def n_bytes(self) -> int:
        return sum(array.nbytes for array in self.arrays.values())

    def outside(self) -> list[Any]:
        """Return the arrays that go into a separate file if one is needed."""
        return [array for array in self.arrays.values() if array.nbytes >= _SMALL]

    def add(self, op: str, *inputs: str, name: str = "", **attributes: Any) -> str:
        """Add a node and return the name of its output."""
        name = name or f"{op.lower()}_{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(op, list(inputs), [name], name=f"make_{name}", **attributes))
        return name

    def best(self, scores: str, k: int, values: str, places: str) -> None:
        """Add a node for the k largest values of each row and their positions, equal values by position."""
        inputs = [scores, self.number(k, np.int64)]
        self.nodes.append(self.onnx.helper.make_node("TopK", inputs, [values, places], name=f"make_{places}", axis=-1))

    def array(self, name: str, values: Any, dtype: Any = np.float32) -> str:
        """Add an array of the model and return its name."""
        self.arrays[name] = np.ascontiguousarray(values, dtype)
        return name

    def number(self, value: float, dtype: Any = np.float32) -> str:
        return self.array(f"number_{np.dtype(dtype).name}_{value:g}", [value], dtype)

    def table(self, name: str, values: Float32) -> str:
        """Add a table and return the name of its float32 values."""
        if not self.int8:
            return self.array(name, values)
        quantised, steps = quantise_rows(values)
        nothing = self.array(f"{name}_zero", np.zeros(len(values)), np.int8)
        return self.add("DequantizeLinear", self.array(name, quantised, np.int8), self.array(f"{name}_step", steps),
                        nothing, name=f"{name}_whole", axis=0)  # fmt: skip

    def length(self, rows: str, shortest: float, extra: float = 0.0) -> str:
        """Add nodes for the length of each row, (n, 1)."""
        squares = self.add("ReduceSumSquare", rows, self.number(-1, np.int64), keepdims=1)
        if extra:
            squares = self.add("Add", squares, self.number(extra))
        return self.add("Max", self.add("Sqrt", squares), self.number(shortest))

    def model(self, small: PortableModel, outputs: list[Any], about: dict[str, str], outside: str | None) -> bytes:
        """Return the serialised model; its large arrays are in the file `outside`."""
        helper, types = self.onnx.helper, self.onnx.TensorProto
        inputs: list[tuple[str, int, Any]] = [("rows", types.FLOAT, small.n_features)]
        if small.sparse:
            inputs = [("indices", types.INT64, "m"), ("values", types.FLOAT, "m")]

        def infos(specs: list[tuple[str, int, Any]]) -> list[Any]:
            return [helper.make_tensor_value_info(name, kind, ["n", size]) for name, kind, size in specs]

        graph = helper.make_graph(self.nodes, "wsabie", infos(inputs), infos(outputs), self._tensors(outside))
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR,
            producer_name="wsabie",
            producer_version=collect_versions()["wsabie"],
        )
        helper.set_model_props(model, about)
        content: bytes = model.SerializeToString(deterministic=True)
        return content

    def _tensors(self, outside: str | None) -> list[Any]:
        helper, offset, tensors = self.onnx.helper, 0, []
        for name, array in self.arrays.items():
            tensor = self.onnx.TensorProto(
                name=name, dims=array.shape, data_type=helper.np_dtype_to_tensor_dtype(array.dtype)
            )
            if outside is None or array.nbytes < _SMALL:
                tensor.raw_data = array.tobytes()
            else:
                tensor.data_location = self.onnx.TensorProto.EXTERNAL
                for key, value in (("location", outside), ("offset", offset), ("length", array.nbytes)):
                    tensor.external_data.add(key=key, value=str(value))
                offset += array.nbytes
            tensors.append(tensor)
        return tensors


def quantise_rows(table: Float32) -> tuple[Any, Float32]:
    """Return a table as whole numbers from -127 to 127, and the factor of each row.

    Examples
    --------
    >>> whole, steps = quantise_rows(np.array([[1.0, -0.5, 0.0], [0.0, 0.0, 0.0]], np.float32))
    >>> whole.tolist(), (steps * 127).tolist()
    ([[127, -64, 0], [0, 0, 0]], [1.0, 1.0])
    """
    largest = np.abs(table).max(axis=1, initial=0)
    steps = (np.where(largest > 0, largest, 1) / 127).astype(np.float32)
    return np.rint(table / steps[:, None]).astype(np.int8), steps


def _fill_graph(small: PortableModel, graph: _Graph, k: int) -> list[tuple[str, int, Any]]:
    """Add all nodes of a model; return the outputs as name, type, width."""
    types = graph.onnx.TensorProto
    point = _add_sparse_point(small, graph) if small.sparse else _add_dense_point(small, graph)
    if small.log_softmax:
        point = graph.add("LogSoftmax", point, axis=-1)
    if small.mixture is not None:
        point = _add_mixture(small.mixture, graph, point)
    point = graph.add("Identity", point, name="points")
    scores = point if small.against is None else _add_scores(small.against, graph, point)
    k = min(k, len(small.labels))
    graph.best(scores, k, "scores", "ids_found" if small.some_hidden else "ids")
    if small.some_hidden:  # -1 like `rank` if there are fewer than k labels
        is_empty = graph.add("IsInf", "scores", detect_positive=0)
        graph.add("Where", is_empty, graph.number(-1, np.int64), "ids_found", name="ids")
    outputs: list[tuple[str, int, Any]] = [("ids", types.INT64, k), ("scores", types.FLOAT, k)]
    return outputs if small.against is None else [*outputs, ("points", types.FLOAT, small.against.table.shape[1])]


def _add_dense_point(small: PortableModel, graph: _Graph) -> str:
    rows, scaling, constant = "rows", small.scaling, small.constant
    if scaling.method != "none":
        rows = graph.add("Sub", rows, graph.array("shift", scaling.shift))
        rows = graph.add("Mul", rows, graph.array("weight", scaling.weight[: small.n_features]))
    if constant is None:
        return _add_product(small.own_features, graph, rows, small.offset)
    length = graph.length(rows, 0, extra=float(scaling.weight[-1]) ** 2)
    point = graph.add("Div", _add_product(small.own_features, graph, rows, constant), length)
    return point if small.offset is None else graph.add("Add", point, graph.array("offset", small.offset))


def _add_product(table: Float32, graph: _Graph, rows: str, added: Float32 | None) -> str:
    inputs = [rows, graph.table("V", table)]
    return graph.add("Gemm", *inputs, *([] if added is None else [graph.array("added", added)]))


def _add_sparse_point(small: PortableModel, graph: _Graph) -> str:
    weight, V = small.scaling.weight, small.features
    values = _add_log1p(graph, "values")
    if (weight != 1).any():
        values = graph.add("Mul", values, graph.add("Gather", graph.array("weight", weight), "indices"))
    values = graph.add("Div", values, graph.length(values, _SHORTEST_ROW))
    if graph.int8:  # gathered rows are converted to float32; the table in memory stays bytes
        V, steps = quantise_rows(V)
        values = graph.add("Mul", values, graph.add("Gather", graph.array("V_step", steps), "indices"))
        gathered = graph.add("Gather", graph.array("V", V, np.int8), "indices")
        gathered = graph.add("Cast", gathered, to=graph.onnx.TensorProto.FLOAT)
    else:
        gathered = graph.add("Gather", graph.array("V", V), "indices")
    middle = graph.number(1, np.int64)
    sums = graph.add("MatMul", graph.add("Unsqueeze", values, middle), gathered)
    point = graph.add("Squeeze", sums, middle)
    return point if small.offset is None else graph.add("Add", point, graph.array("offset", small.offset))


def _add_log1p(graph: _Graph, values: str) -> str:
    """Add nodes for an exact log(1 + x): x log(u) / (u - 1) with the rounded u = 1 + x."""
    unit = graph.number(1)
    u = graph.add("Add", values, unit)
    gap = graph.add("Sub", u, unit)
    lifted = graph.add("Div", graph.add("Mul", values, graph.add("Log", u)), gap)
    return graph.add("Where", graph.add("Equal", gap, graph.number(0)), values, lifted)


def _add_mixture(mixture: ClassMixture, graph: _Graph, logits: str) -> str:
    graph.best(logits, mixture.top, "logits_best", "classes")
    chances = graph.add("Softmax", "logits_best", axis=-1)
    vectors = graph.add("Gather", graph.array("targets", mixture.targets), "classes")
    middle = graph.number(1, np.int64)
    return graph.add("Squeeze", graph.add("MatMul", graph.add("Unsqueeze", chances, middle), vectors), middle)


def _add_scores(against: ScoringTable, graph: _Graph, point: str) -> str:
    """Add nodes for the scores of all labels."""
    if against.centre is not None:
        point = graph.add("Sub", point, graph.array("centre", against.centre))
    if against.similarity == "cosine":
        point = graph.add("Div", point, graph.length(point, _SHORTEST_POINT))
    scores = graph.add("Gemm", point, graph.table("W", against.table), transB=1)
    if against.similarity == "euclidean":
        scores = _add_distances(graph, point, scores, against.table)
    if against.terms is not None:
        scores = graph.add("Gather", scores, graph.array("terms", against.terms, np.int64), axis=1)
        scores = graph.add("ReduceMax", scores, graph.number(2, np.int64), keepdims=0)
    return scores if against.bias is None else graph.add("Add", scores, graph.array("bias", against.bias))


def _add_distances(graph: _Graph, point: str, products: str, table: Float32) -> str:
    """Add nodes for -|p - w|, from |p|^2 - 2 pw + |w|^2."""
    dequantised = table
    if graph.int8:
        quantised, steps = quantise_rows(table)
        dequantised = quantised * steps[:, None]
    table_norms = graph.array("W_norm2", np.einsum("ij,ij->i", dequantised, dequantised))
    point_norms = graph.add("ReduceSumSquare", point, graph.number(-1, np.int64), keepdims=1)
    squares = graph.add("Sub", graph.add("Add", point_norms, table_norms), graph.add("Mul", products, graph.number(2)))
    return graph.add("Neg", graph.add("Sqrt", graph.add("Max", squares, graph.number(0))))
