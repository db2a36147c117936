"""Decisions, labels and their undoing, on SQLite and PostgreSQL."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import func, insert, select

from tagged_items import wipe
from wsabie.collection.annotations.decisions import Decision, DecisionCounts, write_decisions
from wsabie.collection.db import tables
from wsabie.collection.db.database import begin_read, begin_write
from wsabie.collection.db.journal import begin_entry, format_current_time, read_history, undo_entry
from wsabie.collection.folder.collection import Collection, check_database
from wsabie.collection.labels import label_edits, label_merge, label_store
from wsabie.core.errors import InputError, NotFoundError, UnknownLabelError


def add_items(collection: Collection, n: int = 3) -> Collection:
    rows = [
        {
            "id": i + 1,
            "root_id": 1,
            "path": f"{i}.jpg",
            "folder": "",
            "state": "present",
            "added_at": format_current_time(),
        }
        for i in range(n)
    ]
    with begin_write(collection.engine) as connection:
        connection.execute(insert(tables.items), rows)
    return collection


def read_decisions(collection: Collection) -> dict[tuple[int, str], str]:
    a, labels = tables.annotations.c, tables.labels
    query = select(a.item_id, labels.c.name, a.state).join(labels, labels.c.id == a.label_id)
    with begin_read(collection.engine) as connection:
        return {(item, name): state for item, name, state in connection.execute(query)}


def read_state(collection: Collection) -> list[object]:
    """Everything that the journal keeps."""
    with begin_read(collection.engine) as connection:
        return [
            sorted(map(tuple, connection.execute(select(table))), key=lambda row: row[0])
            for table in (tables.labels, tables.synonyms, tables.annotations)
        ]


def tag(
    collection: Collection, item: int, label: str, state: str | None = "accepted", **options: str
) -> DecisionCounts:
    with begin_entry(collection.engine, "eve", "tag", f"{label}: {state}") as change:
        label_id = label_store.ensure_labels(change, [label])[label]
        return write_decisions(change, [Decision(item, label_id, state)], **options)  # type: ignore[arg-type]


def test_decisions_are_recorded_undone_and_redone(collection: Collection) -> None:
    add_items(collection)
    assert tag(collection, 1, "sea") == DecisionCounts(added=1)
    assert tag(collection, 1, "sea", "rejected") == DecisionCounts(changed=1)
    assert tag(collection, 1, "sea", "rejected") == DecisionCounts()  # and no line in the journal
    assert [(e.summary, e.changes) for e in read_history(collection.engine)] == [
        ("sea: rejected", 1),
        ("sea: accepted", 2),
    ]
    assert undo_entry(collection.engine, by="eve").summary == "sea: rejected"
    assert read_decisions(collection) == {(1, "sea"): "accepted"}
    assert undo_entry(collection.engine, by="eve").summary == "sea: accepted"
    assert read_decisions(collection) == {}
    last = read_history(collection.engine)[0]
    undo_entry(collection.engine, last.id, by="eve")  # the undoing is undone
    assert read_decisions(collection) == {(1, "sea"): "accepted"}
    undo_entry(collection.engine, last.undoes, by="eve")  # and what was undone can be undone again
    assert read_decisions(collection) == {}


def test_undo_waits_for_later_entries_on_the_same_rows(collection: Collection) -> None:
    add_items(collection)
    tag(collection, 1, "sea")
    first = read_history(collection.engine)[0].id
    tag(collection, 1, "sea", "rejected")
    with pytest.raises(InputError, match=f"entry {first + 1} changed the same after entry {first}"):
        undo_entry(collection.engine, first, by="eve")
    undo_entry(collection.engine, first + 1, by="eve")
    undo_entry(collection.engine, first, by="eve")
    assert read_decisions(collection) == {}
    with pytest.raises(InputError, match="undone already"):
        undo_entry(collection.engine, first, by="eve")
    with pytest.raises(InputError, match="nothing of yours"):
        undo_entry(collection.engine, by="eve")
    with pytest.raises(InputError, match="no entry 999"):
        undo_entry(collection.engine, 999, by="eve")


def test_undo_is_refused_after_a_row_was_made_again(collection: Collection) -> None:
    add_items(collection)
    tag(collection, 1, "sea")
    tag(collection, 1, "sea", None)
    removed = read_history(collection.engine)[0].id
    tag(collection, 1, "sea", "rejected")  # another row, of the same item and label
    state_before = read_state(collection)
    with pytest.raises(InputError, match=f"entry {removed} cannot be undone: what it removed was made again"):
        undo_entry(collection.engine, removed, by="eve")
    assert read_state(collection) == state_before
    undo_entry(collection.engine, by="eve")
    undo_entry(collection.engine, removed, by="eve")
    assert read_decisions(collection) == {(1, "sea"): "accepted"}


def test_undo_is_refused_when_a_needed_label_is_gone(collection: Collection) -> None:
    add_items(collection)
    with begin_entry(collection.engine, "eve", "labels") as change:
        label_store.ensure_labels(change, ["sea"])
    creation = read_history(collection.engine)[0].id
    tag(collection, 1, "sea")
    tag(collection, 1, "sea", None)
    removed = read_history(collection.engine)[0].id
    undo_entry(collection.engine, creation, by="eve")
    with pytest.raises(InputError, match="or what that needs is gone"):
        undo_entry(collection.engine, removed, by="eve")


def test_synonym_is_not_restored_over_a_new_label(collection: Collection) -> None:
    with begin_entry(collection.engine, "eve", "labels") as change:
        sea = label_store.ensure_labels(change, ["sea"])["sea"]
    with begin_entry(collection.engine, "eve", "synonym") as change:
        label_store.add_synonyms(change, sea, {"ocean": ""})
    undo_entry(collection.engine, by="eve")
    undone = read_history(collection.engine)[0].id
    with begin_entry(collection.engine, "eve", "labels") as change:
        label_store.ensure_labels(change, ["ocean"])
    with pytest.raises(InputError, match="was made again"):
        undo_entry(collection.engine, undone, by="eve")
    with begin_read(collection.engine) as connection:
        assert connection.execute(select(tables.synonyms)).all() == []


def test_label_used_by_others_survives_undo(collection: Collection) -> None:
    add_items(collection)
    tag(collection, 1, "sea")
    first = read_history(collection.engine)[0].id
    tag(collection, 2, "sea")
    undo_entry(collection.engine, first, by="eve")
    assert read_decisions(collection) == {(2, "sea"): "accepted"}
    undo_entry(collection.engine, read_history(collection.engine)[0].id, by="eve")  # and the undoing
    assert read_decisions(collection) == {(1, "sea"): "accepted", (2, "sea"): "accepted"}


def test_undo_without_entry_reverts_only_the_users_own(collection: Collection) -> None:
    add_items(collection)
    tag(collection, 1, "sea")
    with pytest.raises(InputError, match="nothing of yours"):
        undo_entry(collection.engine, by="adam")


def test_import_keeps_decisions_of_people(collection: Collection) -> None:
    add_items(collection)
    tag(collection, 1, "sea", "rejected")
    assert tag(collection, 1, "sea", origin="import", by="a.csv") == DecisionCounts(kept_by_person=1)
    assert tag(collection, 2, "sea", origin="import", by="a.csv") == DecisionCounts(added=1)
    assert tag(collection, 2, "sea", "rejected") == DecisionCounts(changed=1)
    assert read_decisions(collection) == {(1, "sea"): "rejected", (2, "sea"): "rejected"}


def test_error_leaves_no_entry(collection: Collection) -> None:
    add_items(collection)
    state_before = read_state(collection)

    def fail_late() -> None:
        with begin_entry(collection.engine, "eve", "tag") as change:
            label_id = label_store.ensure_labels(change, ["sea"])["sea"]
            write_decisions(change, [Decision(1, label_id, "accepted")])
            label_store.ensure_labels(change, ["  "])

    with pytest.raises(InputError, match="cannot be a label"):
        fail_late()
    assert read_state(collection) == state_before
    assert read_history(collection.engine) == []


def test_merge_moves_all_references_and_is_undone(collection: Collection) -> None:
    add_items(collection)
    for item, label, state in [
        (1, "gull", "accepted"),
        (2, "gull", "accepted"),
        (2, "seagull", "rejected"),
        (3, "chick", "accepted"),
    ]:
        tag(collection, item, label, state)
    with begin_entry(collection.engine, "eve", "labels", "below") as change:
        label_ids = label_store.ensure_labels(change, ["gull", "seagull", "chick"])
        label_store.set_parent(change, label_ids["chick"], label_ids["gull"])
        assert label_store.add_synonyms(change, label_ids["gull"], {"Möwe": "de", "seagull": "en"}) == ["seagull"]
    state_before = read_state(collection)
    with begin_entry(collection.engine, "eve", "merge") as change:
        assert label_merge.merge_label(change, label_ids["gull"], label_ids["seagull"]) == label_merge.MergeCounts(
            moved=1, duplicates=1
        )
    assert read_decisions(collection) == {
        (1, "seagull"): "accepted",
        (2, "seagull"): "rejected",
        (3, "chick"): "accepted",
    }
    with begin_read(collection.engine) as connection:
        assert label_store.find_labels(connection, ["gull", "Möwe", "seagull", "nothing"]) == dict.fromkeys(
            ["gull", "Möwe", "seagull"], label_ids["seagull"]
        )
        assert label_store.read_label_names(connection) == {
            label_ids["seagull"]: "seagull",
            label_ids["chick"]: "chick",
        }
        parent = connection.execute(select(tables.labels.c.parent_id).where(tables.labels.c.name == "chick")).scalar()
        assert parent == label_ids["seagull"]
    assert tag(collection, 3, "gull") == DecisionCounts(added=1)  # the old name goes on working
    assert read_decisions(collection)[3, "seagull"] == "accepted"
    undo_entry(collection.engine, by="eve")
    assert undo_entry(collection.engine, by="eve").summary == "merged 'gull' into 'seagull'"
    assert read_state(collection) == state_before


def test_label_deletion_removes_its_rows_and_is_undone(collection: Collection) -> None:
    add_items(collection)
    for item, label, state in [(1, "gull", "accepted"), (2, "gull", "rejected"), (3, "chick", "accepted")]:
        tag(collection, item, label, state)
    with begin_entry(collection.engine, "eve", "labels", "below") as change:
        label_ids = label_store.ensure_labels(change, ["bird", "gull", "chick", "mew", "mow", "tern"])
        label_store.set_parent(change, label_ids["gull"], label_ids["bird"])
        label_store.set_parent(change, label_ids["chick"], label_ids["gull"])
        label_store.add_synonyms(change, label_ids["gull"], {"Möwe": "de"})
        pairs = [{"label_a": label_ids[name], "label_b": label_ids["tern"]} for name in ("gull", "mew")]
        change.add(tables.merge_exclusions, pairs)
        label_merge.merge_label(change, label_ids["mow"], label_ids["mew"])
        label_merge.merge_label(change, label_ids["mew"], label_ids["gull"])
    count_exclusions = select(func.count()).select_from(tables.merge_exclusions)
    state_before = read_state(collection)
    with pytest.raises(InputError, match=r"'gull' is accepted or rejected 2 times; delete these tags too \(`with"):
        label_edits.delete_labels(collection, [label_ids["gull"]], "eve")
    assert read_state(collection) == state_before
    result = label_edits.delete_labels(collection, [label_ids["gull"], label_ids["tern"]], "eve", with_tags=True)
    assert (result.labels, result.tags, result.children) == (["gull", "tern"], 2, 1)
    assert read_history(collection.engine)[0].summary == "deleted 'gull', 'tern' with 2 tags"
    assert read_decisions(collection) == {(3, "chick"): "accepted"}
    with begin_read(collection.engine) as connection:
        assert label_store.find_labels(connection, ["gull", "Möwe", "mew", "mow", "tern"]) == {}
        assert label_store.read_label(connection, label_ids["chick"])["parent_id"] == label_ids["bird"]
        assert connection.execute(count_exclusions).scalar() == 0
    with pytest.raises(NotFoundError, match="no label with id"):
        label_edits.delete_labels(collection, [label_ids["gull"]], "eve")
    check_database(collection)
    undo_entry(collection.engine, by="eve")
    assert read_state(collection) == state_before
    with begin_read(collection.engine) as connection:
        assert connection.execute(count_exclusions).scalar() == 2
    undo_entry(collection.engine, deleted := read_history(collection.engine)[0].id, by="eve")  # and deleted again
    assert read_decisions(collection) == {(3, "chick"): "accepted"}
    tag(collection, 1, "Möwe")
    with pytest.raises(InputError, match="was made again since"):
        undo_entry(collection.engine, deleted + 1, by="eve")


def test_parent_and_child_labels_are_deleted_together(collection: Collection) -> None:
    with begin_entry(collection.engine, "eve", "labels", "below") as change:
        label_ids = label_store.ensure_labels(change, ["animal", "bird", "gull"])
        label_store.set_parent(change, label_ids["bird"], label_ids["animal"])
        label_store.set_parent(change, label_ids["gull"], label_ids["bird"])
    state_before = read_state(collection)
    for order in (["animal", "bird"], ["bird", "animal"]):
        result = label_edits.delete_labels(collection, [label_ids[name] for name in order], "eve")
        assert result.tags == 0
        with begin_read(collection.engine) as connection:
            assert label_store.read_label_names(connection) == {label_ids["gull"]: "gull"}
            assert label_store.list_ancestors(connection, label_ids["gull"]) == []
        undo_entry(collection.engine, by="eve")
        assert read_state(collection) == state_before


def test_renamed_label_keeps_its_old_name_as_a_synonym(collection: Collection) -> None:
    add_items(collection)
    tag(collection, 1, "gul")
    tag(collection, 2, "tern")
    with begin_entry(collection.engine, "eve", "rename") as change:
        label_store.rename_label(change, label_store.find_label(change.connection, "gul"), "gull")
        label_store.rename_label(
            change, label_store.find_label(change.connection, "gull"), "gul"
        )  # and back: no name stands twice
        label_store.rename_label(change, label_store.find_label(change.connection, "gul"), "gull")
        with pytest.raises(InputError, match="another label is called 'tern'"):
            label_store.rename_label(change, label_store.find_label(change.connection, "gull"), "tern")
    assert read_decisions(collection) == {(1, "gull"): "accepted", (2, "tern"): "accepted"}
    with begin_read(collection.engine) as connection:
        assert connection.execute(select(tables.synonyms.c.name)).scalars().all() == ["gul"]
        with pytest.raises(UnknownLabelError, match="the closest: gull"):
            label_store.find_label(connection, "guls")


def test_label_names_allow_joiners_and_refuse_invisible_characters() -> None:
    assert [label_store.normalise_name(name) for name in ("می\u200cروم", "🐦\u200d⬛")] == ["می\u200cروم", "🐦\u200d⬛"]
    assert [label_store.normalise_name(name) for name in ("a\u202eb", "a\u200bb")] == ["ab", "ab"]
    for name in ("a\0b", "", " ", "\u200d", "x" * 501):
        with pytest.raises(InputError, match="cannot be a label"):
            label_store.normalise_name(name)


def test_label_parents_form_no_cycle(collection: Collection) -> None:
    with begin_entry(collection.engine, "eve", "labels") as change:
        a, b, c = label_store.ensure_labels(change, "abc").values()
        label_store.set_parent(change, b, a)
        label_store.set_parent(change, c, b)
        with pytest.raises(InputError, match="above itself"):
            label_store.set_parent(change, a, c)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(st.integers(1, 4), st.sampled_from("abc"), st.sampled_from(["accepted", "rejected", None])),
        max_size=12,
    )
)
def test_undoing_every_entry_restores_the_first_state(
    collection: Collection, steps: list[tuple[int, str, str | None]]
) -> None:
    wipe(collection)
    add_items(collection, 4)
    states = [read_state(collection)]
    for item, label, state in steps:
        tag(collection, item, label, state)
        if (now_there := read_state(collection)) != states[-1]:
            states.append(now_there)
    for earlier in reversed(states[:-1]):
        undo_entry(collection.engine, by="eve")
        assert read_state(collection) == earlier
    with begin_read(collection.engine) as connection:
        undone = select(func.count()).where(tables.journal.c.undoes.is_not(None))
        assert connection.execute(undone).scalar() == len(states) - 1
