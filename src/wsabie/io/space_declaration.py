"""Declaration of a space in TOML: kinds of items, their data, and their relations.

[kinds.track]
data = "songs"                    # anything that `open_source` opens, beside this file

[relations.artists]
query = "track"
target = "artist"                 # a kind without data: a free vector for each name
names = "artist"                  # the pairs: what the data of "track" name in this column, or "labels"

[relations.covers]
query = "track"
target = "track"
pairs = "covers.tsv"              # the pairs: id TAB id

[space]
dim = 50                          # parameters of `Space`
"""

import hashlib
import json
import logging
import tomllib
from collections.abc import Mapping
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, NamedTuple

from wsabie.core.errors import InputError, require
from wsabie.core.input_files import open_input
from wsabie.core.json_conversion import JsonObject
from wsabie.io.parsers.text_files import explain_input_errors, format_path
from wsabie.vocabulary.name_suggestions import find_closest_names

_SLIP = 0.8
_MAX_BYTES = 1 << 16  # bytes; long dotted keys take memory by their square
_OWN_NAMES = ("features", "n_words", "size", "crop", "rate", "normalise", "output", "min_count", "hashing")
_FEATURE_OPTIONS = {**{name: name for name in _OWN_NAMES}, "components": "n_components", "landmarks": "n_landmarks"}
"""Options of feature extraction: names in the file, and parameters of feature extractors."""
_KIND = ("data", "split", "ids", "map", "scaling", *_FEATURE_OPTIONS)
_RELATION = ("query", "target", "pairs", "names", "weight", "candidates")
FITTED_CANDIDATES = "fitted"
ENDING = ".toml"
MAX_WEIGHT = 1000
log = logging.getLogger("wsabie")


class KindDeclaration(NamedTuple):
    """Kind of items.

    Attributes
    ----------
    name : str
    data : Path or None
        A collection; None: items that have only names.
    split : str or None
        The side of the collection's own split to use.
    feature_options : dict
        Feature extraction of pictures, sounds or documents: options of the extractor, and "features".
    map : str or None
        Kinds of the same map share it; the name of a kind is that of its own.
    scaling : str or None
        Scaling of the rows: "auto", "tfidf" or None.
    ids : Path or None
        A list of the ids to use, one a line; None: all.
    """

    name: str
    data: Path | None = None
    split: str | None = None
    feature_options: Mapping[str, Any] = {}
    map: str | None = None
    scaling: str | None = "auto"
    ids: Path | None = None

    @property
    def mapped_by(self) -> str:
        """Return the name of the map of its features."""
        return self.name if self.map is None else self.map


class RelationDeclaration(NamedTuple):
    """Relation of two kinds, and the source of its pairs: a file, or names in the data of one kind.

    `candidates` is "fitted" where candidates are all items that a space has fitted, not only those in the data of
    their kind.
    """

    name: str
    query: str
    target: str
    pairs: Path | None
    names: str | None
    weight: float
    candidates: str | None = None


class SpaceDeclaration(NamedTuple):
    """Declaration of a space: its kinds, relations and parameters."""

    path: Path
    kinds: dict[str, KindDeclaration]
    relations: list[RelationDeclaration]
    parameters: JsonObject


def read_declaration(path: Path) -> SpaceDeclaration:
    """Read kinds, relations and parameters.

    Parameters
    ----------
    path : Path
        TOML; the paths in it are beside it.

    Raises
    ------
    InputError
        The file cannot be read, is not TOML, or says something that cannot be; the sentence says where.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "music.toml"
    ...     _ = file.write_text('[relations.near]\\nquery = "artist"\\ntarget = "artist"\\npairs = "near.tsv"')
    ...     declaration = read_declaration(file)
    >>> list(declaration.kinds), declaration.relations[0].pairs.name
    (['artist'], 'near.tsv')
    """
    document = read_toml_tables(path)
    _check_keys(document, ("kinds", "relations", "space"), str(path))
    kinds = {name: _parse_kind(name, table, path) for name, table in _get_tables(document, "kinds", path).items()}
    relations = [_parse_relation(name, table, path) for name, table in _get_tables(document, "relations", path).items()]
    require(bool(relations), f"{path} declares no relation; add a table such as [relations.artists]")
    _warn_about_kinds(set(kinds), relations, path)
    for relation in relations:
        for name in (relation.query, relation.target):
            kinds.setdefault(name, KindDeclaration(name))
        _check_names(relation, kinds, path)
    parameters = {
        name: None if value == "none" else value for name, value in _get_table(document, "space", path).items()
    }
    return SpaceDeclaration(path, kinds, relations, parameters)


def compute_declaration_fingerprint(declaration: SpaceDeclaration) -> str:
    """Return 16 hex digits of the declaration of the relations and their kinds, paths aside."""
    names = {name for relation in declaration.relations for name in (relation.query, relation.target)}
    kinds = [kind for name, kind in declaration.kinds.items() if name in names]
    parts: list[KindDeclaration | RelationDeclaration] = [*kinds, *declaration.relations]
    facts = [
        {key: value for key, value in part._asdict().items() if key not in ("data", "ids", "pairs")} for part in parts
    ]
    return hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()[:16]


def read_toml_tables(path: Path) -> JsonObject:
    """Return the tables of a TOML file as they are written.

    Raises
    ------
    InputError
        The file cannot be read, is large, or is not TOML.
    """
    with explain_input_errors(path), open_input(path, pipe=True) as file:
        text = file.read(_MAX_BYTES + 1)
    limit = f"{path} is larger than {_MAX_BYTES >> 10} KiB"
    require(len(text) <= _MAX_BYTES, f"{limit}; write parameters, and name data by their paths")
    try:
        return tomllib.loads(text.decode("utf-8"))
    except (ValueError, RecursionError) as error:  # a number may be too long, brackets may be too deep
        raise InputError(f"{path} is not a TOML file: {error}") from error


def _get_table(document: JsonObject, name: str, path: Path) -> JsonObject:
    table = document.get(name, {})
    require(isinstance(table, dict), f"{path}: {name} is {table!r}; make it a table, [{name}]")
    return dict(table)


def _get_tables(document: JsonObject, name: str, path: Path) -> dict[str, JsonObject]:
    return {key: _get_table(_get_table(document, name, path), key, path) for key in _get_table(document, name, path)}


def _check_keys(table: JsonObject, allowed: tuple[str, ...], where: str) -> None:
    unknown = sorted(set(table) - set(allowed))
    require(not unknown, f"{where} says {unknown[:1]}, which means nothing; choose among {', '.join(allowed)}")


def _get_text(table: JsonObject, key: str, where: str) -> str | None:
    value = table.get(key)
    is_text = value is None or (isinstance(value, str) and bool(value.strip()))
    require(is_text, f"{where}: {key} is {value!r}; give a text")
    return value


def _parse_kind(name: str, table: JsonObject, path: Path) -> KindDeclaration:
    where = f"{path} [kinds.{name}]"
    _check_keys(table, _KIND, where)
    data, ids, split, kernel_map = (_get_text(table, key, where) for key in ("data", "ids", "split", "map"))
    scaling = _get_text(table, "scaling", where) or "auto"
    require(scaling in ("auto", "tfidf", "none"), f"{where}: scaling is {scaling!r}; choose auto, tfidf or none")
    feature_options = {_FEATURE_OPTIONS[key]: value for key, value in table.items() if key in _FEATURE_OPTIONS}
    problem = f"{where} has no data, so that its entities have no features"
    require(data is not None or not set(table) - {"data"}, f"{problem}; name data, or leave the rest out")
    data_path, ids_path = (None if file is None else path.parent / file for file in (data, ids))
    used_scaling = None if scaling == "none" else scaling
    return KindDeclaration(name, data_path, split, feature_options, kernel_map, used_scaling, ids_path)


def _parse_relation(name: str, table: JsonObject, path: Path) -> RelationDeclaration:
    where = f"{path} [relations.{name}]"
    _check_keys(table, _RELATION, where)
    query, target, pairs, names = (_get_text(table, key, where) for key in _RELATION[:4])
    if query is None or target is None:
        raise InputError(f'{where} lacks its ends; say such as query = "track" and target = "artist"')
    choice = "both pairs and" if pairs else "neither pairs nor"
    require((pairs is None) != (names is None), f"{where} says {choice} names; say one of them")
    weight = table.get("weight", 1.0)
    is_usable = isinstance(weight, (int, float)) and not isinstance(weight, bool) and 0 < weight <= MAX_WEIGHT
    require(is_usable, f"{where}: weight is {weight!r}; give a number above 0, {MAX_WEIGHT:,} at most")
    candidates = _get_text(table, "candidates", where)
    is_usable = candidates is None or (candidates == FITTED_CANDIDATES and pairs is not None)
    remedy = f'say candidates = "{FITTED_CANDIDATES}" beside pairs, or leave it out'
    require(is_usable, f"{where}: candidates is {candidates!r}; {remedy}")
    file = None if pairs is None else path.parent / pairs
    return RelationDeclaration(name, query, target, file, names, float(weight), candidates)


def _warn_about_kinds(declared: set[str], relations: list[RelationDeclaration], path: Path) -> None:
    """Warn about kinds that no relation has, and names of kinds that look like a slip."""
    related = {name for relation in relations for name in (relation.query, relation.target)}
    for name in sorted(declared - related):
        log.warning("%s: no relation has the kind %r, so that it is not learned", format_path(path), name)
    for name in sorted(related - declared):
        for similar in find_closest_names(name, sorted((related | declared) - {name}), n=1):
            is_first = similar in declared or similar > name  # of two slips only one is reported
            if is_first and SequenceMatcher(None, name, similar).ratio() >= _SLIP:
                log.warning("%s: %r and %r are two kinds; is one of them misspelt?", format_path(path), name, similar)


def _check_names(relation: RelationDeclaration, kinds: Mapping[str, KindDeclaration], path: Path) -> None:
    """Require that exactly one end of a relation has data that give the names."""
    if relation.names is None:
        return
    with_data = {name for name in (relation.query, relation.target) if kinds[name].data is not None}
    problem = f"{path} [relations.{relation.name}] takes its pairs from the names that data give"
    ends = "both ends have" if with_data else "neither end has"
    require(len(with_data) == 1, f"{problem}, and {ends} data; say pairs = a file of id TAB id")
