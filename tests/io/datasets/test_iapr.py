"""IAPR TC-12: descriptions and regions."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wsabie.core.errors import InputError
from wsabie.io.data_sources import open_source
from wsabie.io.datasets.iapr import read_iapr
from wsabie.io.format_detection import detect_format
from wsabie.io.records import ItemList
from wsabie.storage.rejects import Rejects

DOC = """<DOC>
<DOCNO>annotations/{0}.eng</DOCNO>
<TITLE>Godchild of the caf\u00e9</TITLE>
<DESCRIPTION>{1}</DESCRIPTION>
<NOTES></NOTES>
<LOCATION>{2}</LOCATION>
<DATE>April 2002</DATE>
<IMAGE>images/{0}.jpg</IMAGE>
<THUMBNAIL>thumbnails/{0}.jpg</THUMBNAIL>
</DOC>
"""


def write(root, number, words, place="", encoding="cp1252"):
    file = root / "annotations_complete_eng" / f"{number}.eng"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(DOC.format(number, words, place).encode(encoding))


def labels(rows):
    return {name: {rows.label_names[i] for i in Y.indices} for name, Y in zip(rows.ids, rows.Y, strict=True)}


@pytest.fixture
def root(tmp_path):
    write(tmp_path, "01/1000", "a dark-skinned boy & a wall; a grey wall;", "Quilotoa, Ecuador")
    write(tmp_path, "02/2000", "a boy in the caf\u00e9;", "Tucum\u00e1n", "utf-8")
    return tmp_path


def test_labels_are_words_of_descriptions_and_locations(root):
    labels_by_id = {
        "01/1000": {"dark-skinned", "boy", "wall", "grey", "quilotoa", "ecuador"},
        "02/2000": {"boy", "caf\u00e9", "tucum\u00e1n"},
    }
    for path in (root, root / "annotations_complete_eng"):
        assert detect_format(path) == "iapr"
        assert labels(open_source(path)) == labels_by_id


def test_dictionary_selects_words(root):
    (root / "iaprtc12_dictionary.txt").write_text("boy\nin\nwall\n")
    assert labels(open_source(root)) == {"01/1000": {"boy", "wall"}, "02/2000": {"boy", "in"}}


def test_pictures_in_the_folder_are_the_source(root, picture):
    picture(root / "images" / "01" / "1000.jpg")
    rejects = Rejects()
    source = open_source(root, rejects=rejects)
    assert isinstance(source, ItemList)
    assert [(p.id, p.content) for p in source] == [("01/1000", root / "images/01/1000.jpg")]
    assert rejects.counts == {"labels without a picture": 1}


def test_broken_descriptions_are_listed(root):
    write(root, "03/3000", "<b>no end")
    write(root, "03/3001", "the of a")
    write(root, "03/3002", "x" * (1 << 20))
    place = root / "annotations_complete_eng" / "03"
    (place / "3003.eng").write_text("<DOC></DOC>")
    (place / "3004.eng").write_text(DOC.format("01/1000", "boy", ""))
    (place / "3005.eng").write_text("<!DOCTYPE x><DOC/>")
    rejects = Rejects()
    assert len(open_source(root, rejects=rejects)) == 2
    assert rejects.counts == {
        "description that is not XML": 2,
        "picture without labels": 1,
        "description of more than 1 MiB": 1,
        "description without its picture": 1,
        "duplicate id": 1,
    }
    assert rejects.listed[0][0] == "annotations_complete_eng/03/3000.eng"
    with pytest.raises(InputError, match=r"03/3000\.eng: description that is not XML"):
        open_source(root, rejects=Rejects(strict=True))


@pytest.fixture
def regions(tmp_path):
    (tmp_path / "wlist.txt").write_text("1\tsky\n2\tperson\n3\tperson\n")
    (tmp_path / "01").mkdir()
    (tmp_path / "01" / "labels.txt").write_text("1000\t1\t1\n1000\t2\t2\n1000\t3\t1\n1001 1 3\n")
    return tmp_path


def test_region_labels_are_names(regions, picture):
    assert labels(open_source(regions)) == {"01/1000": {"sky", "person (2)"}, "01/1001": {"person (3)"}}
    picture(regions / "01" / "images" / "1001.jpg")
    source = open_source(regions)
    assert [(p.id, p.labels) for p in source] == [("01/1001", ("person (3)",))]


def test_broken_regions_are_listed(regions):
    (regions / "02").mkdir()
    (regions / "02" / "labels.txt").write_text("1\t1\n1\t1\tsky\n1 1 9\n\n1 1 1\n")
    rejects = Rejects()
    assert labels(open_source(regions, rejects=rejects))["02/1"] == {"sky"}
    assert rejects.counts == {"line that is not picture, region and code": 2, "code without a name": 1}
    assert rejects.listed[0][0] == f"{regions / '02' / 'labels.txt'}:1"


@settings(deadline=None, max_examples=50)
@given(st.one_of(st.binary(max_size=60), st.text("<DOC>/IMAGE&;a ", max_size=60).map(str.encode)))
def test_any_bytes_give_rows_or_one_sentence(tmp_path_factory, result_or_sentence, content):
    folder = tmp_path_factory.mktemp("any")
    (folder / "1.eng").write_bytes(content)
    assert result_or_sentence(read_iapr, folder, rejects=Rejects()) is None or content
