"""Mulan's multi-label data: an ARFF file, and an XML file that names which attributes are labels.

ARFF is Weka's format: attributes with types, then dense (`1,0.5,red`) or sparse (`{3 1,7 red}`) rows.
Labels must be 0/1 attributes, and keep the order of the XML. A numeric attribute, or a nominal one with
the values {0,1}, is one feature. Any other nominal attribute becomes one 0/1 feature `name=value` for each
value but the first, which is also what a sparse file leaves out. An attribute of type string is the id of
the row when it is called id, name, file or filename. X is sparse when the first row is, otherwise dense.
Ids are line numbers if there are none.

SciPy's reader has no sparse rows, and liac-arff refuses a file for one bad row (`docs/decisions/text-readers.md`).
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

from wsabie.core.errors import InputError, require
from wsabie.io.parsers import text_files
from wsabie.io.parsers.array_builders import LabelIndex, check_feature_count, decode_row
from wsabie.io.parsers.xml_elements import parse_xml
from wsabie.io.records import FeatureTable
from wsabie.io.row_streams import RowBatch, RowStream, StreamInfo, StreamPart
from wsabie.storage.rejects import Rejects, RowError
from wsabie.vocabulary.label_names import Vocabulary

_WORD = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_ATTRIBUTE = re.compile(rf"@attribute\s+({_WORD}|[^\s{{]+)(?:\s+|(?={{))(\{{.*\}}|[^{{].*)", re.IGNORECASE)
_CELL = re.compile(rf"(?:\s*({_WORD})\s*|([^,'\"]*+))(,|\Z)")
_PAIR = re.compile(rf"\s*(\d{{1,9}})\s+({_WORD}|[^,'\"\s]+)\s*(,|$)")
_ESCAPE = re.compile(r"\\(.)")
_MISSING = "?\0"  # a question mark without quotes
_NUMERIC = ("numeric", "real", "integer")
_MAX_XML_BYTES = 1 << 26
_CHUNK_VALUES = 1 << 20
_ID_NAMES = ("id", "name", "file", "filename")
_ENDINGS = ("-sparse", "-train", "-test", "-sparse")
_MAX_FLOAT = float(np.finfo(np.float32).max)
ArffCells: TypeAlias = dict[int, str] | list[str]
"""Cells of a row: of a sparse one by the number of their attribute."""


@dataclass(frozen=True)
class ArffAttribute:
    """Column: its name and type; `values` are those of a nominal one, else None."""

    name: str
    kind: str  # "numeric", "nominal" or "other" (string, date, relational)
    values: tuple[str, ...] | None = None


@dataclass(frozen=True)
class ArffHeader:
    """Header of a file; `read_arff_rows` reads the rows."""

    path: Path
    attributes: list[ArffAttribute]
    data_line: int


def read_arff_header(path: Path) -> ArffHeader:
    """Read everything up to `@data`.

    Raises
    ------
    InputError
        Not ARFF: a malformed or repeated attribute, or no `@data`.
    """
    attributes: list[ArffAttribute] = []
    names: set[str] = set()
    for number, raw in text_files.iterate_numbered_lines(path):
        line = text_files.decode_text(raw, path, number).strip()
        if line[:5].lower() == "@data":
            require(bool(attributes), f"{path}:{number} begins the data before any @attribute; repair the header")
            return ArffHeader(path, attributes, number)
        if line[:10].lower() == "@attribute":
            attribute = _parse_attribute(path, number, line)
            if attribute.name in names:
                raise InputError(f"{path}:{number} names the attribute {attribute.name!r} again; rename one")
            names.add(attribute.name)
            attributes.append(attribute)
    raise InputError(f"{path} has no line @data, so it holds no rows; give a whole ARFF file")


def read_arff_rows(arff: ArffHeader, rejects: Rejects, skip: int = 0) -> Iterator[tuple[int, ArffCells]]:
    """Yield (line number, cells) of each well-formed row behind the first `skip` lines.

    Cells are a dict for a sparse row, a list for a dense one.
    """
    for number, raw in text_files.iterate_numbered_lines(arff.path):
        line = raw.strip()
        if number <= max(arff.data_line, skip) or not line or line.startswith(b"%"):
            continue
        with rejects.catch(arff.path, number):
            text = decode_row(line)
            yield number, _parse_sparse(text, arff) if text.startswith("{") else _parse_dense(text, arff)


def _parse_attribute(path: Path, number: int, line: str) -> ArffAttribute:
    match = _ATTRIBUTE.fullmatch(line)
    if match is None:
        raise InputError(f"{path}:{number} is not an attribute; write @attribute name type")
    name, kind = _unquote(match[1]), match[2].strip()
    if kind.startswith("{"):
        text_files.check_column_count(f"{path}:{number}", kind.count(",") + 1)  # a value is a column
        try:
            return ArffAttribute(name, "nominal", tuple(_split_cells(kind[1:-1])))
        except RowError as error:
            raise InputError(f"{path}:{number} has malformed values; write {{a,b,c}}") from error
    return ArffAttribute(name, "numeric" if kind.split()[0].lower() in _NUMERIC else "other")


def _unquote(word: str) -> str:
    if word[:1] in ("'", '"') and len(word) > 1:
        return _ESCAPE.sub(r"\1", word[1:-1])
    return word


def _split_cells(text: str, most: int | None = None) -> list[str]:
    """Split comma-separated cells, some of them quoted; RowError above `most` cells."""
    if "'" not in text and '"' not in text:
        if most is not None and text.count(",") >= most:
            raise RowError("wrong number of values", f"{text.count(',') + 1} values for {most} attributes")
        return [_mark_missing(cell.strip()) for cell in text.split(",")]
    cells: list[str] = []
    position, more = 0, True
    while more:
        if most is not None and len(cells) >= most:
            raise RowError("wrong number of values", f"more than {most} values for {most} attributes")
        match = _CELL.match(text, position)
        if match is None:
            raise RowError("malformed row", text[position:].partition(",")[0][:40])
        cells.append(_unquote(match[1]) if match[1] else _mark_missing(match[2].strip()))
        position, more = match.end(), bool(match[3])
    return cells


def _mark_missing(cell: str) -> str:
    return _MISSING if cell == "?" else cell


def _parse_dense(text: str, arff: ArffHeader) -> list[str]:
    cells = _split_cells(text, len(arff.attributes))
    if len(cells) != len(arff.attributes):
        raise RowError("wrong number of values", f"{len(cells)} values for {len(arff.attributes)} attributes")
    return cells


def _parse_sparse(text: str, arff: ArffHeader) -> dict[int, str]:
    if not text.endswith("}"):
        raise RowError("malformed row", text[-40:])
    cells: dict[int, str] = {}
    body, position = text[1:-1].strip(), 0
    while position < len(body):
        match = _PAIR.match(body, position)
        if match is None:
            raise RowError("malformed row", body[position : position + 40])
        column = int(match[1])
        if column >= len(arff.attributes):
            raise RowError("attribute out of range", f"{column} of {len(arff.attributes)} attributes")
        if column in cells:
            raise RowError("attribute given twice", str(column))
        cells[column] = _unquote(_mark_missing(match[2]))
        position = match.end()
    return cells


def read_mulan(path: Path, *, rejects: Rejects) -> FeatureTable:
    """Read an ARFF file and the XML beside it: `X.xml` for `X.arff`, `X-train.arff`, `X-test-sparse.arff`.

    Parameters
    ----------
    path : Path
        The ARFF file.
    rejects : Rejects
        Where rows that cannot be used are listed.

    Returns
    -------
    FeatureTable
        With `feature_names`.

    Raises
    ------
    InputError
        Not XML, an XML that names no attribute of the file, or attributes that are neither numbers nor labels.
    """
    return MulanStream(path, rejects, unique=True).read_all()


class MulanStream(RowStream):
    """Stream of the rows of `read_mulan`; with `unique` one whose id came before is rejected.

    Raises
    ------
    InputError
        As `read_mulan`, but for a file without rows.
    """

    def __init__(self, path: Path, rejects: Rejects, *, unique: bool = False) -> None:
        self.path, self.rejects, self._unique, self._xml = path, rejects, unique, _find_xml(path)
        self._arff = read_arff_header(path)
        self._plan = _make_plan(self._arff, _read_labels(self._xml))
        self._sparse = next((isinstance(cells, dict) for _, cells in read_arff_rows(self._arff, Rejects())), True)
        self.index = LabelIndex(self._plan.label_names)
        names = self._plan.feature_names
        self.info = StreamInfo(n_features=len(names), feature_names=names, order="source")

    @property
    def files(self) -> list[Path]:
        return [self.path, self._xml]

    def iterate_parts(self, skip: int = 0) -> Iterator[StreamPart]:
        batch, ids, n_dense_values, n_written_values = RowBatch(), set[str](), 0, 0
        width, has_ids = len(self._plan.feature_names), any(column.role == "id" for column in self._plan.columns)
        max_size = _CHUNK_VALUES if self._sparse else _CHUNK_VALUES // width
        for number, cells in read_arff_rows(self._arff, self.rejects, skip):
            if not self._sparse and isinstance(cells, dict):  # it takes far more memory than in the file
                n_dense_values += len(self._plan.columns)
                n_written_values += len(cells)
                check_feature_count(self.path, n_dense_values, n_written_values)
            with self.rejects.catch(self.path, number):
                name, labels, features = _parse_row(cells, self._plan, str(number), self.path)
                if self._unique and name in ids:
                    raise RowError("duplicate id", name)
                ids.update([name] if self._unique else [])
                if len(batch) + (len(batch.values) if self._sparse else 0) > max_size:
                    yield self._build_part(batch, number - 1)  # rows between that cannot be used are listed already
                    batch = RowBatch()
                batch.add(number, labels, {"id": name} if has_ids else {}, features, features.values())
        if len(batch):
            yield self._build_part(batch, batch.lines[-1])

    def _build_part(self, batch: RowBatch, position: int) -> StreamPart:
        X = batch.build_features(len(self._plan.feature_names))
        return StreamPart(batch.to_columns(X if self._sparse else X.toarray()), position)


def _find_xml(path: Path) -> Path:
    stem = path.name.removesuffix(".gz").removesuffix(".arff")
    stems = [stem]
    for ending in _ENDINGS:
        if stems[-1].endswith(ending):
            stems.append(stems[-1].removesuffix(ending))
    files = [path.with_name(f"{name}.xml") for name in stems]
    xml_file = next((file for file in files if file.is_file()), None)
    if xml_file is None:
        names = " nor ".join(file.name for file in files)
        raise InputError(
            f"{path} is ARFF, but the XML file that says which attributes are labels is missing: "
            f"there is no {names} beside it; put it there"
        )
    return xml_file


def _read_labels(path: Path) -> list[str]:
    excess = f"has more than {_MAX_XML_BYTES >> 20} MiB, too many for names of labels"
    root = parse_xml(text_files.read_small_file(path, _MAX_XML_BYTES, excess), path)
    names = [e.attributes["name"] for e in root.walk() if e.local_name == "label" and "name" in e.attributes]
    require(bool(names), f'{path} names no labels; it should hold <label name="..."/> elements')
    if len(set(names)) < len(names):
        twice = Counter(names).most_common(1)[0][0]
        raise InputError(f"{path} names the label {twice!r} twice; remove one")
    return names


@dataclass(frozen=True)
class _Column:
    """Conversion of an attribute: to a label, the id, a number, or a feature per value after the first."""

    role: str  # "label", "id", "number" or "values"
    number: int = 0  # number of the label, or of the first feature
    values: dict[str, int | None] | None = None  # the feature of each value; the first value has none


@dataclass
class _Plan:
    columns: list[_Column]
    label_names: list[str]
    feature_names: list[str]
    inverted: str | None = None  # a label that lists 1 before 0, so that a sparse row that leaves it out has it


def _make_plan(arff: ArffHeader, labels: list[str]) -> _Plan:
    names = {attribute.name for attribute in arff.attributes}
    absent = [name for name in labels if name not in names]
    if absent:
        raise InputError(
            f"the XML beside {arff.path} names {len(absent):,} labels that are not attributes of it, "
            f"the first is {absent[0]!r}; give the two files that belong together"
        )
    number = {name: i for i, name in enumerate(labels)}
    try:
        plan = _Plan([], list(Vocabulary(labels)), [])  # names in one spelling, which must not make two the same
    except InputError as error:
        raise InputError(f"the XML beside {arff.path} cannot be used: {error}") from error
    for attribute in arff.attributes:
        if attribute.name in number:
            plan.columns.append(_Column("label", number[attribute.name]))
            if attribute.values and attribute.values[0] == "1":
                plan.inverted = attribute.name
        else:
            plan.columns.append(_make_feature_column(attribute, plan, arff.path))
    require(bool(plan.feature_names), f"{arff.path} has labels but no other attributes, so nothing to learn from")
    return plan


def _make_feature_column(attribute: ArffAttribute, plan: _Plan, path: Path) -> _Column:
    first_feature = len(plan.feature_names)
    if attribute.kind == "numeric" or attribute.values == ("0", "1"):
        plan.feature_names.append(attribute.name)
        return _Column("number", first_feature)
    if attribute.values is not None:
        later_values = attribute.values[1:]
        text_files.check_expansion(str(path), text_files.get_file_size(path), len(attribute.name) * len(later_values))
        plan.feature_names.extend(f"{attribute.name}={value}" for value in later_values)
        features = {v: first_feature + i for i, v in enumerate(later_values)}
        return _Column("values", first_feature, {attribute.values[0]: None} | features)
    if attribute.name.lower() in _ID_NAMES and not any(c.role == "id" for c in plan.columns):
        return _Column("id")
    raise InputError(
        f"{path} has the attribute {attribute.name!r}, which is text and no feature; call it id or remove it"
    )


def _parse_row(cells: ArffCells, plan: _Plan, row_id: str, path: Path) -> tuple[str, list[int], dict[int, float]]:
    """Return (id, `row_id` where the row has none; labels; value of each feature)."""
    if isinstance(cells, dict) and plan.inverted is not None:
        raise InputError(
            f"{path} is sparse and lists 1 before 0 for the label {plan.inverted!r}, so that every row that leaves it "
            "out would have it; write {0,1}"
        )
    labels: list[int] = []
    features: dict[int, float] = {}
    for position, text in cells.items() if isinstance(cells, dict) else enumerate(cells):
        column = plan.columns[position]
        if text == _MISSING:
            raise RowError("missing value", f"attribute {position}")
        if column.role == "id":
            row_id = text
        elif column.role == "label":
            value = _parse_number(text)
            if value not in (0.0, 1.0):
                raise RowError("label that is neither 0 nor 1", text)
            labels += [column.number] if value else []
        else:
            _set_feature(features, column, text)
    return row_id, labels, features


def _set_feature(features: dict[int, float], column: _Column, text: str) -> None:
    if column.values is None:
        if value := _parse_number(text):
            features[column.number] = value
        return
    if text not in column.values:
        raise RowError("value that the header does not list", text)
    if (feature := column.values[text]) is not None:
        features[feature] = 1.0


def _parse_number(text: str) -> float:
    try:
        value = float(text if text.isascii() and "_" not in text else "")
    except ValueError as error:
        raise RowError("malformed number", text) from error
    if not abs(value) <= _MAX_FLOAT:
        raise RowError("value that is not finite", text)
    return value
