"""Files of tags in CSV, JSON Lines and COCO JSON.

CSV and JSON Lines hold one tag a line with all its facts; tables of others hold files and labels. Our columns are the
fields of `tag_record.Tag`. In CSV, `parents` and `synonyms` are JSON.

Spreadsheets read a cell that begins with = + - @, a tab or a line break as a formula. The writer puts an apostrophe
before such texts, and before texts that begin with apostrophes and one of these; the reader removes one apostrophe from
files of ours. Files of others are read as they are.

Files of others have a column for the item (`FILE_COLUMNS`): a path relative to a root of the collection or to the file
itself, an absolute path, or an address. Labels are found as in data beside pictures (`make_label_reader`). The columns
`root`, `hash`, `region`, `state` and `language` are optional.

COCO JSON has one category per label, with the parent label as its `supercategory`. A region becomes an annotation with
a box, and with polygons if it has outlines. A tag of a whole picture becomes an annotation whose box is the whole
picture, marked `"image_label": true`: other programs see a box, and an import restores the tag of the whole. Such an
annotation has no box if the size of the picture is unknown.
"""

import csv
import json
import re
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain, islice
from math import isfinite
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, TypeAlias

from wsabie.collection.interchange.tag_record import (
    Frame,
    Tag,
    TagLine,
    TagProvenance,
    format_time,
    group_by_item,
    parse_text,
    parse_time,
)
from wsabie.collection.labels.label_store import iterate_ancestors
from wsabie.core.errors import InputError
from wsabie.core.json_conversion import JsonObject
from wsabie.io.formats.coco import find_coco_file, get_coco_key, parse_coco_region
from wsabie.io.formats.file_table import find_label_column
from wsabie.io.formats.media_folder import make_label_reader
from wsabie.io.parsers import text_tables
from wsabie.io.parsers.json_values import iterate_elements
from wsabie.io.parsers.label_cells import LabelCellReader
from wsabie.io.parsers.text_files import format_path
from wsabie.io.regions import format_region, parse_region
from wsabie.storage.atomic_files import replace_file
from wsabie.storage.rejects import Rejects, RowError

_MAX_NAME_LENGTH = 500
"""Maximum length of the name of a person or a model."""
_ORIGINS = ("person", "import", "model")
_STATES = ("accepted", "rejected")
_SUGGESTED = "suggested"
COLUMNS = Tag._fields[2:]
"""Columns of our files."""
OURS = {"path", "label", "state", "origin", "by", "at"}
"""Columns that identify our files."""
FILE_COLUMNS = ("path", *text_tables.FILE_COLUMNS, "url")
"""Names of the column with the item, in lower case, in order of preference."""
RowParser: TypeAlias = Callable[[int, JsonObject], TagLine]

_FORMULA = re.compile(r"'*[=+\-@\t\r\n]")
_MODEL = re.compile(r"\w[^/\\]*")
_GUARDED = re.compile(r"'+[=+\-@\t\r\n]")


def write_table(tags: Iterable[Tag], out: Path, *, is_json: bool) -> int:
    """Write tags as CSV or JSON Lines and return their number."""
    n = 0
    with replace_file(out) as draft, draft.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        if not is_json:
            writer.writerow(COLUMNS)
        for n, tag in enumerate(tags, start=1):  # noqa: B007 - the function returns the count
            if is_json:
                stream.write(json.dumps(dict(zip(COLUMNS, tag[2:], strict=True)), ensure_ascii=False) + "\n")
            else:
                cells = tag._replace(parents=_dump_list(tag.parents), synonyms=_dump_list(tag.synonyms))
                writer.writerow([escape_formula(cell) if isinstance(cell, str) else cell for cell in cells[2:]])
    return n


def escape_formula(text: str) -> str:
    """Return a text that no spreadsheet reads as a formula.

    Examples
    --------
    >>> [escape_formula(text) for text in ("sea", "=1+1", "'sea", "'=1")]
    ['sea', "'=1+1", "'sea", "''=1"]
    """
    return f"'{text}" if _FORMULA.match(text) else text


def unescape_formula(text: str) -> str:
    """Return the text that `escape_formula` received."""
    return text[1:] if _GUARDED.match(text) else text


def read_table(path: Path, rejects: Rejects, *, is_json: bool) -> Iterator[TagLine]:
    """Yield the usable lines of a CSV or JSON Lines file.

    Raises
    ------
    InputError
        The file is malformed or empty, or has no column of files or labels.
    """
    rows = text_tables.iterate_table_rows(path, rejects, is_json)
    first = next(rows, None)
    if first is None:
        if len(rejects):
            return
        raise InputError(f"{format_path(path)} has no rows; write one for each tag")
    is_own = first.cells.keys() >= OURS
    parse_row = partial(_parse_own_row, is_json) if is_own else _make_foreign_parser(path, is_json)
    for where, row_number, cells in chain([first], rows):
        with rejects.catch(where):
            yield parse_row(row_number, cells)


def _parse_own_row(is_json: bool, line: int, row: JsonObject) -> TagLine:
    if not is_json:
        row = {name: unescape_formula(cell) for name, cell in row.items()}
    return _parse_common_columns(line, row, row.get("path"))._replace(
        labels=(parse_text(row.get("label"), "label"),),
        state=_parse_state(row.get("state")),
        provenance=_parse_provenance(row),
        parents=tuple(parse_text(name, "parent") for name in _parse_list(row.get("parents") or [])),
        synonyms=tuple(map(_parse_synonym, _parse_list(row.get("synonyms") or []))),
        wordnet=parse_text(row.get("wordnet"), "wordnet"),
    )


def _parse_common_columns(line: int, row: JsonObject, path: object) -> TagLine:
    name = parse_text(path, "path")
    root = parse_text(row.get("root"), "root")
    digest = parse_text(row.get("hash"), "hash", 64)
    region = _parse_region(row.get("region"))
    language = _parse_visible_text(row.get("language"), "language", 35)
    return TagLine(line, name, (), root, digest, region, language=language)


def _parse_provenance(row: JsonObject) -> TagProvenance:
    origin = parse_text(row.get("origin"), "origin")
    if origin not in _ORIGINS:
        raise RowError("unknown origin", ascii(origin)[:100])
    by = _parse_visible_text(row.get("by"), "name", _MAX_NAME_LENGTH)
    model, model_time = parse_text(row.get("model"), "model", 200), parse_text(row.get("model_made"), "time")
    if model and not _MODEL.fullmatch(model):
        raise RowError("model that is not the name of a folder", ascii(model)[:100])
    at = parse_time(parse_text(row.get("at"), "time"))
    model_made = format_time(parse_time(model_time)) if model_time else ""
    score, probability = (_parse_number(row.get(column), column) for column in ("score", "probability"))
    return TagProvenance(origin, by, at, model, model_made, score, probability)


def _make_foreign_parser(path: Path, is_json: bool) -> RowParser:
    columns, label_column = find_label_column(path, is_json)
    file = text_tables.find_column(columns, FILE_COLUMNS)
    if file is None:
        names, choices = text_tables.format_column_names(columns), " or ".join(map(repr, FILE_COLUMNS[:2]))
        raise InputError(f"{format_path(path)} has no column {choices} (it has {names}); name the files in one")

    def iterate_cells() -> Iterator[JsonObject]:
        return (row.cells for row in text_tables.iterate_table_rows(path, Rejects(most=0), is_json))

    reader = make_label_reader(path, iterate_cells, columns, label_column)

    def parse_row(line: int, row: JsonObject) -> TagLine:
        return _parse_common_columns(line, row, row.get(file))._replace(
            labels=_parse_labels(reader.get_cell(row), reader),
            state=_parse_state(row.get("state")) if row.get("state") else None,
        )

    return parse_row


def _parse_labels(cell: object, reader: LabelCellReader) -> tuple[str, ...]:
    try:
        names = reader.read_labels(cell, "")
    except InputError:
        names = (cell,)  # type: ignore[assignment]  # which is refused below
    labels = tuple(name for name in (parse_text(name, "label") for name in names) if name.strip())
    if not labels:
        raise RowError("row without a label")
    return labels


def _parse_region(cell: object) -> str:
    text = parse_text(cell, "region", 40_000)
    if not text:
        return ""
    try:
        return format_region(parse_region(text))
    except InputError as error:
        raise RowError("region that cannot be read", text) from error


def _parse_state(cell: object) -> str:
    state = parse_text(cell, "state")
    if state == _SUGGESTED:
        raise RowError("suggestion without a decision")
    if state not in _STATES:
        raise RowError("unknown state", ascii(state)[:100])
    return state


def _parse_visible_text(cell: object, column: str, longest: int) -> str:
    text = parse_text(cell, column, longest)
    if not text.isprintable():
        raise RowError(f"{column} that cannot be seen", ascii(text)[:100])
    return text


def _parse_synonym(pair: Any) -> tuple[str, str]:
    if not isinstance(pair, list) or len(pair) != 2:
        raise RowError("malformed list", ascii(pair)[:100])
    return parse_text(pair[0], "synonym"), parse_text(pair[1], "language", 35)


def _dump_list(names: tuple[object, ...]) -> Any:
    return json.dumps(names, ensure_ascii=False) if names else ""


def _parse_number(cell: Any, column: str) -> float | None:
    """Return a cell that is a number, or None if it is empty.

    Raises
    ------
    RowError
        The cell is not a finite number.
    """
    if cell is None or cell == "":
        return None
    with suppress(TypeError, ValueError, OverflowError):
        if isfinite(number := float(cell)):
            return number
    raise RowError(f"{column} that is not a number", ascii(cell)[:100])


def _parse_list(cell: Any) -> list[Any]:
    with suppress(ValueError, RecursionError):
        values = json.loads(cell) if isinstance(cell, str) else cell
        if isinstance(values, list) and len(values) <= _MAX_NAME_LENGTH:
            return values
    raise RowError("malformed list", ascii(cell)[:100])


_NAMES = {"images": "file_name", "categories": "name"}
_DEEPEST = 100  # ancestors of a label


def write_coco(
    tags: Iterable[Tag], out: Path, categories: Sequence[JsonObject], make_name: Callable[[Tag], str], rejects: Rejects
) -> int:
    """Write tags and return their number.

    Parameters
    ----------
    tags : iterable of Tag
        Grouped by item.
    out : Path
    categories : sequence of dict
        Labels of the tags: "id", "name" and perhaps "supercategory".
    make_name : callable
        Returns the file name of a tag's picture, or raises `RowError` to leave the picture out.
    rejects : Rejects
        Collects tags that cannot be written.
    """
    ids = {category["name"]: category["id"] for category in categories}
    written = 0
    with (
        replace_file(out) as draft,
        draft.open("w", encoding="utf-8") as stream,
        TemporaryFile("w+", encoding="utf-8", dir=out.parent) as annotation_stream,
    ):
        stream.write('{"info": {"description": "tags of a collection"},\n"categories": [')
        stream.write(",\n".join(map(_dump, categories)) + '],\n"images": [')
        separator = ""
        for group in group_by_item(tags):
            first = group[0]
            with rejects.catch(first.path):
                image: JsonObject = {"id": first.item, "file_name": make_name(first)}
                if first.frame:
                    image |= {"width": first.frame[0], "height": first.frame[1]}
                stream.write(separator + _dump(image))
                separator = ",\n"
                for tag in group:
                    with rejects.catch(f"{tag.path} {tag.label}"):
                        annotation = _format_annotation(tag) | {"id": written + 1, "category_id": ids[tag.label]}
                        annotation_stream.write((",\n" if written else "") + _dump(annotation))
                        written += 1
        stream.write('],\n"annotations": [')
        annotation_stream.seek(0)
        shutil.copyfileobj(annotation_stream, stream)
        stream.write("]}\n")
    return written


def _dump(document: JsonObject) -> str:
    return json.dumps(document, ensure_ascii=False)


def _format_annotation(tag: Tag) -> JsonObject:
    frame = tag.frame
    record: JsonObject = {"id": 0, "image_id": tag.item, "category_id": 0}
    if tag.state == "suggested" and tag.probability is not None:
        record["score"] = tag.probability
    if not tag.region:
        box = {"bbox": [0, 0, *frame], "area": frame[0] * frame[1], "iscrowd": 0} if frame else {}
        return record | {"image_label": True} | box
    return record | _format_region(tag.region, frame)


def _format_region(text: str, frame: Frame) -> JsonObject:
    region = parse_region(text)
    x_scale = y_scale = 1.0
    if region.frame is not None:
        if frame is None:
            raise RowError("region in per cent of a picture whose size is not known")
        x_scale, y_scale = frame[0] / region.frame[0], frame[1] / region.frame[1]
    box = region.box.scale(x_scale, y_scale)
    outlines = [[round(x * (x_scale, y_scale)[i % 2], 4) for i, x in enumerate(outline)] for outline in region.outlines]
    bounds = [round(bound, 4) for bound in (box.left, box.top, box.width, box.height)]
    area = sum(map(_compute_area, outlines)) if outlines else bounds[2] * bounds[3]
    polygons = {"segmentation": outlines} if outlines else {}
    return {"bbox": bounds, "area": round(area, 4), "iscrowd": 0} | polygons


def _compute_area(outline: list[float]) -> float:
    """Return the area of a polygon by the shoelace formula."""
    xs, ys = outline[::2], outline[1::2]
    corner_pairs = zip(xs, ys, [*xs[1:], xs[0]], [*ys[1:], ys[0]], strict=True)
    return abs(sum(x * v - u * y for x, y, u, v in corner_pairs)) / 2


def read_coco_tags(path: Path, rejects: Rejects) -> Iterator[TagLine]:
    """Yield the tags of a COCO file, annotation by annotation.

    Raises
    ------
    InputError
        The file is not COCO JSON.
    """
    if find_coco_file(path) != path:
        raise InputError(f"{format_path(path)} holds no images, categories and annotations of COCO; give such a file")
    images: dict[str, str] = {}
    categories: dict[str, tuple[str, str]] = {}
    for position, (member, element) in enumerate(iterate_elements(path, tuple(_NAMES)), start=1):
        with rejects.catch(f"{format_path(path)} {member} {position}"):
            key, name = get_coco_key(element, "id"), _require_text(element, _NAMES[member])
            if member == "images":
                images[key] = name
            else:
                categories[key] = name, parse_text(element.get("supercategory"), "supercategory")
    parents = _find_ancestors(categories.values())
    for position, (_, element) in enumerate(iterate_elements(path, ("annotations",)), start=1):
        with rejects.catch(format_path(path), position):
            image, category = get_coco_key(element, "image_id"), get_coco_key(element, "category_id")
            if image not in images:
                raise RowError("annotation of an unknown picture", image)
            if category not in categories:
                raise RowError("annotation of an unknown category", category)
            label = categories[category][0]
            yield TagLine(position, images[image], (label,), region=_parse_coco_region(element), parents=parents[label])


def _parse_coco_region(element: JsonObject) -> str:
    if element.get("image_label") is True or not (element.get("bbox") or element.get("segmentation")):
        return ""
    shape = parse_coco_region(element, needs_outline=False)
    if shape.box.area <= 0:
        raise RowError("empty region", f"annotation {element.get('id')}")
    try:
        return format_region(shape)
    except InputError as error:
        raise RowError("outline with too many corners", f"annotation {element.get('id')}") from error


def _find_ancestors(categories: Collection[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    """Return the ancestors of each category, broadest first; "none" and its own name are not parents."""
    names = {name for name, _ in categories}
    parents: dict[str, str | None] = {
        name: parent
        for name, parent in categories
        if parent and parent != name and (parent in names or parent != "none")
    }
    return {name: tuple(islice(iterate_ancestors(parents, name), _DEEPEST))[::-1] for name in names}


def _require_text(element: JsonObject, name: str) -> str:
    text = parse_text(element.get(name), name)
    if not text.strip():
        raise RowError(f"picture or category without {name}", repr(element)[:100])
    return text
