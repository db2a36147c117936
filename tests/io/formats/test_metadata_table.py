"""Metadata files as spreadsheets and scripts really write them."""

import csv

import pytest

from wsabie.core.errors import InputError
from wsabie.io.formats.media_folder import read_folder
from wsabie.storage.rejects import Rejects

NAMES = ["🐕 dog", 'the "big" one', "Washington, D.C.", "ciel; mer", "犬"]


@pytest.fixture
def folder(tmp_path, picture):
    for number in range(len(NAMES)):
        picture(tmp_path / f"{number}.png")
    return tmp_path


def list_labels(folder, **options):
    return {p.id: p.labels for p in read_folder(folder, **{"rejects": Rejects(), **options})}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("delimiter", [",", ";"])
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_delimiters_encodings_and_line_ends_are_recognised(folder, encoding, delimiter, ending):
    with (folder / "metadata.csv").open("w", newline="", encoding=encoding) as stream:
        lines = csv.writer(stream, delimiter=delimiter, lineterminator=ending)
        lines.writerow(["file_name", "label", "group"])
        lines.writerows([f"{number}.png", name, f"g{number}"] for number, name in enumerate(NAMES))
    source = read_folder(folder, rejects=Rejects())
    assert [(p.id, p.labels, p.group) for p in source] == [
        (f"{number}.png", (name,), f"g{number}") for number, name in enumerate(NAMES)
    ]


def test_semicolon_tables_separate_labels_by_commas(folder):
    (folder / "metadata.csv").write_text('file_name;labels\n0.png;sea, sky\n1.png;"dog,cat"\n')
    assert list_labels(folder) == {"0.png": ("sea", "sky"), "1.png": ("dog", "cat")}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("metadata.csv", ""),
        ("metadata.csv", "\ufeff"),
        ("metadata.csv", "\n\n"),
        ("metadata.csv", "\nfile_name,labels\n\n"),
        ("metadata.jsonl", ""),
        ("metadata.jsonl", "\n \n"),
    ],
)
@pytest.mark.parametrize("labels_from", ["auto", "metadata"])
def test_empty_metadata_file_is_reported(folder, name, text, labels_from):
    (folder / name).write_text(text)
    with pytest.raises(InputError, match=rf"{name} has no rows; write one for each file, or remove the file"):
        read_folder(folder, labels_from=labels_from, rejects=Rejects())


def test_unusable_metadata_rows_are_reported(folder):
    """There is a metadata file, so that nobody should be told to write one."""
    (folder / "metadata.csv").write_text("file_name,labels\n" + "".join(f"{n}.png,\n" for n in range(len(NAMES))))
    with pytest.raises(InputError, match=r"no labelled pictures .* skipped at .*metadata\.csv:2 for picture without"):
        read_folder(folder, rejects=Rejects())
    (folder / "metadata.csv").write_text("file_name,labels\n0.png\n")
    with pytest.raises(InputError, match=r"skipped at .*metadata\.csv:2 for wrong number of cells \(1 of 2\)"):
        read_folder(folder, rejects=Rejects())


def test_unsupported_picture_is_listed_once(folder):
    (folder / "9.psd").write_bytes(b"content")
    (folder / ".hidden.psd").write_bytes(b"content")
    names = ["0.png", "9.psd", ".hidden.psd", "gone.psd"]
    (folder / "metadata.csv").write_text("file_name,labels\n" + "".join(f"{name},sea\n" for name in names))
    rejects = Rejects()
    assert list_labels(folder, rejects=rejects) == {"0.png": ("sea",)}
    listed = [(where.rpartition("/")[2], reason) for where, reason, _ in rejects.listed if ".png" not in where]
    assert listed == [
        ("9.psd", "unsupported picture format"),
        ("metadata.csv:4", "labels without a picture"),
        ("metadata.csv:5", "labels without a picture"),
    ]


def test_rejected_picture_of_another_folder_excuses_no_row(folder):
    """The list of what is skipped may hold that of another collection, with the same ids."""
    rejects = Rejects()
    rejects.add("9.psd", "unsupported picture format")
    (folder / "metadata.csv").write_text("file_name,labels\n0.png,sea\n9.psd,sea\n")
    list_labels(folder, rejects=rejects)
    assert (f"{folder}/metadata.csv:3", "labels without a picture", "9.psd") in rejects.listed


@pytest.mark.parametrize(
    "rows",
    [
        '0.png,"sea;sky\n1.png,sea\n2.png,dog\n',  # to the end of the file
        '0.png,"sea;sky\n1.png,"sea"\n2.png,dog\n',  # to the next quote
        '0.png,"sea;sky\n1.png,""\n2.png,dog\n',  # over a doubled one
        '0.png,"sea" sky\n1.png,sea\n',
        '0.png,"sea;sky\n' + "1.png,sea\n" * 20_000,
    ],
)
def test_unclosed_quote_is_reported_with_its_first_line(folder, rows):
    (folder / "metadata.csv").write_text('file_name,labels\n3.png,"sea\nlion"\n\n' + rows)
    with pytest.raises(InputError, match=r"metadata\.csv:5 begins a row of malformed CSV \(.*\); close every quote"):
        read_folder(folder, rejects=Rejects())


def test_quoted_cells_hold_line_breaks_and_quotes(folder):
    (folder / "metadata.csv").write_text(
        'file_name,labels\r\n0.png,"sea\r\nlion;""big"" dog"\n1.png,5" disk\n\n2.png,"sky\n\n"\n3.png\n', newline=""
    )
    rejects = Rejects()
    assert list_labels(folder, rejects=rejects) == {
        "0.png": ("sea lion", '"big" dog'),
        "1.png": ('5" disk',),
        "2.png": ("sky",),
    }
    assert rejects.listed[0] == (f"{folder}/metadata.csv:9", "wrong number of cells", "1 of 2")
