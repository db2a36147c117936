"""ARFF with XML."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wsabie.core.errors import InputError
from wsabie.io.formats.mulan import read_mulan
from wsabie.io.parsers.xml_elements import parse_xml
from wsabie.storage.rejects import Rejects

XML = '<labels xmlns="http://mulan.sourceforge.net/labels"><label name="sky"><label name="sea"/></label></labels>'
HEAD = """% a comment
@RELATION 'some data'
@attribute size numeric
@attribute 'is "big"' {0,1}
@attribute colour {red, 'dark blue', green}
@attribute sea {0,1}
@attribute sky {0,1}
@DATA
"""


@pytest.fixture
def write(tmp_path):
    def write(text, name="d.arff", xml=XML, xml_name="d.xml"):
        if xml is not None:
            (tmp_path / xml_name).write_text(xml)
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def test_dense_file_is_read_exactly(write):
    rows = read_mulan(write(HEAD + "1.5,1,'dark blue',0,1\n\n% why\n-2, 0 ,red,1,1\n"), rejects=Rejects())
    assert rows.feature_names == ["size", 'is "big"', "colour=dark blue", "colour=green"]
    assert isinstance(rows.X, np.ndarray)
    assert rows.X.tolist() == [[1.5, 1, 1, 0], [-2, 0, 0, 0]]
    assert rows.label_names == ["sky", "sea"]
    assert rows.Y.toarray().tolist() == [[1, 0], [1, 1]]
    assert rows.ids == ["9", "12"]


def test_sparse_file_is_read_exactly(write):
    rows = read_mulan(write(HEAD + "{4 1, 0 3,2 'dark blue'}\n{}\n{3 1,2 red}\n"), rejects=Rejects())
    assert rows.X.toarray().tolist() == [[3, 0, 1, 0], [0] * 4, [0] * 4]
    assert rows.Y.toarray().tolist() == [[1, 0], [0, 0], [0, 1]]


def test_id_attribute_names_the_rows(write):
    rejects = Rejects()
    head = HEAD.replace("@attribute size", "@attribute ID string\n@attribute size")
    rows = read_mulan(write(head + "'a, b',1,1,red,0,1\nc,1,1,red,0,1\nc,1,1,red,0,1\n"), rejects=rejects)
    assert rows.ids == ["a, b", "c"]
    assert rejects.counts == {"duplicate id": 1}


@pytest.mark.parametrize("name", ["d-train.arff", "d-test.arff", "d-train-sparse.arff", "d-sparse.arff", "d.arff"])
def test_xml_is_found_by_its_stem(write, name):
    assert len(read_mulan(write(HEAD + "1,1,red,0,1\n", name), rejects=Rejects())) == 1


def test_broken_rows_are_skipped_counted_and_listed(write):
    rejects = Rejects()
    broken = [
        b"1,1,red,0",
        b"1,1,red,0,2",
        b"nan,1,red,0,1",
        b"1e39,1,red,0,1",
        b"1,x,red,0,1",
        b"1,1_0,red,0,1",
        b"?,1,red,0,1",
        b"1,1,pink,0,1",
        b"1,1,'red,0,1",
        b"{9 1}",
        b"{0 1,0 2}",
        b"{0 1",
        b"{0}",
        b"1,1,r\xffd,0,1",
    ]
    rows = read_mulan(write(HEAD.encode() + b"1,1,red,0,1\n" + b"\n".join(broken)), rejects=rejects)
    assert rows.ids == ["9"]
    assert rejects.counts == {
        "wrong number of values": 1,
        "label that is neither 0 nor 1": 1,
        "value that is not finite": 2,
        "malformed number": 2,
        "missing value": 1,
        "value that the header does not list": 1,
        "malformed row": 3,
        "attribute out of range": 1,
        "attribute given twice": 1,
        "text that is not UTF-8": 1,
    }
    with pytest.raises(InputError, match=r"d\.arff:10: wrong number of values"):
        read_mulan(write(HEAD.encode() + b"1,1,red,0,1\n" + broken[0]), rejects=Rejects(strict=True))


@pytest.mark.parametrize(
    ("text", "xml", "sentence"),
    [
        (HEAD, None, r"the XML file that says which attributes are labels is missing: there is no d\.xml"),
        (HEAD, XML.replace('"sea"', '"moon"'), r"names 1 labels that are not attributes of it, the first is 'moon'"),
        (HEAD, "<labels/>", r"names no labels"),
        (HEAD, XML.replace('"sea"', '"sky"'), r"names the label 'sky' twice"),
        (HEAD, "<labels><label", r"not well-formed XML"),
        (HEAD, "<!DOCTYPE a [<!ENTITY b 'c'>]><labels>&b;</labels>", r"document type declaration"),
        (HEAD, XML, r"holds no rows"),
        (HEAD.replace("@DATA", ""), XML, r"has no line @data"),
        ("@relation x\n@data\n1\n", XML, r":2 begins the data before any @attribute"),
        (HEAD.replace("size numeric", "size"), XML, r":3 is not an attribute"),
        (HEAD.replace("size numeric", "size string"), XML, r"'size', which is text and no feature"),
        (HEAD.replace("size numeric", "sea numeric"), XML, r":6 names the attribute 'sea' again"),
        (HEAD.replace("size numeric", "size {a,'b}"), XML, r":3 has malformed values"),
        (HEAD.replace("sea {0,1}", "sea {1,0}") + "{3 1}", XML, r"lists 1 before 0 for the label 'sea'"),
        ("@relation x\n@attribute sky {0,1}\n@attribute sea {0,1}\n@data\n0,1\n", XML, r"nothing to learn from"),
    ],
)
def test_unusable_files_give_one_sentence(write, text, xml, sentence):
    with pytest.raises(InputError, match=sentence):
        read_mulan(write(text, xml=xml), rejects=Rejects())


def test_entity_bombs_never_expand():
    bomb = b"<!DOCTYPE z [<!ENTITY a 'aaaaaaaaaa'>" + b"".join(
        b"<!ENTITY %c '&%c;&%c;&%c;&%c;'>" % ((i + 1, i, i, i, i)) for i in range(97, 115)
    )
    with pytest.raises(InputError, match="document type"):
        parse_xml(bomb + b"]><z>&s;</z>", "bomb.xml")
    with pytest.raises(InputError, match="deeper than"):
        parse_xml(b"<a>" * 1000 + b"</a>" * 1000, "deep.xml")


cells = st.tuples(
    st.floats(width=32, allow_nan=False, allow_infinity=False),
    st.booleans(),
    st.sampled_from(["red", "dark blue", "green"]),
    st.booleans(),
    st.booleans(),
)


@settings(deadline=None)
@given(rows=st.lists(cells, min_size=1, max_size=5))
def test_dense_and_sparse_forms_agree(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("mulan")
    (folder / "d.xml").write_text(XML)
    dense = [f"{a!r},{b:d},'{c}',{d:d},{e:d}" for a, b, c, d, e in rows]
    sparse = [f"{{0 {a!r},1 {b:d},2 '{c}',3 {d:d},4 {e:d}}}" for a, b, c, d, e in rows]
    (folder / "d.arff").write_text(HEAD + "\n".join(dense))
    (folder / "d-sparse.arff").write_text(HEAD + "\n".join(sparse))
    dense_table, sparse_table = (
        read_mulan(folder / "d.arff", rejects=Rejects()),
        read_mulan(folder / "d-sparse.arff", rejects=Rejects()),
    )
    assert np.array_equal(dense_table.X, sparse_table.X.toarray())
    assert np.array_equal(dense_table.Y.toarray(), sparse_table.Y.toarray())
    assert dense_table.X[:, 0].tolist() == [a for a, *_ in rows]
    assert dense_table.Y.toarray().tolist() == [[e, d] for *_, d, e in rows]


@settings(deadline=None)
@given(
    head=st.sampled_from([b"", HEAD.encode()]),
    text=st.one_of(st.binary(max_size=60), st.text("@data{}01,'\" \n%?attributexsky", max_size=90).map(str.encode)),
)
def test_any_bytes_give_rows_or_one_sentence(tmp_path_factory, result_or_sentence, head, text):
    folder = tmp_path_factory.mktemp("any")
    (folder / "d.xml").write_text(XML)
    (folder / "d.arff").write_bytes(head + text)
    rows = result_or_sentence(read_mulan, folder / "d.arff", rejects=Rejects())
    if rows is not None:
        assert rows.X.shape[0] == rows.Y.shape[0] == len(rows) > 0


@settings(deadline=None)
@given(xml=st.one_of(st.binary(max_size=60), st.text("<>/labels name='\"&;!x", max_size=60).map(str.encode)))
def test_any_xml_gives_labels_or_one_sentence(tmp_path_factory, xml):
    folder = tmp_path_factory.mktemp("any")
    (folder / "d.xml").write_bytes(xml)
    (folder / "d.arff").write_text(HEAD + "1,1,red,0,1\n")
    with pytest.raises(InputError, match=r"."):
        read_mulan(folder / "d.arff", rejects=Rejects())


@pytest.mark.data
def test_corel5k_is_read(data):
    train = read_mulan(data / "corel5k_mulan" / "Corel5k-train-sparse.arff", rejects=Rejects())
    test = read_mulan(data / "corel5k_mulan" / "Corel5k-test-sparse.arff", rejects=Rejects())
    assert train.X.shape == (4500, 499)
    assert test.X.shape == (500, 499)
    assert train.Y.shape == (4500, 374)
    assert train.label_names[:3] == ["city", "mountain", "sky"]
    assert train.label_names == test.label_names
    assert train.feature_names == test.feature_names
    assert (train.Y.nnz + test.Y.nnz) / 5000 == pytest.approx(3.52, abs=0.005)
    assert (train.X.nnz + test.X.nnz) / 5000 == pytest.approx(8.3, abs=0.05)
    assert np.flatnonzero(train.X[0].toarray()).tolist() == [19, 93, 143, 149, 259, 329, 379, 461]
    assert np.flatnonzero(train.Y[0].toarray()).tolist() == [0, 1, 2, 3]
