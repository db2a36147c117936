"""A folder that will be emptied must hold nothing of anybody else."""

from pathlib import Path

import pytest

from wsabie.core.errors import InputError
from wsabie.storage.output_checks import refuse_unknown_files


def test_own_names_and_drafts_pass(tmp_path: Path) -> None:
    refuse_unknown_files(tmp_path / "not there", "a")
    for name in ("terms", ".terms.x1.tmp"):
        (tmp_path / name).write_text("")
    refuse_unknown_files(tmp_path, "terms|checkpoint")
    with pytest.raises(InputError, match="holds 'terms'"):
        refuse_unknown_files(tmp_path, "checkpoint")


def test_strangers_and_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "holiday.jpg").write_text("")
    with pytest.raises(InputError, match=r"holds 'holiday\.jpg'"):
        refuse_unknown_files(tmp_path, "terms")
    with pytest.raises(InputError, match="is a file where unfinished work is kept"):
        refuse_unknown_files(tmp_path / "holiday.jpg", ".*")


def test_a_folder_that_cannot_be_looked_into_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "iterdir", refused)
    with pytest.raises(InputError, match=rf"cannot read {tmp_path}: Permission denied; check its permissions"):
        refuse_unknown_files(tmp_path, ".*")
