"""`wsabie collection labels` and `tag` on labels of real pictures."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import insert

from wsabie.cli.collection import labels as labels_command
from wsabie.collection.db import tables
from wsabie.collection.db.database import begin_write
from wsabie.collection.db.journal import format_current_time
from wsabie.collection.folder.collection import create_collection
from wsabie.collection.labels.label_store import LabelCount
from wsabie.collection.merge_proposals.proposals import MergeProposal

Cli = Callable[..., Any]


@pytest.fixture
def photos(tmp_path: Path, database: str | None) -> Path:
    """A collection of nine items that nobody has tagged."""
    folder = tmp_path / "photos"
    (folder / "sea").mkdir(parents=True)
    common = {"root_id": 1, "folder": "sea", "state": "present", "added_at": format_current_time()}
    with create_collection(folder, database) as collection, begin_write(collection.engine) as connection:
        connection.execute(insert(tables.items), [{"id": i, "path": f"sea/{i}.jpg", **common} for i in range(1, 10)])
    return folder


def test_labels_are_merged_edited_and_restored(cli: Cli, photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run_command(*words: object) -> str:
        result = cli("collection", *words)
        assert result.code == 0, result.err
        return result.out + result.err

    assert "3 added" in run_command("tag", photos, 1, 2, photos / "sea/3.jpg", "--accept", "seagull")
    monkeypatch.chdir(photos / "sea")
    assert "new: Seagulls, gul" in run_command(
        "tag", photos, "4.jpg", "sea/5.jpg", "--accept", "Seagulls", "--accept", "gul"
    )
    assert "2 removed" in run_command("tag", photos, 4, 5, "--clear", "gul")
    assert "1 changed" in run_command("tag", photos, 1, "--reject", "seagull", "--by", "adam")
    tidy = cli("collection", "labels", photos, "tidy", "--json").json
    assert [(entry["target"]["name"], [label["name"] for label in entry["labels"]]) for entry in tidy["proposals"]] == [
        ("seagull", ["Seagulls"])
    ]
    assert tidy["proposals"][0]["reasons"][0]["evidence"][0]["message"] == "singular and plural"
    proposals = run_command("labels", photos, "tidy")
    assert "Seagulls (2) -> seagull (2)" in proposals
    assert "not used: model (none was in use)" in proposals
    run_command("labels", photos, "apart", "seagull", "Seagulls")
    assert "0 proposals of 3 labels" in run_command("labels", photos, "tidy")
    run_command("undo", photos)
    assert "merged 1 label into 1; 2 annotations moved" in run_command("labels", photos, "tidy", "--merge-above", "0.8")
    listed = cli("collection", "labels", photos, "--json").json["labels"]
    assert [(entry["name"], entry["items"], entry["rejected"], entry["synonyms"]) for entry in listed] == [
        ("seagull", 4, 1, ["Seagulls"]),
        ("gul", 0, 0, []),
    ]
    run_command("undo", photos)
    assert "2 annotations moved" in run_command("labels", photos, "merge", "Seagulls", "seagull")
    run_command("labels", photos, "rename", "gul", "tern")
    run_command("labels", photos, "parent", "tern", "seagull")
    run_command("labels", photos, "synonym", "tern", "Seeschwalbe", "--language", "de")
    line = next(line for line in run_command("labels", photos, "list", "ter").splitlines() if line.startswith(" tern"))
    assert line.split() == ["tern", "0", "0", "seagull", "Seeschwalbe,", "gul"]
    run_command("labels", photos, "edit", "tern", "--language", "en", "--wordnet", "n02041085", "--remove-name", "gul")
    assert "so already" in run_command("labels", photos, "edit", "Seeschwalbe", "--language", "en")
    shown_label = cli("collection", "labels", photos, "show", "tern", "--json").json
    assert (shown_label["language"], shown_label["wordnet"]) == ("en", "n02041085")
    assert shown_label["names"] == [{"name": "Seeschwalbe", "language": "de"}]
    assert [entry["name"] for entry in shown_label["ancestors"]] == ["seagull"]
    assert (
        shown_label["items"],
        shown_label["open_suggestions"],
        shown_label["evaluation"],
        shown_label["neighbours"],
    ) == (0, 0, None, [])
    assert "Seeschwalbe (de)" in run_command("labels", photos, "show", "tern")
    run_command("labels", photos, "parent", "tern")
    for _ in range(6):
        run_command("undo", photos)
    listed = cli("collection", "labels", photos, "--order", "name", "--json").json["labels"]
    assert [(entry["name"], entry["items"]) for entry in listed] == [("gul", 0), ("seagull", 2), ("Seagulls", 2)]


def test_wordnet_fills_in_labels(cli: Cli, photos: Path, data_dir: Path) -> None:
    wordnet = data_dir / "imagenet_synsets"
    assert cli("collection", "tag", photos, 1, "--accept", "traveler", "--accept", "person").code == 0
    assert cli("collection", "tag", photos, 2, "--accept", "traveller", "--accept", "zzzz").code == 0
    tidy = cli("collection", "labels", photos, "tidy", "--knowledge", wordnet, "--json").json
    assert [entry["target"]["name"] for entry in tidy["proposals"]] == ["traveler"]
    assert "n09629752" in tidy["proposals"][0]["reasons"][0]["evidence"][1]["message"]
    fill = ("collection", "labels", photos, "fill", "--knowledge", wordnet)
    history_before = cli("collection", "history", photos, "--json").json
    would = {entry["label"]: entry for entry in cli(*fill, "--dry-run", "--json").json["plan"]}
    assert "3 labels would get" in cli(*fill, "--dry-run").out
    assert cli("collection", "history", photos, "--json").json == history_before
    filled = cli(*fill, "--json").json
    assert (filled["labels"], filled["meanings"], filled["unknown"]) == (4, 3, 1)
    listed = {entry["name"]: entry for entry in cli("collection", "labels", photos, "--json").json["labels"]}
    assert (listed["traveler"]["wordnet"], listed["traveler"]["parent"]) == ("n09629752", "person")
    assert set(would) == {"person", "traveler", "traveller"}
    for name, entry in would.items():
        assert [entry["wordnet"], entry["language"], entry["parent"] or None, sorted(entry["synonyms"])] == [
            *(listed[name][field] for field in ("wordnet", "language", "parent")),
            sorted(listed[name]["synonyms"]),
        ], name
    assert cli(*fill, "--dry-run", "--json").json["plan"] == []


def test_label_with_tags_is_deleted_on_request(cli: Cli, photos: Path) -> None:
    cli("collection", "tag", photos, 1, 2, "--accept", "sea")
    cli("collection", "tag", photos, 3, "--accept", "qual")
    cli("collection", "labels", photos, "parent", "sea", "qual")
    refused = cli("collection", "labels", photos, "delete", "qual")
    assert (refused.code, "to delete these tags too: --with-tags" in " ".join(refused.err.split())) == (1, True)
    result = cli("collection", "labels", photos, "delete", "qual", "--with-tags")
    assert "deleted qual with 1 tag; 1 label below moved up; to take it back: wsabie" in " ".join(result.err.split())
    listed = cli("collection", "labels", photos, "--json").json["labels"]
    assert [(label["name"], label["parent"], label["items"]) for label in listed] == [("sea", None, 2)]
    assert cli("collection", "labels", photos, "delete", "sea", "--with-tags", "--json").json["tags"] == 2
    for _ in range(2):
        assert cli("collection", "undo", photos).code == 0
    listed = cli("collection", "labels", photos, "--json").json["labels"]
    assert [(label["name"], label["parent"]) for label in listed] == [("sea", "qual"), ("qual", None)]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("labels", "delete"), "`labels DIR delete` takes LABEL ...; 0 are given"),
        (("labels", "delete", "see"), "there is no label 'see' here; the closest: sea"),
        (("labels", "merge", "sea", "ship", "--with-tags"), "leave --with-tags out"),
        (("labels", "merge", "sea"), "`labels DIR merge` takes A ... B; 1 are given"),
        (("labels", "merge", "see", "sea"), "there is no label 'see' here; the closest: sea"),
        (("labels", "merge", "sea", "sea"), "cannot be merged into itself"),
        (("labels", "apart", "sea", "sea"), "give two labels or more"),
        (("labels", "rename", "sea", "ship"), "another label is called 'ship' already"),
        (("labels", "rename", "sea", "\x1b[31m"), "cannot be a label"),
        (("labels", "parent", "sea", "sea"), "would be above itself"),
        (("labels", "synonym", "sea", "ship"), "'ship' is a label of its own"),
        (("labels", "tidy", "sea"), "tidy looks at all labels; leave 'sea' out"),
        (("labels", "show"), "give one label; 0 are given"),
        (("labels", "show", "see"), "there is no label 'see' here; the closest: sea"),
        (("labels", "edit", "sea"), "say what to change"),
        (("labels", "edit", "sea", "--language", "two words"), "is not a language code"),
        (("labels", "synonym", "sea", "Meer", "--language", "deutsch"), "write two or three letters"),
        (("labels", "edit", "sea", "--remove-name", "ship"), "'ship' is not another name of 'sea'"),
        (("labels", "fill"), "add --knowledge FILE"),
        (("labels", "list", "--merge-above", ".9"), "leave --merge-above out"),
        (("labels", "tidy", "--dry-run"), "leave --dry-run out"),
        (("labels", "show", "qwzx"), "there is no label 'qwzx' here; nor one like it; check the spelling"),
        (("labels", "tidy", "--knowledge", "missing"), "missing"),
        (("tag", "1"), "say what to change"),
        (("tag", "99", "--accept", "sea"), "there is no item with id 99"),
        (("tag", "x.jpg", "--accept", "sea"), "'x.jpg' is not an item of"),
        (("tag", "sea", "--accept", "sea"), "'sea' is a folder; name the files in it"),
        (("tag", "1", "--reject", "see"), "there is no label 'see' here"),
        (("tag", "1", "--accept", "sea", "--reject", "sea"), "cannot be accepted, rejected and cleared at once"),
        (("tag", "1", "--accept", " "), "cannot be a label"),
    ],
)
def test_bad_label_commands_are_refused(cli: Cli, photos: Path, words: tuple[str, ...], message: str) -> None:
    assert cli("collection", "tag", photos, 1, "--accept", "sea", "--reject", "sea").code == 1
    assert cli("collection", "tag", photos, 1, "--accept", "sea", "--accept", "ship").code == 0
    history_before = cli("collection", "history", photos, "--json").out
    result = cli("collection", words[0], photos, *words[1:])
    assert (result.code, result.out) == (1, "")
    assert message in result.err
    assert len(result.err.strip().splitlines()) <= 2
    assert cli("collection", "history", photos, "--json").out == history_before


def test_synonym_language_is_corrected(cli: Cli, photos: Path) -> None:
    cli("collection", "tag", photos, 1, "--accept", "gull")
    for language in ("nl", "de", ""):
        words = ["--language", language] if language else []
        assert cli("collection", "labels", photos, "synonym", "gull", "Möwe", *words).code == 0
    names = cli("collection", "labels", photos, "show", "gull", "--json").json["names"]
    assert names == [{"name": "Möwe", "language": "de"}]
    cli("collection", "undo", photos)
    names = cli("collection", "labels", photos, "show", "gull", "--json").json["names"]
    assert names == [{"name": "Möwe", "language": "nl"}]


def test_scores_are_rounded_down(capfd: pytest.CaptureFixture[str]) -> None:
    label = LabelCount(1, "gull", "", 0)
    for score, digits in [(0.699, "0.69"), (0.7, "0.70"), (0.29, "0.29"), (1.0, "1.00")]:
        labels_command._show_proposal(1, MergeProposal(label, [label], score, []))
        assert f"  1. {digits}  gull" in capfd.readouterr().out


def test_decisions_are_listed(cli: Cli, photos: Path) -> None:
    cli("collection", "tag", photos, 1, 2, "--accept", "gull", "--by", "eve")
    cli("collection", "tag", photos, photos / "sea/3.jpg", "--reject", "gull", "--accept", "tern", "--by", "adam")

    def listed(*words: object) -> list[tuple[str, str, str]]:
        rows = cli("collection", "annotations", photos, "--json", *words).json["annotations"]
        return [(row["path"][4:-4], row["label"], row["state"]) for row in rows]

    gulls = [("3", "gull", "rejected"), ("2", "gull", "accepted"), ("1", "gull", "accepted")]
    assert sorted(listed()) == sorted([*gulls, ("3", "tern", "accepted")])
    assert listed("--label", "gull") == gulls
    assert listed("--by", "eve") == listed("--label", "gull", "--state", "accepted") == gulls[1:]
    assert listed("--item", photos / "sea/2.jpg") == listed("--item", 2) == gulls[1:2]
    assert listed("--since", "9999") == listed("--origin", "import") == listed("--model", 1) == []
    assert len(listed("--until", format_current_time())) == 4
    first = cli("collection", "annotations", photos, "--label", "gull", "-k", 2, "--json").json
    assert listed("--label", "gull", "-k", 2, "--cursor", first["next_cursor"]) == gulls[2:]
    result = cli("collection", "annotations", photos, "--label", "gull", "-k", 1)
    assert "1 annotation, newest first; -k shows more" in result.out
    assert "sea/3.jpg" in result.out
    assert "adam" in result.out
    assert "no annotation matches" in cli("collection", "annotations", photos, "--by", "nobody").err
    for words, message in [
        (("--since", "May"), "is not a time"),
        (("--label", "gul"), "the closest: gull"),
        (("--item", "lost.jpg"), "is not an item of"),
        (("--cursor", "x"), "cursor"),
    ]:
        failed = cli("collection", "annotations", photos, *words)
        assert (failed.code, message in failed.err) == (1, True), failed.err
