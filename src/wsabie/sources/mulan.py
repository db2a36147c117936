"""Mulan's multi-label data: an ARFF file, and an XML file that names which attributes are labels.

Labels must be 0/1 attributes, and keep the order of the XML. A numeric attribute, or a nominal one with
the values {0,1}, is one feature. Any other nominal attribute becomes one 0/1 feature `name=value` for each
value but the first, which is also what a sparse file leaves out. An attribute of type string is the id of
the row when it is called id, name, file or filename. X is sparse when the first row is, otherwise dense.
Ids are line numbers if there are none.
"""

from array import array
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from wsabie.base.arrays import Matrix
from wsabie.base.errors import InputError
from wsabie.labels.names import Vocabulary
from wsabie.sources.arff import Arff, Attribute, arff_rows, read_arff_header
from wsabie.sources.build import BadRow, LabelIndex, label_matrix, require_rows, row_starts
from wsabie.sources.records import Rows
from wsabie.sources.safe_xml import parse_xml
from wsabie.sources.streamed import About, Part, RowStream
from wsabie.sources.text import bytes_on_disk, open_bytes, reading, shown
from wsabie.sources.unpacked import check_expansion
from wsabie.sources.widths import check_columns
from wsabie.storage.columns import Columns, Lists, texts
from wsabie.storage.rejects import Rejects

_LARGEST_XML = 1 << 26
_VALUES_AT_ONCE = 1 << 20
_ID_NAMES = ("id", "name", "file", "filename")
_ENDINGS = ("-sparse", "-train", "-test", "-sparse")
_MISSING = "?"
_LARGEST = float(np.finfo(np.float32).max)


def read_mulan(path: Path, *, rejects: Rejects | None = None) -> Rows:
    """Read an ARFF file and the XML beside it: `X.xml` for `X.arff`, `X-train.arff`, `X-test-sparse.arff`.

    Parameters
    ----------
    path : Path
        The ARFF file.
    rejects : Rejects or None
        Where rows that cannot be used are listed.

    Returns
    -------
    Rows
        With `feature_names`.

    Raises
    ------
    InputError
        No XML, an XML that names no attribute of the file, or attributes that are neither numbers nor labels.
    """
    rejects = Rejects() if rejects is None else rejects
    arff = read_arff_header(path)
    plan = _plan(arff, _read_labels(_find_xml(path)))
    got, sparse = _Collected(), _is_sparse(arff)
    seen = set[str]()
    for number, row in _rows(arff, plan, rejects, sparse=sparse):
        if row.id in seen:
            rejects.add(f"{shown(path)}:{number}", "duplicate id", row.id)
            continue
        seen.add(row.id)
        got.add(number, row)
    require_rows(len(got.ids), path, rejects)
    Y = label_matrix(np.array(got.label_counts), np.array(got.labels, np.int32), len(plan.label_names))
    X = _features(got, len(plan.feature_names))
    check_columns(path, X.shape[1], X.nnz)
    X = X if sparse else X.toarray()
    return Rows(X, Y, plan.label_names, got.ids, feature_names=plan.feature_names)


class MulanStream(RowStream):
    """The rows of `read_mulan` a part after the other.

    Raises
    ------
    InputError
        As `read_mulan`, but for a file without rows.
    """

    def __init__(self, path: Path, rejects: Rejects) -> None:
        self.path, self.rejects, self._xml = path, rejects, _find_xml(path)
        self._arff = read_arff_header(path)
        self._plan = _plan(self._arff, _read_labels(self._xml))
        self._sparse = _is_sparse(self._arff)
        self.index = LabelIndex(self._plan.label_names)
        names = self._plan.feature_names
        self.about = About(n_features=len(names), feature_names=names, order="given")

    @property
    def files(self) -> list[Path]:
        return [self.path, self._xml]

    def parts(self, skip: int = 0) -> Iterator[Part]:
        got, width = _Collected(), len(self._plan.feature_names)
        most = _VALUES_AT_ONCE if self._sparse else _VALUES_AT_ONCE // width
        for number, row in _rows(self._arff, self._plan, self.rejects, skip, sparse=self._sparse):
            if len(got.ids) + (len(got.values) if self._sparse else 0) > most:
                yield self._part(got, number - 1)  # rows between that cannot be used are listed already
                got = _Collected()
            got.add(number, row)
        if got.ids:
            yield self._part(got, got.lines[-1])

    def _part(self, got: "_Collected", position: int) -> Part:
        lines, X = np.array(got.lines, np.uint64), _features(got, len(self._plan.feature_names))
        numbers: dict[str, Any] = {"row": lines}
        lists = {"y": Lists(row_starts(np.array(got.label_counts)), {"labels": np.array(got.labels, np.int32)})}
        if self._sparse:
            lists["x"] = Lists(X.indptr, {"indices": X.indices, "values": X.data})
        else:
            numbers["features"] = X.toarray()
        if any(column.role == "id" for column in self._plan.columns):
            lists["id"] = texts(got.ids)
        else:
            numbers["id"] = lines
        return Part(Columns(numbers, lists), position)


def _find_xml(path: Path) -> Path:
    stem = path.name.removesuffix(".gz").removesuffix(".arff")
    tried = [stem]
    for ending in _ENDINGS:
        if tried[-1].endswith(ending):
            tried.append(tried[-1].removesuffix(ending))
    files = [path.with_name(f"{name}.xml") for name in tried]
    found = next((file for file in files if file.is_file()), None)
    if found is None:
        looked = " nor ".join(shown(file.name) for file in files)
        raise InputError(
            f"{shown(path)} is ARFF, but the XML file that says which attributes are labels is missing: "
            f"there is no {looked} beside it; put it there"
        )
    return found


def _read_labels(path: Path) -> list[str]:
    with reading(path), open_bytes(path) as stream:
        content = stream.read(_LARGEST_XML + 1)
    if len(content) > _LARGEST_XML:
        raise InputError(f"{shown(path)} has more than {_LARGEST_XML >> 20} MiB, too many for names of labels")
    root = parse_xml(content, shown(path))
    names = [e.attributes["name"] for e in root.walk() if e.local_name == "label" and "name" in e.attributes]
    if not names:
        raise InputError(f'{shown(path)} names no labels; it should hold <label name="..."/> elements')
    if len(set(names)) < len(names):
        twice = Counter(names).most_common(1)[0][0]
        raise InputError(f"{shown(path)} names the label {twice!r} twice; remove one")
    return names


@dataclass(frozen=True)
class _Column:
    """What an attribute becomes: a label, the id, one number, or a feature for each value after the first."""

    role: str  # "label", "id", "number" or "values"
    at: int = 0  # number of the label, or of the first feature
    values: dict[str, int | None] | None = None  # the feature of each value; the first value has none


@dataclass
class _Plan:
    columns: list[_Column]
    label_names: list[str]
    feature_names: list[str]
    inverted: str | None = None  # a label that lists 1 before 0, so that a sparse row that leaves it out has it


def _plan(arff: Arff, labels: list[str]) -> _Plan:
    names = {attribute.name for attribute in arff.attributes}
    absent = [name for name in labels if name not in names]
    if absent:
        raise InputError(
            f"the XML beside {shown(arff.path)} names {len(absent):,} labels that are no attributes of it, "
            f"the first is {absent[0]!r}; give the two files that belong together"
        )
    number = {name: i for i, name in enumerate(labels)}
    plan = _Plan([], _unique_names(labels, arff.path), [])
    for attribute in arff.attributes:
        if attribute.name in number:
            plan.columns.append(_Column("label", number[attribute.name]))
            if attribute.values and attribute.values[0] == "1":
                plan.inverted = attribute.name
        else:
            plan.columns.append(_feature_column(attribute, plan, arff.path))
    if not plan.feature_names:
        raise InputError(f"{shown(arff.path)} has labels but no other attributes, so nothing to learn from")
    return plan


def _unique_names(labels: list[str], path: Path) -> list[str]:
    """Label names in one spelling, which must not make two of them the same."""
    try:
        return list(Vocabulary(labels))
    except InputError as error:
        raise InputError(f"the XML beside {shown(path)} cannot be used: {error}") from error


def _feature_column(attribute: Attribute, plan: _Plan, path: Path) -> _Column:
    at = len(plan.feature_names)
    if attribute.kind == "numeric" or attribute.values == ("0", "1"):
        plan.feature_names.append(attribute.name)
        return _Column("number", at)
    if attribute.values is not None:
        rest = attribute.values[1:]
        check_expansion(shown(path), bytes_on_disk(path), len(attribute.name) * len(rest))
        plan.feature_names.extend(f"{attribute.name}={value}" for value in rest)
        return _Column("values", at, {attribute.values[0]: None} | {v: at + i for i, v in enumerate(rest)})
    if attribute.name.lower() in _ID_NAMES and not any(c.role == "id" for c in plan.columns):
        return _Column("id")
    raise InputError(
        f"{shown(path)} has the attribute {attribute.name!r}, which is text and no feature; call it id or remove it"
    )


@dataclass
class _Collected:
    ids: list[str] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    labels: "array[int]" = field(default_factory=lambda: array("i"))
    label_counts: "array[int]" = field(default_factory=lambda: array("i"))
    indices: "array[int]" = field(default_factory=lambda: array("i"))
    values: "array[float]" = field(default_factory=lambda: array("f"))
    value_counts: "array[int]" = field(default_factory=lambda: array("i"))

    def add(self, number: int, row: "_Row") -> None:
        self.ids.append(row.id)
        self.lines.append(number)
        self.labels.extend(row.labels)
        self.label_counts.append(len(row.labels))
        self.indices.extend(row.features)
        self.values.extend(row.features.values())
        self.value_counts.append(len(row.features))


def _rows(arff: Arff, plan: _Plan, rejects: Rejects, skip: int = 0, *, sparse: bool) -> Iterator[tuple[int, "_Row"]]:
    """(line number, row) of every row that can be used, behind the first `skip` lines.

    Raises
    ------
    InputError
        Rows that are sparse stand in a file that is not, and would take far more memory than they do in it.
    """
    wide = written = 0
    for number, cells in arff_rows(arff, skip):
        if not sparse and isinstance(cells, dict):
            wide, written = wide + len(plan.columns), written + len(cells)
            check_columns(arff.path, wide, written)
        try:
            yield number, _parse(cells, plan, str(number), arff.path)
        except BadRow as bad:
            rejects.add(f"{shown(arff.path)}:{number}", bad.reason, bad.detail)


def _is_sparse(arff: Arff) -> bool:
    """Whether the first row is, of those that are rows at all."""
    return next((isinstance(cells, dict) for _, cells in arff_rows(arff) if not isinstance(cells, BadRow)), True)


class _Row(NamedTuple):
    id: str
    labels: list[int]
    features: dict[int, float]


def _parse(cells: dict[int, str] | list[str] | BadRow, plan: _Plan, row_id: str, path: Path) -> _Row:
    if isinstance(cells, BadRow):
        raise cells
    if isinstance(cells, dict) and plan.inverted is not None:
        raise InputError(
            f"{shown(path)} is sparse and lists 1 before 0 for the label {plan.inverted!r}, so that every "
            "row that leaves it out would have it; write {0,1}"
        )
    row = _Row(row_id, [], {})
    for position, text in cells.items() if isinstance(cells, dict) else enumerate(cells):
        column = plan.columns[position]
        if text == _MISSING:
            raise BadRow("missing value", f"attribute {position}")
        if column.role == "id":
            row = row._replace(id=text)
        elif column.role == "label":
            if _number(text) not in (0.0, 1.0):
                raise BadRow("label that is neither 0 nor 1", text)
            row.labels.extend([column.at] if _number(text) else [])
        else:
            _set_feature(row.features, column, text)
    return row


def _set_feature(features: dict[int, float], column: _Column, text: str) -> None:
    if column.values is None:
        value = _number(text)
        if value:
            features[column.at] = value
        return
    if text not in column.values:
        raise BadRow("value that the header does not list", text)
    feature = column.values[text]
    if feature is not None:
        features[feature] = 1.0


def _number(text: str) -> float:
    try:
        value = float(text if text.isascii() and "_" not in text else "")
    except ValueError as error:
        raise BadRow("malformed number", text) from error
    if not abs(value) <= _LARGEST:
        raise BadRow("value that is not finite", text)
    return value


def _features(got: _Collected, width: int) -> Matrix:
    from scipy.sparse import csr_matrix

    starts = row_starts(np.array(got.value_counts, np.int32))
    parts = (np.array(got.values, np.float32), np.array(got.indices, np.int32), starts)
    X = csr_matrix(parts, (len(got.ids), width))
    X.sort_indices()
    return X
