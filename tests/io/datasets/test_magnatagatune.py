"""MagnaTagATune's two tables, with and without the clips."""

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from wsabie.core.errors import InputError
from wsabie.io.data_sources import open_source
from wsabie.io.datasets.attribute_recognition import read_attributes
from wsabie.io.datasets.magnatagatune import ANNOTATIONS, INFO
from wsabie.io.format_detection import detect_format
from wsabie.io.records import FeatureTable, ItemList
from wsabie.storage.rejects import Rejects

CLIPS = [  # clip, tags (no voice, piano), path
    ("2", "10", "f/nina-blue-01-song-0-29.mp3"),
    ("6", "01", "0/nina-blue-01-song-30-59.mp3"),
    ("10", "11", "c/miles-kind-02-what-0-29.mp3"),
    ("11", "00", "0/miles-kind-02-what-30-59.mp3"),
]
MAKERS = [
    ("2", "1", 'the ""Song""', "Nina", "Blue"),
    ("6", "1", "Song", "Nina", "Blue"),
    ("10", "2", "What", "Miles", ""),
]
HEADER = '"clip_id"\t"no voice"\t"piano"\t"mp3_path"\n'
INFO_HEADER = (
    '"clip_id"\t"track_number"\t"title"\t"artist"\t"album"\t"url"\t"segmentStart"\t"segmentEnd"\t"original_url"\t'
    '"mp3_path"\n'
)


def join_quoted(*cells: str) -> str:
    return "\t".join(f'"{cell}"' for cell in cells) + "\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / ANNOTATIONS).write_text(HEADER + "".join(join_quoted(clip, *tags, path) for clip, tags, path in CLIPS))
    rows = (join_quoted(*maker, "http://he3.example/", "0", "29", "", "") for maker in MAKERS)
    (tmp_path / INFO).write_text(INFO_HEADER + "".join(rows))
    return tmp_path


def write_clips(folder: Path, names: list[str]) -> None:
    for name in names:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).touch()


def test_tags_artists_and_albums_are_attributes(folder: Path) -> None:
    related = read_attributes(folder)
    a, b, c, d = (path for _, _, path in CLIPS)
    assert related.ids == [a, b, c, d]
    assert related.pairs == {
        "tag": [(a, "no voice"), (b, "piano"), (c, "no voice"), (c, "piano")],
        "artist": [(a, "Nina"), (b, "Nina"), (c, "Miles")],
        "album": [(a, "Blue"), (b, "Blue")],
    }
    assert related.splits == {a: "test", b: "train", c: "validation", d: "train"}


def test_clips_in_the_folder_are_sounds(folder: Path) -> None:
    assert detect_format(folder) == "magnatagatune"
    write_clips(folder, [CLIPS[0][2], CLIPS[1][2], CLIPS[3][2], "0/another-0-29.mp3"])
    rejects = Rejects()
    source = open_source(folder, rejects=rejects)
    assert isinstance(source, ItemList)
    assert source.modality == "sounds"
    assert [(item.id, item.labels, item.group) for item in source] == [
        ("f/nina-blue-01-song-0-29.mp3", ("no voice",), "f/nina-blue-01-song"),
        ("0/nina-blue-01-song-30-59.mp3", ("piano",), "0/nina-blue-01-song"),
    ]
    assert rejects.listed == [
        ("0/another-0-29.mp3", "sound without labels", f"no row in {ANNOTATIONS}"),
        ("c/miles-kind-02-what-0-29.mp3", "labels without a sound", ""),
        ("0/miles-kind-02-what-30-59.mp3", "sound without labels", "no tag"),
    ]
    of_artists = open_source(folder, label_column="artist", split="test")
    assert [(item.id, item.labels) for item in of_artists] == [("f/nina-blue-01-song-0-29.mp3", ("Nina",))]
    assert len(open_source(folder, labels_from="none")) == 4
    assert next(iter(open_source(folder, labels_from="folders"))).labels == ("0",)


def test_clips_without_files_are_ids(folder: Path) -> None:
    rejects = Rejects()
    rows = open_source(folder, rejects=rejects)
    assert isinstance(rows, FeatureTable)
    assert (rows.ids, rows.label_names) == ([path for _, _, path in CLIPS[:3]], ["no voice", "piano"])
    assert rows.Y.toarray().tolist() == [[1, 0], [0, 1], [1, 1]]
    assert rejects.counts == {"sound without labels": 1}
    assert open_source(folder, split="train").ids == [CLIPS[1][2]]


def test_bad_line_is_listed_and_skipped(folder: Path) -> None:
    with (folder / ANNOTATIONS).open("ab") as file:
        file.write(b'"12"\t"2"\t"0"\t"0/x-0-29.mp3"\n"13"\t"0"\t"1"\t""\n"14"\t"1"\n"15"\t"1"x\t"0"\t"0/y.mp3"\n\n')
        file.write(
            b'"16"\t"1"\t"0"\t"../y.mp3"\n"17"\t"1"\t"1"\t"0/\xff.mp3"\n' + join_quoted(*"201", CLIPS[0][2]).encode()
        )
    with (folder / INFO).open("a") as file:
        file.write('"an open quote\n')
    rejects = Rejects()
    assert len(read_attributes(folder, rejects=rejects)) == 4
    assert [(Path(where).name, reason) for where, reason, _ in rejects.listed] == [
        (f"{INFO}:5", "malformed CSV"),
        (f"{ANNOTATIONS}:6", "tag that is neither 0 nor 1"),
        (f"{ANNOTATIONS}:7", "row without a file name"),
        (f"{ANNOTATIONS}:8", "wrong number of cells"),
        (f"{ANNOTATIONS}:9", "malformed CSV"),
        (f"{ANNOTATIONS}:11", "path that leads out of the folder"),
        (f"{ANNOTATIONS}:12", "text that is not UTF-8"),
        (f"{ANNOTATIONS}:13", "duplicate id"),
    ]


def test_invalid_choices_and_tables_give_one_sentence(folder: Path) -> None:
    with pytest.raises(InputError, match="no labels of the kind 'genre'; choose one of tag, artist, album"):
        open_source(folder, label_column="genre")
    with pytest.raises(InputError, match="the side 'dev' of a split; choose one of test, train, validation"):
        open_source(folder, split="dev")
    (folder / INFO).write_text(INFO_HEADER.replace("artist", "maker"))
    with pytest.raises(InputError, match=rf"{INFO}:1 has no column 'artist'"):
        open_source(folder)
    (folder / ANNOTATIONS).unlink()
    with pytest.raises(InputError, match="holds no pictures and no sounds"):
        open_source(folder)


@example(b"")
@given(st.lists(st.sampled_from([b"\t", b'"', b"0", b"1", b"\n", b"\xff", b"a/b.mp3"]), max_size=40).map(b"".join))
def test_any_lines_give_clips_or_one_sentence(result_or_sentence, tmp_path_factory, content: bytes) -> None:
    folder = tmp_path_factory.mktemp("m")
    (folder / ANNOTATIONS).write_bytes(f"{HEADER}{join_quoted('2', '0', '1', 'a/first.mp3')}".encode() + content)
    (folder / INFO).write_bytes(INFO_HEADER.encode() + content)
    related = result_or_sentence(read_attributes, folder)
    if related is not None:
        assert related.ids[0] == "a/first.mp3"
        assert related.pairs["tag"][0] == ("a/first.mp3", "piano")
        assert all(name.encode() in content for name in related.ids[1:])
    else:
        assert content
    result_or_sentence(open_source, folder)
