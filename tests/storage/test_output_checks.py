"""Outputs that would be lost or cannot be written are refused before any work, and the check leaves nothing."""

import os
from pathlib import Path
from typing import Any

import pytest

from wsabie.core.errors import InputError
from wsabie.storage.atomic_files import WriteError
from wsabie.storage.output_checks import OutputKind, check_output_paths

CONTENT_BY_KIND: dict[OutputKind, bytes] = {
    "html": b"<!DOCTYPE html>\n<html>",
    "log": b'{"epoch": 0}\n',
    "parquet": b"PAR1\x15\x04",
    "picture": b"\x89PNG\r\n\x1a\n",
    "rejects": b'{"where": "a.jpg", "reason": "empty file", "detail": ""}\n',
}
FOREIGN_CONTENTS = [
    b"\xff\xd8\xff\xe0 a photo",
    b"# Notes",
    b'{\n "sha256": "',
    b'{"file_name": "a.jpg"}\n',
    b"[1]",
    b"\n",
]


def test_what_cannot_be_written_is_known_before_and_nothing_is_left(tmp_path: Path) -> None:
    check_output_paths(("html", tmp_path / "new" / "er" / "a.html"), ("rejects", None), folder=tmp_path)
    assert not list(tmp_path.rglob("*"))
    with pytest.raises(InputError, match=r"it is a folder; give the name of a file"):
        check_output_paths(("rejects", tmp_path))
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"cannot write .*choose a folder that you may write to"):
        check_output_paths(("html", tmp_path / "file" / "a.html"))
    with pytest.raises(InputError, match=r"cannot write .*give another name"):
        check_output_paths(("html", tmp_path / ("a" * 300)))
    with pytest.raises(InputError, match="it is not a regular file"):
        check_output_paths(("rejects", Path("/dev/null")))


@pytest.mark.parametrize("inner", ["", "tensors"])
def test_a_model_that_cannot_be_replaced_is_known_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inner: str
) -> None:
    (tmp_path / "m" / "tensors").mkdir(parents=True)
    locked, real = tmp_path / "m" / inner, os.open

    def opened(path: Any, *args: Any, **options: Any) -> int:
        if Path(path).parent == locked:
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, *args, **options)

    monkeypatch.setattr(os, "open", opened)
    with pytest.raises(WriteError, match=rf"cannot write {locked}: Permission denied; choose a folder"):
        check_output_paths(folder=tmp_path / "m")
    locked = tmp_path / "elsewhere"
    check_output_paths(folder=tmp_path / "m")
    assert [path.name for path in tmp_path.rglob("*")] == ["m", "tensors"]


@pytest.mark.parametrize("kind", CONTENT_BY_KIND)
def test_a_file_is_replaced_by_its_own_kind_alone(tmp_path: Path, kind: OutputKind) -> None:
    file = tmp_path / "a"
    for content in (b"", CONTENT_BY_KIND[kind]):
        file.write_bytes(content)
        check_output_paths((kind, file))
    foreign_contents = [
        content for other_kind, content in CONTENT_BY_KIND.items() if other_kind != kind
    ] + FOREIGN_CONTENTS
    for content in foreign_contents:
        file.write_bytes(content)
        with pytest.raises(InputError, match=r"and would be lost; give another name, or move it away"):
            check_output_paths((kind, file))
        assert file.read_bytes() == content


def test_nothing_is_written_over_or_among_what_is_read(tmp_path: Path) -> None:
    photos, data = tmp_path / "photos", tmp_path / "data.parquet"
    (photos / "cats").mkdir(parents=True)
    data.write_bytes(CONTENT_BY_KIND["parquet"])
    (tmp_path / "link").symlink_to(data)
    for file in (data, tmp_path / "link", photos / ".." / "data.parquet"):
        with pytest.raises(InputError, match="it is read by this command and would be lost"):
            check_output_paths(("parquet", file), inputs=[None, photos, data])
    for file in (photos / "new.parquet", photos / "cats" / "new.parquet"):
        with pytest.raises(InputError, match=r"it would lie in .*photos, which this command reads or fills"):
            check_output_paths(("parquet", file), inputs=[photos])
    check_output_paths(("parquet", tmp_path / "photos.parquet"), inputs=[photos, data])


def test_two_results_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="named for two results"):
        check_output_paths(("html", tmp_path / "a"), ("rejects", tmp_path / "b" / ".." / "a"))


def test_a_link_to_itself_is_named(tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    with pytest.raises(InputError, match="loop is a link that leads back to itself"):
        check_output_paths(("rejects", loop), inputs=[tmp_path / "data"])
