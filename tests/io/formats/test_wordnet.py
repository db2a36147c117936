"""Synsets of WordNet as documents, in lines of the real files, and all of WordNet where a folder of it is found."""

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsabie.core.errors import InputError
from wsabie.io.data_sources import open_source
from wsabie.io.format_detection import detect_format
from wsabie.io.formats.wordnet import iterate_is_a_pairs, read_glosses
from wsabie.io.vocabulary.hierarchy_files import read_hierarchy
from wsabie.storage.rejects import Rejects

NOUNS = """  1 This software and database is being provided to you, the LICENSEE, by  
  2 Princeton University under the following license.  By obtaining, using  
01439808 05 n 02 cyprinid 0 cyprinid_fish 0 003 @ 01439121 n 0000 #m 01439514 n 0000 ~ 01440764 n 0000 | soft-finned mainly freshwater fishes typically having toothless jaws and cycloid scales  
01440764 05 n 02 tench 0 Tinca_tinca 0 002 @ 01439808 n 0000 #m 01440467 n 0000 | freshwater dace-like game fish of Europe and western Asia noted for ability to survive outside water  
08952190 15 n 01 Provence 0 001 @i 08497294 n 0000 | a former province of southeastern France; now administered with Cote d'Azur  
"""  # noqa: E501, W291
ADJECTIVES = """  1 This software and database is being provided to you, the LICENSEE, by  
00013887 00 s 02 abounding 0 galore(ip) 0 001 & 00013160 a 0000 | existing in abundance; "abounding confidence"; "whiskey galore"  
"""  # noqa: E501, W291


@pytest.fixture
def wordnet(tmp_path):
    (tmp_path / "data.noun").write_text(NOUNS)
    (tmp_path / "data.adj").write_bytes(gzip.compress(ADJECTIVES.encode()))
    (tmp_path / "index.noun").write_text("tench n 1 2 @ #m 1 0 01440764\n")
    return tmp_path


def test_synset_becomes_a_document_of_words_and_gloss(wordnet):
    source = open_source(wordnet)
    assert (detect_format(wordnet), detect_format(wordnet / "data.noun"), source.modality) == (
        "glosses",
        "glosses",
        "documents",
    )
    synsets = {item.id: item for item in source}
    assert list(synsets) == ["n01439808", "n01440764", "n08952190", "s00013887"]
    tench = synsets["n01440764"]
    assert tench.content.startswith(b"tench, Tinca tinca | freshwater dace-like game fish of Europe and")
    assert (tench.labels, synsets["s00013887"].labels) == (("noun.animal",), ("adj.all",))
    assert (
        synsets["s00013887"].content
        == b'abounding, galore | existing in abundance; "abounding confidence"; "whiskey galore"'
    )
    assert [item.labels for item in open_source(wordnet / "data.noun", labels_from="none")] == [()] * 3


def test_examples_can_be_left_out(wordnet):
    (item,) = read_glosses(wordnet / "data.adj", examples=False, rejects=Rejects())
    assert item.content == b"abounding, galore | existing in abundance"


def test_pairs_are_those_of_the_hierarchy(wordnet):
    pairs = list(iterate_is_a_pairs(wordnet))
    assert pairs == [("n01439808", "n01439121"), ("n01440764", "n01439808"), ("n08952190", "n08497294")]
    assert pairs == list(read_hierarchy(wordnet / "data.noun").pairs())


def test_bad_lines_are_listed(wordnet):
    cut = "01440764 05 n 02 tench 0\n02000000 99 n 01 x 0 000 | of no category\n"
    (wordnet / "data.noun").write_text(NOUNS + cut)
    rejects = Rejects()
    assert len(open_source(wordnet, rejects=rejects)) == 4
    assert [(Path(where).name, reason) for where, reason, _ in rejects.listed] == [
        ("data.noun:6", "line that is not a synset"), ("data.noun:7", "line that is not a synset"),
    ]  # fmt: skip
    with pytest.raises(InputError, match=r"data\.noun:6 is not a line of a synset"):
        list(iterate_is_a_pairs(wordnet))


def test_wordnet_folder_with_pictures_is_a_picture_folder(wordnet, picture):
    picture(wordnet / "fish" / "1.png")
    assert open_source(wordnet).modality == "pictures"


def test_folders_without_pictures_beside_the_files_are_ignored(wordnet):
    """Debian's browser of WordNet leaves such files there."""
    (wordnet / "pixmaps").mkdir()
    (wordnet / "pixmaps" / "wn.xbm").write_text("#define wn_width 16")
    assert open_source(wordnet).modality == "documents"


def test_complete_wordnet_is_read():
    folder = Path("/usr/share/wordnet")
    if not (folder / "data.noun").is_file():
        pytest.skip("WordNet (Debian's wordnet-base) is not installed")
    source, rejects = open_source(folder), Rejects()
    labels = {label for item in source for label in item.labels}
    assert (len(source), len(rejects), len(labels)) == (117_659, 0, 45)


@given(
    st.binary(max_size=60)
    | st.lists(st.sampled_from([NOUNS, "0", " ", "|", "01440764 05 n 02 ", "é"]), max_size=6).map(
        lambda parts: "".join(parts).encode()
    )
)
def test_any_bytes_give_documents_or_one_sentence(tmp_path_factory, result_or_sentence, content):
    path = tmp_path_factory.getbasetemp() / "any"
    path.write_bytes(content)
    source = result_or_sentence(read_glosses, path, rejects=Rejects())
    if source is not None:
        assert len(list(source)) == len(source)
