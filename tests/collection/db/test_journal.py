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
from wsabie.collection.labels import label_list, label_store
from wsabie.core.errors import InputError, NotFoundError, UnknownLabelError


def with_items(collection: Collection, n: int = 3) -> Collection:
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


def decided(collection: Collection) -> dict[tuple[int, str], str]:
    a, labels = tables.annotations.c, tables.labels
    query = select(a.item_id, labels.c.name, a.state).join(labels, labels.c.id == a.label_id)
    with begin_read(collection.engine) as connection:
        return {(item, name): state for item, name, state in connection.execute(query)}


def state_of(collection: Collection) -> list[object]:
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


def test_what_is_decided_is_told_and_can_be_undone_and_done_again(collection: Collection) -> None:
    with_items(collection)
    assert tag(collection, 1, "sea") == DecisionCounts(added=1)
    assert tag(collection, 1, "sea", "rejected") == DecisionCounts(changed=1)
    assert tag(collection, 1, "sea", "rejected") == DecisionCounts()  # and no line in the journal
    assert [(e.summary, e.changes) for e in read_history(collection.engine)] == [
        ("sea: rejected", 1),
        ("sea: accepted", 2),
    ]
    assert undo_entry(collection.engine, by="eve").summary == "sea: rejected"
    assert decided(collection) == {(1, "sea"): "accepted"}
    assert undo_entry(collection.engine, by="eve").summary == "sea: accepted"
    assert decided(collection) == {}
    last = read_history(collection.engine)[0]
    undo_entry(collection.engine, last.id, by="eve")  # the undoing is undone
    assert decided(collection) == {(1, "sea"): "accepted"}
    undo_entry(collection.engine, last.undoes, by="eve")  # and what was undone can be undone again
    assert decided(collection) == {}


def test_what_later_entries_built_upon_is_undone_after_them(collection: Collection) -> None:
    with_items(collection)
    tag(collection, 1, "sea")
    first = read_history(collection.engine)[0].id
    tag(collection, 1, "sea", "rejected")
    with pytest.raises(InputError, match=f"entry {first + 1} changed the same after entry {first}"):
        undo_entry(collection.engine, first, by="eve")
    undo_entry(collection.engine, first + 1, by="eve")
    undo_entry(collection.engine, first, by="eve")
    assert decided(collection) == {}
    with pytest.raises(InputError, match="undone already"):
        undo_entry(collection.engine, first, by="eve")
    with pytest.raises(InputError, match="nothing of yours"):
        undo_entry(collection.engine, by="eve")
    with pytest.raises(InputError, match="no entry 999"):
        undo_entry(collection.engine, 999, by="eve")


def test_what_was_made_anew_since_stands_in_the_way_of_an_undo(collection: Collection) -> None:
    with_items(collection)
    tag(collection, 1, "sea")
    tag(collection, 1, "sea", None)
    removed = read_history(collection.engine)[0].id
    tag(collection, 1, "sea", "rejected")  # another row, of the same item and label
    state_before = state_of(collection)
    with pytest.raises(InputError, match=f"entry {removed} cannot be undone: what it removed was made again"):
        undo_entry(collection.engine, removed, by="eve")
    assert state_of(collection) == state_before
    undo_entry(collection.engine, by="eve")
    undo_entry(collection.engine, removed, by="eve")
    assert decided(collection) == {(1, "sea"): "accepted"}


def test_what_needs_a_label_that_is_gone_cannot_come_back(collection: Collection) -> None:
    with_items(collection)
    with begin_entry(collection.engine, "eve", "labels") as change:
        label_store.ensure_labels(change, ["sea"])
    creation = read_history(collection.engine)[0].id
    tag(collection, 1, "sea")
    tag(collection, 1, "sea", None)
    removed = read_history(collection.engine)[0].id
    undo_entry(collection.engine, creation, by="eve")
    with pytest.raises(InputError, match="or what that needs is gone"):
        undo_entry(collection.engine, removed, by="eve")


def test_a_name_comes_back_for_one_label_alone(collection: Collection) -> None:
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


def test_a_label_that_others_use_stays_when_its_making_is_undone(collection: Collection) -> None:
    with_items(collection)
    tag(collection, 1, "sea")
    first = read_history(collection.engine)[0].id
    tag(collection, 2, "sea")
    undo_entry(collection.engine, first, by="eve")
    assert decided(collection) == {(2, "sea"): "accepted"}
    undo_entry(collection.engine, read_history(collection.engine)[0].id, by="eve")  # and the undoing
    assert decided(collection) == {(1, "sea"): "accepted", (2, "sea"): "accepted"}


def test_undo_is_of_ones_own(collection: Collection) -> None:
    with_items(collection)
    tag(collection, 1, "sea")
    with pytest.raises(InputError, match="nothing of yours"):
        undo_entry(collection.engine, by="adam")


def test_an_import_leaves_what_people_decided(collection: Collection) -> None:
    with_items(collection)
    tag(collection, 1, "sea", "rejected")
    assert tag(collection, 1, "sea", origin="import", by="a.csv") == DecisionCounts(kept=1)
    assert tag(collection, 2, "sea", origin="import", by="a.csv") == DecisionCounts(added=1)
    assert tag(collection, 2, "sea", "rejected") == DecisionCounts(changed=1)
    assert decided(collection) == {(1, "sea"): "rejected", (2, "sea"): "rejected"}


def test_an_error_leaves_nothing(collection: Collection) -> None:
    with_items(collection)
    state_before = state_of(collection)

    def fail_late() -> None:
        with begin_entry(collection.engine, "eve", "tag") as change:
            label_id = label_store.ensure_labels(change, ["sea"])["sea"]
            write_decisions(change, [Decision(1, label_id, "accepted")])
            label_store.ensure_labels(change, ["  "])

    with pytest.raises(InputError, match="cannot be a label"):
        fail_late()
    assert state_of(collection) == state_before
    assert read_history(collection.engine) == []


def test_merging_moves_everything_and_can_be_undone(collection: Collection) -> None:
    with_items(collection)
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
    state_before = state_of(collection)
    with begin_entry(collection.engine, "eve", "merge") as change:
        assert label_store.merge_label(change, label_ids["gull"], label_ids["seagull"]) == label_store.MergeCounts(
            moved=1, duplicates=1
        )
    assert decided(collection) == {(1, "seagull"): "accepted", (2, "seagull"): "rejected", (3, "chick"): "accepted"}
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
    assert decided(collection)[3, "seagull"] == "accepted"
    undo_entry(collection.engine, by="eve")
    assert undo_entry(collection.engine, by="eve").summary == "merged 'gull' into 'seagull'"
    assert state_of(collection) == state_before


def test_a_label_is_deleted_with_all_that_is_its_own_and_comes_back(collection: Collection) -> None:
    with_items(collection)
    for item, label, state in [(1, "gull", "accepted"), (2, "gull", "rejected"), (3, "chick", "accepted")]:
        tag(collection, item, label, state)
    with begin_entry(collection.engine, "eve", "labels", "below") as change:
        label_ids = label_store.ensure_labels(change, ["bird", "gull", "chick", "mew", "mow", "tern"])
        label_store.set_parent(change, label_ids["gull"], label_ids["bird"])
        label_store.set_parent(change, label_ids["chick"], label_ids["gull"])
        label_store.add_synonyms(change, label_ids["gull"], {"Möwe": "de"})
        pairs = [{"label_a": label_ids[name], "label_b": label_ids["tern"]} for name in ("gull", "mew")]
        change.add(tables.merge_exclusions, pairs)
        label_store.merge_label(change, label_ids["mow"], label_ids["mew"])
        label_store.merge_label(change, label_ids["mew"], label_ids["gull"])
    count_exclusions = select(func.count()).select_from(tables.merge_exclusions)
    state_before = state_of(collection)
    with pytest.raises(InputError, match=r"'gull' is accepted or rejected 2 times; delete these tags too \(`with"):
        label_list.delete_labels(collection, [label_ids["gull"]], "eve")
    assert state_of(collection) == state_before
    result = label_list.delete_labels(collection, [label_ids["gull"], label_ids["tern"]], "eve", with_tags=True)
    assert (result.labels, result.tags, result.children) == (["gull", "tern"], 2, 1)
    assert read_history(collection.engine)[0].summary == "deleted 'gull', 'tern' with 2 tags"
    assert decided(collection) == {(3, "chick"): "accepted"}
    with begin_read(collection.engine) as connection:
        assert label_store.find_labels(connection, ["gull", "Möwe", "mew", "mow", "tern"]) == {}
        assert label_store.read_label(connection, label_ids["chick"])["parent_id"] == label_ids["bird"]
        assert connection.execute(count_exclusions).scalar() == 0
    with pytest.raises(NotFoundError, match="no label with id"):
        label_list.delete_labels(collection, [label_ids["gull"]], "eve")
    check_database(collection)
    undo_entry(collection.engine, by="eve")
    assert state_of(collection) == state_before
    with begin_read(collection.engine) as connection:
        assert connection.execute(count_exclusions).scalar() == 2
    undo_entry(collection.engine, deleted := read_history(collection.engine)[0].id, by="eve")  # and deleted again
    assert decided(collection) == {(3, "chick"): "accepted"}
    tag(collection, 1, "Möwe")
    with pytest.raises(InputError, match="was made again since"):
        undo_entry(collection.engine, deleted + 1, by="eve")


def test_labels_above_and_below_each_other_are_deleted_at_once(collection: Collection) -> None:
    with begin_entry(collection.engine, "eve", "labels", "below") as change:
        label_ids = label_store.ensure_labels(change, ["animal", "bird", "gull"])
        label_store.set_parent(change, label_ids["bird"], label_ids["animal"])
        label_store.set_parent(change, label_ids["gull"], label_ids["bird"])
    state_before = state_of(collection)
    for order in (["animal", "bird"], ["bird", "animal"]):
        result = label_list.delete_labels(collection, [label_ids[name] for name in order], "eve")
        assert result.tags == 0
        with begin_read(collection.engine) as connection:
            assert label_store.read_label_names(connection) == {label_ids["gull"]: "gull"}
            assert label_store.list_ancestors(connection, label_ids["gull"]) == []
        undo_entry(collection.engine, by="eve")
        assert state_of(collection) == state_before


def test_a_renamed_label_keeps_its_old_name_as_a_synonym(collection: Collection) -> None:
    with_items(collection)
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
    assert decided(collection) == {(1, "gull"): "accepted", (2, "tern"): "accepted"}
    with begin_read(collection.engine) as connection:
        assert connection.execute(select(tables.synonyms.c.name)).scalars().all() == ["gul"]
        with pytest.raises(UnknownLabelError, match="the closest: gull"):
            label_store.find_label(connection, "guls")


def test_names_may_join_letters_but_hide_nothing() -> None:
    assert [label_store.normalise_name(name) for name in ("می\u200cروم", "🐦\u200d⬛")] == ["می\u200cروم", "🐦\u200d⬛"]
    assert [label_store.normalise_name(name) for name in ("a\u202eb", "a\u200bb")] == ["ab", "ab"]
    for name in ("a\0b", "", " ", "\u200d", "x" * 501):
        with pytest.raises(InputError, match="cannot be a label"):
            label_store.normalise_name(name)


def test_parents_make_no_circles(collection: Collection) -> None:
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
def test_undoing_all_from_the_last_leads_back(collection: Collection, steps: list[tuple[int, str, str | None]]) -> None:
    wipe(collection)
    with_items(collection, 4)
    states = [state_of(collection)]
    for item, label, state in steps:
        tag(collection, item, label, state)
        if (now_there := state_of(collection)) != states[-1]:
            states.append(now_there)
    for earlier in reversed(states[:-1]):
        undo_entry(collection.engine, by="eve")
        assert state_of(collection) == earlier
    with begin_read(collection.engine) as connection:
        undone = select(func.count()).where(tables.journal.c.undoes.is_not(None))
        assert connection.execute(undone).scalar() == len(states) - 1
