"""Spoken digits: names of recordings, and a dictionary that is never run."""

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from wsabie.core.errors import InputError
from wsabie.io.data_sources import open_source
from wsabie.io.datasets.attribute_recognition import read_attributes
from wsabie.io.format_detection import detect_format
from wsabie.storage.rejects import Rejects

SPEAKERS = """\"\"\"About the speakers.\"\"\"

metadata = {
    'theo': {'gender': 'male', 'accent': 'USA/neutral', 'language': 'english'},
    'anna_b': {'gender': 'female', 'accent': 'DEU/German', 'language': 'english'}
}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "metadata.py").write_text(SPEAKERS)
    (tmp_path / "recordings").mkdir()
    for name in ("7_theo_0", "7_theo_5", "0_anna_b_12", "3_unknown_4"):
        (tmp_path / "recordings" / f"{name}.wav").touch()
    return tmp_path


def test_digits_are_labels_and_first_takes_the_test_side(folder: Path) -> None:
    assert detect_format(folder) == "spoken-digits"
    (folder / "recordings" / "noise.wav").touch()
    (folder / "noise.wav").touch()
    rejects = Rejects()
    assert [(item.id, item.labels) for item in open_source(folder, rejects=rejects)] == [
        ("recordings/0_anna_b_12.wav", ("0",)),
        ("recordings/3_unknown_4.wav", ("3",)),
        ("recordings/7_theo_0.wav", ("7",)),
        ("recordings/7_theo_5.wav", ("7",)),
    ]
    assert rejects.listed == [("recordings/noise.wav", "file name that is not digit, speaker and take", "")]
    tested = open_source(folder, split="test", label_column="accent", rejects=rejects)
    assert [(item.id, item.labels) for item in tested] == [("recordings/7_theo_0.wav", ("USA/neutral",))]
    assert rejects.listed[-1] == ("recordings/3_unknown_4.wav", "sound without labels", "no accent")
    assert len(open_source(folder, labels_from="none")) == 6  # a folder like any other


def test_metadata_file_describes_speakers(folder: Path) -> None:
    related = read_attributes(folder)
    anna, unknown, theo, theo_5 = related.ids
    assert related.pairs["speaker"] == [(anna, "anna_b"), (unknown, "unknown"), (theo, "theo"), (theo_5, "theo")]
    assert related.pairs.get("gender", []) == [(anna, "female"), (theo, "male"), (theo_5, "male")]
    assert related.splits == {anna: "train", unknown: "test", theo: "test", theo_5: "train"}


@pytest.mark.parametrize(
    "content",
    [
        "",
        "metadata = {",
        "metadata = {'theo': ['male']}",
        "metadata = {'theo': {'age': 7}}",
        "metadata = {['theo']: {}}",
        "metadata = {'theo': {'gender': open('leak', 'w').name}}",
        "metadata = {" + "{" * 5_000 + "}" * 5_000,
        "metadata = {'theo': {'gender': " + "-" * 50_000 + "1}}",
        "metadata = \xff{}",
    ],
)
def test_other_python_code_is_refused(folder: Path, content: str, monkeypatch) -> None:
    monkeypatch.chdir(folder)
    (folder / "metadata.py").write_bytes(content.encode("latin-1"))
    with pytest.raises(InputError, match=r"metadata\.py holds no dictionary .* fetch it again"):
        open_source(folder)
    assert not (folder / "leak").exists()
    assert len(open_source(folder, labels_from="none")) == 4


def test_invalid_choices_and_large_files_give_one_sentence(folder: Path) -> None:
    with pytest.raises(InputError, match="no labels of the kind 'tag'; choose one of digit, speaker, gender"):
        open_source(folder, label_column="tag")
    with pytest.raises(InputError, match="the side 'dev' of a split; choose one of test, train"):
        open_source(folder, split="dev")
    (folder / "metadata.py").write_text("#" * 100_000)
    with pytest.raises(InputError, match="larger than 64 KiB"):
        read_attributes(folder)


def test_similar_folders_are_not_recognised(tmp_path: Path) -> None:
    for place in ("jazz", "rock"):
        (tmp_path / "recordings" / place).mkdir(parents=True)
        (tmp_path / "recordings" / place / "song.wav").touch()
    (tmp_path / "metadata.txt").write_text(SPEAKERS)
    assert detect_format(tmp_path) == "folder"
    assert {item.labels for item in open_source(tmp_path)} == {("jazz",), ("rock",)}


@example("{'theo': {'gender': 'male'}}")
@given(st.text("metada={}':,[]( )theo\n-1", max_size=60))
def test_any_text_gives_recordings_or_one_sentence(result_or_sentence, tmp_path_factory, content: str) -> None:
    folder = tmp_path_factory.mktemp("d")
    (folder / "recordings").mkdir()
    (folder / "recordings" / "7_theo_0.wav").touch()
    (folder / "metadata.txt").write_text(f"metadata = {content}")
    related = result_or_sentence(read_attributes, folder)
    if related is not None:
        assert related.ids == ["recordings/7_theo_0.wav"]
        assert related.pairs["digit"] == [("recordings/7_theo_0.wav", "7")]
        assert len(related.pairs.get("gender", [])) == ("male" in content)


def test_published_spoken_digits_are_read(data: Path) -> None:
    rejects = Rejects()
    related = read_attributes(data / "fsdd", rejects=rejects)
    counts = {kind: (len(pairs), len({name for _, name in pairs})) for kind, pairs in related.pairs.items()}
    one_each = {"digit": 10, "speaker": 6, "gender": 1, "accent": 4, "language": 1}
    assert counts == {kind: (3_000, names) for kind, names in one_each.items()}
    assert (len(related), len(related.select_side("test")), len(rejects)) == (3_000, 300, 0)
    assert [item.id for item in open_source(data / "fsdd")] == related.ids
