"""Files of a split: lists of items, lists of pairs, and one TOML declaration for each side."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from wsabie.core.errors import InputError
from wsabie.io.formats.id_labels import refuse_unlistable_id, write_ids
from wsabie.io.formats.pair_list import write_id_pairs
from wsabie.io.parsers.text_files import format_path
from wsabie.io.space_declaration import ENDING, FITTED_CANDIDATES, SpaceDeclaration, read_toml_tables
from wsabie.models.entity_space.relations import Relation
from wsabie.storage.atomic_files import create_draft_folder, explain_read_errors, explain_write_errors, write_text
from wsabie.storage.rejects import Rejects
from wsabie.workflows.spaces import relation_holdout
from wsabie.workflows.spaces.declared_data import IdPairs

SIDES = ("train", "valid", "test")
WRITTEN_BY = "# Written by `wsabie split`"
"""First words of every file of a split, by which a later run recognises them."""
_SPLIT_FILE = re.compile(r"(train|valid|test)(\.toml|\.[\w-]+\.(txt|tsv))")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_MAX_STEM_LENGTH = 60


class DeclarationSplitSummary(NamedTuple):
    """Files and counts of a split.

    Attributes
    ----------
    files : list of Path
        One TOML file for each side that has pairs.
    entities : dict of str to dict of str to int
        Items per side of every kind with data.
    pairs : dict of str to dict of str to int
        Pairs per side of every relation.
    """

    files: list[Path]
    entities: dict[str, dict[str, int]]
    pairs: dict[str, dict[str, int]]


def require_free_folder(folder: Path) -> None:
    """Refuse a folder where files of a split would replace other files.

    Raises
    ------
    InputError
        The message names one of those files.
    """
    with explain_read_errors(folder):
        files = _list_split_files(folder)
        tables = [file for file in files if file.suffix == ENDING]
        own_tables = [file for file in tables if file.read_bytes().startswith(WRITTEN_BY.encode())]
    if files and (not own_tables or own_tables != tables):
        foreign_file = next((file for file in tables if file not in own_tables), files[0])
        fact = "no split has written it, and it would be lost"
        raise InputError(f"cannot write {foreign_file}: {fact}; name another folder")


def _list_split_files(folder: Path) -> list[Path]:
    """Return the files whose names are those of a split."""
    return sorted(file for file in folder.iterdir() if _SPLIT_FILE.fullmatch(file.name)) if folder.is_dir() else []


def split_declaration(
    declared: SpaceDeclaration, folder: Path, valid: float, test: float, seed: int, rejects: Rejects
) -> DeclarationSplitSummary:
    """Split items with data and pairs of other items, and write the declaration of each side.

    Whole groups of items stay on one side, and pairs follow their items. Items of validation and test are paired with
    items that training knows: where both ends are of one kind with data and the pairs are a list, the targets are the
    items of training (`candidates = "fitted"`).

    Parameters
    ----------
    declared : SpaceDeclaration
    folder : Path
    valid, test : float
        Shares of the items, and of the pairs between items without data.
    seed : int
    rejects : Rejects

    Raises
    ------
    InputError
        Data that cannot be used, a side that stays empty, or an id that a list cannot hold.
    """
    plan = relation_holdout.plan_three_way_split(declared, valid, test, seed, rejects)
    split = relation_holdout.split_three_ways(plan)
    ends_and_pairs = ((relation.query_kind, relation.target_kind, _list_pairs(relation)) for relation in split.training)
    training_ids = relation_holdout.collect_known_ids(ends_and_pairs)
    training_ids |= {name: {rows.ids[i] for i in plan.sides[name].train} for name, rows in plan.data.rows.items()}
    test_relations = [_drop_unknown_ids(relation, training_ids, plan) for relation in split.test]
    sides: dict[str, list[Relation]] = {}
    for side, relations in zip(SIDES, (split.training, split.valid, test_relations), strict=True):
        if with_pairs := [relation for relation in relations if relation.n_pairs]:
            sides[side] = with_pairs
    with explain_write_errors(folder), create_draft_folder(folder / "parts") as drafts:
        for side, relations in sides.items():
            _write_side(drafts, side, relations, plan)
        file_names = {file.name for file in drafts.iterdir()}
        for name in file_names:
            (drafts / name).replace(folder / name)
        for file in _list_split_files(folder):
            if file.name not in file_names:
                file.unlink()
    entities = {name: {side: len(getattr(parts, side)) for side in SIDES} for name, parts in plan.sides.items()}
    counts = {side: {relation.name: relation.n_pairs for relation in relations} for side, relations in sides.items()}
    pairs = {
        relation.name: {side: counts.get(side, {}).get(relation.name, 0) for side in SIDES}
        for relation in declared.relations
    }
    return DeclarationSplitSummary([folder / f"{side}{ENDING}" for side in sides], entities, pairs)


def _drop_unknown_ids(
    relation: Relation, training_ids: Mapping[str, set[str]], plan: relation_holdout.SplitPlan
) -> Relation:
    """Drop pairs of ids that only validation knows; queries and targets with data may be of the test."""
    if not isinstance(relation.pairs, list):
        return relation
    query, target = relation.query_kind, relation.target_kind
    free_ends = {end: training_ids.get(kind, set()) for end, kind in enumerate((query, target))
                 if kind not in plan.sides or (end and kind == query)}  # fmt: skip
    return replace(relation, pairs=relation_holdout.select_pairs(relation.pairs, free_ends))


def _list_pairs(relation: Relation) -> IdPairs:
    """Return the pairs by name; an empty list where shared names make the pairs."""
    return relation.pairs if isinstance(relation.pairs, list) else []


def _write_side(folder: Path, side: str, relations: list[Relation], plan: relation_holdout.SplitPlan) -> None:
    """Write the lists of a side, and the declaration that names them."""
    source, pairs = plan.declared.path, {relation.name: relation for relation in relations}
    tables, base = read_toml_tables(source), source.parent.absolute()
    files = _FileNames(side)
    for name, table in tables.get("kinds", {}).items():
        if "data" in table:
            table["data"] = str(base / table["data"])
        if name in plan.sides:
            table["ids"] = files.choose(name, "txt")
            rows = plan.data.rows[name]
            write_ids(folder / table["ids"], [rows.ids[i] for i in getattr(plan.sides[name], side)])
    for name in list(tables["relations"]):
        table, relation = tables["relations"][name], pairs.get(name)
        if relation is None:
            del tables["relations"][name]
        elif "pairs" in table:
            table["pairs"] = files.choose(name, "tsv")
            for entity_id in chain.from_iterable(_list_pairs(relation)):
                refuse_unlistable_id(entity_id)
            write_id_pairs(folder / table["pairs"], _list_pairs(relation))
            if side != "train" and relation.query_kind == relation.target_kind and relation.query_kind in plan.sides:
                table["candidates"] = FITTED_CANDIDATES
    header = f"{WRITTEN_BY} {_format_value(format_path(source))}: the {side} side, seed {plan.seed}.\n"
    write_text(folder / f"{side}{ENDING}", header + _format_tables(tables))


class _FileNames:
    """Unique file names for the names of kinds and relations.

    Examples
    --------
    >>> files = _FileNames("test")
    >>> [files.choose(name, "tsv") for name in ("near", "a/b", "A b")]
    ['test.near.tsv', 'test.a_b.tsv', 'test.A_b-2.tsv']
    """

    def __init__(self, side: str) -> None:
        self.side, self.used_names = side, set[str]()

    def choose(self, name: str, ending: str) -> str:
        stem = re.sub(r"[^A-Za-z0-9_-]+", "_", name)[:_MAX_STEM_LENGTH]
        candidate, number = stem, 1
        while (file := f"{self.side}.{candidate}.{ending}").lower() in self.used_names:
            number += 1
            candidate = f"{stem}-{number}"
        self.used_names.add(file.lower())
        return file


def _format_tables(tables: Mapping[str, object], prefix: str = "") -> str:
    """Format nested tables as TOML."""
    values = {key: value for key, value in tables.items() if not isinstance(value, dict)}
    lines = [f"{_format_key(key)} = {_format_value(value)}" for key, value in values.items()]
    text = f"\n[{prefix}]\n" + "".join(f"{line}\n" for line in lines) if prefix and (lines or not tables) else ""
    tables_inside = {key: value for key, value in tables.items() if isinstance(value, dict)}
    return text + "".join(
        _format_tables(value, f"{prefix}.{_format_key(key)}" if prefix else _format_key(key))
        for key, value in tables_inside.items()
    )


def _format_key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _format_value(name)


def _format_value(value: object) -> str:
    if isinstance(value, str) and value == value.encode("utf-8", "replace").decode():
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list):
        return f"[{', '.join(map(_format_value, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return repr(value)
    raise InputError(f"{value!r} cannot be copied into the files of a split; write UTF-8, a number or true or false")
