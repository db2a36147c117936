"""A TOML file that says which kinds of things there are, where their data lie, and what relates them.

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
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, NamedTuple

from wsabie.base.errors import InputError
from wsabie.base.input_files import open_input
from wsabie.base.validation import require
from wsabie.labels.names import closest
from wsabie.sources.text import reading, shown

_SLIP = 0.8
_MOST = 1 << 16  # bytes; long dotted keys take memory by their square
_DESCRIPTION = {
    "describe": "describe",
    "terms": "n_terms",
    "components": "n_components",
    "landmarks": "n_landmarks",
    "size": "size",
    "crop": "crop",
    "rate": "rate",
    "normalise": "normalise",
    "output": "output",
    "min_count": "min_count",
    "hashing": "hashing",
}
"""Options of a description as the command line calls them, and as describers do."""
_KIND = ("data", "split", "ids", "map", "scaling", *_DESCRIPTION)
_RELATION = ("query", "target", "pairs", "names", "weight", "among")
KNOWN = "known"
ENDING = ".toml"
MOST_WEIGHT = 1000
log = logging.getLogger("wsabie")


class DeclaredKind(NamedTuple):
    """A kind of things.

    Attributes
    ----------
    name : str
    data : Path or None
        A collection; None: things that are known by name alone.
    split : str or None
        The side of the collection's own split that is meant.
    description : dict
        How pictures, sounds or documents are described: options of `describer`, and "describe".
    map : str or None
        Kinds of the same map share it; the name of a kind is that of its own.
    scaling : str or None
        Of the rows: "auto", "tfidf" or None.
    ids : Path or None
        A list of the things that are meant, one id a line; None: all.
    """

    name: str
    data: Path | None = None
    split: str | None = None
    description: Mapping[str, Any] = {}
    map: str | None = None
    scaling: str | None = "auto"
    ids: Path | None = None

    @property
    def mapped_by(self) -> str:
        """The map of its features."""
        return self.name if self.map is None else self.map


class DeclaredRelation(NamedTuple):
    """A relation of two kinds, and where its pairs are: a file, or names that the data of one kind give.

    `among` is "known" where things are looked for among all that a space knows, whatever data there are of their kind.
    """

    name: str
    query: str
    target: str
    pairs: Path | None
    names: str | None
    weight: float
    among: str | None = None


class Declared(NamedTuple):
    """What a file declares."""

    path: Path
    kinds: dict[str, DeclaredKind]
    relations: list[DeclaredRelation]
    parameters: dict[str, Any]


def read_declaration(path: Path) -> Declared:
    """Read kinds, relations and parameters.

    Parameters
    ----------
    path : Path
        TOML; the paths in it are beside it.

    Raises
    ------
    InputError
        The file cannot be read, is no TOML, or says something that cannot be; the sentence says where.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "music.toml"
    ...     _ = file.write_text('[relations.near]\\nquery = "artist"\\ntarget = "artist"\\npairs = "near.tsv"')
    ...     declared = read_declaration(file)
    >>> list(declared.kinds), declared.relations[0].pairs.name
    (['artist'], 'near.tsv')
    """
    said = read_tables(path)
    _only(said, ("kinds", "relations", "space"), path, "")
    kinds = {name: _kind(name, one, path) for name, one in _tables(said, "kinds", path).items()}
    relations = [_relation(name, one, path) for name, one in _tables(said, "relations", path).items()]
    require(bool(relations), f"{shown(path)} declares no relation; add a table such as [relations.artists]")
    _tell_odd(set(kinds), relations, path)
    for relation in relations:
        for name in (relation.query, relation.target):
            kinds.setdefault(name, DeclaredKind(name))
        _check_names(relation, kinds, path)
    parameters = {name: None if value == "none" else value for name, value in _table(said, "space", path).items()}
    return Declared(path, kinds, relations, parameters)


def declaration_digest(declared: Declared, relations: Sequence[DeclaredRelation]) -> str:
    """Return 16 hex digits of what a file declares of some relations and their kinds, whatever its paths are."""
    names = {name for one in relations for name in (one.query, one.target)}
    parts: list[Any] = [*(kind for name, kind in declared.kinds.items() if name in names), *relations]
    facts = [
        {key: value for key, value in part._asdict().items() if key not in ("data", "ids", "pairs")} for part in parts
    ]
    return hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()[:16]


def read_tables(path: Path) -> dict[str, Any]:
    """The tables of a TOML file as they are written.

    Raises
    ------
    InputError
        The file cannot be read, is large, or is no TOML.
    """
    with reading(path), open_input(path, pipe=True) as file:
        text = file.read(_MOST + 1)
    require(len(text) <= _MOST, f"{shown(path)} is larger than {_MOST >> 10} KiB; name data by their paths")
    try:
        return tomllib.loads(text.decode("utf-8"))
    except (ValueError, RecursionError) as error:  # a number may be too long, brackets may be too deep
        raise InputError(f"{shown(path)} is no TOML file: {error}") from error


def _table(said: Mapping[str, Any], name: str, path: Path) -> dict[str, Any]:
    table = said.get(name, {})
    require(isinstance(table, dict), f"{shown(path)}: {name} is {table!r}; make it a table, [{name}]")
    return dict(table)


def _tables(said: Mapping[str, Any], name: str, path: Path) -> dict[str, dict[str, Any]]:
    return {one: _table(_table(said, name, path), one, path) for one in _table(said, name, path)}


def _only(table: Mapping[str, Any], known: tuple[str, ...], path: Path, where: str) -> None:
    odd = sorted(set(table) - set(known))
    require(not odd, f"{shown(path)}{where} says {odd[:1]}, which means nothing; choose among {', '.join(known)}")


def _text(table: Mapping[str, Any], key: str, path: Path, where: str) -> str | None:
    value = table.get(key)
    require(
        value is None or (isinstance(value, str) and bool(value.strip())),
        f"{shown(path)}{where}: {key} is {value!r}; give a text",
    )
    return value


def _kind(name: str, table: dict[str, Any], path: Path) -> DeclaredKind:
    where = f" [kinds.{name}]"
    _only(table, _KIND, path, where)
    data, ids = (_text(table, key, path, where) for key in ("data", "ids"))
    scaling = _text(table, "scaling", path, where) or "auto"
    require(
        scaling in ("auto", "tfidf", "none"),
        f"{shown(path)}{where}: scaling is {scaling!r}; choose auto, tfidf or none",
    )
    description = {_DESCRIPTION[key]: value for key, value in table.items() if key in _DESCRIPTION}
    require(
        data is not None or not set(table) - {"data"},
        f"{shown(path)}{where} has no data, so that its things have no features; name data, or leave the rest out",
    )
    return DeclaredKind(
        name,
        None if data is None else path.parent / data,
        _text(table, "split", path, where),
        description,
        _text(table, "map", path, where),
        None if scaling == "none" else scaling,
        None if ids is None else path.parent / ids,
    )


def _relation(name: str, table: dict[str, Any], path: Path) -> DeclaredRelation:
    where = f" [relations.{name}]"
    _only(table, _RELATION, path, where)
    query, target, pairs, names = (_text(table, key, path, where) for key in _RELATION[:4])
    if query is None or target is None:
        raise InputError(f'{shown(path)}{where} lacks its ends; say such as query = "track" and target = "artist"')
    require(
        (pairs is None) != (names is None),
        f"{shown(path)}{where} says {'both pairs and' if pairs else 'neither pairs nor'} names; say one of them",
    )
    weight = table.get("weight", 1.0)
    usable = isinstance(weight, (int, float)) and not isinstance(weight, bool) and 0 < weight <= MOST_WEIGHT
    require(usable, f"{shown(path)}{where}: weight is {weight!r}; give a number above 0, {MOST_WEIGHT:,} at most")
    among = _text(table, "among", path, where)
    require(
        among in (None, KNOWN) and (among is None or pairs is not None),
        f'{shown(path)}{where}: among is {among!r}; say among = "{KNOWN}" beside pairs, or leave it out',
    )
    file = None if pairs is None else path.parent / pairs
    return DeclaredRelation(name, query, target, file, names, float(weight), among)


def _tell_odd(declared: set[str], relations: list[DeclaredRelation], path: Path) -> None:
    """Kinds that no relation has, and names of kinds that look like a slip."""
    named = {name for one in relations for name in (one.query, one.target)}
    for name in sorted(declared - named):
        log.warning("%s: no relation has the kind %r, so that it is not learned", shown(path), name)
    for name in sorted(named - declared):
        for other in closest(name, sorted((named | declared) - {name}), n=1):
            once = other in declared or other > name  # of two slips one is told
            if once and SequenceMatcher(None, name, other).ratio() >= _SLIP:
                log.warning("%s: %r and %r are two kinds; is one of them misspelt?", shown(path), name, other)


def _check_names(relation: DeclaredRelation, kinds: Mapping[str, DeclaredKind], path: Path) -> None:
    """Names are given by the data of one end."""
    if relation.names is None:
        return
    with_data = {name for name in (relation.query, relation.target) if kinds[name].data is not None}
    require(
        len(with_data) == 1,
        f"{shown(path)} [relations.{relation.name}] takes its pairs from the names that data give, and "
        f"{'both ends have' if with_data else 'neither end has'} data; say pairs = a file of id TAB id",
    )
