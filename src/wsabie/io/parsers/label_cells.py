"""Cells that hold labels: texts, numbers, lists of these in several notations, and vectors of 0 and 1.

A column is inspected as a whole before a cell of it is read. The separator of its texts is the one under which labels
recur in most cells, so that a single odd cell decides nothing. A text may be a list of JSON, Python or NumPy.
"""

import logging
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from wsabie.core.errors import InputError, MissingLabelsError
from wsabie.io.parsers.json_values import parse_json_value
from wsabie.storage.rejects import RowError

log = logging.getLogger("wsabie")
LABEL_COLUMNS = ("labels", "label", "tags", "tag", "keywords", "text")
"""Columns that hold labels, the best known first; only the first that is there counts."""
SINGLE = ("label", "tag")  # their text is one label, never a list
SEPARATORS = ";|,\n\t\uff1b\uff0c\u3001"  # the last three are those of Chinese and Japanese
FACT_COLUMNS = ("file_name", "id", "text", "group", "split", "time")
_OF_LABEL_STUDIO = ("annotator", "annotation_id", "created_at", "updated_at", "lead_time")
ITEM_COLUMNS = (*FACT_COLUMNS, "path", "file", "image", *_OF_LABEL_STUDIO)
"""Columns that hold items and facts of them, and never labels where there is another column of labels."""
_FLAGS: dict[object, bool] = dict.fromkeys((-1, 0, "-1", "0", "0.0"), False) | dict.fromkeys((1, "1", "1.0"), True)
_FLAGS |= {**dict.fromkeys(("no", "No", "NO"), False), **dict.fromkeys(("yes", "Yes", "YES", "x", "X"), True)}
_FLAGS |= {name: flag for flag in (False, True) for name in (str(flag), str(flag).lower(), str(flag).upper())}
MISSING = {"", "nan", "NaN", "NA", "<NA>", "#NA", "#N/A", "N/A", "n/a", "null", "NULL", "NaT", "None", "()", "{}",
           "set()"}  # fmt: skip
"""Texts that programs write for an empty cell; they are never labels."""
_SAMPLE = 50_000  # cells in which labels may recur
_RARE = 0.05  # share of cells below which a separator may be a part of names
_SENTENCE = 4  # words
_ITEM = re.compile(r"""'((?:[^'\\]|\\.)*+)'|"((?:[^"\\]|\\.)*+)"|(None|nan)|([-+]?\d+)(?:\.0*)?(?![\w.])""")
_LIST = re.compile(rf"[\[({{]\s*(?:(?:{_ITEM.pattern})(?:\s*,\s*|\s+|(?=[\])}}'\"])))*+[\])}}]")
_CALL = re.compile(r"\b(?:np\.\w+|array|frozenset|set|list|tuple|Index)\(([^()]*?)(?:, dtype=[^(),]*)?\)")
_MARKED = re.compile(r"(<(?![^<>]*://)[^<>\s]+>)+|#[^\s#,;|]+(\s+#[^\s#,;|]+)+")
"""Tags of Stack Exchange, such as `<sea><gull>`, and hashtags with blanks between them."""
_SCORED = re.compile(r"\(?[^:]*[^:\s]\s*:\s*[01]?\.\d+\)?")
"""Label with a score or a weight behind it."""
_BROKEN_LIST = re.compile(r"""(?:\w+\()?[\[{]\s*['"]""")
_ENTITY = re.compile(r"&#?\w{1,8};")
_OBJECT = re.compile(r"""\[?\{\s*['"][^'"]+['"]\s*:""")
JOINED = re.compile(r"\w\s*[,;|\uff1b\uff0c\u3001]\s*\w")
"""Text that may join several labels."""
_NO_FLAG = re.compile(
    r"(.*_)?id|[xy]_?(min|max)?|width|height|is_?crowd|area|score|difficult|truncated|occluded"
    r"|region_count|index|unnamed: \d+|",
    re.IGNORECASE,
)
"""Names of columns of numbers that may happen to be 0 and 1, and are never labels."""


class LabelCellReader:
    """Reader of the cells of one label column.

    Numbers become their decimal digits, or the name with that index in `class_names`. `inspect` sees all cells first.

    Attributes
    ----------
    name : str
    columns : list of str
        Columns that are read.

    Examples
    --------
    >>> reader = LabelCellReader("tags").inspect(["dog, ;)", "dog, sea", "['sea', 'cat']"])
    >>> [reader.read_labels(cell, "") for cell in ("dog, ;)", "['sea', 'cat']", "nan", 2.0)]
    [('dog', ' ;)'), ('sea', 'cat'), (), ('2',)]
    """

    def __init__(self, name: str, class_names: Sequence[str] | None = None, separators: str = SEPARATORS) -> None:
        self.name, self.columns, self.class_names = name, [name], class_names
        self._separators = "" if name.lower() in SINGLE else separators
        self._is_single = name.lower() in SINGLE or separators != SEPARATORS
        self._first: tuple[str, str, object] | None = None  # kind, where, value
        self._texts: list[str] = []
        self._n_texts, self._n_wrapped, self._n_with = 0, 0, Counter[str]()
        self._lengths: set[int] = set()
        self._has_other_lists, self._has_repeated_flags, self._first_flags = False, False, set[object]()
        self._n_lists, self._joined_texts = 0, list[str]()

    def inspect(self, cells: Iterable[object]) -> "LabelCellReader":
        """Inspect the cells of the column; return the reader."""
        for cell in cells:
            self.add(cell)
        return self

    def get_cell(self, row: Mapping[str, object]) -> object:
        """Return the cell of a row that `read_labels` takes."""
        return row.get(self.name)

    def add(self, cell: object) -> None:
        """Inspect one cell."""
        values = parse_label_list(cell)
        if values is not None:
            self._add_list(values)
        elif isinstance(cell, str) and cell.strip() not in MISSING:
            self._n_texts += 1
            self._n_wrapped += cell[:1] + cell[-1:] in ("[]", "{}")
            for separator in self._separators:
                self._n_with[separator] += separator in cell
            if self._n_texts <= _SAMPLE:
                self._texts.append(cell)

    def _add_list(self, values: Sequence[object]) -> None:
        self._n_lists += len(values) > 0
        if len(values) == 1 and isinstance(text := values[0], str) and JOINED.search(text):
            self._joined_texts.append(text)
        if len(self._lengths) < 2 and not self._has_other_lists:
            self._lengths.add(len(values))
            self._has_other_lists = not all(isinstance(value, int | float) and value in (0, 1) for value in values)
        if not self._has_other_lists:
            self._has_repeated_flags |= len(values) > len(set(values))
            self._first_flags.update(values[:1])

    @property
    def is_vector(self) -> bool:
        """Return True if lists are vectors of 0 and 1, and not numbers of labels: these repeat none, in order."""
        if self._n_texts or self._has_other_lists or len(self._lengths) != 1 or self._lengths <= {0, 1}:
            return False
        return self._has_repeated_flags or len(self._first_flags) > 1

    @cached_property
    def _cells(self) -> list[str]:
        """Texts without the brackets that all of them have."""
        return [text[1:-1] for text in self._texts] if self._is_wrapped else self._texts

    @property
    def _is_wrapped(self) -> bool:
        return self._n_wrapped == self._n_texts > 1 and not self._is_single

    @cached_property
    def _is_whole(self) -> bool:
        """True if all labels are whole numbers with a point, as pandas writes them beside empty cells."""
        parts = (part for text in self._texts for part in _list_parts(text, self.separator or "\n"))
        return bool(self._texts) and all(re.fullmatch(r"\d+\.0", part) for part in parts)

    @cached_property
    def separator(self) -> str | None:
        """Separator of several labels in a text; None without one.

        It is the one under which most cells hold a label that recurs in another, else the one that most cells hold.
        A rare one counts if it separates labels of other cells. Two characters are two separators: of hierarchies
        such as `animal|dog`, and of their levels.
        """
        candidates = [s for s in self._separators if self._n_with[s] and not self._is_part_of_names(s)]
        if levels := [s for s in candidates if s != "|" and self._separates_hierarchies(s)]:
            return "|" + levels[0]
        return max(candidates, key=self._rate) if len(candidates) > 1 else next(iter(candidates), None)

    def _separates_hierarchies(self, separator: str) -> bool:
        texts = [text for text in self._cells if separator in text and "|" in text and "|" in self._separators]
        parts = [part for text in texts for part in _list_parts(text, separator)]
        return 2 * sum("|" in part for part in parts) > len(parts)

    def _is_part_of_names(self, separator: str) -> bool:
        """Return True if a separator is rare, and most that it separates are not labels of other cells."""
        if self._n_with[separator] >= _RARE * self._n_texts:
            return False
        cells = [_list_parts(text, separator) for text in self._cells]
        counts = Counter(label for cell in cells for label in set(cell))
        recurs = [counts[label] > 1 for cell in cells if len(cell) > 1 for label in cell]
        return 2 * sum(recurs) <= len(recurs)

    def _rate(self, separator: str) -> tuple[bool, int, bool, float]:
        """Return (separates well, cells with a label that recurs, is common, share of labels that recur)."""
        cells = [_list_parts(text, separator) for text in self._cells]
        counts = Counter(label for cell in cells for label in set(cell))
        recurring = [sum(counts[label] > 1 for label in cell) for cell in cells]
        split_cells = [cell for cell, text in zip(cells, self._cells, strict=True) if separator in text]
        is_common = 3 * self._n_with[separator] >= max(self._n_with.values(), default=0)
        share = sum(recurring) / max(1, sum(map(len, cells)))
        return 2 * sum(map(_is_clean, split_cells)) > len(split_cells), sum(map(bool, recurring)), is_common, share

    def check(self, path: Path) -> "LabelCellReader":
        """Return the reader; warn, or raise MissingLabelsError, where the labels of its column look like none."""
        sentence = self.find_sentence()
        if sentence and self.name.lower() == "text":
            problem = f"the column 'text' of {path} holds sentences such as {sentence[:60]!r}, and no labels"
            raise MissingLabelsError(f"{problem}; put the labels in a column labels")
        if warning := self._find_warning(path, sentence):
            log.warning("%s", warning)
        if (text := next(filter(_OBJECT.match, self._texts), None)) is not None:
            problem = f"the column {self.name!r} of {path} holds objects such as {text[:60]!r}, and no labels"
            raise InputError(f"{problem}; write their names, with ; between them")
        return self

    def _find_warning(self, path: Path, sentence: str | None) -> str | None:
        """Return the warning about a column whose labels look like none, or like several in one."""
        column = f"{self.name!r} of {path}"
        if sentence:
            return f"the column {column} holds sentences such as {sentence[:60]!r}; are these labels?"
        if (text := next(filter(_BROKEN_LIST.match, self._texts), None)) is not None:
            return f"the column {column} holds a list that cannot be read, {text[:60]!r}, which is taken for names"
        parts = [part for text in self._texts for part in _list_parts(text, self.separator or "\n")]
        if parts and 2 * sum(bool(_SCORED.fullmatch(part)) for part in parts) > len(parts):
            example = repr(parts[0][:60])
            return f"labels of the column {column} such as {example} end in numbers; if these are scores, remove them"
        if fragments := self._find_fragments():
            names = " and ".join(map(repr, fragments[:3]))
            return f"the column {column} is split at {self.separator!r}; if {names} are one name, call the column label"
        if 1 < self._n_lists == len(self._joined_texts):
            return (
                f"each list of {self.name!r} in {path} holds a single text such as {self._joined_texts[0][:60]!r}, "
                "which stays one label; if it joins several, write these as separate entries"
            )
        if several := self._find_several():
            return (
                f"the column {column} is not split, and parts of cells such as {several[:60]!r} are labels of other "
                "cells; if these are several labels, put ; between them in a column labels"
            )
        return None

    def _find_several(self) -> str | None:
        """Return a cell whose parts are most often labels of other cells, in a column that is not split."""
        for separator in "" if self.separator else SEPARATORS + "/ ":
            cells = {text: _list_parts(text, separator) for text in self._texts}
            cell_counts = Counter(label for labels in cells.values() for label in set(labels))
            split_cells = [text for text, labels in cells.items() if len(labels) > 1]
            recurs = [cell_counts[label] > 1 for text in split_cells for label in cells[text]]
            if len(split_cells) > 2 and sum(recurs) > (0.75 if separator == " " else 0.5) * len(recurs):
                return split_cells[0]
        return None

    def find_sentence(self) -> str | None:
        """Return a cell if most are sentences: of four words or more, without labels that recur."""
        n_recurring = self._rate(self.separator or "\n")[1]
        is_long = sum(len(text.split()) >= _SENTENCE for text in self._texts)
        has_sentences = 2 * is_long > len(self._texts) and 2 * n_recurring < len(self._texts)
        return max(self._texts, key=len) if has_sentences and len(self._texts) > 1 else None

    def _find_fragments(self) -> list[str] | None:
        """Return labels of a cell that only its copies share, if most cells with several labels are such."""
        if (separator := self.separator) is None:
            return None
        cells = [(text, _list_parts(text, separator)) for text in dict.fromkeys(self._cells)]
        several = {text for text, labels in cells if len(labels) > 1}
        counts = Counter(text for text in self._cells if text in several)
        cell_counts = Counter(label for _, labels in cells for label in set(labels))
        suspects = [
            labels for text, labels in cells if counts[text] > 2 and all(cell_counts[label] == 1 for label in labels)
        ]
        return suspects[0] if 2 * len(suspects) > len(counts) else None

    def read_labels(self, cell: object, where: str) -> tuple[str, ...]:
        """Return the labels in a cell: a text, a number, a list of either, or nothing.

        Raises
        ------
        InputError
            Something that is not a label, or a number among texts in a column named for one label: it may be a class.
        RowError
            A number without a class name.
        """
        values = parse_label_list(cell)
        if values is None:
            if isinstance(cell, str) and (self._is_wrapped or self._is_whole):
                cell = cell[1:-1] if self._is_wrapped else re.sub(r"(?<=\d)\.0(?!\d)", "", cell)
            is_split = isinstance(cell, str) and self.separator and cell.strip() not in MISSING
            values = [*_split_text(cell, self.separator)] if is_split else [cell]  # type: ignore[arg-type]  # a text
            if self._is_wrapped:
                values = [value.strip().strip('"') if isinstance(value, str) else value for value in values]
        elif self.is_vector:
            values = [number for number, flag in enumerate(values) if flag]
        names = (self._name(value, where) for value in values)
        return tuple(name for name in names if name is not None)

    def _name(self, value: object, where: str) -> str | None:
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if _is_missing(value):
            return None
        if isinstance(value, bool) or not isinstance(value, int | str):
            problem = f"{where}: column {self.name!r} holds {ascii(value)[:60]}, which is not a label"
            raise InputError(f"{problem}; labels are texts or whole numbers, or lists of them")
        kind = "text" if isinstance(value, str) else "number"
        self._first = self._first or (kind, where, value)
        if self._is_single and kind != self._first[0]:
            raise InputError(
                f"{where}: column {self.name!r} holds the {kind} {ascii(value)[:60]} but the {self._first[0]} "
                f"{ascii(self._first[2])[:60]} at {self._first[1]}; write all labels as texts"
            )
        if isinstance(value, str) or self.class_names is None:
            return str(value)
        if not 0 <= value < len(self.class_names):
            raise RowError("label number out of range", f"{value} of {len(self.class_names)} class names")
        return self.class_names[value]


class FlagReader(LabelCellReader):
    """Reader of columns of 0 and 1, whose names are the labels."""

    def __init__(self, names: list[str]) -> None:
        super().__init__(", ".join(names[:3]))
        self.columns = names

    def get_cell(self, row: Mapping[str, object]) -> object:
        """Return the names of the columns that hold 1."""
        return [name for name in self.columns if _FLAGS.get(_strip(row.get(name)))]


def _strip(cell: object) -> object:
    return cell.strip() if isinstance(cell, str) else cell


def _is_missing(cell: object) -> bool:
    """Return True for an empty cell, and for what programs write in one."""
    return cell is None or cell != cell or (isinstance(cell, str) and cell.strip() in MISSING)


def find_flag_columns(rows: Iterable[Mapping[str, object]]) -> FlagReader | None:
    """Return the reader of the columns that hold 0 and 1, and empty cells; None for fewer than two.

    Examples
    --------
    >>> rows = [{"id": 1, "dog": 1, "sea": 0}, {"id": 2, "dog": "0", "sea": "1"}]
    >>> [find_flag_columns(rows).get_cell(row) for row in rows]
    [['dog'], ['sea']]
    """
    names, flag_names = list[str](), set[str]()
    for number, row in enumerate(rows):
        names = names if number else [n for n in row if n not in ITEM_COLUMNS and not _NO_FLAG.fullmatch(n)]
        cells = [(name, _strip(row.get(name))) for name in names]
        flag_names |= (flags := {n for n, cell in cells if isinstance(cell, str | int | float) and cell in _FLAGS})
        if len(names := [name for name, cell in cells if name in flags or _is_missing(cell)]) < 2:
            return None
    if len(names := [name for name in names if name in flag_names]) < 2:
        return None
    log.info("labels are the names of the columns of 0 and 1: %s", ", ".join(names[:10]))
    return FlagReader(names)


def find_choices(columns: Collection[str]) -> str | None:
    """Return the single column of answers in a table that Label Studio exports; None in any other."""
    answers = [name for name in columns if name not in ITEM_COLUMNS]
    return answers[0] if len(answers) == 1 and {"annotator", "annotation_id"} <= {*columns} else None


def _split_text(text: str, separator: str) -> list[str]:
    """Return what stands between separators; the semicolon at the end of an entity (`&amp;`) is none."""
    if len(separator) > 1:
        return [part for outer in _split_text(text, separator[1]) for part in outer.split(separator[0])]
    if separator == ";" and "&" in text:
        text, separator = _ENTITY.sub(lambda match: match[0][:-1] + "\0", text).replace(";", "\1"), "\1"
        return [part.replace("\0", ";") for part in text.split(separator)]
    return text.split(separator)


def _list_parts(text: str, separator: str) -> list[str]:
    """Return what stands between separators, without blanks around it, for comparison."""
    return [part for part in map(str.strip, _split_text(text, separator)) if part]


def _is_clean(parts: Sequence[str]) -> bool:
    """Return True if parts of a text look like labels: several, none with another separator at an end."""
    words = [part for part in parts if any(map(str.isalnum, part))]
    return len(parts) > 1 and not any(word[0] in SEPARATORS or word[-1] in SEPARATORS for word in words)


def parse_label_list(cell: object) -> list[object] | None:
    """Return the values of a list, or of a text that is one in JSON, Python or NumPy; None for the rest.

    Tags of Stack Exchange and hashtags are lists too.

    Examples
    --------
    >>> parse_label_list('["dog", 3]'), parse_label_list("['dog' 'sea']"), parse_label_list("[dog]")
    (['dog', 3], ['dog', 'sea'], None)
    """
    if isinstance(cell, list | tuple):
        return [*map(_get_name, cell)]
    if isinstance(cell, dict) and isinstance(cell.get("choices"), list):  # of Label Studio
        return list(cell["choices"])
    if isinstance(cell, dict) and isinstance(name := _get_name(cell), str):
        return [name]
    if isinstance(cell, str) and cell[:1] in ("<", "#") and _MARKED.fullmatch(cell.strip()):
        return [part.strip("<>") for part in re.findall(r"<[^<>]+>|#\S+", cell)]
    if isinstance(cell, str) and "(" in cell:
        cell = _CALL.sub(r"\1", cell)
    if not isinstance(cell, str) or cell[:1] not in ("[", "(", "{", " ") or not (text := cell.strip()):
        return None
    if text[0] not in "[({" or text[-1] not in "])}":
        return None
    with suppress(ValueError, RecursionError):
        value = parse_json_value(text)
        values = value.get("choices") if isinstance(value, dict) else value
        values = [*map(_get_name, values)] if isinstance(values, list) else None
        return values if values is not None and all(map(_is_plain, values)) else None
    if _LIST.fullmatch(text) is None or (text[0] != "[" and not re.search("['\"]", text)):
        return None
    return [_parse_item(match) for match in _ITEM.finditer(text)]


def _get_name(value: object) -> object:
    """Return the name of an object in a list of labels, as TMDB and Annif have; any other value as it is."""
    names = (value.get(key) for key in ("name", "label", "uri")) if isinstance(value, dict) else ()
    return next((name for name in names if isinstance(name, str)), value)


def _is_plain(value: object) -> bool:
    return isinstance(value, str | int | None) or (isinstance(value, float) and value.is_integer())


def _parse_item(match: re.Match[str]) -> object:
    single, double, missing, number = match.groups()
    if missing is not None:
        return None
    return int(number) if number is not None else re.sub(r"\\(.)", r"\1", single if single is not None else double)
