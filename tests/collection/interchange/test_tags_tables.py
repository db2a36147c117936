"""CSV and JSON lines of tags: nothing is lost on the way out and in, and what others write is understood."""

import csv
import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import insert, select

from tagged_items import (
    PATHS,
    add_items,
    read_annotation_states,
    read_annotations,
    read_label_details,
    read_label_synsets,
    tag,
    wipe,
)
from wsabie.collection.db import tables
from wsabie.collection.db.database import begin_read, begin_write
from wsabie.collection.db.journal import begin_entry, read_history, undo_entry
from wsabie.collection.folder.collection import Collection, create_collection
from wsabie.collection.interchange import tag_import
from wsabie.collection.interchange.tag_export import TagSelection, export_tags
from wsabie.collection.interchange.tag_import import import_tags
from wsabie.collection.interchange.tag_tables import escape_formula, unescape_formula
from wsabie.collection.labels import label_merge, label_store
from wsabie.core.errors import InputError, UnknownLabelError
from wsabie.storage.rejects import Rejects

A, B, C, D = PATHS
NAMES = st.one_of(
    st.sampled_from(
        [
            "=1+1",
            "'=x",
            "''",
            '"',
            "a,b;c|d",
            "@home",
            "-1",
            "+",
            "Möwe",
            "海鷗",
            "نورس",
            "🐦‍⬛",
            "new\nline",
            "\\",
            "null",
        ]
    ),
    st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=20),
)


@pytest.fixture
def second_collection(tmp_path: Path) -> Iterator[Collection]:
    """Another collection, in SQLite: what leaves one database comes into the other."""
    with create_collection(tmp_path / "other") as created:
        yield created


def import_content(
    collection: Collection, file: Path, content: str | bytes, **options: Any
) -> tuple[tag_import.ImportResult, Rejects]:
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    rejects = Rejects()
    return import_tags(collection, file, by="adam", rejects=rejects, **options), rejects


decisions = st.tuples(
    st.integers(1, 4),
    NAMES,
    st.sampled_from(["accepted", "rejected"]),
    st.sampled_from(["", "1,2,3,4", "50%,0%,50%,100%", "0,0,10,0,5,8.25", "0,0,10,0,5,8;20,20,30,20,25,28"]),
    st.sampled_from(["person", "import", "model"]),
    NAMES.filter(str.isprintable),
    st.one_of(st.none(), st.tuples(st.floats(-9, 9), st.floats(0, 1))),
)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(decisions, min_size=1, max_size=12), st.sampled_from(["csv", "jsonl"]), st.booleans())
def test_tags_survive_a_round_trip(
    collection: Collection, second_collection: Collection, given_tags: list[Any], kind: str, turned: bool
) -> None:
    source, target = (second_collection, collection) if turned else (collection, second_collection)
    for member in (source, target):
        wipe(member)
        add_items(member)
    model = {"id": 3, "folder": "m1", "created_at": "2026-01-02T03:04:05.000006Z", "method": "full", "last_entry_id": 0}
    with begin_write(source.engine) as connection:
        connection.execute(insert(tables.models).values(**model, facts={}, figures={}))
    for item, label, state, region, origin, by, scores in given_tags:
        tag(source, item, label, state, region, by=by, origin=origin)
        if scores is not None:
            with begin_write(source.engine) as connection:
                values = {"model_id": 3, "score": scores[0], "probability": scores[1]}
                connection.execute(
                    tables.annotations.update().where(tables.annotations.c.item_id == item).values(values)
                )
    out = source.folder / f"tags.{kind}"
    n = export_tags(source, out, overwrite=True).tags
    assert n == len(read_annotations(source)) > 0
    result = import_tags(target, out, by="adam")
    assert (result.tags, result.added, result.skipped) == (n, n, 0)
    assert read_annotations(target) == read_annotations(source)
    assert import_tags(target, out, by="adam").entry is None  # nothing is new
    undo_entry(target.engine, by="adam")
    assert read_annotations(target) == set()


def test_labels_keep_languages_parents_and_synonyms(collection: Collection, second_collection: Collection) -> None:
    for member in (collection, second_collection):
        add_items(member)
    with begin_entry(collection.engine, "eve", "labels") as change:
        label_ids = label_store.ensure_labels(change, ["animal", "bird", "gull"], "en")
        label_store.set_parent(change, label_ids["bird"], label_ids["animal"])
        label_store.set_parent(change, label_ids["gull"], label_ids["bird"])
        label_store.add_synonyms(change, label_ids["gull"], {"Möwe": "de", "=mouette": "fr"})
        change.update(tables.labels, {label_ids["gull"]: {"wordnet": "n02041246"}})
    tag(collection, 1, "gull")
    for kind in ("csv", "jsonl"):
        wipe(second_collection)
        add_items(second_collection)
        export_tags(collection, collection.folder / f"tags.{kind}")
        import_tags(second_collection, collection.folder / f"tags.{kind}", by="adam")
        # languages of parents are not told: no tag has them
        assert read_label_details(second_collection) == read_label_details(collection) | {
            "animal": ("", None, ()),
            "bird": ("", "animal", ()),
        }
        assert read_label_synsets(second_collection) == read_label_synsets(collection) == {"gull": "n02041246"}


def test_import_keeps_attributes_of_existing_labels(collection: Collection, tmp_path: Path) -> None:
    add_items(collection)
    with begin_entry(collection.engine, "eve", "labels") as change:
        label_ids = label_store.ensure_labels(change, ["bird", "gull", "tern", "thing"])
        label_store.set_parent(change, label_ids["gull"], label_ids["thing"])
        label_store.set_parent(change, label_ids["bird"], label_ids["tern"])
    line = {"path": A, "state": "accepted", "origin": "person", "by": "x", "at": "2026-01-01T00:00:00Z"}
    lines = [
        line | {"label": "gull", "parents": ["bird"], "synonyms": [["tern", "en"], ["  ", ""]], "wordnet": "n1"},
        line | {"label": "tern", "parents": ["bird"]},  # bird is below it here
        line | {"label": "new", "wordnet": "two words"},
    ]
    result, rejects = import_content(collection, tmp_path / "a.jsonl", "\n".join(map(json.dumps, lines)))
    assert result.added == 3
    assert read_label_synsets(collection) == {}
    assert read_label_details(collection)["gull"] == ("", "thing", ())
    assert read_label_details(collection)["tern"] == ("", None, ())
    assert set(rejects.counts) == {
        "synonym that another label has",
        "text that cannot be a label",
        "label that would be above itself",
        "text that is not a meaning",
    }


def test_csv_export_contains_no_formulas(collection: Collection) -> None:
    add_items(collection)
    for name in ("=1+1", "+a", "-a", "@a", "'=a", "plain"):
        tag(collection, 4, name, by="=cmd()")
    out = collection.folder / "tags.csv"
    export_tags(collection, out)
    with out.open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 6
    assert not [cell for row in rows for cell in row.values() if cell[:1] in "=+-@\t\r\n" and cell]
    assert {unescape_formula(row["label"]) for row in rows} == {"=1+1", "+a", "-a", "@a", "'=a", "plain"}


@given(st.text("'=+-@\t\r\nab", max_size=6))
def test_escaped_formulas_are_unescaped(text: str) -> None:
    assert unescape_formula(escape_formula(text)) == text


def test_export_selects_by_state_and_label(collection: Collection) -> None:
    add_items(collection)
    with begin_write(collection.engine) as connection:
        connection.execute(
            insert(tables.models).values(
                id=1,
                folder="m",
                created_at="2026-01-01T00:00:00.000000Z",
                method="full",
                last_entry_id=0,
                in_use=True,
                facts={},
                figures={},
            )
        )
    for item, label, state in [
        (1, "sea", "accepted"),
        (2, "sea", "rejected"),
        (2, "sky", "accepted"),
        (4, "sky", "accepted"),
    ]:
        tag(collection, item, label, state)
    with begin_read(collection.engine) as connection:
        sea, sky = label_store.find_labels(connection, ["sea", "sky"]).values()
    thought = [(1, sea, 0.9), (3, sea, 0.8), (3, sky, 0.3)]
    with begin_write(collection.engine) as connection:
        rows = [{"model_id": 1, "item_id": i, "label_id": n, "score": -p, "probability": p} for i, n, p in thought]
        connection.execute(insert(tables.suggestions), rows)

    def out(**choice: Any) -> list[tuple[str, str, str]]:
        export_tags(collection, collection.folder / "t.jsonl", choice=TagSelection(**choice), overwrite=True)
        lines = map(json.loads, (collection.folder / "t.jsonl").read_text().splitlines())
        return [(line["path"], line["label"], line["state"]) for line in lines]

    assert out() == [(A, "sea", "accepted"), (B, "sea", "rejected"), (B, "sky", "accepted"), (D, "sky", "accepted")]
    assert out(state="accepted", labels=["sky"]) == [(B, "sky", "accepted"), (D, "sky", "accepted")]
    assert out(state="rejected") == [(B, "sea", "rejected")]
    assert out(state="suggested") == [(C, "sea", "suggested"), (C, "sky", "suggested")]  # (A, sea) is decided
    assert out(state="suggested", min_probability=0.5) == [(C, "sea", "suggested")]
    assert len(out(state="all")) == 6
    with begin_entry(collection.engine, "eve", "merge") as change:
        label_merge.merge_label(change, sky, sea)
    assert out(state="suggested") == [(C, "sea", "suggested")]  # the model has not looked again
    undo_entry(collection.engine, by="eve")
    assert [row[0] for row in out(folder="2024/may/")] == [D]
    assert [row[0] for row in out(folder="2024")] == [B, B, D]
    with pytest.raises(UnknownLabelError, match="the closest: sea"):
        out(labels=["seas"])
    with pytest.raises(InputError, match="no items in the folder '202'"):
        out(folder="202")
    _, rejects = import_content(
        collection, collection.folder / "again.jsonl", (collection.folder / "t.jsonl").read_bytes()
    )
    export_tags(collection, collection.folder / "t.jsonl", choice=TagSelection(state="suggested"), overwrite=True)
    _, rejects = import_content(
        collection, collection.folder / "again.jsonl", (collection.folder / "t.jsonl").read_bytes()
    )
    assert rejects.counts == {"suggestion without a decision": 2}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv", "file,tags\na.jpg,sea|sky\n2024/b.jpg,sea\n"),
        ("t.csv", "SourceFile;Keywords\n./a.jpg;sea, sky\n2024\\b.jpg;sea\n"),
        ("t.tsv", "image\tlabels\na.jpg\tsea;sky\nb.jpg\tsea\n"),
        ("t.json", '[{"SourceFile": "a.jpg", "Subject": ["sea", "sky"]},\n{"SourceFile": "b.jpg", "Subject": "sea"}]'),
        ("t.json", '[{"SourceFile": "a.jpg", "A:Subject": "sea, sky"}, {"SourceFile": "b.jpg", "A:Subject": "sea"}]'),
        ("t.csv", "sep=;\nfile;tags\na.jpg;\"['sea', 'sky']\"\n2024/b.jpg;sea\n"),
        (
            "metadata.jsonl",
            '{"file_name": "a.jpg", "labels": ["sea", "sky"]}\n{"file_name": "b.jpg", "labels": ["sea"]}\n',
        ),
        ("t.csv", "\ufeffpath,label\na.jpg,sea\na.jpg,sky\nelsewhere/b.jpg,sea\n"),
        ("t.csv", "path,hash,label\na.jpg,,sea\na.jpg,,sky\nold.jpg," + f"{2:032x}" + ",sea\n"),
    ],
)
def test_foreign_tag_tables_are_imported(collection: Collection, tmp_path: Path, name: str, content: str) -> None:
    add_items(collection)
    result, rejects = import_content(collection, tmp_path / name, content)
    assert read_annotation_states(collection) == {
        (A, "sea", "", "accepted"),
        (A, "sky", "", "accepted"),
        (B, "sea", "", "accepted"),
    }
    assert (result.items, result.added, len(rejects)) == (2, 3, 0)
    assert {row[4:6] for row in read_annotations(collection)} == {("import", name)}
    assert read_history(collection.engine)[0].summary == f"3 tags of {name}"
    assert read_history(collection.engine)[0].id == result.entry


def test_foreign_states_are_mapped(collection: Collection, tmp_path: Path) -> None:
    add_items(collection)
    _, rejects = import_content(
        collection,
        tmp_path / "t.csv",
        "path,label,state\na.jpg,sea,rejected\na.jpg,sky,\na.jpg,sun,no\n",
        state="accepted",
    )
    assert read_annotation_states(collection) == {(A, "sea", "", "rejected"), (A, "sky", "", "accepted")}
    assert rejects.listed == [(f"{tmp_path}/t.csv:4", "unknown state", "'no'")]
    import_content(collection, tmp_path / "u.csv", "path,label\na.jpg,sun\n", state="rejected")
    assert (A, "sun", "", "rejected") in read_annotation_states(collection)


def test_paths_are_matched_to_items(collection: Collection, tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    with begin_write(collection.engine) as connection:
        connection.execute(insert(tables.roots).values(id=2, path=str(tmp_path / "disk")))
    add_items(collection)
    add_items(collection, ["a.jpg", "x.jpg", "twin.jpg", "sub/twin.jpg"], root=2, first=11)
    lines = {
        "a.jpg": "name that several items have",  # in both roots
        f"{collection.folder}/a.jpg": (A,),
        f"{tmp_path}/disk/a.jpg": (str(tmp_path / "disk"), "a.jpg"),
        "x.jpg": (str(tmp_path / "disk"), "x.jpg"),
        "C:\\\\photos\\\\b.jpg": (B,),
        'u\u0308, \\"c\\".jpg': (C,),
        "old/twin.jpg": "name that several items have",
        "../a.jpg": "name that several items have",
        "nowhere.jpg": "unknown item",
        "": "unknown item",
        "a\\u0000": "path that is not text of up to 4,096 letters",
        "\\ud800": "path that is not valid text",
    }
    content = "".join(f'{{"path": "{path}", "label": "l{i}"}}\n' for i, path in enumerate(lines))
    result, rejects = import_content(collection, tmp_path / "t.jsonl", content)
    rows_by_label = {
        row[-11 if len(row) == 11 else -12] and row[-10]: row[: len(row) - 10] for row in read_annotations(collection)
    }
    reasons = {where.rpartition(":")[2]: reason for where, reason, _ in rejects.listed}
    for i, expected in enumerate(lines.values()):
        if isinstance(expected, str):
            assert reasons[str(i + 1)] == expected, i
        else:
            assert rows_by_label[f"l{i}"] == expected, i
    assert result.skipped == len(reasons) == 7


def test_file_names_are_matched_beside_the_table(collection: Collection) -> None:
    add_items(collection, ["b.jpg", "2024/b.jpg"])
    (collection.folder / "2024").mkdir()
    import_content(collection, collection.folder / "2024/metadata.csv", "file_name,labels\nb.jpg,sea\n")
    import_content(collection, collection.folder / "metadata.csv", "file_name,labels\nb.jpg,sky\n")
    assert read_annotation_states(collection) == {
        ("2024/b.jpg", "sea", "", "accepted"),
        ("b.jpg", "sky", "", "accepted"),
    }


def test_urls_become_items(collection: Collection, tmp_path: Path) -> None:
    add_items(collection)
    content = "url,tags\nhttps://example.org/p/1.jpg,sea\nHTTP://example.org/2.jpg,sky\nhttps:// x,sea\nhttp://[,sea\n"
    result, rejects = import_content(collection, tmp_path / "t.csv", content)
    assert (result.addresses, result.items, result.added) == (2, 2, 2)
    assert rejects.counts == {"malformed address": 2}
    with begin_read(collection.engine) as connection:
        query = select(tables.items.c.path, tables.items.c.folder).where(tables.items.c.root_id != 1)
        assert connection.execute(query).all() == [
            ("https://example.org/p/1.jpg", "https://example.org/p"),
            ("HTTP://example.org/2.jpg", "HTTP://example.org"),
        ]
    result, _ = import_content(collection, tmp_path / "t.csv", content.replace("sea", "sun"))
    assert (result.addresses, result.added) == (0, 1)
    export_tags(collection, tmp_path / "out.csv")
    assert import_tags(collection, tmp_path / "out.csv", by="adam").skipped == 0


def test_contradictory_lines_and_decided_tags_are_reported(collection: Collection, tmp_path: Path) -> None:
    add_items(collection)
    tag(collection, 1, "sea", "rejected")
    with begin_entry(collection.engine, "eve", "labels") as change:
        label_store.add_synonyms(change, label_store.find_label(change.connection, "sea"), {"ocean": "en"})
    content = "path,label,state\na.jpg,ocean,accepted\nb.jpg,sea,rejected\nb.jpg,sea,accepted\nb.jpg,ocean,accepted\n"
    result, rejects = import_content(collection, tmp_path / "t.csv", content)
    assert (result.tags, result.added, result.kept_by_person, result.labels) == (4, 1, 1, 0)
    assert rejects.listed == [(f"{tmp_path}/t.csv:3", "tag at odds with a later line", "")]
    assert read_annotation_states(collection) == {(A, "sea", "", "rejected"), (B, "sea", "", "accepted")}
    with pytest.raises(InputError, match=r"t.csv:3: tag at odds with a later line; run without `strict`"):
        import_tags(collection, tmp_path / "t.csv", by="adam", rejects=Rejects(strict=True))


def test_invalid_names_are_listed(collection: Collection, tmp_path: Path) -> None:
    add_items(collection)
    lines = [
        {"path": A, "labels": ["sea", "\u0007", " ", "x" * 501, "sea  gull"]},
        {"path": A, "labels": []},
        {"path": A, "labels": "\ud800"},
        {"path": A, "labels": [{"a": 1}]},
        {"path": A, "labels": [7]},
        {"path": A, "labels": "tern", "region": "1,2,3"},
        {"path": A, "labels": "tern", "region": "1,2,3,4"},
        {"path": ["a"], "labels": "tern"},
    ]
    content = "\n".join(map(json.dumps, lines)) + '\n{"path": \n"a"\n' + '{"path": ' + "[" * 100_000 + "\n"
    result, rejects = import_content(collection, tmp_path / "t.jsonl", content)
    assert {row[1:3] for row in read_annotation_states(collection)} == {
        ("sea", ""),
        ("sea gull", ""),
        ("7", ""),
        ("tern", "1,2,3,4"),
    }
    assert result.skipped == len(rejects)
    assert rejects.counts == {
        "text that cannot be a label": 2,
        "row without a label": 1,
        "label that is not valid text": 1,
        "label that is not text of up to 4,096 letters": 1,
        "region that cannot be read": 1,
        "path that is not text of up to 4,096 letters": 1,
        "malformed JSON": 1,
        "JSON that nests too deeply": 1,
        "line that is not a JSON object": 1,
    }


OURS = "path,label,state,origin,by,at,model,model_made,score\n"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("a.jpg,sea,accepted,devil,x,2026-01-01T00:00:00Z,,,", "unknown origin"),
        ("a.jpg,sea,accepted,person,x,yesterday,,,", "unknown form of time"),
        ("a.jpg,sea,accepted,person,x,2026-01-01T00:00:00,,,", "unknown form of time"),
        ("a.jpg,sea,accepted,person,x,2026-01-01T00:00:00Z,../../etc,,", "model that is not the name of a folder"),
        ("a.jpg,sea,accepted,person,x,2026-01-01T00:00:00Z,m,,nan", "score that is not a number"),
        ("a.jpg,sea,perhaps,person,x,2026-01-01T00:00:00Z,,,", "unknown state"),
        ("a.jpg,sea,accepted,person,\u0007,2026-01-01T00:00:00Z,,,", "name that cannot be seen"),
        ("a.jpg,sea", "wrong number of cells"),
    ],
)
def test_invalid_lines_of_an_export_are_listed(collection: Collection, tmp_path: Path, line: str, reason: str) -> None:
    add_items(collection)
    _, rejects = import_content(collection, tmp_path / "t.csv", OURS + line + "\n")
    assert list(rejects.counts) == [reason]
    assert read_annotations(collection) == set()
    assert read_history(collection.engine) == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "has no rows"),
        (b"path,label\n", "has no rows"),
        (b"path,label\na.jpg,\xff\n", ":2 is not UTF-8"),
        (b"name,label\na.jpg,sea\n", "has no column 'path' or"),
        (b"path,title\na.jpg,sea\n", "has no column 'labels' or"),
        (b"path,path\na,b\n", "names a column twice"),
        (b'path,label\na.jpg,"sea\n', "malformed CSV"),
        (b"path,label\na.jpg," + b"x" * (5 << 20), "a line of more than 4 MiB"),
        (b"\x1f\x8b\x08\x00", "damaged or cut off gzip"),
    ],
)
def test_invalid_tables_are_refused(collection: Collection, tmp_path: Path, content: bytes, message: str) -> None:
    add_items(collection)
    with pytest.raises(InputError, match=message):
        import_content(collection, tmp_path / "t.csv", content)
    assert read_history(collection.engine) == []


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.binary(max_size=60),
    st.sampled_from(["t.csv", "t.jsonl", "t.json"]),
    st.sampled_from([b"", b"path,label\n", OURS.encode(), b'{"images": [{"file_name": "a.jpg", "id": ']),
)
def test_any_bytes_give_tags_or_one_sentence(collection: Collection, content: bytes, name: str, prefix: bytes) -> None:
    with suppress(InputError):  # and nothing else
        import_content(collection, collection.folder / name, prefix + content)


def test_too_many_tags_are_refused(collection: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tag_import, "MAX_TAGS", 3)
    add_items(collection)
    with pytest.raises(InputError, match="holds more than 3 tags; split it and import the parts"):
        import_content(collection, tmp_path / "t.csv", "path,labels\na.jpg,a;b;c;d\n")
    assert read_annotations(collection) == set()
