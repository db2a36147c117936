"""Pictures of some labels: the newest of each, on SQLite and PostgreSQL."""

from sqlalchemy import event, insert, update
from tests.collection.merge_proposals.test_proposal_search import tag_items_with_labels

from wsabie.collection.db import tables
from wsabie.collection.db.database import begin_read, begin_write
from wsabie.collection.db.journal import format_current_time
from wsabie.collection.folder.collection import Collection
from wsabie.collection.labels.label_store import find_example_items


def test_newest_items_of_labels_take_one_query(collection: Collection) -> None:
    label_ids = tag_items_with_labels(collection, {"sea": range(1, 9), "gull": [2, 5], "tern": [], "other": [3]})
    annotation = {"state": "accepted", "origin": "person", "by": "eve", "at": format_current_time()}
    with begin_write(collection.engine) as connection:
        parts = [{"item_id": 7, "label_id": 1, "region": f"0,0,{n},1", **annotation} for n in (1, 2)]
        connection.execute(insert(tables.annotations), parts)
        connection.execute(update(tables.items).where(tables.items.c.id == 8).values(state="missing"))
        connection.execute(update(tables.annotations).where(tables.annotations.c.item_id == 5).values(state="rejected"))
    queries: list[str] = []
    event.listen(collection.engine, "before_cursor_execute", lambda *arguments: queries.append(arguments[2]))
    with begin_read(collection.engine) as connection:
        examples = find_example_items(connection, [label_ids[name] for name in ("sea", "gull", "tern")], 3)
    assert {n: [item.id for item in label_items] for n, label_items in examples.items()} == {
        1: [7, 6, 4],
        2: [2],
        3: [],
    }
    assert len([query for query in queries if "annotations" in query]) == 1
