"""`.wsabieignore`: what its lines match, and what is wrong with it."""

import sys
from pathlib import Path

import pytest

from wsabie.core.errors import InputError
from wsabie.io.ignore_patterns import IGNORE_FILE, read_ignore_patterns


def test_lines_are_those_of_gitignore(tmp_path: Path) -> None:
    (tmp_path / IGNORE_FILE).write_text("# not mine\ndrafts/\n*.tmp.png\n!keep.tmp.png\n")
    is_ignored = read_ignore_patterns(tmp_path)
    ignored = [path for path in ("drafts/", "drafts", "a/b.tmp.png", "keep.tmp.png", "b.png") if is_ignored(path)]
    assert ignored == ["drafts/", "a/b.tmp.png"]


def test_package_is_needed_only_where_the_file_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pathspec", None)
    assert not read_ignore_patterns(tmp_path)("drafts/")
    (tmp_path / IGNORE_FILE).write_text("drafts/\n")
    with pytest.raises(InputError, match=r"needs pathspec, which is not installed; run: pip install 'wsabie\[coll"):
        read_ignore_patterns(tmp_path)
