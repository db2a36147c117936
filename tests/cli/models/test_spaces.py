"""Spaces of several entity kinds through the commands: spoken digits and small lists."""

import contextlib
import gzip
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from entity_declarations import PAIRS
from wsabie.cli.main import run
from wsabie.features.base.item_features import build_label_table
from wsabie.io.data_sources import open_source
from wsabie.models.entity_space.space_annotator import SpaceAnnotator
from wsabie.samples import get_documents_path
from wsabie.workflows.data_splits import split_rows
from wsabie.workflows.spaces import space_training
from wsabie.workflows.spaces.relation_holdout import split_relations

Cli = Callable[..., Any]


def train_space(folder: Path, *words: Any) -> Path:
    """The model that the command trains."""
    with pytest.MonkeyPatch.context() as patch, contextlib.suppress(SystemExit):
        patch.setattr(sys, "argv", ["wsabie", "train", *map(str, words), "--model", str(folder)])
        run()
    assert (folder / "config.json").exists(), "training failed"
    return folder


@pytest.fixture(scope="module")
def space(music: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_space(tmp_path_factory.mktemp("space") / "m", music / "train.toml", "--hold-out", 0)


def test_unseen_recordings_are_evaluated(cli: Cli, space: Path, music: Path) -> None:
    """The published test takes: chance is 1/4 for the digit, 1/3 for the speaker and for another voice."""
    result = cli("evaluate", space, music / "test.toml", "--json")
    assert result.code == 0, result.err
    figures = {name: relation["metrics"] for name, relation in result.json["relations"].items()}
    assert figures["digits"]["p@1"] > 0.8
    assert figures["speakers"]["p@1"] > 0.8
    assert figures["recordings"]["MAP"] > 0.7
    assert figures["voices"]["p@1"] > 0.7
    assert result.json["relations"]["voices"]["rows"] == 60
    printed = cli("evaluate", space, music / "test.toml")
    assert "voices: 60 queries, 60 candidates" in printed.out


def test_every_relation_annotates_a_recording(cli: Cli, space: Path, music: Path) -> None:
    file = music / "digits" / "recordings" / "2_theo_0.wav"
    (row,) = cli("annotate", space, file, "-k", 2, "--json").json["results"]
    assert row["digit"][0][0] == "2"
    (row,) = cli("annotate", space, file, "--relation", "speakers", "-k", 1, "--json").json["results"]
    assert row["speaker"][0][0] == "theo"
    (row,) = cli("annotate", space, "george", "--relation", "recordings", "-k", 3, "--json").json["results"]
    assert all("george" in name for name, _ in row["recording"])
    (row,) = cli("annotate", space, "george", "--relation", "speaker:digit", "-k", 1, "--json").json["results"]
    assert row["digit"][0][0] in "0123"
    line = cli("annotate", space, "nicolas", "--relation", "recordings", "-k", 1).out
    assert line.startswith("nicolas\t")
    assert "nicolas" in line.partition("\t")[2]


def test_neighbours_and_info_know_entity_kinds(cli: Cli, space: Path) -> None:
    near = cli("neighbours", space, "theo", "--json").json
    assert near["kind"] == "speaker"
    assert {name for name, _ in near["neighbours"]} == {"george", "nicolas"}
    facts = cli("info", space, "--json").json
    assert facts["kinds"] == {"recording": 48, "digit": 4, "speaker": 3}
    assert facts["relations"] == ["digits", "speakers", "recordings", "voices"]
    assert facts["extractor_recording"] == "mfcc"
    assert "recording 48" in cli("info", space).out


def test_held_out_entities_choose_the_epoch(cli: Cli, lists: Path, tmp_path: Path) -> None:
    result = cli(
        "train", lists / "lists.toml", "--model", tmp_path / "m", "--hold-out", 0.3, "--stop-on", "genres", "--json"
    )
    assert result.code == 0, result.err
    assert result.json["pairs"]["genres"] + result.json["holdout_pairs"]["genres"] == 24
    assert next(iter(result.json["validation"])) == "genres"
    assert not (tmp_path / "m.training").exists()


def test_pair_lists_alone_train_a_space(cli: Cli, lists: Path, tmp_path: Path) -> None:
    model = train_space(tmp_path / "m", lists / "lists.toml", "--hold-out", 0)
    near = cli("neighbours", model, "Ann", "-k", 2, "--json").json["neighbours"]
    assert {name for name, _ in near} < {"Bob", "Cid", "Dee", "Eli", "Flo"}
    (row,) = cli("annotate", model, "Ida", "--relation", "genres", "-k", 2, "--json").json["results"]
    assert {name for name, _ in row["genre"]} == {"jazz", "music"}
    only = train_space(tmp_path / "one", lists / "lists.toml", "--only", "near", "--hold-out", 0)
    assert cli("info", only, "--json").json["relations"] == ["near"]


def test_probable_typo_is_reported(cli: Cli, lists: Path, tmp_path: Path) -> None:
    text = PAIRS.replace('query = "artist"\ntarget = "genre"', 'query = "artst"\ntarget = "genre"')
    (lists / "lists.toml").write_text(text + '\n[kinds.album]\ndata = "albums"\n')
    result = cli("train", lists / "lists.toml", "--model", tmp_path / "m", "--hold-out", 0)
    assert result.code == 0
    assert "'artist' and 'artst' are two kinds; is one of them misspelt?" in result.err
    assert "no relation has the kind 'album'" in result.err


def test_evaluation_on_training_pairs_is_refused(cli: Cli, lists: Path, tmp_path: Path) -> None:
    """Pairs of training are refused, those with an unknown entity counted, a relation that was not learned named."""
    model = train_space(tmp_path / "m", lists / "lists.toml", "--hold-out", 0, "--only", "near")
    result = cli("evaluate", model, lists / "lists.toml")
    assert result.code == 1
    assert "the pairs of 'near' are those that the space was trained on" in result.err
    (lists / "near.tsv").write_text("Ann\tBob\nAnn\tNobody\n")
    result = cli("evaluate", model, lists / "lists.toml", "--json")
    assert result.json["relations"]["near"]["rows"] == 2
    assert "near: 1 pairs are left out, the space does not know their entities" in result.err
    assert "has learned no relation 'genres'" in result.err


def test_entities_with_data_are_held_out_by_group(
    cli: Cli, music: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All takes of a digit by a speaker are a group: no group is on both sides, and all recordings are in the space."""
    splits: list[Any] = []
    monkeypatch.setattr(
        space_training, "split_relations", lambda *arguments: splits.append(split_relations(*arguments)) or splits[0]
    )
    shutil.copytree(music / "digits" / "recordings", tmp_path / "songs")
    names = sorted(file.name for file in (tmp_path / "songs").iterdir())
    rows = [f"{name},{name.split('_')[1]},{name.rsplit('_', 1)[0]}" for name in names]
    (tmp_path / "songs" / "metadata.csv").write_text("file_name,artist,group\n" + "\n".join(rows) + "\n")
    (tmp_path / "songs.toml").write_text("""
[kinds.track]
data = "songs"
features = "mfcc"
n_words = 100

[relations.artists]
query = "track"
target = "artist"
names = "artist"

[space]
dim = 8
epochs = 3
""")
    result = cli("train", tmp_path / "songs.toml", "--model", tmp_path / "m", "--hold-out", 0.25, "--json")
    assert result.code == 0, result.err
    assert result.json["holdout_pairs"]["artists"] == 27, "three groups of nine takes"
    trained_groups, held_out_groups = (
        {name.rsplit("_", 1)[0] for name in kind.ids}
        for kind in (splits[0].training[0].query, splits[0].holdout_kinds[0])
    )
    assert (len(trained_groups), len(held_out_groups), trained_groups & held_out_groups) == (9, 3, set())
    assert cli("info", tmp_path / "m", "--json").json["kinds"]["track"] == 108


def test_init_scale_sets_the_length_of_first_vectors(lists: Path, tmp_path: Path) -> None:
    (lists / "lists.toml").write_text(
        PAIRS.replace("epochs = 40", "epochs = 1\nlearning_rate = 1e-9\ninit_scale = {V = 1.0, W = 0.01}")
    )
    space = SpaceAnnotator.load(train_space(tmp_path / "m", lists / "lists.toml", "--hold-out", 0)).space
    assert space.compute_points("artist").std() == pytest.approx(0.01, rel=0.3)


def test_stopped_training_resumes_bit_for_bit(
    cli: Cli, lists: Path, tmp_path: Path, every_epoch: None, monkeypatch: Any
) -> None:
    """The bits are those of a run that was not stopped."""
    from wsabie.training.checkpoints import CheckpointFolder

    full_run = train_space(tmp_path / "whole", lists / "lists.toml", "--hold-out", 0)
    save = CheckpointFolder.save

    def stopping(self: Any, *arguments: Any) -> None:
        save(self, *arguments)
        if arguments[1].epoch == 20:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(CheckpointFolder, "save", stopping)
        assert cli("train", lists / "lists.toml", "--model", tmp_path / "m", "--hold-out", 0).code == 130
    result = cli("train", lists / "lists.toml", "--model", tmp_path / "m", "--hold-out", 0, "--resume")
    assert result.code == 0, result.err
    tensors = [json.loads((folder / "config.json").read_text())["tensors"] for folder in (full_run, tmp_path / "m")]
    assert tensors[0] == tensors[1]


SONGS = """
[kinds.song]
data = "songs.txt"

[relations.styles]
query = "song"
target = "style"
names = "labels"
"""


@pytest.mark.parametrize(
    ("file", "old", "new", "words", "setting"),
    [
        ("lists.toml", "dim = 8", "dim = 8  # small", [], None),
        ("lists.toml", "weight = 2", "weight = 3", [], "kinds or relations in its declaration"),
        ("lists.toml", 'target = "genre"', 'target = "style"', [], "kinds or relations in its declaration"),
        ("lists.toml", "epochs = 1", "epochs = 2", [], "epochs"),
        ("lists.toml", "", "", ["--only", "near"], "relations"),
        ("near.tsv", "Ann\tBob\n", "Ann\tLeo\n", [], "pairs"),
        ("genres.tsv", "Leo\tjazz\n", "", [], "pairs"),
        ("songs.txt", "1 0:1", "1 0:2", [], "data"),
        ("songs.txt", "0,1 ", "0 ", [], "data"),
    ],
)
def test_resume_keeps_a_finished_space_of_the_same_content(
    cli: Cli, lists: Path, file: str, old: str, new: str, words: list[str], setting: str | None
) -> None:
    (lists / "songs.txt").write_text("0 0:1\n1 0:1 1:1\n0,1 1:1\n")
    (lists / "lists.toml").write_text(PAIRS.replace("epochs = 40", "epochs = 1").replace("[space]", f"{SONGS}[space]"))
    command = ("train", lists / "lists.toml", "--model", lists / "m", "--hold-out", 0, "--resume")
    assert cli(*command).code == 0
    text = (lists / file).read_text()
    assert old in text
    (lists / file).write_text(text.replace(old, new, 1))
    again = cli(*command, *words)
    if setting is None:
        assert (again.code, "m is finished and stays as it is" in again.err) == (0, True)
    else:
        assert (again.code, f"m is a finished model with other {setting}, and no training" in again.err) == (1, True)


def test_resume_compares_the_recordings_of_a_finished_space(cli: Cli, music: Path, space: Path, tmp_path: Path) -> None:
    """The comparison includes the files that the table beside the data names."""
    shutil.copytree(music, tmp_path / "music")
    command = ("train", tmp_path / "music" / "train.toml", "--model", space, "--hold-out", 0, "--resume")
    result = cli(*command)
    assert (result.code, "is finished and stays" in result.err) == (0, True), result.err
    recordings = tmp_path / "music" / "digits" / "recordings"
    (recordings / "0_theo_6.wav").rename(recordings / "0_nicolas_9.wav")
    assert "a finished model with other data" in cli(*command).err


@pytest.mark.parametrize(
    ("text", "words", "sentence"),
    [
        (PAIRS, ["--features", "mfcc"], "--features cannot be used here: a space has its settings in the tables"),
        (
            PAIRS,
            ["--replay", 10],
            "--replay cannot be used here: a space has its settings in the tables of its TOML file",
        ),
        (PAIRS, ["--only", "artists"], "declares no relation 'artists'; it declares near, genres"),
        (PAIRS, ["--stop-on", "fame", "--hold-out", "0.3"], "no epoch can be chosen by 'fame'"),
        (PAIRS.replace("dim = 8", "dims = 8"), [], "[space] says ['dims']; the parameters are dim, epochs"),
        (PAIRS.replace("dim = 8", "init_scale = {U = 1}"), [], "init_scale names the table 'U'"),
        (PAIRS.replace("near.tsv", "far.tsv"), [], "far.tsv, the pairs of [relations.near]"),
        (PAIRS.replace('pairs = "near.tsv"', ""), [], "[relations.near] says neither pairs nor names"),
        (PAIRS.replace('pairs = "near.tsv"', 'names = "genre"'), [], "neither end has data; say pairs"),
        (PAIRS.replace('target = "genre"', ""), [], "[relations.genres] lacks its ends"),
        (PAIRS.replace("weight = 2", "weight = -2"), [], "[relations.genres]: weight is -2; give a number above 0"),
        (PAIRS.replace("[relations.near]", "[relation.near]"), [], "says ['relation'], which means nothing"),
        ("[kinds.artist]\nn_words = 5", [], "[kinds.artist] has no data"),
        ("[space]\ndim = 8", [], "declares no relation"),
        ("dim = [", [], "is not a TOML file"),
    ],
)
def test_bad_declarations_give_one_sentence(
    cli: Cli, lists: Path, tmp_path: Path, text: str, words: list[str], sentence: str
) -> None:
    (lists / "lists.toml").write_text(text)
    result = cli("train", lists / "lists.toml", "--model", tmp_path / "m", *words)
    assert result.code == 1
    assert sentence in result.err
    assert "Traceback" not in result.err
    assert not (tmp_path / "m").exists()


def test_listening_counts_become_pairs_of_songs(cli: Cli, tmp_path: Path) -> None:
    """From a list of listeners to a space: rock is heard by some, jazz by others."""
    rng = np.random.default_rng(0)
    tastes = [[f"SO{'ROCK' if taste else 'JAZZ'}{i:012d}" for i in range(12)] for taste in range(2)]
    lines = [f"{u:040x}\t{song}\t1\n" for u in range(60) for song in rng.choice(tastes[u % 2], 6, replace=False)]
    (tmp_path / "train_triplets.txt").write_text("".join(lines) + "no triplet\n")
    pairs = tmp_path / "heard.tsv"
    triplets = tmp_path / "train_triplets.txt"
    result = cli("pairs", "from-listeners", triplets, "--out", pairs, "--max-partners", 4, "--json")
    assert result.code == 0, result.err
    assert "1 skipped: line that is not user, song and plays" in result.err
    assert (result.json["songs"], result.json["listeners"], result.json["songs_in_pairs"]) == (24, 60, 24)
    assert 24 * 4 / 2 <= result.json["pairs"] <= 24 * 4
    declared = (
        '[relations.heard]\nquery = "song"\ntarget = "song"\npairs = "heard.tsv"\n[space]\ndim = 8\nepochs = 60\n'
    )
    (tmp_path / "songs.toml").write_text(declared)
    model = train_space(tmp_path / "m", tmp_path / "songs.toml", "--hold-out", 0)
    near = cli("neighbours", model, tastes[1][0], "-k", 5, "--json").json["neighbours"]
    assert sum("ROCK" in name for name, _ in near) >= 4
    few = cli("pairs", "from-listeners", tmp_path / "train_triplets.txt", "--out", pairs, "--min-listeners", 50)
    assert "no two songs of" in few.err
    assert "give a lower --min-listeners or --min-cosine" in few.err
    lost = cli("pairs", "from-listeners", pairs, "--out", pairs)
    assert "is read by this command and would be lost" in lost.err
    strange = cli("pairs", "from-listeners", tmp_path / "songs.toml", "--out", tmp_path / "x.tsv")
    assert "user TAB song TAB plays" in strange.err
    misnamed = cli("pairs", "from-listeners", tmp_path / "train_triplets.txt", "--out", tmp_path / "songs.toml")
    assert {few.code, lost.code, strange.code, misnamed.code} == {1}


def test_bad_queries_give_one_sentence(cli: Cli, space: Path, lists: Path, music: Path) -> None:
    for words, sentence in (
        (["annotate", space, "nobody", "--relation", "recordings"], "there is no speaker 'nobody'"),
        (["annotate", space, "x", "--relation", "covers"], "there is no relation 'covers'"),
        (["annotate", space, "x", "--relation", "speaker:song"], "knows no kind 'song'"),
        (["annotate", space, "--text", "hello"], "are not documents"),
        (["annotate", space], "no entity is named"),
        (["neighbours", space, "gorge"], "there is no entity 'gorge'; did you mean 'george'?"),
        (["neighbours", space, "theo", "--entity-kind", "song"], "knows no kind 'song'"),
        (["evaluate", space, music / "digits"], "is a space of several kinds of entities"),
        (["evaluate", space, music / "train.toml"], "is what the space was trained on; give other data"),
        (["features", "audio", music / "train.toml", "--out", music / "f.parquet"], "declares a space, for train"),
        (["annotate", space, lists / "near.tsv"], "the data has"),
        (["annotate", lists / "none", "x", "--relation", "songs"], "there is no model at"),
        (["neighbours", lists / "none", "x", "--words"], "there is no model at"),
        (["evaluate", space, lists / "lists.toml"], "declares none of the relations that were learned"),
    ):
        result = cli(*words)
        assert result.code == 1, words
        assert sentence in result.err, result.err


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Paragraphs of this project's documentation, those of a page belonging together."""
    root = tmp_path_factory.mktemp("pages")
    names = ("sound", "kernel-pca", "vse-ens", "ensembles", "explain", "sources", "model-folder")
    with gzip.open(get_documents_path(), "rt", encoding="utf-8") as lines:
        paragraphs = [line for line in lines if json.loads(line)["labels"][0] in names]
    (root / "paragraphs.jsonl").write_text("".join(paragraphs), encoding="utf-8")
    (root / "pages.toml").write_text("""
[kinds.paragraph]
data = "paragraphs.jsonl"
scaling = "tfidf"

[relations.page]
query = "paragraph"
target = "paragraph"
names = "labels"

[space]
dim = 32
epochs = 60
""")
    return root


def test_paragraphs_find_those_of_their_page(cli: Cli, pages: Path, tmp_path: Path) -> None:
    """Held-out paragraphs among known ones; the documents of a collection, a text, and words."""
    model = tmp_path / "m"
    result = cli("train", pages / "pages.toml", "--model", model, "--hold-out", 0.2, "--json")
    assert result.code == 0, result.err
    paragraphs = result.json["kinds"]["paragraph"]
    assert result.json["validation"]["page"] > 0.4, "six of seven pages are others"
    (row,) = cli("annotate", model, "--text", "loudness of a sound at a sample rate", "-k", 3, "--json").json["results"]
    assert sum(name.startswith("sound#") for name, _ in row["paragraph"]) >= 2
    near = cli("neighbours", model, "kernel", "--words", "-k", 8, "--json").json["neighbours"]
    assert {"kernel", "landmarks", "components", "pca", "map"} & {word for word, _ in near}
    assert "no word of 'zzz'" in cli("neighbours", model, "zzz", "--words").err
    assert paragraphs > 100


def test_text_without_a_known_word_is_refused(cli: Cli, pages: Path, tmp_path: Path) -> None:
    assert cli("train", pages / "pages.toml", "--model", tmp_path / "m", "--epochs", 1).code == 0
    result = cli("annotate", tmp_path / "m", "--text", "xyzzy plugh")
    assert (result.code, result.out) == (1, "")
    assert "no word of 'xyzzy plugh' is in the vocabulary; give another text" in result.err


def test_unshared_names_choose_no_epoch(cli: Cli, pages: Path, tmp_path: Path) -> None:
    """The texts that are held out have names of their own: such pairs do not choose the epoch."""
    report = json.loads(cli("train", pages / "pages.toml", "--model", tmp_path / "m", "--epochs", 1, "--json").out)
    assert report["holdout_pairs"]["page"] > 0
    lines = [json.loads(line) for line in (pages / "paragraphs.jsonl").read_text().splitlines()]
    held_out_rows = split_rows(build_label_table(open_source(pages / "paragraphs.jsonl")), "auto", 0.1, 0, 0).valid
    for number, line in enumerate(lines):
        line["labels"] = [f"own {number}"] if number in held_out_rows else line["labels"]
    (tmp_path / "paragraphs.jsonl").write_text("\n".join(map(json.dumps, lines)))
    shutil.copy(pages / "pages.toml", tmp_path)
    result = cli("train", tmp_path / "pages.toml", "--model", tmp_path / "m", "--epochs", 1, "--json")
    assert result.code == 0, result.err
    assert json.loads(result.out)["holdout_pairs"] == {}
    (tmp_path / "paragraphs.jsonl").write_text("\n".join(map(json.dumps, lines[:4])))
    result = cli("train", tmp_path / "pages.toml", "--model", tmp_path / "m", "--epochs", 1)
    assert "4 items are too few to set 10% aside; give more items, or --hold-out 0" in result.err


@pytest.mark.parametrize("of_a_kind", [False, True])
def test_kinds_of_one_map_share_the_extractor(cli: Cli, pages: Path, tmp_path: Path, of_a_kind: bool) -> None:
    """Titles are questions: their words are those of the paragraphs, whichever come first in a file of their own."""
    paragraphs = [json.loads(line) for line in (pages / "paragraphs.jsonl").read_text().splitlines()]
    titles = {"sound": "describing sounds", "ensembles": "ensembles of models", "explain": "explain a picture"}
    lines = [json.dumps({"id": f"title {page}", "text": title}) for page, title in titles.items()]
    (tmp_path / "titles.jsonl").write_text("\n".join(lines))
    shutil.copy(pages / "paragraphs.jsonl", tmp_path)
    pairs = [f"title {p['labels'][0]}\t{p['id']}" for p in paragraphs if p["labels"][0] in titles]
    (tmp_path / "pairs.tsv").write_text("\n".join(pairs))
    declared = """
[kinds.paragraph]
data = "paragraphs.jsonl"
map = "words"

[kinds.title]
data = "titles.jsonl"
map = "words"

[relations.about]
query = "title"
target = "paragraph"
pairs = "pairs.tsv"

[space]
dim = 16
epochs = 20
"""
    (tmp_path / "titles.toml").write_text(declared.replace("[kinds.title]", '[kinds.title]\nfeatures = "words"'))
    result = cli("train", tmp_path / "titles.toml", "--model", tmp_path / "m", "--hold-out", 0)
    assert "[kinds.title] shares the map of 'paragraph', which says how features are extracted" in result.err
    declared = declared.replace('map = "words"\n', "", 1).replace('"words"', '"paragraph"') if of_a_kind else declared
    (tmp_path / "titles.toml").write_text(declared)
    result = cli("train", tmp_path / "titles.toml", "--model", tmp_path / "m", "--hold-out", 0, "--restart")
    assert result.code == 0, result.err
    model = SpaceAnnotator.load(tmp_path / "m")
    words = [model.text(kind, "sound of a sound").toarray() for kind in ("title", "paragraph")]
    assert words[0].sum() >= 3, "of, a and sound are words of the paragraphs"
    assert (words[0] == words[1]).all()
    (row,) = cli("annotate", tmp_path / "m", "--text", "models of an ensemble", "-k", 3, "--json").json["results"]
    assert any(name.startswith("ensembles#") for name, _ in row["paragraph"])
