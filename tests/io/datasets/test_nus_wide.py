"""NUS-WIDE as it was published, in small."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wsabie.core.errors import InputError
from wsabie.io.data_sources import open_source
from wsabie.io.format_detection import detect_format
from wsabie.storage.rejects import Rejects

CH = "Low_Level_Features/Normalized_CH.dat"
PICTURES = "actor\\0001_21.jpg\r\nactor\\0002_34.jpg\r\nzoos\\0001_55.jpg\r\n"
FILES = {
    "NUS_WID_Tags/All_Tags.txt": "21        portrait nuns  caf\u00e9 \n34    nuns\n55      \n21    zoo\n",
    "NUS_WID_Tags/TagList1k.txt": "nuns\nportrait\nzoo\n",
    "NUS_WID_Tags/AllTags1k.txt": "1\t1\t0\t\n0\t0\t0\t\n0\t0\t1\t\n",
    "NUS_WID_Tags/Train_Tags1k.dat": "1\t1\t0\t\n0\t0\t1\t\n",
    "NUS_WID_Tags/AllTags81.txt": "1 0 \n0 1 \n1 1 \n",
    "ConceptsList/Concepts81.txt": "sky\nanimal\n",
    "Groundtruth/AllLabels/Labels_sky.txt": "1\n0\n0\n",
    "Groundtruth/AllLabels/Labels_animal.txt": "1\n0\n1\n",
    "Groundtruth/TrainTestLabels/Labels_sky_Train.txt": "1\n-1130179\n",
    "Groundtruth/TrainTestLabels/Labels_animal_Train.txt": "1\n1\n",
    "Groundtruth/TrainTestLabels/Labels_sky_Test.txt": "0\n",
    "Groundtruth/TrainTestLabels/Labels_animal_Test.txt": "0\n",
    "ImageList/Imagelist.txt": PICTURES,
    "ImageList/TrainImagelist.txt": "actor\\0001_21.jpg\nzoos\\0001_55.jpg\n",
    "ImageList/TestImagelist.txt": "actor\\0002_34.jpg\n",
    "Low_Level_Features/Normalized_CH.dat": "0.5 0 0.25 \n0 1 0 \n0 0 1 \n",
    "Low_Level_Features/Train_Normalized_CH.dat": "0.5 0 0.25 \n0 0 1 \n",
    "Low_Level_Features/BoW_Test_int.dat": "3 0 \n",
}


@pytest.fixture
def root(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(text.encode())
    return tmp_path


def labels(rows):
    return {name: {rows.label_names[i] for i in Y.indices} for name, Y in zip(rows.ids, rows.Y, strict=True)}


def test_tags_have_flickr_ids(root):
    rejects = Rejects()
    for path in (root / "NUS_WID_Tags", root / "NUS_WID_Tags" / "All_Tags.txt"):
        assert detect_format(path) == "nus-wide"
        rows = open_source(path, rejects=rejects)
        assert labels(rows) == {"21": {"portrait", "nuns", "caf\u00e9", "zoo"}, "34": {"nuns"}}
        assert rows.X.toarray().tolist() == [[1, 0], [0, 1]]
    assert rejects.counts == {"picture without labels": 2}
    assert rejects.listed[0][0].endswith("All_Tags.txt:3")


def test_final_tag_list_selects_tags(root):
    (root / "NUS_WID_Tags" / "Final_Tag_List.txt").write_text("nuns\nzoo\n")
    assert labels(open_source(root / "NUS_WID_Tags")) == {"21": {"nuns", "zoo"}, "34": {"nuns"}}


def test_tag_tables_are_read(root):
    tags = root / "NUS_WID_Tags"
    rejects = Rejects()
    assert labels(open_source(tags / "AllTags1k.txt", rejects=rejects)) == {"21": {"nuns", "portrait"}, "55": {"zoo"}}
    assert rejects.listed == [(f"{tags / 'AllTags1k.txt'}:2", "picture without labels", "34")]
    assert labels(open_source(tags / "Train_Tags1k.dat")) == {"21": {"nuns", "portrait"}, "55": {"zoo"}}
    assert labels(open_source(tags / "AllTags81.txt")) == {"21": {"sky"}, "34": {"animal"}, "55": {"animal", "sky"}}
    (root / "ImageList" / "Imagelist.txt").unlink()
    assert list(labels(open_source(tags / "AllTags1k.txt"))) == ["1", "3"]


def test_concepts_are_read_as_labels(root):
    for path in (root / "Groundtruth", root / "Groundtruth" / "AllLabels"):
        assert labels(open_source(path)) == {"21": {"sky", "animal"}, "55": {"animal"}}
    with pytest.raises(InputError, match=r"holds both tags and concepts, and nothing says which count; give .*All_"):
        open_source(root)


def test_features_are_read_with_concepts(root):
    rows = open_source(root / "Low_Level_Features" / "Normalized_CH.dat")
    np.testing.assert_array_equal(rows.X, np.array([[0.5, 0, 0.25], [0, 1, 0], [0, 0, 1]], np.float32))
    assert labels(rows) == {"21": {"sky", "animal"}, "34": set(), "55": {"animal"}}
    rejects = Rejects()
    train = open_source(root / "Low_Level_Features" / "Train_Normalized_CH.dat", rejects=rejects)
    assert train.feature_names == rows.feature_names == [f"Normalized_CH {i}" for i in range(3)]
    assert labels(train) == {"21": {"sky", "animal"}, "55": {"animal"}}
    assert rejects.listed[0][:2] == (
        str(root / "Groundtruth/TrainTestLabels/Labels_sky_Train.txt") + ":2",
        "flag that is neither 0 nor 1",
    )
    assert labels(open_source(root / "Low_Level_Features" / "BoW_Test_int.dat")) == {"34": set()}


def test_broken_feature_lines_are_listed(root):
    path, rejects = root / "Low_Level_Features" / "Normalized_CH.dat", Rejects()
    path.write_text("0.5 x 1\n1 2\n1 nan\n")
    (root / "ImageList" / "Imagelist.txt").unlink()
    rows = open_source(path, rejects=rejects)
    assert (rows.ids, rows.X.tolist()) == (["2"], [[1, 2]])
    assert rejects.counts == {"malformed number": 1, "value that is missing or not finite": 1}
    path.write_text("1 2\n1 2 3\n1e99 1\n")
    assert open_source(path, rejects=rejects).ids == ["1"]
    assert rejects.counts["wrong number of values"] == 1


@pytest.mark.parametrize(
    ("file", "text", "place", "sentence"),
    [
        (
            "ImageList/Imagelist.txt",
            "a\\1_1.jpg\n",
            "NUS_WID_Tags/AllTags1k.txt",
            "about 3 pictures but the list of pi",
        ),
        ("NUS_WID_Tags/TagList1k.txt", "nuns\n", "NUS_WID_Tags/AllTags1k.txt", r"k\.txt:1 has 3 flags for 1 labels"),
        ("NUS_WID_Tags/TagList1k.txt", "", "NUS_WID_Tags/AllTags1k.txt", r"List1k\.txt is empty; it should list"),
        ("NUS_WID_Tags/TagList1k.txt", None, "NUS_WID_Tags/AllTags1k.txt", r"there is no TagList1k\.txt beside"),
        ("Groundtruth/AllLabels/Labels_sky.txt", "1\n", "Groundtruth", r"sky\.txt has 1 lines but Labels_animal"),
        ("ImageList/Imagelist.txt", "a\\1_1.jpg\n", CH, "about 3 pictures but"),
        (CH, "1\n", CH, "about 1 pictures but"),
        (
            "Low_Level_Features/Normalized_CH.dat",
            "x\nx\nx\n",
            "Low_Level_Features/Normalized_CH.dat",
            "no rows are left",
        ),
    ],
)
def test_inconsistent_files_give_one_sentence(root, file, text, place, sentence):
    (root / file).unlink()
    if text is not None:
        (root / file).write_text(text)
    with pytest.raises(InputError, match=sentence) as caught:
        open_source(root / place)
    assert "\n" not in str(caught.value)


def test_features_need_labels(tmp_path):
    (tmp_path / "Normalized_WT.dat").write_text("1 2\n")
    with pytest.raises(InputError, match=r"there are no labels for .*; put the folder Groundtruth beside"):
        open_source(tmp_path / "Normalized_WT.dat")


@settings(deadline=None, max_examples=50)
@given(text=st.one_of(st.binary(max_size=40), st.text("01 \t\nab.", max_size=40).map(str.encode)))
@pytest.mark.parametrize("name", ["NUS_WID_Tags/All_Tags.txt", "NUS_WID_Tags/AllTags81.txt", CH])
def test_any_bytes_give_rows_or_one_sentence(tmp_path_factory, result_or_sentence, name, text):
    root = tmp_path_factory.mktemp("any")
    for file in ("ConceptsList/Concepts81.txt", "Groundtruth/AllLabels/Labels_sky.txt"):
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text(FILES[file])
    (root / name).parent.mkdir()
    (root / name).write_bytes(text)
    rows = result_or_sentence(open_source, root / name)
    if rows is not None:
        assert rows.X.shape[0] == rows.Y.shape[0] == len(rows) > 0
