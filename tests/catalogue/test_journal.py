"""Decisions, labels and their undoing, on SQLite and PostgreSQL."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import func, insert, select

from tagged_items import wipe
from wsabie.base.errors import InputError, MissingError, UnknownLabelError
from wsabie.catalogue import book, editing, tables
from wsabie.catalogue.collection import Collection, check
from wsabie.catalogue.database import reading, writing
from wsabie.catalogue.deciding import Decided, Decision, decide
from wsabie.catalogue.journal import entry, history, now, undo


def with_items(collection: Collection, n: int = 3) -> Collection:
    rows = [
        {"id": i + 1, "root_id": 1, "path": f"{i}.jpg", "folder": "", "state": "present", "added": now()}
        for i in range(n)
    ]
    with writing(collection.engine) as connection:
        connection.execute(insert(tables.items), rows)
    return collection


def decided(collection: Collection) -> dict[tuple[int, str], str]:
    a, labels = tables.annotations.c, tables.labels
    query = select(a.item_id, labels.c.name, a.state).join(labels, labels.c.id == a.label_id)
    with reading(collection.engine) as connection:
        return {(item, name): state for item, name, state in connection.execute(query)}


def state_of(collection: Collection) -> list[object]:
    """Everything that the journal keeps."""
    with reading(collection.engine) as connection:
        return [
            sorted(map(tuple, connection.execute(select(table))), key=lambda row: row[0])
            for table in (tables.labels, tables.synonyms, tables.annotations)
        ]


def tag(collection: Collection, item: int, label: str, state: str | None = "accepted", **given: str) -> Decided:
    with entry(collection.engine, "eve", "tag", f"{label}: {state}") as change:
        number = book.ensure(change, [label])[label]
        return decide(change, [Decision(item, number, state)], **given)  # type: ignore[arg-type]


def test_what_is_decided_is_told_and_can_be_undone_and_done_again(collection: Collection) -> None:
    with_items(collection)
    assert tag(collection, 1, "sea") == Decided(added=1)
    assert tag(collection, 1, "sea", "rejected") == Decided(changed=1)
    assert tag(collection, 1, "sea", "rejected") == Decided()  # and no line in the journal
    assert [(e.told, e.changes) for e in history(collection.engine)] == [("sea: rejected", 1), ("sea: accepted", 2)]
    assert undo(collection.engine, by="eve").told == "sea: rejected"
    assert decided(collection) == {(1, "sea"): "accepted"}
    assert undo(collection.engine, by="eve").told == "sea: accepted"
    assert decided(collection) == {}
    last = history(collection.engine)[0]
    undo(collection.engine, last.id, by="eve")  # the undoing is undone
    assert decided(collection) == {(1, "sea"): "accepted"}
    undo(collection.engine, last.undoes, by="eve")  # and what was undone can be undone again
    assert decided(collection) == {}


def test_what_later_entries_built_upon_is_undone_after_them(collection: Collection) -> None:
    with_items(collection)
    tag(collection, 1, "sea")
    first = history(collection.engine)[0].id
    tag(collection, 1, "sea", "rejected")
    with pytest.raises(InputError, match=f"entry {first + 1} changed the same after entry {first}"):
        undo(collection.engine, first, by="eve")
    undo(collection.engine, first + 1, by="eve")
    undo(collection.engine, first, by="eve")
    assert decided(collection) == {}
    with pytest.raises(InputError, match="undone already"):
        undo(collection.engine, first, by="eve")
    with pytest.raises(InputError, match="nothing of yours"):
        undo(collection.engine, by="eve")
    with pytest.raises(InputError, match="no entry 999"):
        undo(collection.engine, 999, by="eve")


def test_what_was_made_anew_since_stands_in_the_way_of_an_undo(collection: Collection) -> None:
    with_items(collection)
    tag(collection, 1, "sea")
    tag(collection, 1, "sea", None)
    removed = history(collection.engine)[0].id
    tag(collection, 1, "sea", "rejected")  # another row, of the same item and label
    before = state_of(collection)
    with pytest.raises(InputError, match=f"entry {removed} cannot be undone: what it removed was made anew"):
        undo(collection.engine, removed, by="eve")
    assert state_of(collection) == before
    undo(collection.engine, by="eve")
    undo(collection.engine, removed, by="eve")
    assert decided(collection) == {(1, "sea"): "accepted"}


def test_what_needs_a_label_that_is_gone_cannot_come_back(collection: Collection) -> None:
    with_items(collection)
    with entry(collection.engine, "eve", "labels") as change:
        book.ensure(change, ["sea"])
    made = history(collection.engine)[0].id
    tag(collection, 1, "sea")
    tag(collection, 1, "sea", None)
    removed = history(collection.engine)[0].id
    undo(collection.engine, made, by="eve")
    with pytest.raises(InputError, match="or what that needs is gone"):
        undo(collection.engine, removed, by="eve")


def test_a_name_comes_back_for_one_label_alone(collection: Collection) -> None:
    with entry(collection.engine, "eve", "labels") as change:
        sea = book.ensure(change, ["sea"])["sea"]
    with entry(collection.engine, "eve", "synonym") as change:
        book.add_synonyms(change, sea, {"ocean": ""})
    undo(collection.engine, by="eve")
    undone = history(collection.engine)[0].id
    with entry(collection.engine, "eve", "labels") as change:
        book.ensure(change, ["ocean"])
    with pytest.raises(InputError, match="was made anew"):
        undo(collection.engine, undone, by="eve")
    with reading(collection.engine) as connection:
        assert connection.execute(select(tables.synonyms)).all() == []


def test_a_label_that_others_use_stays_when_its_making_is_undone(collection: Collection) -> None:
    with_items(collection)
    tag(collection, 1, "sea")
    first = history(collection.engine)[0].id
    tag(collection, 2, "sea")
    undo(collection.engine, first, by="eve")
    assert decided(collection) == {(2, "sea"): "accepted"}
    undo(collection.engine, history(collection.engine)[0].id, by="eve")  # and the undoing
    assert decided(collection) == {(1, "sea"): "accepted", (2, "sea"): "accepted"}


def test_undo_is_of_ones_own(collection: Collection) -> None:
    with_items(collection)
    tag(collection, 1, "sea")
    with pytest.raises(InputError, match="nothing of yours"):
        undo(collection.engine, by="adam")


def test_an_import_leaves_what_people_decided(collection: Collection) -> None:
    with_items(collection)
    tag(collection, 1, "sea", "rejected")
    assert tag(collection, 1, "sea", origin="import", by="a.csv") == Decided(kept=1)
    assert tag(collection, 2, "sea", origin="import", by="a.csv") == Decided(added=1)
    assert tag(collection, 2, "sea", "rejected") == Decided(changed=1)
    assert decided(collection) == {(1, "sea"): "rejected", (2, "sea"): "rejected"}


def test_an_error_leaves_nothing(collection: Collection) -> None:
    with_items(collection)
    before = state_of(collection)

    def fail_late() -> None:
        with entry(collection.engine, "eve", "tag") as change:
            number = book.ensure(change, ["sea"])["sea"]
            decide(change, [Decision(1, number, "accepted")])
            book.ensure(change, ["  "])

    with pytest.raises(InputError, match="cannot be a label"):
        fail_late()
    assert state_of(collection) == before
    assert history(collection.engine) == []


def test_merging_moves_everything_and_can_be_undone(collection: Collection) -> None:
    with_items(collection)
    for item, label, state in [
        (1, "gull", "accepted"),
        (2, "gull", "accepted"),
        (2, "seagull", "rejected"),
        (3, "chick", "accepted"),
    ]:
        tag(collection, item, label, state)
    with entry(collection.engine, "eve", "labels", "below") as change:
        numbers = book.ensure(change, ["gull", "seagull", "chick"])
        book.set_parent(change, numbers["chick"], numbers["gull"])
        assert book.add_synonyms(change, numbers["gull"], {"Möwe": "de", "seagull": "en"}) == ["seagull"]
    before = state_of(collection)
    with entry(collection.engine, "eve", "merge") as change:
        assert book.merge(change, numbers["gull"], numbers["seagull"]) == book.Merged(moved=1, together=1)
    assert decided(collection) == {(1, "seagull"): "accepted", (2, "seagull"): "rejected", (3, "chick"): "accepted"}
    with reading(collection.engine) as connection:
        assert book.find(connection, ["gull", "Möwe", "seagull", "nothing"]) == dict.fromkeys(
            ["gull", "Möwe", "seagull"], numbers["seagull"]
        )
        assert book.names(connection) == {numbers["seagull"]: "seagull", numbers["chick"]: "chick"}
        parent = connection.execute(select(tables.labels.c.parent_id).where(tables.labels.c.name == "chick")).scalar()
        assert parent == numbers["seagull"]
    assert tag(collection, 3, "gull") == Decided(added=1)  # the old name goes on working
    assert decided(collection)[3, "seagull"] == "accepted"
    undo(collection.engine, by="eve")
    assert undo(collection.engine, by="eve").told == "merged 'gull' into 'seagull'"
    assert state_of(collection) == before


def test_a_label_is_deleted_with_all_that_is_its_own_and_comes_back(collection: Collection) -> None:
    with_items(collection)
    for item, label, state in [(1, "gull", "accepted"), (2, "gull", "rejected"), (3, "chick", "accepted")]:
        tag(collection, item, label, state)
    with entry(collection.engine, "eve", "labels", "below") as change:
        numbers = book.ensure(change, ["bird", "gull", "chick", "mew", "mow", "tern"])
        book.set_parent(change, numbers["gull"], numbers["bird"])
        book.set_parent(change, numbers["chick"], numbers["gull"])
        book.add_synonyms(change, numbers["gull"], {"Möwe": "de"})
        editing._add_apart(change, [(numbers["gull"], numbers["tern"]), (numbers["mew"], numbers["tern"])])
        book.merge(change, numbers["mow"], numbers["mew"])
        book.merge(change, numbers["mew"], numbers["gull"])
    apart = select(func.count()).select_from(tables.kept_apart)
    before = state_of(collection)
    with pytest.raises(InputError, match="'gull' is accepted or rejected 2 times; to delete these tags too: --with-t"):
        editing.delete(collection, [numbers["gull"]], "eve")
    assert state_of(collection) == before
    done = editing.delete(collection, [numbers["gull"], numbers["tern"]], "eve", with_tags=True)
    assert (done.labels, done.tags, done.children) == (["gull", "tern"], 2, 1)
    assert history(collection.engine)[0].told == "deleted 'gull', 'tern' with 2 tags"
    assert decided(collection) == {(3, "chick"): "accepted"}
    with reading(collection.engine) as connection:
        assert book.find(connection, ["gull", "Möwe", "mew", "mow", "tern"]) == {}
        assert book.label(connection, numbers["chick"])["parent_id"] == numbers["bird"]
        assert connection.execute(apart).scalar() == 0
    with pytest.raises(MissingError, match="no label number"):
        editing.delete(collection, [numbers["gull"]], "eve")
    check(collection)
    undo(collection.engine, by="eve")
    assert state_of(collection) == before
    with reading(collection.engine) as connection:
        assert connection.execute(apart).scalar() == 2
    undo(collection.engine, deleted := history(collection.engine)[0].id, by="eve")  # and deleted again
    assert decided(collection) == {(3, "chick"): "accepted"}
    tag(collection, 1, "Möwe")
    with pytest.raises(InputError, match="was made anew since"):
        undo(collection.engine, deleted + 1, by="eve")


def test_labels_above_and_below_each_other_are_deleted_at_once(collection: Collection) -> None:
    with entry(collection.engine, "eve", "labels", "below") as change:
        numbers = book.ensure(change, ["animal", "bird", "gull"])
        book.set_parent(change, numbers["bird"], numbers["animal"])
        book.set_parent(change, numbers["gull"], numbers["bird"])
    before = state_of(collection)
    for order in (["animal", "bird"], ["bird", "animal"]):
        done = editing.delete(collection, [numbers[name] for name in order], "eve")
        assert done.tags == 0
        with reading(collection.engine) as connection:
            assert book.names(connection) == {numbers["gull"]: "gull"}
            assert book.above(connection, numbers["gull"]) == []
        undo(collection.engine, by="eve")
        assert state_of(collection) == before


def test_a_renamed_label_keeps_its_old_name_as_a_synonym(collection: Collection) -> None:
    with_items(collection)
    tag(collection, 1, "gul")
    tag(collection, 2, "tern")
    with entry(collection.engine, "eve", "rename") as change:
        book.rename(change, book.found_one(change.connection, "gul"), "gull")
        book.rename(change, book.found_one(change.connection, "gull"), "gul")  # and back: no name stands twice
        book.rename(change, book.found_one(change.connection, "gul"), "gull")
        with pytest.raises(InputError, match="another label is called 'tern'"):
            book.rename(change, book.found_one(change.connection, "gull"), "tern")
    assert decided(collection) == {(1, "gull"): "accepted", (2, "tern"): "accepted"}
    with reading(collection.engine) as connection:
        assert connection.execute(select(tables.synonyms.c.name)).scalars().all() == ["gul"]
        with pytest.raises(UnknownLabelError, match="the closest: gull"):
            book.found_one(connection, "guls")


def test_names_may_join_letters_but_hide_nothing() -> None:
    assert [book.spelt(name) for name in ("می\u200cروم", "🐦\u200d⬛")] == ["می\u200cروم", "🐦\u200d⬛"]
    assert [book.spelt(name) for name in ("a\u202eb", "a\u200bb")] == ["ab", "ab"]
    for name in ("a\0b", "", " ", "\u200d", "x" * 501):
        with pytest.raises(InputError, match="cannot be a label"):
            book.spelt(name)


def test_parents_make_no_circles(collection: Collection) -> None:
    with entry(collection.engine, "eve", "labels") as change:
        a, b, c = book.ensure(change, "abc").values()
        book.set_parent(change, b, a)
        book.set_parent(change, c, b)
        with pytest.raises(InputError, match="above itself"):
            book.set_parent(change, a, c)


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
        undo(collection.engine, by="eve")
        assert state_of(collection) == earlier
    with reading(collection.engine) as connection:
        undone = select(func.count()).where(tables.journal.c.undoes.is_not(None))
        assert connection.execute(undone).scalar() == len(states) - 1
