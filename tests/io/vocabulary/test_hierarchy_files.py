"""Every form of an is-a list, what is wrong with a file and where, and real WordNet against its other forms."""

import contextlib
import gzip
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsabie.core.errors import InputError
from wsabie.io.vocabulary.hierarchy_files import mine_hierarchy, read_hierarchy, write_hierarchy
from wsabie.samples import get_sample_path

SYNSETS = """  1 This software and database is being provided to you, the LICENSEE,
00000100 03 n 01 entity 0 001 ~ 00000200 n 0000 | that which is
00000200 03 n 02 animal 0 Living_thing 1 001 @ 00000100 n 0000 | a beast
00000300 05 n 02 toad 0 anuran 0 002 @ 00000200 n 0000 + 00000009 v 0101 | hops
00000400 05 n 01 frog 0 001 @i 00000200 n 0000 | hops too
"""


def write_list(folder: Path, text: str, name: str = "kinds.txt") -> Path:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


@pytest.mark.parametrize(
    "text",
    [
        "toad\tamphibian\nfrog\tamphibian\n",
        "toad\tamphibian\t12\nfrog\tamphibian\t3\n",
        "child\tparent\tcount\ntoad\tamphibian\t12\nfrog\tamphibian\t3\n",
        "parent\tchild\namphibian\ttoad\namphibian\tfrog\n",
        "toad,amphibian\nfrog,amphibian\n",
        '"toad","amphibian"\r\n"frog",amphibian\r\n',
        "toad amphibian\n\nfrog   amphibian\n",
        "# kinds of animals\n# child parent\ntoad amphibian\nfrog amphibian\n",
        "\ufefftoad\tamphibian\nFrog\tAmphibian",
    ],
)
def test_pair_lists_are_read(text, tmp_path):
    kinds = read_hierarchy(write_list(tmp_path, text))
    assert sorted(kinds.pairs()) == [("frog", "amphibian"), ("toad", "amphibian")]


def test_names_may_have_blanks_commas_and_any_script(tmp_path):
    kinds = read_hierarchy(
        write_list(tmp_path, 'great white shark\tfish\n"Washington, D.C."\tcity\nжаба\tземноводные\n')
    )
    assert kinds.parents("Great_White Shark") == ["fish"]
    assert kinds.parents("ЖАБА") == ["земноводные"]
    in_csv = read_hierarchy(write_list(tmp_path, '"Washington, D.C.",city\n'))
    assert in_csv.parents("washington, d.c.") == ["city"]


def test_parent_first_is_an_option_and_imagenets_order(tmp_path):
    assert read_hierarchy(write_list(tmp_path, "fish\tshark\n"), parent_first=True).parents("shark") == ["fish"]
    assert read_hierarchy(write_list(tmp_path, "n02118333 n02119789\n")).parents("n02119789") == ["n02118333"]
    assert read_hierarchy(write_list(tmp_path, "n02119789\tn02118333\n")).parents("n02119789") == ["n02118333"]


def test_gzip_is_read(tmp_path):
    file = tmp_path / "kinds.tsv.gz"
    file.write_bytes(gzip.compress(b"toad\tamphibian\n"))
    assert read_hierarchy(file).parents("toad") == ["amphibian"]


def test_wordnet_synsets_are_read(tmp_path):
    kinds = read_hierarchy(write_list(tmp_path, SYNSETS, "data.noun"))
    assert sorted(kinds.pairs()) == [("n00000200", "n00000100"), ("n00000300", "n00000200"), ("n00000400", "n00000200")]
    assert kinds.parents("living thing") == kinds.parents("animal, Living_thing") == ["n00000100"]
    assert kinds.find_siblings(["toad", "frog", "anuran", "animal"]).siblings().tolist() == [2, 2, 2, 0]
    assert sorted(read_hierarchy(tmp_path).pairs()) == sorted(kinds.pairs())


def test_prolog_and_word_files_complete_each_other(tmp_path):
    facts = write_list(tmp_path, "hyp(100000300,100000200).\n\nins(100000400,100000200).\n", "wn_hyp.pl")
    words = write_list(tmp_path, "n00000300\ttoad, anuran\nn00000400\tfrog\n", "words.txt")
    kinds = read_hierarchy(facts, words)
    assert kinds.find_siblings(["frog", "toad"]).siblings().tolist() == [1, 1]
    assert kinds.parents("toad, anuran") == ["n00000200"]
    assert read_hierarchy(tmp_path).fingerprint() == kinds.fingerprint()


def test_sub_folders_are_a_hierarchy(tmp_path):
    for place in ("animals/dog", "animals/cat", "plants/oak"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "1.png").write_bytes(b"\x89PNG")
    kinds = read_hierarchy(tmp_path)
    assert kinds.find_siblings(["dog", "cat", "oak", "animals", "plants"]).siblings().tolist() == [1, 1, 0, 0, 0]


def test_emoji_categories_are_a_hierarchy():
    kinds = read_hierarchy(get_sample_path("emoji"))
    assert kinds.parents("hund") == ["animals & nature/animal-mammal"]
    assert kinds.parents("animal-mammal") == ["animals & nature"]
    assert kinds.find_siblings(["hund", "chat", "sailboat"]).max_similarity([0]).tolist() == [1, 1, 0]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("toad\tamphibian\nfrog\n", r"kinds\.txt:2 is not a pair"),
        ("toad\tamphibian\n\tamphibian\n", r"kinds\.txt:2 is not a pair"),
        ("a b c d\n", r"kinds\.txt:1 is not a pair"),
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("a\0b\n", "is not text"),
        ("hyp(100000300,100000200).\nhyp(oops).\n", r"kinds\.txt:2 is not a fact"),
        ("hyp(100000300,100000200).\nhyp(900000300,100000200).\n", r"kinds\.txt:2 is not a fact"),
        ("n00000300\ttoad\nn00000400\n", r"kinds\.txt:2 is not a synset"),
        ("n00000300\ttoad\n", "hold no is-a pair"),
        (SYNSETS + "00000500 03 n 09 toad 0\n", r"kinds\.txt:6 is not a line of a synset"),
        (SYNSETS + "00000500 03 n zz toad 0\n", r"kinds\.txt:6 is not a line of a synset"),
        ("toad\ttoad\n", "hold no is-a pair"),
    ],
)
def test_errors_name_the_line(text, sentence, tmp_path):
    with pytest.raises(InputError, match=sentence):
        read_hierarchy(write_list(tmp_path, text))


def test_unreadable_files_are_refused(tmp_path):
    latin = tmp_path / "latin.tsv"
    latin.write_bytes(b"toad\tamphibian\nkr\xf6te\tamphibian\n")
    with pytest.raises(InputError, match=r"latin\.tsv:2 is not UTF-8"):
        read_hierarchy(latin)
    with pytest.raises(InputError, match="there is no file"):
        read_hierarchy(tmp_path / "nothing")
    pq.write_table(pa.table({"labels": [["a"]]}), tmp_path / "t.parquet")
    with pytest.raises(InputError, match="no column 'category'"):
        read_hierarchy(tmp_path / "t.parquet")
    pq.write_table(pa.table({"labels": [["a"]], "category": [7]}), tmp_path / "t.parquet")
    with pytest.raises(InputError, match="is not text"):
        read_hierarchy(tmp_path / "t.parquet")
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(InputError, match="not Parquet"):
        read_hierarchy(tmp_path / "bad.parquet")


def test_endless_lines_are_refused(tmp_path):
    with pytest.raises(InputError, match="more than 1 MiB"):
        read_hierarchy(write_list(tmp_path, "a\tb\n" + "x" * (1 << 20) + "y\tz\n"))


PIECES = [
    b"toad",
    b"\t",
    b"\n",
    b",",
    b'"',
    b" ",
    b"n00000100",
    b"hyp(100000300,100000200).",
    b"\xff",
    b"00000300 05 n 01",
]


@given(st.lists(st.one_of(st.sampled_from(PIECES), st.binary(max_size=6)), max_size=25).map(b"".join))
def test_any_bytes_give_pairs_or_one_sentence(tmp_path_factory, content):
    file = tmp_path_factory.mktemp("any") / "kinds"
    file.write_bytes(content)
    with contextlib.suppress(InputError):
        assert len(read_hierarchy(file)) > 0


def test_mined_pairs_are_read_back(tmp_path):
    text = write_list(tmp_path, "A toad is an amphibian.\nThe frog is an\namphibian, and a toad is an amphibian!\n")
    file = tmp_path / "kinds.tsv"
    assert write_hierarchy(file, mine_hierarchy(text).pairs()) == 2
    assert file.read_text() == "child\tparent\tcount\ntoad\tamphibian\t2\nfrog\tamphibian\t1\n"
    assert read_hierarchy(file).find_siblings(["toad", "frog"]).siblings().tolist() == [1, 1]


def test_pairs_are_mined_from_real_text(tmp_path):
    topics = pytest.importorskip("pydoc_data.topics").topics  # the language reference that comes with Python
    hierarchy = mine_hierarchy(write_list(tmp_path, "\n\n".join(topics.values())))
    mined_pairs = {(child, parent) for child, parent, _ in hierarchy.pairs()}
    assert {("class definition", "statement"), ("function definition", "statement")} <= mined_pairs
    assert 20 < len(mined_pairs) < 200


def test_binary_text_is_not_mined(tmp_path):
    with pytest.raises(InputError, match="not plain text"):
        mine_hierarchy(write_list(tmp_path, "a\0b"))


@pytest.mark.data
def test_two_forms_of_wordnet_give_the_same_siblings():
    data = Path(os.environ.get("WSABIE_TEST_DATA") or pytest.skip("WSABIE_TEST_DATA is not set"))
    labels = (data / "imagenet_synsets/ilsvrc2012_1k.txt").read_text().split()
    pairs = read_hierarchy(data / "imagenet_synsets")
    prolog = read_hierarchy(data / "wordnet_partof/wn_hyp.pl", data / "imagenet_synsets/words.txt")
    by_pairs, by_prolog = pairs.find_siblings(labels), prolog.find_siblings(labels)
    assert by_pairs.is_known().all()
    assert by_pairs.siblings().tolist() == by_prolog.siblings().tolist()
    assert np.median(by_pairs.siblings()) == 1
    assert "n01627424" in pairs.parents("toad")
    assert pairs.find_siblings(["toad", "frog"]).max_similarity([0]).all()
