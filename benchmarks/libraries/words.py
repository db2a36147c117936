"""Labels in the words of a search, and in the cells of a table."""

import ast
import csv
import json
import re
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pyarrow import parquet

from benchmarks.libraries.measure import Work, compare
from wsabie.collection.db.database import begin_read
from wsabie.collection.db.journal import begin_entry
from wsabie.collection.db.tables import labels
from wsabie.collection.folder.collection import create_collection, open_collection
from wsabie.collection.search.query_parsing import parse_query
from wsabie.io.parsers.label_cells import LabelCellReader
from wsabie.samples import get_sample_path

NAMES, SEARCHES = 10_000, 500
_COLUMNS = {
    "semicolons": (["dog; sea", "sea; cat", "cat"], [{"dog", "sea"}, {"sea", "cat"}, {"cat"}]),
    "commas": (["dog, sea", "sea, cat", "cat"], [{"dog", "sea"}, {"sea", "cat"}, {"cat"}]),
    "bars": (["dog|sea", "sea|cat", "cat"], [{"dog", "sea"}, {"sea", "cat"}, {"cat"}]),
    "a comma in a name": (["dog; sea, deep", "cat; sea, deep"], [{"dog", "sea, deep"}, {"sea, deep", "cat"}]),
    "lists of Python": (["['dog', 'sea']", "['sea']", "[]"], [{"dog", "sea"}, {"sea"}, set()]),
    "lists of JSON": (['["dog", "sea"]', '["sea"]', "[]"], [{"dog", "sea"}, {"sea"}, set()]),
    "arrays of NumPy": (["['dog' 'sea']", "['sea']", "[]"], [{"dog", "sea"}, {"sea"}, set()]),
    "sets": (["{'dog', 'sea'}", "{'sea'}", "set()"], [{"dog", "sea"}, {"sea"}, set()]),
    "tags of Stack Exchange": (["<dog><sea>", "<sea>", "<cat>"], [{"dog", "sea"}, {"sea"}, {"cat"}]),
    "hashtags": (["#dog #sea", "#sea #cat", "#cat #dog"], [{"#dog", "#sea"}, {"#sea", "#cat"}, {"#cat", "#dog"}]),
    "empty cells": (["dog;sea", "nan", "NULL"], [{"dog", "sea"}, set(), set()]),
}  # fmt: skip
COLUMNS = {name: (10 * cells, 10 * expected) for name, (cells, expected) in _COLUMNS.items()} | {
    "one odd comma": (["dog"] * 30 + ["sea, deep"], [{"dog"}] * 30 + [{"sea, deep"}])
}
"""Cells of a column `labels` with the labels that each holds."""


def run(folder: Path) -> None:
    """Search for two labels side by side; read columns of several notations."""
    table = parquet.read_table(get_sample_path("emoji"), columns=["labels"])["labels"].to_pylist()
    names = sorted({label for row in table for label in row if re.fullmatch(r"[a-z]+( [a-z]+){0,3}", label)})
    names = names[:: max(1, len(names) // NAMES)][:NAMES]
    pairs = np.random.default_rng(0).choice(len(names), (SEARCHES, 2))
    _compare_searches(folder, names, [(names[a], names[b]) for a, b in pairs.tolist()])
    _compare_cells()


def _compare_searches(folder: Path, names: Sequence[str], pairs: Sequence[tuple[str, str]]) -> None:
    def search(find: Callable[[str], set[str]]) -> Work:
        return lambda: sum(find(" ".join(pair)) == {*pair} for pair in pairs)

    def ours() -> Work:
        (folder / "pictures").mkdir()
        create_collection(folder / "pictures")
        collection = open_collection(folder / "pictures").__enter__()
        with begin_entry(collection.engine, by="local", action="test", summary="") as change:
            change.add(labels, [{"name": name, "language": "", "wordnet": ""} for name in names])

        def find(text: str) -> set[str]:
            with begin_read(collection.engine) as connection:
                return {*parse_query(connection, text).labels.values()}

        return search(find)

    def fts5() -> Work:
        database = sqlite3.connect(":memory:")
        database.execute("CREATE VIRTUAL TABLE names USING fts5(name)")
        database.executemany("INSERT INTO names VALUES (?)", [(name,) for name in names])
        query = "SELECT name FROM names WHERE names MATCH ? ORDER BY rank LIMIT 2"
        return search(
            lambda text: {row[0] for row in database.execute(query, [" OR ".join(f'"{w}"' for w in text.split())])}
        )

    def tantivy() -> Work:
        import tantivy as library

        schema = library.SchemaBuilder().add_text_field("name", stored=True).build()
        index = library.Index(schema)
        writer = index.writer()
        for name in names:
            writer.add_document(library.Document(name=name))
        writer.commit()
        index.reload()
        searcher = index.searcher()

        def find(text: str) -> set[str]:
            query = index.parse_query(" OR ".join(f'"{word}"' for word in text.split()), ["name"])
            return {searcher.doc(address)["name"][0] for _, address in searcher.search(query, 2).hits}

        return search(find)

    def whoosh() -> Work:
        from whoosh.fields import TEXT, Schema
        from whoosh.filedb.filestore import RamStorage
        from whoosh.qparser import OrGroup, QueryParser

        index = RamStorage().create_index(Schema(name=TEXT(stored=True)))
        writer = index.writer()
        for name in names:
            writer.add_document(name=name)
        writer.commit()
        searcher, parser = index.searcher(), QueryParser("name", index.schema, group=OrGroup)
        return search(lambda text: {hit["name"] for hit in searcher.search(parser.parse(text), limit=2)})

    entrants = {"ours": ours, f"SQLite {sqlite3.sqlite_version} FTS5": fts5, "tantivy": tantivy, "whoosh": whoosh}
    title = f"{SEARCHES} searches for two of {len(names):,} labels side by side"
    compare(title, entrants, lambda n: f"{n} right", with_memory=False)


def _compare_cells() -> None:
    def read(split: Callable[[Sequence[str]], list[set[str]]]) -> Work:
        def work() -> str:
            wrong = [name for name, (cells, expected) in COLUMNS.items() if _attempt(split, cells) != expected]
            return f"{len(COLUMNS) - len(wrong)} of {len(COLUMNS)} columns; not {', '.join(wrong)}"

        return work

    def ours() -> Work:
        def split(cells: Sequence[str]) -> list[set[str]]:
            reader = LabelCellReader("labels").inspect(cells)
            return [{label.strip() for label in reader.read_labels(cell, "")} for cell in cells]

        return lambda: read(split)()

    def sniff(sniffer: Any) -> Work:
        def split(cells: Sequence[str]) -> list[set[str]]:
            delimiter = sniffer.sniff("\n".join(cells)).delimiter
            return [{part.strip() for part in cell.split(delimiter)} for cell in cells]

        return read(split)

    def clevercsv() -> Work:
        import clevercsv as library

        return sniff(library.Sniffer())

    def literals() -> Work:
        return read(lambda cells: [{*ast.literal_eval(cell)} for cell in cells])

    def documents() -> Work:
        return read(lambda cells: [{*json.loads(cell)} for cell in cells])

    def pandas() -> Work:
        import pandas as library

        def split(cells: Sequence[str]) -> list[set[str]]:
            flags = library.Series(cells).str.get_dummies("|")
            return [{name.strip() for name in flags.columns[row.astype(bool)]} for row in flags.to_numpy()]

        return read(split)

    entrants = {"ours": ours, "csv.Sniffer": lambda: sniff(csv.Sniffer()), "clevercsv": clevercsv, "pandas": pandas}
    entrants |= {"ast.literal_eval": literals, "json.loads": documents}
    compare("labels in cells", entrants, str, with_memory=False)


def _attempt(split: Callable[[Sequence[str]], list[set[str]]], cells: Sequence[str]) -> object:
    try:
        return split(cells)
    except Exception as error:
        return error
