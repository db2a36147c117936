"""`wsabie collection` on a folder of sample pictures, and its messages for bad input."""

import io
import json
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

pytest.importorskip("sqlalchemy", reason="collections need SQLAlchemy")

from wsabie.io.tags.tag_writer import write_sidecar

Cli = Callable[..., Any]


@pytest.fixture
def photos(pictures: Path, tmp_path: Path) -> Path:
    """Sample pictures that a test may move about."""
    return Path(shutil.copytree(pictures, tmp_path / "photos"))


def test_collection_is_made_scanned_trained_and_reviewed(cli: Cli, init: Cli, photos: Path, tmp_path: Path) -> None:
    contents_before = {path.name: path.read_bytes() for path in photos.iterdir()}
    result = init(photos, "--by", "eve")
    assert result.code == 0
    assert "pictures: 120 new, " in result.err
    assert f"next: wsabie collection train {photos}" in result.err
    assert {path.name: path.read_bytes() for path in photos.iterdir() if path.is_file()} == contents_before
    (photos / "000.webp").rename(photos / "renamed.webp")
    (photos / "001.webp").unlink()
    (photos / "broken.png").write_bytes(b"words")
    scanned = cli("collection", "scan", photos, "--json", "--rejects", tmp_path / "rejects").json["scanned"]
    assert {name: n for name, n in scanned.items() if n} == {
        "new": 1, "moved": 1, "missing": 1, "unchanged": 118, "unreadable": 1, "modality": "pictures",
    }  # fmt: skip
    listed = [json.loads(line) for line in (tmp_path / "rejects").read_text().splitlines()]
    assert {"where": "broken.png", "reason": "not a picture", "detail": "begins with 77 6f 72 64 73"} in listed
    (tmp_path / "more").mkdir()
    shutil.copy(photos / "002.webp", tmp_path / "more/x.webp")
    added = cli("collection", "add", photos, tmp_path / "more", photos / "003.webp", "--json")
    assert added.json["scanned"]["new"] == 1
    status = cli("collection", "status", photos, "--check", "--json").json
    assert status["items"] == {"present": 120, "missing": 1, "unreadable": 1}
    assert [root["tags"] for root in status["roots"]] == ["metadata", "xmp"]
    assert [(annotation["state"], annotation["origin"]) for annotation in status["annotations"]] == [
        ("accepted", "import")
    ]
    assert (status["damage"], status["model"], status["suggestions"], status["modality"]) == ([], None, 0, "pictures")
    table = cli("collection", "status", photos)
    assert "accepted by import" in table.out
    assert "1 new, 1 moved, 1 of them unreadable, 1 missing" in table.out
    assert "120 new" in cli("collection", "history", photos).out
    undone = cli("collection", "undo", photos, "--by", "eve")
    assert undone.code == 0
    assert "later scans still take tags from metadata and xmp" in undone.err
    assert cli("collection", "status", photos, "--json").json["annotations"] == []
    assert cli("collection", "scan", photos, "--tags", "folders", "--by", "eve").code == 0
    assert "scans take tags from metadata and xmp again" in cli("collection", "undo", photos, "--by", "eve").err
    status = cli("collection", "status", photos, "--json").json
    assert [root["tags"] for root in status["roots"]] == ["metadata", "xmp"]


def test_advised_commands_can_be_pasted(cli: Cli, init: Cli, photos: Path, tmp_path: Path) -> None:
    folder = photos.rename(tmp_path / "Ann's photos")
    quoted_folder = shlex.quote(str(folder))
    assert f"run: wsabie collection init {quoted_folder}\n" in cli("info", folder).err
    assert f"next: wsabie collection train {quoted_folder}\n" in init(folder).err
    assert f"run: wsabie collection status {quoted_folder}\n" in cli("info", folder).err
    assert f"no model yet; run: wsabie collection train {quoted_folder}\n" in cli("collection", "apply", folder).err


def test_search_finds_items_by_words(cli: Cli, init: Cli, photos: Path, tmp_path: Path) -> None:
    init(photos)
    label = cli("collection", "labels", photos, "--json").json["labels"][0]
    result = cli("collection", "search", photos, label["name"], "-k", "3", "--json", "--out", tmp_path / "found.png")
    assert [(hit["label"], hit["score"]) for hit in result.json["groups"][0]["hits"]] == [(label["name"], None)] * 3
    assert Image.open(tmp_path / "found.png").width > 300
    paths = [hit["path"] for hit in result.json["groups"][0]["hits"]]
    (tmp_path / "kinds.tsv").write_text(f"{label['name']}\tfar above\n")
    second_search = cli("collection", "search", photos, "far above", "-k", "3", "--knowledge", tmp_path / "kinds.tsv")
    assert [line.split("\t")[0] for line in second_search.out.splitlines() if "\t" in line] == paths
    assert f"is not a label, but there is one below it: {label['name']}" in second_search.err
    assert "there is no label 'qqq'" in cli("collection", "search", photos, "qqq").err
    assert "choose a name that ends in .png" in cli("collection", "search", photos, "x", "--out", "x.jpg").err
    missing = cli("collection", "search", photos, "x", "--knowledge", tmp_path / "none")
    assert (missing.code, "Traceback" in missing.err) == (1, False)


def test_untagged_folder_gets_advice_toward_a_model(cli: Cli, init: Cli, photos: Path) -> None:
    (photos / "metadata.csv").unlink()
    result = init(photos)
    message = [" ".join(result.err.split()), f"wsabie serve {photos}", f"wsabie collection import {photos} tags.csv"]
    assert "nothing is tagged yet; a model needs 20 tagged pictures and 2 labels" in message[0]
    assert all(part in message[0] for part in (*message[1:], f"then: wsabie collection train {photos}"))
    assert "--tags folders" not in result.err
    (photos / "sea").mkdir()
    (photos / "000.webp").rename(photos / "sea/000.webp")
    assert f"wsabie collection scan {photos} --tags folders" in " ".join(cli("collection", "scan", photos).err.split())
    first_tag = cli("collection", "scan", photos, "--tags", "folders").err
    assert "1 tagged so far; a model needs 20 tagged pictures and 2 labels" in " ".join(first_tag.split())
    assert "next: wsabie collection train" not in first_tag
    pictures = [f"{i:03}.webp" for i in range(1, 21)]
    assert cli("collection", "tag", photos, *pictures[1:], "--accept", "sea").code == 0
    one_label = " ".join(cli("collection", "scan", photos).err.split())
    assert "all tags are of one label; a model needs 20 tagged pictures and 2 labels" in one_label
    assert cli("collection", "tag", photos, pictures[0], "--accept", "gull").code == 0
    result = cli("collection", "scan", photos)
    assert (f"next: wsabie collection status {photos}" in result.err, "a model needs" in result.err) == (True, False)


def test_tags_removed_from_files_are_withdrawn(cli: Cli, init: Cli, photos: Path) -> None:
    (photos / "metadata.csv").unlink()
    sidecar = photos / "000.webp.xmp"
    write_sidecar(photos / "000.webp", ["sea", "gull"])
    assert "2 tags from files" in init(photos).err
    assert cli("collection", "tag", photos, "000.webp", "--accept", "tern").code == 0
    sidecar.write_text(sidecar.read_text().replace("gull", "ship"))
    scanned = cli("collection", "scan", photos)
    assert "1 tags from files, 1 tags withdrawn, 120 as before" in " ".join(scanned.err.split())
    sidecar.unlink()
    assert "2 tags kept that files no longer have" in " ".join(cli("collection", "scan", photos).err.split())
    assert "2 tags kept" not in cli("collection", "scan", photos).err
    annotations = cli("collection", "annotations", photos, "--json").json["annotations"]
    assert sorted(annotation["label"] for annotation in annotations) == ["sea", "ship", "tern"]


def test_tag_tables_in_sub_folders_are_reported(cli: Cli, init: Cli, photos: Path) -> None:
    (photos / "more").mkdir()
    (photos / "000.webp").rename(photos / "more/000.webp")
    (photos / "more/metadata.csv").write_text("file_name,labels\n000.webp,gull\n")
    message = " ".join(init(photos).err.split())
    assert "the name of 1 sub-folder is not a tag" in message
    assert f"1 table of tags is not read; to take one over: wsabie collection import DIR {photos}/more/meta" in message
    assert "1 added" in cli("collection", "import", photos, photos / "more/metadata.csv").err


def test_unreachable_database_leaves_no_files(cli: Cli, photos: Path) -> None:
    failed = cli("collection", "init", photos, "--database", "postgresql://eve@127.0.0.1:1/photos")
    assert (failed.code, "does not answer as it should" in failed.err) == (1, True)
    assert not (photos / ".wsabie").exists()
    assert cli("collection", "init", photos, "--no-scan").code == 0


def test_empty_folder_becomes_a_collection_and_grows(cli: Cli, init: Cli, tmp_path: Path, pictures: Path) -> None:
    (tmp_path / "new").mkdir()
    result = init(tmp_path / "new")
    assert "found no files; put some into" in result.err
    (tmp_path / "other").mkdir()
    assert "scanned" not in cli("collection", "init", tmp_path / "other", "--no-scan", "--json").json
    added = cli("collection", "add", tmp_path / "new", pictures, "--tags", "none", "--json").json["scanned"]
    assert (added["new"], added["added_tags"]) == (120, 0)
    assert cli("collection", "scan", tmp_path / "new", "--tags", "metadata", "--json").code == 0


def test_unmounted_disk_is_reported(cli: Cli, init: Cli, photos: Path, tmp_path: Path) -> None:
    (tmp_path / "c").mkdir()
    init(tmp_path / "c", "--no-scan")
    cli("collection", "add", tmp_path / "c", photos)
    photos.rename(tmp_path / "away")
    scanned = cli("collection", "scan", tmp_path / "c")
    assert scanned.code == 0
    assert f"{photos} is left as it was (120 items): there is no file or folder" in scanned.err
    assert "cannot be reached" in cli("collection", "status", tmp_path / "c").out


def test_bad_arguments_give_one_sentence(cli: Cli, init: Cli, photos: Path, tmp_path: Path) -> None:
    for words, message in [
        (("scan", photos), "is not a collection yet; make it one: wsabie collection init"),
        (("status", tmp_path / "nowhere"), "nowhere; check its name"),
        (("init", photos / "000.webp"), "is a file; give the folder"),
    ]:
        failed = cli("collection", *words)
        assert failed.code == 1
        assert message in failed.err
    assert init(photos).code == 0
    for words, message in [
        (("add", photos, tmp_path), "which is scanned already; give folders that lie beside it"),
        (("add", photos, tmp_path / "nowhere"), "there is no file or folder"),
        (("scan", photos, "--tags", "tags"), "only pictures|only sounds"),
    ]:
        failed = cli("collection", *words)
        assert failed.code == 1
        assert any(part in failed.err for part in message.split("|"))
        assert failed.err.count("\n") <= 2
    assert cli("collection", "scan", photos, "--tags", "wrong").code == 2
    (photos / "below").mkdir()
    assert (
        f"lies in the collection {photos} and is not a collection itself"
        in cli("collection", "scan", photos / "below").err
    )
    assert f"lies in the collection {photos}; from now on, each of the two" in init(photos / "below").err
    assert "from now on, each of the two" not in init(photos / "below").err
    assert cli("collection", "add", photos).code == 2


def test_init_refuses_a_missing_folder(cli: Cli, photos: Path, tmp_path: Path) -> None:
    failed = cli("collection", "init", tmp_path / "photoz")
    assert failed.code == 1
    message = f"there is no folder '{tmp_path / 'photoz'}'; did you mean '{photos}'? If not, make it first: mkdir "
    assert message in " ".join(failed.err.split())
    assert "check the name, or make it first" in " ".join(cli("collection", "init", tmp_path / "xy/zz").err.split())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["photos"]
    assert cli("collection", "init", photos).code == 0
    failed = cli("collection", "export", photos, tmp_path / "nowhere/tags.csv")
    assert (failed.code, f"there is no folder {tmp_path / 'nowhere'}" in " ".join(failed.err.split())) == (1, True)
    assert not (tmp_path / "nowhere").exists()


def test_folder_without_a_collection_is_reported(cli: Cli, photos: Path, tmp_path: Path) -> None:
    pytest.importorskip("fastapi", reason="the service needs FastAPI")
    message = f"{photos} is a folder of pictures and not yet a collection; run: wsabie collection init {photos}"
    for command in ("serve", "info"):
        failed = cli(command, photos)
        assert (failed.code, message in " ".join(failed.err.split())) == (1, True)
    assert "is neither a collection nor a model" in " ".join(cli("serve", tmp_path / "none").err.split())
    cli("collection", "init", photos, "--no-scan")
    assert f"run: wsabie collection status {photos}" in " ".join(cli("info", photos).err.split())


def test_undo_reverts_only_the_users_own_entries(cli: Cli, photos: Path) -> None:
    from wsabie.collection.annotations.decisions import ReviewDecision, review_items
    from wsabie.collection.folder.collection import open_collection

    cli("collection", "init", photos, "--tags", "none", "--by", "eve")
    with open_collection(photos) as collection:
        first = review_items(collection, [ReviewDecision(1, "sea", "accepted")], by="local")
        last_entry = review_items(collection, [ReviewDecision(2, "sea", "accepted")], by="adam")
    undone = cli("collection", "undo", photos)
    assert f"undone: entry {first.entry} of local" in undone.err
    failed = cli("collection", "undo", photos)
    message = f"the last that can be undone is entry {last_entry.entry}, of adam: give its id"
    assert (failed.code, message in " ".join(failed.err.split())) == (1, True)
    assert cli("collection", "undo", photos, "--by", "eve").code == 1
    assert cli("collection", "undo", photos, last_entry.entry).code == 0


def test_status_check_reports_damage(cli: Cli, photos: Path) -> None:
    """SQLite only: PostgreSQL checks itself."""
    import sqlite3

    cli("collection", "init", photos)
    with sqlite3.connect(photos / ".wsabie/catalogue.db") as connection:
        connection.execute("INSERT INTO synonyms (name, label_id) VALUES ('x', 70000)")
    connection.close()
    assert cli("collection", "status", photos).code == 0
    failed = cli("collection", "status", photos, "--check")
    assert failed.code == 1
    assert "is damaged (row 1 of synonyms refers to a missing row of labels)" in failed.err


def test_collection_without_models_names_the_train_command(cli: Cli, photos: Path) -> None:
    cli("collection", "init", photos)
    result = cli("collection", "models", photos)
    assert (result.code, result.out) == (0, "")
    assert f"{photos} has no models yet; run: wsabie collection train {photos}" in result.err
    assert cli("collection", "models", photos, "--json").json["models"] == []


@pytest.fixture
def birds(tmp_path: Path, pictures: Path) -> Path:
    """Pictures in folders of which some are named after what is in them."""
    for i, name in enumerate(("gull/1", "gull/2", "tern/3", "odds/4", "2020/05/5")):
        (tmp_path / "birds" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(pictures / f"{i:03}.webp", tmp_path / "birds" / f"{name}.webp")
    return tmp_path / "birds"


def test_init_skips_folder_names_listed_as_not_labels(init: Cli, birds: Path) -> None:
    message = " ".join(init(birds, "--not-labels", "odds, tern").err.split())
    assert "labels by the names" not in message
    assert "5 new, 2 tags from files" in message


def test_init_lists_folder_names_and_asks_for_exclusions(
    init: Cli, birds: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wsabie.cli.collection.init.is_at_terminal", lambda: True)
    monkeypatch.setattr("sys.stdin", io.StringIO("odds\n"))
    message = " ".join(init(birds).err.split())
    assert "labels by the names of sub-folders: gull (2), odds (1), tern (1) (--not-labels NAME,NAME" in message
    assert "5 new, 3 tags from files" in message
    assert "not labels: 05, 2020" in message


def test_text_collection_names_the_train_command(cli: Cli, init: Cli, tmp_path: Path) -> None:
    texts, model = tmp_path / "texts", tmp_path / "model"
    for i in range(40):
        path = texts / ("sea", "sky")[i % 2] / f"{i}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{path.parent.name} with waves {i}")
    message = " ".join(init(texts).err.split())
    assert "documents can be listed, tagged and exported here; a collection learns from pictures only" in message
    assert f"wsabie train {texts} --model MODEL" in message
    assert cli("train", texts, "--model", model, "--dim", 2, "--epochs", 1, "--threads", 1).code == 0
    (tmp_path / "untagged").mkdir()
    shutil.copy(texts / "sea/0.txt", tmp_path / "untagged")
    assert "wsabie train" not in init(tmp_path / "untagged").err
    assert cli("collection", "tag", tmp_path / "untagged", "0.txt", "--accept", "sea").code == 0
    assert "wsabie train" not in cli("collection", "scan", tmp_path / "untagged").err


def test_train_reads_labels_as_a_collection_does(cli: Cli, tmp_path: Path, pictures: Path) -> None:
    folder, words = tmp_path / "set", ["--n-words", 20, "--size", 32, "--dim", 2, "--epochs", 1, "--threads", 1]
    for i in range(24):
        picture = folder / f"20{20 + i % 3}" / ("inbox", "tern")[i % 2] / f"{i}.webp"
        picture.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(pictures / f"{i:03}.webp", picture)
        write_sidecar(picture, [("sea", "sky")[i % 2]])
    for source, expected in (("auto", "2 labels from"), ("folders", "1 label from")):
        result = cli("train", folder, "--model", tmp_path / source, "--tags", source, "--hold-out", 0, *words)
        assert expected in result.out + result.err
    assert "these are the tags, not the names of sub-folders (--tags folders" in " ".join(
        cli("train", folder, "--model", tmp_path / "again", *words).err.split()
    )
    refusal = cli("train", folder / "2020" / "tern" / "1.webp", "--model", tmp_path / "no", "--tags", "xmp").err
    assert "--tags is for labels of a folder" in " ".join(refusal.split())
