"""From documents to annotations, through the commands: glosses of WordNet, and this project's own documentation."""

import contextlib
import gzip
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from wsabie import load
from wsabie.cli.main import run
from wsabie.core.errors import InputError
from wsabie.features.extractors.bag_of_words import BagOfWords
from wsabie.io.data_sources import open_source
from wsabie.samples import get_documents_path

Cli = Callable[..., Any]
DOCS = Path(__file__).parents[3] / "docs" / "how-to"
SYNSETS = """\
01318279 05 n 01 hatchling 0 001 @ 01321579 n 0000 | any recently hatched animal (especially birds)
01425223 05 n 02 leucocytozoan 0 leucocytozoon 0 002 @ 01421807 n 0000 #m 01425076 n 0000 | parasitic in birds
01449980 05 n 02 mollie 0 molly 0 002 @ 01448951 n 0000 #m 01449857 n 0000 | popular aquarium fish
01453742 05 n 01 boarfish 2 002 @ 02552171 n 0000 #m 01453591 n 0000 | fish with large eyes and long snouts
01514859 05 n 01 hen 2 001 @ 01503061 n 0000 | adult female bird
01515217 05 n 01 night_raven 1 001 @ 01515078 n 0000 | any bird that cries at night
01515303 05 n 01 bird_of_passage 0 001 @ 01503061 n 0000 | any bird that migrates seasonally
01758637 05 n 01 cere 0 001 @ 01758308 n 0000 | the fleshy, waxy covering at the base of the upper beak of some birds
01792042 05 n 02 chick 0 biddy 1 002 @ 01791625 n 0000 @ 01613615 n 0000 | young bird especially of domestic fowl
01900719 05 n 01 ray 1 002 @ 01900488 n 0000 #p 02466132 n 0000 | any of the stiff bony spines in the fin of a fish
02019190 05 n 02 great_bustard 0 Otis_tarda 0 002 @ 02018795 n 0000 #m 02019044 n 0000 | largest European land bird
02098806 05 n 01 bird_dog 0 001 @ 02098550 n 0000 | a gun dog trained to locate or retrieve birds
02152446 05 n 02 pennon 0 pinion 1 003 @ 02151625 n 0000 #p 01503061 n 0000 + 00512749 v 0201 | wing of a bird
02155206 05 n 01 webbed_foot 0 001 @ 02154416 n 0000 | a bird's foot with folds of skin between the toes
02322624 05 n 01 roe 0 002 @ 01460457 n 0000 #p 02512053 n 0000 | eggs of female fish
02467491 05 n 01 fishbone 0 002 @ 05269901 n 0000 #p 02512053 n 0000 | a bone of a fish
02511633 05 n 01 syrinx 0 002 @ 05225602 n 0000 #p 01503061 n 0000 | the vocal organ of a bird
02512830 05 n 02 game_fish 0 sport_fish 0 001 @ 02512053 n 0000 | any fish providing sport for the angler
02579303 05 n 02 kingfish 4 Seriola_grandis 0 001 @ 02576575 n 0000 | large game fish of Australia and New Zealand
02605703 05 n 01 chaetodon 0 002 @ 02605316 n 0000 #m 02605571 n 0000 | any fish of the genus Chaetodon
02605936 05 n 01 angelfish 2 002 @ 02605316 n 0000 #m 02605809 n 0000 | a butterfly fish of the genus Pomacanthus
02662993 05 n 02 brill 0 Scophthalmus_rhombus 0 001 @ 02661017 n 0000 | European food fish
07584332 13 n 01 bisque 0 001 @ 07583197 n 0000 | a thick cream soup made from shellfish
07585644 13 n 02 cock-a-leekie 0 cocky-leeky 0 001 @ 07583197 n 0000 | soup made from chicken boiled with leeks
07585906 13 n 01 gumbo 0 001 @ 07583197 n 0000 | a soup or stew thickened with okra pods
07587023 13 n 02 potage 0 pottage 1 001 @ 07583197 n 0000 | thick (often creamy) soup
07629988 13 n 01 birthday_cake 0 001 @ 07628870 n 0000 | decorated cake served at a birthday party
07630220 13 n 01 chiffon_cake 0 001 @ 07628870 n 0000 | very light cake
07631023 13 n 01 cupcake 0 001 @ 07628870 n 0000 | small cake baked in a muffin tin
07632980 13 n 01 white_cake 0 001 @ 07628870 n 0000 | cake made without egg yolks
07634048 13 n 01 Boston_cream_pie 0 001 @ 07628870 n 0000 | layer cake filled with custard
07634306 13 n 01 honey_cake 0 001 @ 07628870 n 0000 | a spicy cake partially sweetened with honey
07823698 13 n 01 cranberry_sauce 0 002 @ 07810907 n 0000 %s 07743902 n 0000 | sauce made of cranberries and sugar
07825312 13 n 01 chowchow 2 001 @ 07582441 n 0000 | chopped pickles in mustard sauce
07837002 13 n 02 hot-fudge_sauce 0 fudge_sauce 0 001 @ 07836838 n 0000 | thick chocolate sauce served hot
07838441 13 n 01 marinara 0 001 @ 07838233 n 0000 | sauce for pasta; contains tomatoes and garlic and herbs
07838551 13 n 01 mole 0 002 @ 07829412 n 0000 ;r 08740875 n 0000 | spicy sauce often containing chocolate
07838811 13 n 01 mushroom_sauce 0 001 @ 07829412 n 0000 | brown sauce and sauteed mushrooms
07839478 13 n 01 roux 0 001 @ 07882497 n 0000 | a mixture of fat and flour heated and used as a basis for sauces
07864638 13 n 01 Tetrazzini 0 002 @ 07557434 n 0000 ~ 07864475 n 0000 | a pasta dish with cream sauce and mushrooms
07870620 13 n 01 shrimp_Newburg 0 001 @ 07870313 n 0000 | shrimp in Newburg sauce usually served in a rice ring
07871234 13 n 01 macaroni_and_cheese 0 001 @ 07863374 n 0000 | macaroni prepared in a cheese sauce
07874674 13 n 01 pork_and_beans 0 001 @ 07557434 n 0000 | dried beans cooked with pork and tomato sauce
07877187 13 n 01 spaghetti_and_meatballs 0 001 @ 07557434 n 0000 | spaghetti with meatballs in a tomato sauce
11619136 20 n 01 larch 2 002 @ 15098161 n 0000 #s 11618861 n 0000 | wood of a larch tree
11635709 20 n 01 Port_Orford_cedar 2 002 @ 11623304 n 0000 #s 11635433 n 0000 | the wood of the Port Orford cedar tree
11683216 20 n 01 galbulus 0 002 @ 11682842 n 0000 #p 11630489 n 0000 | the seed-producing cone of a cypress tree
11841247 20 n 02 cockspur 1 Pisonia_aculeata 0 002 @ 13104059 n 0000 #m 11841061 n 0000 | small spiny West Indian tree
12202234 20 n 01 obeche 2 001 @ 15098161 n 0000 | the wood of an African obeche tree; used especially for veneering
12272650 20 n 01 holm_oak 1 001 @ 12268918 n 0000 | hard wood of the holm oak tree
12306419 20 n 01 ash-key 0 002 @ 13135832 n 0000 #p 12303462 n 0000 | winged seed of the ash tree
12330239 20 n 01 myrtaceous_tree 0 002 @ 13109733 n 0000 #m 12329899 n 0000 | trees and shrubs
12338979 20 n 02 manna_gum 0 Eucalyptus_viminalis 0 001 @ 12334891 n 0000 | tall tree yielding a false manna
12642090 20 n 01 wild_cherry 2 002 @ 13134947 n 0000 #p 12641931 n 0000 | the fruit of the wild cherry tree
12693244 20 n 01 Protium_heptaphyllum 0 002 @ 12690653 n 0000 #m 12693033 n 0000 | tropical American tree
12740967 20 n 01 aalii 0 002 @ 13104059 n 0000 #m 12741079 n 0000 | a small Hawaiian tree with hard dark wood
12757930 20 n 01 low_gallberry_holly 0 001 @ 12756457 n 0000 | an evergreen shrub
12758176 20 n 01 deciduous_holly 0 001 @ 12756457 n 0000 | a holly tree
12758325 20 n 01 largeleaf_holly 0 001 @ 12756457 n 0000 | a holly tree
12805899 20 n 02 winter_currant 0 Ribes_sanguineum 0 002 @ 12805146 n 0000 #m 12804866 n 0000 | a flowering shrub
13018906 20 n 01 Volvaria_bombycina 0 002 @ 12992868 n 0000 #m 13018749 n 0000 | a parasite on various trees
13108481 20 n 01 sapling 0 001 @ 13104059 n 0000 | young tree
13163553 20 n 01 deadwood 0 001 @ 13163250 n 0000 | a branch or a part of a tree that is dead
13164501 20 n 01 osier 2 001 @ 13164403 n 0000 | flexible twig of a willow tree
13165552 20 n 01 mixed_bud 0 001 @ 13165086 n 0000 | a bud yielding both leaves and flowers
13165727 20 n 01 bough 0 001 @ 13163803 n 0000 | any of the larger branches of a tree
"""
"""Lines of WordNet 3.0's data.noun, Copyright 2006 by Princeton University: animals, food and plants."""


@pytest.fixture(scope="module")
def glosses(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """data.noun to learn from, and every sixth synset in a file of JSON lines."""
    root = tmp_path_factory.mktemp("glosses")
    lines = SYNSETS.splitlines(keepends=True)
    (root / "data.noun").write_text("".join(line for i, line in enumerate(lines) if i % 6))
    (root / "all.noun").write_text(SYNSETS)
    items = [item for i, item in enumerate(open_source(root / "all.noun")) if i % 6 == 0]
    rows = [{"id": item.id, "text": item.content.decode(), "labels": list(item.labels)} for item in items]
    (root / "new.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return root


@pytest.fixture(scope="module")
def model(glosses: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trained through the command."""
    folder = tmp_path_factory.mktemp("model") / "m"
    words = ["wsabie", "train", glosses / "data.noun", "--model", folder, "--dim", 8, "--epochs", 40, "--threads", 1]
    with pytest.MonkeyPatch.context() as patch, contextlib.suppress(SystemExit):
        patch.setattr(sys, "argv", [*map(str, words)])
        run()
    assert (folder / "config.json").exists(), "training failed"
    return folder


def test_new_documents_are_annotated(cli: Cli, model: Path, glosses: Path) -> None:
    """One label each, of three; chance finds a third."""
    annotation = cli("annotate", model, glosses / "new.jsonl", "-k", 1, "--json", "--threads", 1)
    assert annotation.code == 0, annotation.err
    true = {row["id"]: row["labels"] for row in map(json.loads, (glosses / "new.jsonl").read_text().splitlines())}
    right = [[result["labels"][0][0]] == true[result["id"]] for result in annotation.json["results"]]
    assert len(right) == 11
    assert sum(right) >= 9
    evaluation = cli("evaluate", model, glosses / "new.jsonl", "--json", "--threads", 1)
    assert evaluation.json["metrics"]["MAP"] > 0.85


def test_space_of_glosses_is_evaluated_by_the_hierarchy(cli: Cli, glosses: Path, tmp_path: Path) -> None:
    """New glosses look for those of their category; WordNet says which others lie around them."""
    for side, file in (("train", "data.noun"), ("test", "new.jsonl")):
        declared = (
            f'[kinds.gloss]\ndata = "{glosses / file}"\n[relations.category]\nquery = "gloss"\ntarget = "gloss"\n'
        )
        (tmp_path / f"{side}.toml").write_text(declared + 'names = "labels"\n[space]\ndim = 8\nepochs = 40\n')
    model, test = tmp_path / "m", tmp_path / "test.toml"
    assert cli("train", tmp_path / "train.toml", "--model", model, "--hold-out", 0, "--threads", 1).code == 0
    result = cli("evaluate", model, test, "--hierarchy", glosses / "all.noun", "--json")
    assert result.code == 0, result.err
    relation = result.json["relations"]["category"]
    assert relation["metrics"]["hp@1"] == relation["metrics"]["p@1"] <= relation["metrics"]["psib@1"]
    assert 0 < relation["metrics"]["hp@3"] <= relation["ceilings"]["hp@3"] + 1e-6 <= 1
    assert "hp@5" in cli("evaluate", model, test, "--hierarchy", glosses / "all.noun").out
    assert "hp@5" not in cli("evaluate", model, test).out
    (tmp_path / "songs.tsv").write_text("waltz\tdance\n")
    strange = cli("evaluate", model, test, "--hierarchy", tmp_path / "songs.tsv")
    assert strange.code == 1
    assert "the hierarchy names no target of category" in strange.err
    assert "add --hierarchy" in cli("evaluate", model, test, "--parent-first").err


def test_demo_of_documents_beats_tfidf_cosine(cli: Cli, tmp_path: Path) -> None:
    """Better than the cosine of the words; the printed commands work, with texts of one's own too."""
    result = cli("demo", "--part", "documents", "--out", tmp_path / "d", "--threads", 1)
    assert result.code == 0, result.err
    assert "tf-idf cosine" in result.out
    text_query = cli("annotate", tmp_path / "d" / "model", "--text", "sounds recorded at another sample rate", "-k", 3)
    assert all(name.partition(" ")[0] in result.out for name in text_query.out.partition("\t")[2].split("  "))
    assert cli("neighbours", tmp_path / "d" / "model", "kernel", "--words").code == 0
    toml = result.out.partition("texts.toml:\n\n")[2].partition("$ ")[0]
    (tmp_path / "texts.toml").write_text(toml)
    with gzip.open(get_documents_path(), "rb") as file:
        (tmp_path / "texts.jsonl").write_bytes(b"".join(file.readlines()[:200]))
    mine = cli("train", tmp_path / "texts.toml", "--model", tmp_path / "mine", "--threads", 1)
    assert mine.code == 0, mine.err
    again = cli("demo", "--part", "documents", "--out", tmp_path / "d", "--threads", 1, "--json").json
    means = {name: evaluation["metrics"]["recall@10"] for name, evaluation in again["evaluations"].items()}
    assert again["documents"] > 1500
    assert means["space"] > 1.15 * means["tf-idf cosine"] > 0.1
    assert again["difference"]["low"] > 0
    (tmp_path / "file").write_text("x")
    assert cli("demo", "--part", "documents", "--out", tmp_path / "file").code == 1


def test_single_text_files_are_annotated(cli: Cli, model: Path, tmp_path: Path) -> None:
    bird, soup, bad = tmp_path / "bird.txt", tmp_path / "soup.txt", tmp_path / "bad.txt"
    bird.write_text("A small bird, resembling other birds.\n")
    soup.write_text("1:1 spicy sauce made with cream")  # by itself it might be a row of features
    bad.write_bytes(b"\xff\xfe")
    result = cli("annotate", model, bird, "-k", 1)
    assert result.out.startswith("bird.txt\tnoun.animal ")
    several = cli("annotate", model, bird, soup, bad, "-k", 1, "--rejects", tmp_path / "rejects.jsonl")
    assert [line.partition(" ")[0] for line in several.out.splitlines()] == [
        f"{bird}\tnoun.animal",
        f"{soup}\tnoun.food",
    ]
    assert "not UTF-8" in (tmp_path / "rejects.jsonl").read_text()
    written = cli("annotate", model, bird, soup, bad, "-k", 1, "--out", tmp_path / "out.tsv")
    assert written.code == 0, written.err
    lines = (tmp_path / "out.tsv").read_text().splitlines()[1:]
    assert [line.rpartition("\t")[0] for line in lines] == [f"{bird}\tnoun.animal", f"{soup}\tnoun.food"]


def test_info_reports_a_model_of_documents(cli: Cli, model: Path) -> None:
    facts = cli("info", model, "--json").json
    assert (facts["documents"], facts["sounds"], facts["pictures"]) == (True, False, False)
    assert facts["extractor"] == "words"


def test_feature_rows_of_text_are_a_source(cli: Cli, glosses: Path, tmp_path: Path) -> None:
    rows, new = tmp_path / "rows.parquet", tmp_path / "new.parquet"
    result = cli("features", "text", glosses / "data.noun", "--out", rows, "--n-words", 30, "--min-count", 3, "--json")
    assert result.code == 0, result.err
    assert result.json["rows"] == pq.read_metadata(rows).num_rows == 55
    again = cli("features", "text", glosses / "new.jsonl", "--out", new, "--extractor", f"{rows}.extractor")
    assert "11 rows of 19 features (words)" in again.out
    comparison = cli("compare", rows, "--test", new, "--models", "wsabie,nearest", "--json", "--threads", 1)
    assert comparison.code == 0, comparison.err


def test_project_documentation_is_extracted_by_words_and_hashes(cli: Cli, tmp_path: Path) -> None:
    """A folder of text and pictures: features come from its text, by hashes too; text without labels is left out."""
    out = tmp_path / "docs.parquet"
    result = cli("features", "text", DOCS, "--out", out, "--weighting", "tfidf", "--json", "--threads", 1)
    assert result.code == 0, result.err
    assert result.json["rows"] == len(list(DOCS.rglob("*.md")))
    bag = BagOfWords.load(f"{out}.extractor")
    first = [bag.words_.get_word(i) for i in range(20)]
    assert {"the", "a", "of"} <= set(first)
    assert "wsabie" in {bag.words_.get_word(i) for i in range(bag.n_features_)}
    hashed = cli(
        "features", "text", DOCS, "--out", tmp_path / "h.parquet", "--hashing", "--n-words", 1000, "--threads", 1
    )
    assert "rows of 1,000 features (words)" in hashed.out
    (tmp_path / "notes").mkdir()
    shutil.copy(DOCS / "sound.md", tmp_path / "notes")
    trained = cli("train", tmp_path / "notes", "--model", tmp_path / "m", "--threads", 1)
    assert trained.code == 1
    assert "has a label; label the data" in trained.err


def test_compare_and_split_take_documents(cli: Cli, glosses: Path, tmp_path: Path) -> None:
    report = tmp_path / "r.html"
    words = ("--models", "nearest,popularity", "--n-words", 100, "--report", report, "--threads", 1)
    result = cli("compare", glosses / "all.noun", *words)
    assert result.code == 0, result.err
    assert "training documents" in report.read_text()
    split = cli("split", glosses / "all.noun", "--out", tmp_path / "s")
    assert split.code == 1
    assert f"extract features first: wsabie features text {glosses / 'all.noun'}" in split.err


def test_tune_takes_documents(cli: Cli, glosses: Path, tmp_path: Path) -> None:
    pytest.importorskip("optuna", reason="optuna proposes settings")
    quick = ("--trials", 2, "--threads", 1, "--set", "dim=[4, 8]")
    result = cli("tune", glosses / "all.noun", "--out", tmp_path / "t", *quick)
    assert result.code == 0, result.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--features", "colour"), "colour takes pictures and"),
        (("--augment", "2"), "documents have no further views"),
        (("--size", "64"), "size is not an option of words"),
        (("--features", "words,mfcc"), "names features of documents and of sounds"),
    ],
)
def test_bad_arguments_give_one_sentence(
    cli: Cli, glosses: Path, tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    result = cli("train", glosses / "data.noun", "--model", tmp_path / "m", *words)
    assert result.code == 1
    assert message in result.err
    assert "Traceback" not in result.err


def test_documents_and_pictures_do_not_mix(
    cli: Cli, model: Path, glosses: Path, pictures: Path, tmp_path: Path
) -> None:
    wrong = cli("features", "images", glosses / "data.noun", "--out", tmp_path / "f.parquet")
    assert f"holds documents; run: wsabie features text {glosses / 'data.noun'}" in wrong.err
    picture = next(pictures.glob("*.webp"))
    result = cli("annotate", model, picture)
    assert f"{model} is a model of documents and {picture} holds pictures; give documents\n" in result.err
    with pytest.raises(InputError, match=r"this model is one of documents, and .* holds pictures; give documents"):
        load(model).rows(open_source(picture, labels_from="none"))
    hashed = cli("features", "images", pictures, "--out", tmp_path / "f.parquet", "--hashing")
    assert "hashing is not an option of visual-words" in hashed.err
    mapped = cli("features", "kpca", glosses / "data.noun", "--out", tmp_path / "f.parquet", "--min-count", 3)
    assert "--min-count cannot be used here" in mapped.err
    assert {wrong.code, result.code, hashed.code, mapped.code} == {1}
