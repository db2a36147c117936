"""Proposals that are kept: they stay true while labels are merged, renamed and kept apart; on SQLite and PostgreSQL."""

import json
from pathlib import Path

import pytest
from sqlalchemy import insert, update
from tests.collection.merge_proposals.test_proposal_search import (
    exclude_labels,
    list_merge_names,
    make_scenes,
    merge_names,
    tag_items_with_labels,
)

from wsabie.collection.db import tables
from wsabie.collection.db.database import begin_write
from wsabie.collection.db.journal import format_current_time, undo_entry
from wsabie.collection.folder.collection import Collection
from wsabie.collection.labels import label_edits
from wsabie.collection.merge_proposals.proposals import ProposalStatus, read_proposals, refresh_proposals
from wsabie.core.errors import InputError

CLEAR = {"Old town": [1], "old-town": [2, 3], "café": [4, 5], "cafe": [], "Tree": [6, 7], "tree": [8], "TREE": []}

ALL_PROPOSALS = [("Tree", ["tree", "TREE"]), ("café", ["cafe"]), ("old-town", ["Old town"])]


def list_shown_proposals(status: ProposalStatus) -> list[tuple[str, list[str]]]:
    return sorted((p.target.name, [label.name for label in p.labels]) for p in status.proposals)


def test_unread_collection_has_no_stored_proposals(collection: Collection) -> None:
    tag_items_with_labels(collection, CLEAR)
    assert read_proposals(collection) == ProposalStatus(None, 0, False, {}, [])


def test_stored_proposals_equal_computed_ones(collection: Collection) -> None:
    languages = {"Möwe": "de", "seagull": "en"}
    twice = [*range(1, 41, 2), *range(101, 105)]
    tag_items_with_labels(collection, make_scenes(Möwe=twice, seagull=twice, **CLEAR), languages)
    fresh = refresh_proposals(collection, language="en")
    stored = read_proposals(collection)
    assert stored.proposals == fresh.proposals
    assert (len(stored.proposals), stored.changes) == (fresh.total, 0)
    assert ("seagull", ["Möwe"]) in list_shown_proposals(stored)


def test_stored_proposals_follow_merges_renames_and_exclusions(collection: Collection) -> None:
    tag_items_with_labels(collection, CLEAR)
    refresh_proposals(collection)
    assert list_shown_proposals(read_proposals(collection)) == [
        ("Tree", ["tree", "TREE"]),
        ("café", ["cafe"]),
        ("old-town", ["Old town"]),
    ]
    merge_names(collection, ["Old town"], "old-town")
    exclude_labels(collection, ["café", "cafe"])
    label_edits.edit_label(collection, "TREE", "eve", name="Baum")
    status = read_proposals(collection)
    assert list_shown_proposals(status) == [("Tree", ["tree", "Baum"])]
    assert status.changes == 3
    assert {reason.second for reason in status.proposals[0].reasons} == {"tree", "TREE"}  # as they were called then
    merge_names(collection, ["tree"], "Tree")
    assert list_shown_proposals(read_proposals(collection)) == [("Tree", ["Baum"])]
    for _ in range(4):
        undo_entry(collection.engine, by="eve")
    assert list_shown_proposals(read_proposals(collection)) == [
        ("Tree", ["tree", "TREE"]),
        ("café", ["cafe"]),
        ("old-town", ["Old town"]),
    ]


def test_knowledge_files_are_remembered(collection: Collection, tmp_path: Path) -> None:
    words = tmp_path / "words.txt"
    words.write_text("n02084071\tdog, hound\nn02121620\tcat\n")
    tag_items_with_labels(collection, {"dog": [1, 2], "hound": [3], "cat": [4]})
    assert list_merge_names(refresh_proposals(collection, knowledge=[words])) == [("dog", ["hound"])]
    assert list_merge_names(refresh_proposals(collection)) == [("dog", ["hound"])]
    words.unlink()
    assert "words.txt" in refresh_proposals(collection).unused_sources["knowledge"]
    assert read_proposals(collection).proposals == []
    with pytest.raises(InputError, match=r"words\.txt"):
        refresh_proposals(collection, knowledge=[words])


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "null", "7", '{"schema": 2}', '{"schema": 1}', '{"schema": 1, "links": [[1]]}', "\udcff"]
)
def test_damaged_store_is_ignored(collection: Collection, content: str) -> None:
    tag_items_with_labels(collection, CLEAR)
    refresh_proposals(collection)
    (collection.place / "proposals.json").write_bytes(content.encode("utf-8", "surrogateescape"))
    assert read_proposals(collection).created is None
    assert len(refresh_proposals(collection).proposals) == 3


def test_links_to_deleted_labels_are_dropped(collection: Collection) -> None:
    tag_items_with_labels(collection, CLEAR)
    refresh_proposals(collection)
    path = collection.place / "proposals.json"
    document = json.loads(path.read_text())
    document["links"] = [[999, second_label, reason] for _, second_label, reason in document["links"]]
    path.write_text(json.dumps(document))
    assert read_proposals(collection).proposals == []


def test_score_outside_zero_to_one_is_refused(collection: Collection) -> None:
    with pytest.raises(InputError, match="from 0 to 1"):
        refresh_proposals(collection, min_score=7)


def test_newer_model_is_reported(collection: Collection) -> None:
    tag_items_with_labels(collection, CLEAR)
    assert refresh_proposals(collection).unused_sources["model"] == "none was in use"
    row = {
        "id": 1,
        "folder": "m",
        "created_at": format_current_time(),
        "method": "full",
        "last_entry_id": 0,
        "is_removed": False,
    }
    with begin_write(collection.engine) as connection:
        connection.execute(insert(tables.models).values(**row, in_use=True, facts={}, figures={}))
    assert read_proposals(collection).is_other_model
    refresh_proposals(collection)
    assert not read_proposals(collection).is_other_model
    with begin_write(collection.engine) as connection:
        connection.execute(update(tables.models).values(in_use=False))
    assert not read_proposals(collection).is_other_model
