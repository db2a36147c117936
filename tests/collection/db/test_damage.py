"""Damaged catalogues: whatever is wrong with the file or its rows, whoever reads or writes is told one sentence."""

# ruff: noqa: S608 - names of our own tables
import json
import random
import re
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import insert, update
from sqlalchemy.exc import SQLAlchemyError

from wsabie.collection import overview
from wsabie.collection.annotations import annotation_pages
from wsabie.collection.annotations.decisions import tag_items
from wsabie.collection.db import tables
from wsabie.collection.db.damage import find_damage, find_label_cycles
from wsabie.collection.db.database import begin_read, begin_write, open_database
from wsabie.collection.db.errors import explain_database_errors
from wsabie.collection.db.journal import read_history, undo_entry
from wsabie.collection.folder.backups import back_up, restore_backup
from wsabie.collection.folder.collection import Collection, create_collection, open_collection
from wsabie.collection.interchange.tag_export import export_tags
from wsabie.collection.items import item_pages
from wsabie.collection.items.filters import ItemFilter
from wsabie.collection.jobs import queue
from wsabie.collection.labels import label_edits, label_list, label_merge, label_store
from wsabie.collection.labels.label_list import list_labels
from wsabie.collection.merge_proposals.proposals import refresh_proposals
from wsabie.collection.overview import read_status
from wsabie.collection.registry.model_registry import find_rollback, list_models
from wsabie.collection.scan.scanner import scan_collection
from wsabie.core.errors import InputError, WsabieError

MUTATIONS = 24
VALUES = (
    "NULL", "'x'", "-1", "4611686018427387904", "1.5", "x'ff00c3'", "''", "'{}'", "'[1,'", "'null'", "'[]'", "9e999",
    "CAST(x'ff41' AS TEXT)",
)  # fmt: skip
FIGURES = {"MAP": 0.5, "p@1": 0.5, "p@5": 0.2}


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A collection with rows in all tables."""
    folder = tmp_path_factory.mktemp("original")
    with create_collection(folder) as collection:
        with begin_write(collection.engine) as connection:
            row = {"root_id": 1, "folder": "", "state": "present", "added_at": "2026-01-01", "hash": "0" * 32}
            connection.execute(insert(tables.items), [row | {"path": f"{n}.png"} for n in range(1, 9)])
            connection.execute(update(tables.roots).values(options={"modality": "pictures"}))
            connection.execute(insert(tables.tag_sources).values(root_id=1, source="none"))
            model = {"folder": "x", "created_at": "2026-01-01", "method": "full", "last_entry_id": 1, "in_use": True}
            curve = [{"epoch": 1, "loss": 0.5, "MAP": 0.5}]
            facts = {"items": 8, "labels": 2, "features": "colour", "curve": curve, "rejection_reason": ""}
            figures = {"items": 8, "labels": 2, "metrics": FIGURES, "previous_metrics": None, "difference": None}
            connection.execute(insert(tables.models).values(**model, facts=facts, figures=figures))
        tag_items(collection, [1, 2, 3], accept=["zebra", "horse", "sea"], by="eve")
        tag_items(collection, [4], reject=["sea"], by="eve")
        tag_items(collection, [4, 5], accept=["zebras"], by="eve")
        label_merge.merge_labels(collection, [4], 1, "eve")
        label_edits.edit_label(collection, "zebra", "eve", parent="horse")
        label_edits.edit_label(collection, "horse", "eve", add={"Pferd": "de"})
        label_merge.exclude_merge(collection, [2, 3], "eve")
        tag_items(collection, [6], accept=["horse"], by="eve")
        undo_entry(collection.engine, by="eve")
        with begin_write(collection.engine) as connection:
            suggestion = {"model_id": 1, "item_id": 7, "label_id": 1, "score": 0.5, "probability": 0.5}
            connection.execute(insert(tables.suggestions).values(suggestion))
            connection.execute(
                insert(tables.item_scores).values(
                    model_id=1,
                    item_id=7,
                    best_probability=0.5,
                    uncertainty=0.5,
                    scored_at="2026-01-01",
                    best_precision=0.9,
                )
            )
        queue.enqueue_job(collection, "scan", {}, by="eve")
        assert find_damage(collection.engine) == []
    return folder


READERS: tuple[Callable[[Collection], object], ...] = (
    lambda c: read_status(c, check=True),
    lambda c: read_status(c),
    lambda c: read_history(c.engine),
    lambda c: annotation_pages.read_annotation_page(c, annotation_pages.AnnotationFilter()),
    lambda c: list_labels(c),
    lambda c: overview.read_label_details(c, label_list.find_label_ids(c, ["zebra"])[0]),
    lambda c: item_pages.read_item_page(c, ItemFilter()),
    lambda c: (list_models(c), find_rollback(c)),
    lambda c: queue.list_jobs(c),
    lambda c: overview.read_facets(c),
    lambda c: refresh_proposals(c),
    lambda c: export_tags(c, c.folder / "tags.csv"),
)
WRITERS: tuple[Callable[[Collection], object], ...] = (
    lambda c: tag_items(c, [1, 8], accept=["zebra"], by="eve"),
    lambda c: undo_entry(c.engine, by="eve"),
    lambda c: undo_entry(c.engine, 2, by="eve"),
    lambda c: label_merge.merge_labels(
        c, label_list.find_label_ids(c, ["horse"]), label_list.find_label_ids(c, ["zebra"])[0], "eve"
    ),
    lambda c: label_edits.edit_label(c, "zebra", "eve", name="quagga"),
    lambda c: scan_collection(c, by="eve"),
)


def test_damaged_catalogues_give_one_sentence(original: Path, tmp_path: Path) -> None:
    refused = 0
    for number in range(MUTATIONS):
        chance = random.Random(number)  # noqa: S311 - no secret
        folder = tmp_path / str(number)
        shutil.copytree(original, folder)
        mutation = mutate_catalogue(folder / ".wsabie/catalogue.db", chance)
        for read_only, ask in (
            (True, chance.choice(READERS)),
            (True, chance.choice(READERS)),
            (False, chance.choice(WRITERS)),
        ):
            try:
                with open_collection(folder, read_only=read_only) as collection:
                    ask(collection)
            except WsabieError as error:
                refused += 1
                assert "\n" not in str(error), mutation  # noqa: PT017 - most of them raise nothing
            except Exception as error:
                raise AssertionError(f"{number}: {mutation}") from error
        shutil.rmtree(folder)
    assert refused > MUTATIONS / 4


def mutate_catalogue(path: Path, chance: random.Random) -> str:
    """Damage a catalogue in one of many ways; how."""
    kind = chance.choice(("bits", "page", "cut", "value", "value", "value", "document", "document", "table", "circle"))
    content = bytearray(path.read_bytes())
    if kind == "bits":
        for _ in range(chance.choice((1, 10))):
            content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    elif kind == "page":
        page = chance.randrange(len(content) >> 12) << 12
        content[page : page + 4096] = bytes(4096)
    elif kind == "cut":
        del content[chance.randrange(len(content)) :]
    path.write_bytes(content)
    if kind in ("bits", "page", "cut"):
        return kind
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        statement, values = write_damage_statement(kind, file, chance)
        loosen(file)
        try:
            file.execute(statement, values)
        except sqlite3.Error as error:
            return f"nothing: {error}"
        return f"{statement} {values}"


def write_damage_statement(kind: str, file: sqlite3.Connection, chance: random.Random) -> tuple[str, tuple[Any, ...]]:
    """A statement that damages what a catalogue holds."""
    table = chance.choice(list(tables.metadata.tables.values()))
    column = chance.choice(list(table.columns)).name
    if kind == "value":
        row_clause = chance.choice(("", f" WHERE rowid = (SELECT max(rowid) FROM {table.name})"))
        row_clause = "" if table.name in ("suggestions", "item_scores") else row_clause
        return f'UPDATE {table.name} SET "{column}" = {chance.choice(VALUES)}{row_clause}', ()
    if kind == "document":
        name, column = chance.choice(
            [("roots", "options"), ("models", "facts"), ("models", "figures"), ("changes", "old_row"),
             ("changes", "new_row"), ("jobs", "options")]
        )  # fmt: skip
        query = f'SELECT id, "{column}" FROM {name} WHERE "{column}" IS NOT NULL ORDER BY id'
        number, text = chance.choice(file.execute(query).fetchall())
        return f'UPDATE {name} SET "{column}" = ? WHERE id = ?', (
            json.dumps(change_value(json.loads(text), chance)),
            number,
        )
    if kind == "table":
        version = chance.choice(("'0000'", "'0002'", "'x'", "NULL", "x'ff'"))
        statements = [f"DROP TABLE {table.name}", f'ALTER TABLE {table.name} RENAME COLUMN "{column}" TO other']
        statements += [f"DELETE FROM {table.name}", f"UPDATE alembic_version SET version_num = {version}"]
        return chance.choice(statements), ()
    column = chance.choice(("parent_id", "merged_into"))
    return f"UPDATE labels SET {column} = (SELECT max(id) + min(id) FROM labels) - id", ()


def change_value(value: Any, chance: random.Random) -> Any:
    """A document with another value somewhere in it, or without one."""
    if isinstance(value, dict) and value and chance.random() < 0.8:
        key = chance.choice(list(value))
        changed = {key: change_value(value[key], chance)} if chance.random() < 0.75 else {}
        return {name: old for name, old in value.items() if name != key} | changed
    return chance.choice((None, "x", -1, 1.5, [], {}, [1], {"a": 1}, True, 2**70))


def loosen(file: sqlite3.Connection) -> None:
    """Let rows hold what the tables forbid, as a changed byte can."""
    file.execute("PRAGMA foreign_keys = OFF")
    file.execute("PRAGMA ignore_check_constraints = ON")
    file.execute("PRAGMA writable_schema = ON")
    file.execute(
        "UPDATE sqlite_master SET sql = replace(sql, 'NOT NULL', '') WHERE type = 'table' "
        "AND name NOT IN ('suggestions', 'item_scores')"
    )
    version = file.execute("PRAGMA schema_version").fetchone()[0]
    file.execute(f"PRAGMA schema_version = {version + 1}")
    file.execute("PRAGMA writable_schema = RESET")


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE items SET size = 'x' WHERE id = 3", "row 3 of items: size is not a whole number"),
        ('UPDATE models SET facts = \'{"seconds": "x"}\'', "row 1 of models: facts is damaged at seconds: expected"),
        ("UPDATE models SET figures = '[1,'", "row 1 of models: figures is not JSON"),
        ("UPDATE labels SET name = CAST(x'ff41' AS TEXT) WHERE id = 2", "row 2 of labels: name is not UTF-8"),
        ("UPDATE changes SET new_row = '{\"id\": 99}' WHERE id = 2", "row 2 of changes: it holds another row"),
        ("UPDATE labels SET parent_id = id WHERE id = 1", "row 1 of labels: parent_id leads back to it"),
        ("UPDATE suggestions SET score = 'x'", "row 1, 7, 1 of suggestions: score is not a number"),
        ("UPDATE items SET state = 'lost' WHERE id = 3", "row 3 of items: it is not true that state IN ('present'"),
    ],
)
def test_damage_report_names_the_row(original: Path, tmp_path: Path, statement: str, message: str) -> None:
    shutil.copytree(original, tmp_path / "photos")
    with closing(sqlite3.connect(tmp_path / "photos/.wsabie/catalogue.db", isolation_level=None)) as file:
        file.execute("PRAGMA ignore_check_constraints = ON")
        file.execute(statement)
    with open_collection(tmp_path / "photos", read_only=True) as collection:
        assert any(message in fault for fault in find_damage(collection.engine)), find_damage(collection.engine)


def test_each_parent_is_looked_up_once() -> None:
    class Parents(dict[int, int]):
        lookups = 0

        def __getitem__(self, label: int) -> int:
            self.lookups += 1
            return super().__getitem__(label)

    parents = Parents({number: number - 1 for number in range(1, 2001)} | {0: 2})  # all lead into 2 - 1 - 0
    assert sorted(find_label_cycles(parents)) == [0, 1, 2]
    assert parents.lookups < 3 * len(parents)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (
            "DROP TABLE item_scores",
            r"is damaged \(the table item_scores is missing\); restore a backup: `collection.restore",
        ),
        ("ALTER TABLE items RENAME COLUMN size TO other", r"is damaged \(items.size is missing\)"),
        ("DELETE FROM alembic_version", r"its tables have no version"),
        ("UPDATE alembic_version SET version_num = 'abc'", r"its tables have no version"),
        ("DELETE FROM identity", r"is damaged \(identity: 0 rows\)"),
        ("UPDATE alembic_version SET version_num = '0000'", r"its tables have no version"),
    ],
)
def test_inconsistent_tables_are_reported_on_opening(
    original: Path, tmp_path: Path, statement: str, message: str
) -> None:
    shutil.copytree(original, tmp_path / "photos")
    with closing(sqlite3.connect(tmp_path / "photos/.wsabie/catalogue.db", isolation_level=None)) as file:
        file.execute("PRAGMA foreign_keys = OFF")
        file.execute(statement)
    with pytest.raises(InputError, match=message):
        open_collection(tmp_path / "photos")


@pytest.mark.parametrize("statement", ["CREATE TABLE other (id)", "CREATE TABLE items (id)"])
def test_database_of_another_program_is_left_alone(tmp_path: Path, statement: str) -> None:
    (tmp_path / ".wsabie").mkdir()
    with closing(sqlite3.connect(tmp_path / ".wsabie/catalogue.db", isolation_level=None)) as file:
        file.execute(statement)
    content = (tmp_path / ".wsabie/catalogue.db").read_bytes()
    with pytest.raises(InputError, match="is not a database of wsabie"):
        create_collection(tmp_path)
    with closing(sqlite3.connect(tmp_path / ".wsabie/catalogue.db")) as file:
        assert len(file.execute("SELECT * FROM sqlite_master").fetchall()) == 1
    assert (tmp_path / ".wsabie/catalogue.db").read_bytes() == content


def test_schema_with_invalid_text_is_damage(original: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(original, tmp_path / "photos")
    catalogue = folder / ".wsabie/catalogue.db"
    with open_collection(folder) as collection:
        back_up(collection.engine, collection.place, "manual")
    content = bytearray(catalogue.read_bytes())
    content[content.index(b"CREATE TABLE") + 3] = 0x8C
    catalogue.write_bytes(content)
    for read_only in (True, False):
        with pytest.raises(InputError, match="is damaged"):
            open_collection(folder, read_only=read_only)
    restore_backup(folder, by="eve")
    open_collection(folder).close()


def test_write_to_a_removed_catalogue_is_refused(original: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(original, tmp_path / "photos")
    catalogue = folder / ".wsabie/catalogue.db"
    with open_collection(folder) as collection:
        tag_items(collection, [1], accept=["before"], by="eve")
        catalogue.rename(tmp_path / "away.db")
        with pytest.raises(InputError, match="was removed or replaced while it was open"):
            tag_items(collection, [1], accept=["lost"], by="eve")
        shutil.copy(tmp_path / "away.db", catalogue)
        tag_items(collection, [1], accept=["after"], by="eve")
    with open_collection(folder) as collection, begin_read(collection.engine) as connection:
        assert {"before", "after"} <= set(label_store.read_label_names(connection).values())


@pytest.mark.parametrize("code", ["FULL", "BUSY", "READONLY", "CORRUPT", "ERROR"])
def test_served_errors_show_no_path(tmp_path: Path, code: str) -> None:
    error = sqlite3.OperationalError(f"no {tmp_path}")
    error.sqlite_errorcode = getattr(sqlite3, f"SQLITE_{code}")
    with pytest.raises(WsabieError) as refusal, explain_database_errors(open_database(tmp_path / "catalogue.db")):
        raise error
    assert str(tmp_path) in str(refusal.value)
    assert str(tmp_path) not in (refusal.value.web_message or str(tmp_path))


def test_errors_without_damage_are_passed_on(original: Path) -> None:
    for error in (KeyError("x"), SQLAlchemyError("x"), OSError("x")):
        with pytest.raises(type(error), match=re.escape(str(error))), open_collection(original, read_only=True):
            raise error
