"""Export as one ONNX graph: rows in, the k best labels and their scores out; optionally in int8.

Dense models have one input "rows" float32 (n, d). Sparse models have two, padded to the longest row: "indices" int64
(n, m) and "values" float32 (n, m); zero values do not count, whichever feature they name. ONNX Runtime gathers this
form fastest, and it needs no row offsets, for which ONNX has no operator. With the image encoder, there is one input
"pictures" uint8 (n, height, width, 3). The number of labels is fixed, because an input with a default would make ONNX
Runtime warn whenever the file is opened.

With int8 each row of a table (a feature's, a label's) is rounded to 255 steps of its largest number. The graph converts
it back, so rows and scores stay float32 and the result of a row depends on no other row.
"""

import json
import os
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from wsabie.core.arrays import Array, Float32
from wsabie.core.errors import InputError, require
from wsabie.core.machine import collect_versions
from wsabie.core.optional_packages import import_optional
from wsabie.features.base.feature_extractor import FeatureExtractor
from wsabie.features.encoders.onnx_network import get_first_line
from wsabie.features.extractors.onnx_encoders import ConseEncoder, OnnxEncoder
from wsabie.models.annotators import Annotator
from wsabie.models.exporters import portable_model
from wsabie.models.exporters.export_formats import render_template, require_free_path
from wsabie.models.stacking.fusion import Fusion
from wsabie.storage.atomic_files import check_writable, explain_write_errors, replace_file

OPSET, IR = 18, 8
"""Versions that ONNX Runtime 1.14 and later read."""
MAX_FILE_BYTES = (1 << 31) - (1 << 26)
"""Most bytes of arrays in a single file, because a protobuf message has less than 2 GiB."""
_PREFIX = "encoder_"
"""Beginning of the names of an encoder, so that a model has other ones."""
_SMALL = 1 << 10
MAX_INLINE_BYTES = 1 << 22
"""Most bytes of a list of names inside the file; longer lists get a file beside it."""
_SHORTEST_ROW, _SHORTEST_POINT = 1e-12, 1e-3
_DTYPES = {np.dtype(dtype): dtype for dtype in (np.int8, np.int64)}
"""Types of arrays beside float32."""


def write_onnx_model(
    annotator: Annotator,
    out: Path,
    *,
    k: int = 10,
    int8: bool = False,
    with_encoder: bool = False,
    license: str | None = None,
) -> list[Path]:
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
    with_encoder : bool
        Put the image encoder of the annotator in front: pictures in place of rows.
    license : str or None
        Licence in the file, beside that of the encoder.

    Returns
    -------
    list of Path
        The new files, the .onnx file last.

    Raises
    ------
    InputError
        The package onnx is missing, the model is of another kind, it has no encoder that can be exported, or the files
        cannot be written.
    """
    onnx = import_optional("onnx", "an ONNX file is written by onnx", "onnx")
    fitted = annotator.model
    encoder = _require_encoder(annotator.extractor, license) if with_encoder else None
    if isinstance(fitted, Fusion):
        members = portable_model.build_portable_members(fitted)
        model = replace(members[0][0], kind=fitted.kind)
        onnx_model, arrays = _join_graphs(members, min(k, len(model.labels)), int8)
    else:
        model = portable_model.build_portable_model(fitted)
        onnx_model, arrays = _build_graph(model, min(k, len(model.labels)), int8)
    inline_names, contents = _split_names(model, annotator.feature_names, out)
    form = {"kind": model.kind, "int8": str(int8).lower(), "rows": "sparse" if model.is_sparse else "dense"}
    if encoder is not None:
        require(not model.is_sparse, "the model takes rows as counts; train it with another scaling")
        _put_encoder_first(onnx_model, encoder)
        form |= {"rows": "pictures", "pixels": json.dumps(encoder.describe_pixels())}
    if licences := dict.fromkeys(filter(None, (encoder.licence if encoder else None, license))):
        form["license"] = " AND ".join(licences)
    onnx.helper.set_model_props(onnx_model, {**form, **inline_names})
    data, large = out.with_name(f"{out.name}.data"), []
    if onnx_model.ByteSize() + sum(array.nbytes for array in arrays.values()) > MAX_FILE_BYTES:
        large = [name for name, array in arrays.items() if array.nbytes >= _SMALL]
        contents[data] = (arrays[name].data for name in large)
    offset = 0
    for name, array in arrays.items():
        data_type = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
        tensor = onnx_model.graph.initializer.add(name=name, dims=array.shape, data_type=data_type)
        if name not in large:
            tensor.raw_data = array.tobytes()
            continue
        tensor.data_location = onnx.TensorProto.EXTERNAL
        for key, value in (("location", data.name), ("offset", offset), ("length", array.nbytes)):
            tensor.external_data.add(key=key, value=str(value))
        offset += array.nbytes
    contents[out] = [onnx_model.SerializeToString(deterministic=True)]
    _write_all(contents)
    return [*contents]


def _build_graph(model: portable_model.PortableModel, k: int, int8: bool) -> tuple[Any, dict[str, Array]]:
    """Return the ONNX model without its arrays, and the arrays that nodes name; k = 0: with all scores."""
    from onnx.parser import parse_model

    tables = portable_model.collect_arrays(model)
    if model.scaling.n_added:
        weight = tables["weight"]
        tables |= {"weight": weight[:-1], "V": model.features[:-1], "constant": model.features[-1] * weight[-1]}
        tables["constant_square"] = np.array([float(weight[-1]) ** 2])
    if int8:
        for name in tables.keys() & {"V", "W"}:
            tables[name], tables[f"{name}_step"] = quantise_rows(tables[name])
            tables[f"{name}_zero"] = np.zeros(len(tables[name]), np.int8)
    if model.similarity == "euclidean":
        compared = tables["W"] * tables["W_step"][:, None] if int8 else tables["W"]
        tables["W_norm2"] = np.einsum("ij,ij->i", compared, compared)
    text = render_template(
        "graph.onnx",
        model=model,
        arrays=tables,
        k=k,
        int8=int8,
        has_table=model.table is not None,
        width=0 if model.table is None else model.table.shape[1],
        ir=IR,
        opset=OPSET,
        version=collect_versions()["wsabie"],
    )
    onnx_model = parse_model(text)
    whole_numbers = {"k": k, "top": model.top, "middle": 1, "last": -1, "last_axis": 2, "none": -1}
    numbers = {"zero": 0, "one": 1, "two": 2, "shortest_row": _SHORTEST_ROW, "shortest_point": _SHORTEST_POINT}
    arrays = {
        **{name: np.ascontiguousarray(array, _DTYPES.get(array.dtype, np.float32)) for name, array in tables.items()},
        **{name: np.array([number], np.int64) for name, number in whole_numbers.items()},
        **{name: np.array([number], np.float32) for name, number in numbers.items()},
    }
    input_names = {name for node in onnx_model.graph.node for name in node.input}
    return onnx_model, {name: array for name, array in arrays.items() if name in input_names}


def _join_graphs(
    members: list[tuple[portable_model.PortableModel, float]], k: int, int8: bool
) -> tuple[Any, dict[str, Array]]:
    """Return the ONNX model of a weighted sum of models, without its arrays, and the arrays."""
    from onnx.parser import parse_model

    model, version = members[0][0], collect_versions()["wsabie"]
    text = render_template("fusion.onnx", model=model, n_members=len(members), k=k, ir=IR, opset=OPSET, version=version)
    joined = parse_model(text)
    last_nodes = list(joined.graph.node)
    del joined.graph.node[:]
    arrays: dict[str, Array] = {"k": np.array([k]), "none": np.array([-1])}
    for number, (member, weight) in enumerate(members):
        part, tables = _build_graph(member, 0, int8)
        inputs = {value.name for value in part.graph.input}
        for node in part.graph.node:
            for names in (node.input, node.output):
                names[:] = [name if name in inputs else f"m{number}_{name}" for name in names]
        joined.graph.node.extend(part.graph.node)
        arrays |= {f"m{number}_{name}": array for name, array in tables.items()}
        arrays[f"m{number}_share"] = np.array([weight], np.float32)
    joined.graph.node.extend(last_nodes)
    return joined, arrays


def _require_encoder(extractor: FeatureExtractor | None, license: str | None) -> OnnxEncoder:
    """Return an extractor that is a single image encoder with a known licence."""
    if not isinstance(extractor, OnnxEncoder) or isinstance(extractor, ConseEncoder):
        name = "rows of features" if extractor is None else f"the features {extractor.name}"
        raise InputError(f"the model takes {name}, which are not those of one image encoder; leave `with_encoder` out")
    is_known = bool(extractor.licence or license)
    require(is_known, "the licence of the image encoder is unknown, and the file passes it on; state its `license`")
    return extractor


def _put_encoder_first(model: Any, extractor: OnnxEncoder) -> None:
    """Put an image encoder in front of an ONNX model of dense rows, whose input is then pictures."""
    import onnx

    encoder, network = onnx.load_from_string(extractor.model_.to_bytes()), extractor.network
    if all(entry.domain or entry.version < OPSET for entry in encoder.opset_import):
        try:
            encoder = onnx.version_converter.convert_version(encoder, OPSET)
        except Exception as error:  # the converter raises classes of its own
            problem = f"the image encoder cannot be brought to opset {OPSET} ({get_first_line(error)})"
            raise InputError(f"{problem}; export the encoder in this version") from error
    encoder = onnx.compose.add_prefix(encoder, _PREFIX)
    n_axes = next(len(node.shape) for node in network.session.get_outputs() if node.name == network.output)
    require(n_axes > 1, "the output of the image encoder has no stated shape; export the encoder with it")
    facts = {"network": network, "n_axes": n_axes, "moments": extractor.moments()}
    frame = onnx.parser.parse_model(render_template("encoder.onnx", ir=IR, opset=OPSET, **facts)).graph
    cut = next(number for number, node in enumerate(frame.node, 1) if "network_input" in node.output)
    frame.node[cut - 1].output[:], frame.node[cut].input[:] = [_PREFIX + network.input.name], [_PREFIX + network.output]
    nodes = [*frame.node[:cut], *encoder.graph.node, *frame.node[cut:], *model.graph.node]
    ends = frame.input, model.graph.output
    model.graph.CopyFrom(onnx.helper.make_graph(nodes, "wsabie", *ends, encoder.graph.initializer))
    del model.opset_import[:]
    model.opset_import.extend(encoder.opset_import)
    model.ir_version = max(model.ir_version, encoder.ir_version)


def _write_all(contents: dict[Path, Iterable[bytes | memoryview]]) -> None:
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


def _split_names(
    model: portable_model.PortableModel, features: list[str] | None, out: Path
) -> tuple[dict[str, str], dict[Path, Iterable[bytes | memoryview]]]:
    """Return names of labels and features: those inside the file, and the contents of files beside it."""
    inline_names, contents = dict[str, str](), dict[Path, Iterable[bytes | memoryview]]()
    for name, listed in (("labels", model.labels), ("features", features)):
        text = json.dumps(listed, ensure_ascii=False)
        if listed is not None and len(text.encode()) <= MAX_INLINE_BYTES:
            inline_names[name] = text
        elif listed is not None:
            lines = "".join(f"{' '.join(entry.split())}\n" for entry in listed)
            contents[out.with_name(f"{out.name}.{name}.txt")] = [lines.encode()]
    return inline_names, contents


def quantise_rows(table: Float32) -> tuple[Array, Float32]:
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
