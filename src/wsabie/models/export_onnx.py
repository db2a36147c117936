"""A model as one ONNX graph: rows in, the k best labels and their scores out; or with tables of int8.

Rows of dense models are an input "rows" float32 (n, d). Sparse ones are two, padded to the longest row: "indices" int64
(n, m) and "values" float32 (n, m), of which zeros do not count, whichever feature they name. That is what ONNX Runtime
gathers fastest, and it needs no row offsets, for which ONNX has no operator. How many labels are given is fixed: an
input with a default would make ONNX Runtime warn whenever the file is opened.

With int8 each row of a table (a feature's, a label's) is rounded to 255 steps of its largest number; the graph brings
it back, so that rows and scores stay float32 and what a row gets depends on no other row.
"""

import json
import os
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from wsabie.base.arrays import Float32
from wsabie.base.errors import InputError
from wsabie.base.machine import versions
from wsabie.models.annotator import Annotator
from wsabie.models.export import refuse_taken
from wsabie.models.portable import Against, Mixture, Portable, portable
from wsabie.storage.atomic import explained, replacing, try_writing

OPSET, IR = 18, 8
"""ONNX Runtime 1.14 and later read these."""
WITHIN = (1 << 31) - (1 << 26)
"""Bytes of arrays that a single file may hold: no protobuf message has 2 GiB."""
_SMALL = 1 << 10
TOLD = 1 << 22
"""Bytes of names that are kept in the file; longer lists lie beside it."""
_SHORTEST_ROW, _SHORTEST_POINT = 1e-12, 1e-3


def write(annotator: Annotator, out: Path, *, k: int = 10, int8: bool = False) -> list[Path]:
    """Write the graph, and beside it what is too large for one file; all of it or nothing.

    Files beside it that an export left which was killed are replaced.

    Parameters
    ----------
    annotator : Annotator
    out : Path
        Of the .onnx file.
    k : int
        Labels that a row gets; more than there are is all of them.
    int8 : bool
        Tables of bytes.

    Returns
    -------
    list of Path
        What was written, the file itself last.

    Raises
    ------
    InputError
        The package onnx is missing, the model is of another kind, or the files cannot be written.
    """
    small = portable(annotator.model)
    graph = _Graph(int8)
    outputs = _graph_of(small, graph, k)
    told, beside = _names(small, annotator.feature_names, out)
    about = {"kind": small.kind, "int8": str(int8).lower(), "rows": "sparse" if small.sparse else "dense", **told}
    data = out.with_name(f"{out.name}.data")
    large = graph.n_bytes > WITHIN
    content = graph.model(small, outputs, about, data.name if large else None)
    contents: dict[Path, Iterable[Any]] = {file: [text.encode()] for file, text in beside.items()}
    if large:
        contents[data] = (array.data for array in graph.outside())
    contents[out] = [content]
    _write_all(contents)
    return [*contents]


def _write_all(contents: dict[Path, Iterable[Any]]) -> None:
    """Write files, the last one after the others have got their names; where one cannot be written, none gets it."""
    refuse_taken(*(file for file in contents if file.is_dir()))
    for file in contents:
        try_writing(file)  # also what killed exports left of drafts goes: they may be what fills the disk
    with ExitStack() as stack:
        drafts = {file: stack.enter_context(replacing(file)) for file in reversed(contents)}
        for file, parts in contents.items():
            with explained(file), drafts[file].open("wb") as stream:
                for part in parts:
                    stream.write(part)  # `tofile` does not say that a disk is full
                stream.flush()
                os.fsync(stream.fileno())


def _names(small: Portable, features: list[str] | None, out: Path) -> tuple[dict[str, str], dict[Path, str]]:
    """Names of labels and features: what the file says itself, and the texts of files beside it."""
    told, beside = {}, {}
    for name, listed in (("labels", small.labels), ("features", features)):
        text = json.dumps(listed, ensure_ascii=False)
        if listed is not None and len(text.encode()) <= TOLD:
            told[name] = text
        elif listed is not None:
            beside[out.with_name(f"{out.name}.{name}.txt")] = "".join(f"{' '.join(one.split())}\n" for one in listed)
    return told, beside


class _Graph:
    """Nodes and arrays, as they are added."""

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
        """The arrays that a file of their own holds where one is needed."""
        return [array for array in self.arrays.values() if array.nbytes >= _SMALL]

    def add(self, op: str, *inputs: str, name: str = "", **attributes: Any) -> str:
        """A node; the name of what it gives."""
        name = name or f"{op.lower()}_{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(op, list(inputs), [name], name=f"make_{name}", **attributes))
        return name

    def best(self, scores: str, k: int, values: str, places: str) -> None:
        """The k largest of each row and where they are, equal ones by their places."""
        inputs = [scores, self.number(k, np.int64)]
        self.nodes.append(self.onnx.helper.make_node("TopK", inputs, [values, places], name=f"make_{places}", axis=-1))

    def array(self, name: str, values: Any, dtype: Any = np.float32) -> str:
        """An array of the model; its name."""
        self.arrays[name] = np.ascontiguousarray(values, dtype)
        return name

    def number(self, value: float, dtype: Any = np.float32) -> str:
        return self.array(f"number_{np.dtype(dtype).name}_{value:g}", [value], dtype)

    def table(self, name: str, values: Float32) -> str:
        """A table as numbers that nodes can use."""
        if not self.int8:
            return self.array(name, values)
        quantised, steps = quantised_rows(values)
        nothing = self.array(f"{name}_zero", np.zeros(len(values)), np.int8)
        return self.add("DequantizeLinear", self.array(name, quantised, np.int8), self.array(f"{name}_step", steps),
                        nothing, name=f"{name}_whole", axis=0)  # fmt: skip

    def length(self, rows: str, shortest: float, extra: float = 0.0) -> str:
        """The length of each row, (n, 1)."""
        squares = self.add("ReduceSumSquare", rows, self.number(-1, np.int64), keepdims=1)
        if extra:
            squares = self.add("Add", squares, self.number(extra))
        return self.add("Max", self.add("Sqrt", squares), self.number(shortest))

    def model(self, small: Portable, outputs: list[Any], about: dict[str, str], outside: str | None) -> bytes:
        """The message; its large arrays are said to lie in the file `outside`."""
        helper, types = self.onnx.helper, self.onnx.TensorProto
        inputs: list[tuple[str, int, Any]] = [("rows", types.FLOAT, small.n_features)]
        if small.sparse:
            inputs = [("indices", types.INT64, "m"), ("values", types.FLOAT, "m")]

        def infos(those: list[tuple[str, int, Any]]) -> list[Any]:
            return [helper.make_tensor_value_info(name, kind, ["n", size]) for name, kind, size in those]

        graph = helper.make_graph(self.nodes, "wsabie", infos(inputs), infos(outputs), self._tensors(outside))
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR,
            producer_name="wsabie",
            producer_version=versions()["wsabie"],
        )
        helper.set_model_props(model, about)
        content: bytes = model.SerializeToString(deterministic=True)
        return content

    def _tensors(self, outside: str | None) -> list[Any]:
        helper, at, made = self.onnx.helper, 0, []
        for name, array in self.arrays.items():
            tensor = self.onnx.TensorProto(
                name=name, dims=array.shape, data_type=helper.np_dtype_to_tensor_dtype(array.dtype)
            )
            if outside is None or array.nbytes < _SMALL:
                tensor.raw_data = array.tobytes()
            else:
                tensor.data_location = self.onnx.TensorProto.EXTERNAL
                for key, value in (("location", outside), ("offset", at), ("length", array.nbytes)):
                    tensor.external_data.add(key=key, value=str(value))
                at += array.nbytes
            made.append(tensor)
        return made


def quantised_rows(table: Float32) -> tuple[Any, Float32]:
    """A table in bytes: whole numbers from -127 to 127, and what they are multiplied by, row by row.

    Examples
    --------
    >>> whole, steps = quantised_rows(np.array([[1.0, -0.5, 0.0], [0.0, 0.0, 0.0]], np.float32))
    >>> whole.tolist(), (steps * 127).tolist()
    ([[127, -64, 0], [0, 0, 0]], [1.0, 1.0])
    """
    largest = np.abs(table).max(axis=1, initial=0)
    steps = (np.where(largest > 0, largest, 1) / 127).astype(np.float32)
    return np.rint(table / steps[:, None]).astype(np.int8), steps


def _graph_of(small: Portable, graph: _Graph, k: int) -> list[tuple[str, int, Any]]:
    """Fill the graph; its outputs: name, type, width."""
    types = graph.onnx.TensorProto
    point = _sparse_point(small, graph) if small.sparse else _dense_point(small, graph)
    if small.log_softmax:
        point = graph.add("LogSoftmax", point, axis=-1)
    if small.mixture is not None:
        point = _mixed(small.mixture, graph, point)
    point = graph.add("Identity", point, name="points")
    scores = point if small.against is None else _compared(small.against, graph, point)
    k = min(k, len(small.labels))
    graph.best(scores, k, "scores", "ids_found" if small.some_hidden else "ids")
    if small.some_hidden:  # as `rank` says that there are fewer than k
        nobody = graph.add("IsInf", "scores", detect_positive=0)
        graph.add("Where", nobody, graph.number(-1, np.int64), "ids_found", name="ids")
    outputs: list[tuple[str, int, Any]] = [("ids", types.INT64, k), ("scores", types.FLOAT, k)]
    return outputs if small.against is None else [*outputs, ("points", types.FLOAT, small.against.table.shape[1])]


def _dense_point(small: Portable, graph: _Graph) -> str:
    rows, scaling, constant = "rows", small.scaling, small.constant
    if scaling.method != "none":
        rows = graph.add("Sub", rows, graph.array("shift", scaling.shift))
        rows = graph.add("Mul", rows, graph.array("weight", scaling.weight[: small.n_features]))
    if constant is None:
        return _product(small.own_features, graph, rows, small.offset)
    length = graph.length(rows, 0, extra=float(scaling.weight[-1]) ** 2)
    point = graph.add("Div", _product(small.own_features, graph, rows, constant), length)
    return point if small.offset is None else graph.add("Add", point, graph.array("offset", small.offset))


def _product(table: Float32, graph: _Graph, rows: str, added: Float32 | None) -> str:
    inputs = [rows, graph.table("V", table)]
    return graph.add("Gemm", *inputs, *([] if added is None else [graph.array("added", added)]))


def _sparse_point(small: Portable, graph: _Graph) -> str:
    weight, V = small.scaling.weight, small.features
    values = _log1p(graph, "values")
    if (weight != 1).any():
        values = graph.add("Mul", values, graph.add("Gather", graph.array("weight", weight), "indices"))
    values = graph.add("Div", values, graph.length(values, _SHORTEST_ROW))
    if graph.int8:  # rows are brought back as they are gathered; the table stays bytes in memory
        V, steps = quantised_rows(V)
        values = graph.add("Mul", values, graph.add("Gather", graph.array("V_step", steps), "indices"))
        found = graph.add("Gather", graph.array("V", V, np.int8), "indices")
        found = graph.add("Cast", found, to=graph.onnx.TensorProto.FLOAT)
    else:
        found = graph.add("Gather", graph.array("V", V), "indices")
    middle = graph.number(1, np.int64)
    sums = graph.add("MatMul", graph.add("Unsqueeze", values, middle), found)
    point = graph.add("Squeeze", sums, middle)
    return point if small.offset is None else graph.add("Add", point, graph.array("offset", small.offset))


def _log1p(graph: _Graph, values: str) -> str:
    """log(1 + x) to the last digits: x log(u) / (u - 1) of the rounded u = 1 + x."""
    one = graph.number(1)
    u = graph.add("Add", values, one)
    gap = graph.add("Sub", u, one)
    lifted = graph.add("Div", graph.add("Mul", values, graph.add("Log", u)), gap)
    return graph.add("Where", graph.add("Equal", gap, graph.number(0)), values, lifted)


def _mixed(mixture: Mixture, graph: _Graph, logits: str) -> str:
    graph.best(logits, mixture.top, "logits_best", "classes")
    chances = graph.add("Softmax", "logits_best", axis=-1)
    vectors = graph.add("Gather", graph.array("targets", mixture.targets), "classes")
    middle = graph.number(1, np.int64)
    return graph.add("Squeeze", graph.add("MatMul", graph.add("Unsqueeze", chances, middle), vectors), middle)


def _compared(against: Against, graph: _Graph, point: str) -> str:
    """The scores of all labels."""
    if against.centre is not None:
        point = graph.add("Sub", point, graph.array("centre", against.centre))
    if against.similarity == "cosine":
        point = graph.add("Div", point, graph.length(point, _SHORTEST_POINT))
    scores = graph.add("Gemm", point, graph.table("W", against.table), transB=1)
    if against.similarity == "euclidean":
        scores = _distances(graph, point, scores, against.table)
    if against.terms is not None:
        scores = graph.add("Gather", scores, graph.array("terms", against.terms, np.int64), axis=1)
        scores = graph.add("ReduceMax", scores, graph.number(2, np.int64), keepdims=0)
    return scores if against.bias is None else graph.add("Add", scores, graph.array("bias", against.bias))


def _distances(graph: _Graph, point: str, products: str, table: Float32) -> str:
    """-|p - w| by |p|^2 - 2 pw + |w|^2."""
    whole = table
    if graph.int8:
        quantised, steps = quantised_rows(table)
        whole = quantised * steps[:, None]
    theirs = graph.array("W_norm2", np.einsum("ij,ij->i", whole, whole))
    own = graph.add("ReduceSumSquare", point, graph.number(-1, np.int64), keepdims=1)
    squares = graph.add("Sub", graph.add("Add", own, theirs), graph.add("Mul", products, graph.number(2)))
    return graph.add("Neg", graph.add("Sqrt", graph.add("Max", squares, graph.number(0))))
