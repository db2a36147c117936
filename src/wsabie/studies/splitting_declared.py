"""The sides of a split as declarations of their own: lists of things, lists of pairs, and a TOML file for each side."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from operator import contains
from pathlib import Path
from typing import Any, NamedTuple

from wsabie.base.errors import InputError
from wsabie.models.relations import Relation
from wsabie.sources.declaration import ENDING, KNOWN, Declared, read_tables
from wsabie.sources.id_lists import refuse_awkward, write_ids
from wsabie.sources.text import shown
from wsabie.storage.atomic import draft_folder, explained, readable, write_text
from wsabie.storage.rejects import Rejects
from wsabie.studies.three_sides import Planned, deal_three, plan

SIDES = ("train", "valid", "test")
WRITTEN_BY = "# Written by `wsabie split`"
"""How the files begin, so that they are known again."""
_OURS = re.compile(r"(train|valid|test)(\.toml|\.[\w-]+\.(txt|tsv))")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_LONGEST = 60


class Written(NamedTuple):
    """What a split came to.

    Attributes
    ----------
    files : list of Path
        A TOML file for each side that has something.
    things : dict of str to dict of str to int
        Of the kinds with data: how many are on each side.
    pairs : dict of str to dict of str to int
        Of the relations.
    """

    files: list[Path]
    things: dict[str, dict[str, int]]
    pairs: dict[str, dict[str, int]]


def refuse_others(folder: Path) -> None:
    """Refuse a folder where files of a split would replace others.

    Raises
    ------
    InputError
        The sentence names a file.
    """
    with readable(folder):
        there = _written(folder)
        tables = [file for file in there if file.suffix == ENDING]
        ours = [file for file in tables if file.read_bytes().startswith(WRITTEN_BY.encode())]
    if there and (not ours or ours != tables):
        odd = next((file for file in tables if file not in ours), there[0])
        raise InputError(f"cannot write {odd}: no split has written it, and it would be lost; name another folder")


def _written(folder: Path) -> list[Path]:
    """The files that are called as those of a split."""
    return sorted(file for file in folder.iterdir() if _OURS.fullmatch(file.name)) if folder.is_dir() else []


def split_declared(declared: Declared, folder: Path, valid: float, test: float, seed: int, rejects: Rejects) -> Written:
    """Deal out things with data, whole groups together, with their pairs, and pairs between others; write the sides.

    Things of validation and test have their pairs with what training knows: where both ends are of one kind with data
    and the pairs are a list, they look for the things of training (`among = "known"`).

    Parameters
    ----------
    declared : Declared
    folder : Path
    valid, test : float
        Shares of the things, and of the pairs between things without data.
    seed : int
    rejects : Rejects

    Raises
    ------
    InputError
        Data that cannot be used, a side that stays empty, or an id that a list cannot hold.
    """
    planned = plan(declared, valid, test, seed, rejects)
    dealt = deal_three(declared, planned)
    named = _named(dealt.learnt, planned)
    sides = {
        "train": dealt.learnt,
        "valid": [_of_known(one, named, planned, "valid") for one in dealt.valid],
        "test": [_of_known(one, named, planned, "test") for one in dealt.test],
    }
    sides = {side: kept for side, found in sides.items() if (kept := [one for one in found if one.n_pairs])}
    with explained(folder), draft_folder(folder / "parts") as drafts:
        for side, relations in sides.items():
            _write_side(drafts, side, declared, relations, planned)
        fresh = {file.name for file in drafts.iterdir()}
        for name in fresh:
            (drafts / name).replace(folder / name)
        for file in _written(folder):
            if file.name not in fresh:
                file.unlink()
    things = {name: {side: len(getattr(own, side)) for side in SIDES} for name, own in planned.sides.items()}
    counts = {side: {one.name: one.n_pairs for one in relations} for side, relations in sides.items()}
    pairs = {one.name: {side: counts.get(side, {}).get(one.name, 0) for side in SIDES} for one in declared.relations}
    return Written([folder / f"{side}{ENDING}" for side in sides], things, pairs)


def _named(learnt: Iterable[Relation], planned: Planned) -> dict[str, set[str]]:
    """The things of every kind that training knows."""
    found = {name: {rows.ids[i] for i in planned.sides[name].train} for name, rows in planned.data.rows.items()}
    for relation in learnt:
        for place, kind in enumerate((relation.query_kind, relation.target_kind)):
            if kind not in planned.data.rows:
                found.setdefault(kind, set()).update(pair[place] for pair in _couples(relation))
    return found


def _of_known(relation: Relation, named: Mapping[str, set[str]], planned: Planned, side: str) -> Relation:
    """The same without pairs of things that training does not know; things with data may be on their own side."""
    if not isinstance(relation.pairs, list):
        return relation
    known = []
    for place, kind in enumerate((relation.query_kind, relation.target_kind)):
        looked_for = place == 1 and kind == relation.query_kind
        if kind in planned.data.rows and not looked_for:
            rows = planned.data.rows[kind]
            known.append({rows.ids[i] for i in getattr(planned.sides[kind], side)})
        else:
            known.append(named.get(kind, set()))
    return replace(relation, pairs=[pair for pair in _couples(relation) if all(map(contains, known, pair))])


def _couples(relation: Relation) -> list[tuple[str, str]]:
    """The pairs of a relation by name; none of one whose things belong together because they share names."""
    return relation.pairs if isinstance(relation.pairs, list) else []


def _write_side(folder: Path, side: str, declared: Declared, relations: list[Relation], planned: Planned) -> None:
    """The lists of a side, and the file that names them."""
    said, pairs = read_tables(declared.path), {one.name: one for one in relations}
    here = declared.path.parent.absolute()
    files = _FileNames(side)
    for name, table in said.get("kinds", {}).items():
        if "data" in table:
            table["data"] = str(here / table["data"])
        if name in planned.sides:
            table["ids"] = files.named(name, "txt")
            rows = planned.data.rows[name]
            write_ids(folder / table["ids"], [rows.ids[i] for i in getattr(planned.sides[name], side)])
    for name in list(said["relations"]):
        table, relation = said["relations"][name], pairs.get(name)
        if relation is None:
            del said["relations"][name]
        elif "pairs" in table:
            table["pairs"] = files.named(name, "tsv")
            _write_pairs(folder / table["pairs"], _couples(relation))
            if side != "train" and relation.query_kind == relation.target_kind and relation.query_kind in planned.sides:
                table["among"] = KNOWN
    head = f"{WRITTEN_BY} {_value(shown(declared.path))}: the {side} side, seed {planned.seed}.\n"
    write_text(folder / f"{side}{ENDING}", head + _toml(said))


class _FileNames:
    """Names of files for names of kinds and relations, no two the same.

    Examples
    --------
    >>> files = _FileNames("test")
    >>> [files.named(name, "tsv") for name in ("near", "a/b", "A b")]
    ['test.near.tsv', 'test.a_b.tsv', 'test.A_b-2.tsv']
    """

    def __init__(self, side: str) -> None:
        self.side, self.taken = side, set[str]()

    def named(self, name: str, ending: str) -> str:
        plain = re.sub(r"[^A-Za-z0-9_-]+", "_", name)[:_LONGEST]
        found, number = plain, 1
        while (file := f"{self.side}.{found}.{ending}").lower() in self.taken:
            number += 1
            found = f"{plain}-{number}"
        self.taken.add(file.lower())
        return file


def _write_pairs(path: Path, couples: Iterable[tuple[str, str]]) -> None:
    lines = ["id\tlabel"]  # a header, or a first pair of such names would be taken for one
    for pair in couples:
        for name in pair:
            refuse_awkward(name)
        lines.append("\t".join(pair))
    write_text(path, "\n".join(lines) + "\n")


def _toml(tables: Mapping[str, Any], above: str = "") -> str:
    """Tables of tables of values as TOML.

    Examples
    --------
    >>> print(_toml({"kinds": {"a b": {"data": "x", "size": 3}}}))
    <BLANKLINE>
    [kinds."a b"]
    data = "x"
    size = 3
    <BLANKLINE>
    """
    values = {key: value for key, value in tables.items() if not isinstance(value, dict)}
    lines = [f"{_key(key)} = {_value(value)}" for key, value in values.items()]
    text = f"\n[{above}]\n" + "".join(f"{line}\n" for line in lines) if above and (lines or not tables) else ""
    inner = {key: value for key, value in tables.items() if isinstance(value, dict)}
    return text + "".join(_toml(value, f"{above}.{_key(key)}" if above else _key(key)) for key, value in inner.items())


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _value(name)


def _value(value: Any) -> str:
    if isinstance(value, str) and value == value.encode("utf-8", "replace").decode():
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return repr(value)
    raise InputError(f"{value!r} cannot be copied into the files of a split; write UTF-8, a number or true or false")
