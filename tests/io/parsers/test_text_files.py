"""Reading text by line and by block."""

import gzip
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsabie.core.errors import InputError
from wsabie.io.data_sources import open_source
from wsabie.io.parsers.text_files import explain_input_errors, iterate_line_blocks, iterate_numbered_lines, read_head

texts = st.text("ab \n\r", max_size=60).map(str.encode)


@given(text=texts, size=st.integers(2, 40), packed=st.booleans())
def test_blocks_join_to_the_file_and_end_with_lines(tmp_path_factory, text, size, packed):
    path = tmp_path_factory.mktemp("text") / "a"
    path.write_bytes(gzip.compress(text) if packed else text)
    blocks = [block.tobytes() for block in iterate_line_blocks(path, size)]
    assert all(block.endswith(b"\n") for block in blocks)
    if re.fullmatch(rb"[^\0\n\r]+\r[^\0\n]+", text):
        text = text.replace(b"\r", b"\n")
    assert b"".join(blocks) == (text + b"\n" if text and not text.endswith(b"\n") else text)


@given(text=texts)
def test_lines_are_numbered_from_one_without_ends(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("text") / "a"
    path.write_bytes(text)
    if re.fullmatch(rb"[^\0\n\r]+\r[^\0\n]+", text):  # lines of old Macs
        text = text.replace(b"\r", b"\n")
    expected = [line.rstrip(b"\r") for line in text.removesuffix(b"\n").split(b"\n")] if text else []
    assert list(iterate_numbered_lines(path)) == list(enumerate(expected, start=1))


def test_read_head_decompresses_gzip(tmp_path):
    (tmp_path / "a").write_bytes(gzip.compress(b"0123456789"))
    assert read_head(tmp_path / "a", 4) == b"0123"


@pytest.mark.parametrize("broken", [gzip.compress(b"a" * 1000, mtime=0)[:20], b"\x1f\x8bnonsense", b"\x1f\x8b"])
def test_damaged_gzip_is_reported(tmp_path, broken):
    (tmp_path / "a.gz").write_bytes(broken)
    with pytest.raises(InputError, match=r"a\.gz is damaged or cut off gzip"):
        list(iterate_numbered_lines(tmp_path / "a.gz"))


def test_endless_line_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("wsabie.io.parsers.text_files.MAX_LINE_BYTES", 100)
    (tmp_path / "a").write_bytes(b"x\n" + b"y" * 300)
    with pytest.raises(InputError, match=r"a:2 has a line of more than"):
        list(iterate_numbered_lines(tmp_path / "a"))
    with pytest.raises(InputError, match=r"has a line of more than"):
        list(iterate_line_blocks(tmp_path / "a", 16))


def test_system_errors_are_explained(tmp_path):
    nowhere = tmp_path / "nowhere"
    with (
        pytest.raises(InputError, match=r"there is no file or folder .*nowhere; check the name"),
        explain_input_errors(nowhere),
    ):
        nowhere.open()
    with pytest.raises(InputError, match=r"cannot read .*: Is a directory"), explain_input_errors(tmp_path):
        tmp_path.open()


@pytest.mark.parametrize("packed", [False, True])
def test_byte_order_mark_is_removed(tmp_path, packed):
    text = "__label__sea wave\n__label__sky cloud\n".encode("utf-8-sig")
    path = tmp_path / "lines.txt"
    path.write_bytes(gzip.compress(text) if packed else text)
    rows = open_source(path)
    assert (rows.label_names, rows.feature_names) == (["sea", "sky"], ["cloud", "wave"])
    path.write_bytes("2 12 4\n0 1:1\n1 2:1\n".encode("utf-8-sig"))
    rows = open_source(path)
    assert (rows.X.shape, rows.Y.shape) == ((2, 12), (2, 4))
