"""Backing up and restoring a collection at the command line."""

from pathlib import Path

import pytest
from tests.cli.conftest import Cli

from emoji_files import write_emoji


@pytest.fixture
def photos(tmp_path: Path, cli: Cli) -> Path:
    """A collection of three pictures, one tag decided."""
    folder = tmp_path / "photos?"
    folder.mkdir()
    write_emoji(folder, 3, 1)
    assert cli("collection", "init", folder, "--tags", "none").code == 0
    assert cli("collection", "tag", folder, 1, "--accept", "sea", "--by", "eve").code == 0
    return folder


def test_backups_are_made_listed_and_restored(cli: Cli, photos: Path, tmp_path: Path) -> None:
    backup_report = cli("collection", "backup", photos, "--json").json["backup"]
    assert (backup_report["reason"], backup_report["journal"]) == ("manual", 3)
    assert Path(backup_report["path"]).parent == photos / ".wsabie/backups"
    cli("collection", "tag", photos, 2, "--accept", "land", "--by", "eve")
    listed = cli("collection", "status", photos, "--json").json["backups"]
    assert [backup["reason"] for backup in listed] == ["manual", "daily"]
    assert "asked for" in cli("collection", "status", photos).out
    for path in (photos / ".wsabie").glob("catalogue.db*"):
        path.unlink()
    failed = cli("collection", "annotations", photos)
    assert failed.code == 1
    assert f"wsabie collection restore '{photos}'" in " ".join(failed.err.split())
    assert cli("collection", "backup", photos, "--list", "--json").json["backups"] == listed
    restored = cli("collection", "restore", photos, "--by", "eve", "--json").json["restored"]
    assert (restored["source"], restored["journal"], restored["lost"], restored["replaced"]) == (
        backup_report["path"],
        3,
        1,
        None,
    )
    assert cli("collection", "annotations", photos, "--json").json["annotations"][0]["label"] == "sea"
    assert "restored the backup" in cli("collection", "history", photos).out
    result = cli("collection", "restore", photos, Path(backup_report["path"]).name)
    assert "the database of" in result.err
    assert "the replaced database is kept" in result.err


def test_backup_out_replaces_only_an_earlier_backup(cli: Cli, photos: Path, tmp_path: Path) -> None:
    import sqlite3

    out = tmp_path / "disk/photos.db"
    out.parent.mkdir()
    for _ in range(2):
        assert cli("collection", "backup", photos, "--out", out).code == 0
    (tmp_path / "mine.txt").write_text("mine")
    with sqlite3.connect(tmp_path / "mine.db") as mine:
        mine.execute("CREATE TABLE mine (id)")
    mine.close()
    for name in ("mine.txt", "mine.db"):
        content = (tmp_path / name).read_bytes()
        failed = cli("collection", "backup", photos, "--out", tmp_path / name)
        assert (failed.code, failed.err.count("\n")) == (1, 1)
        assert (tmp_path / name).read_bytes() == content
    assert cli("collection", "restore", photos, out, "--by", "eve").code == 0


def test_backup_out_keeps_the_catalogue_of_another_collection(cli: Cli, photos: Path, tmp_path: Path) -> None:
    second_folder, out = tmp_path / "other", tmp_path / "other.db"
    second_folder.mkdir()
    assert cli("collection", "init", second_folder, "--tags", "none").code == 0
    assert cli("collection", "backup", second_folder, "--out", out).code == 0
    (tmp_path / "open.db-wal").write_bytes(b"changes")
    (tmp_path / "link").symlink_to(second_folder / ".wsabie")
    for target, fault in (
        (second_folder / ".wsabie/catalogue.db", "it lies in a collection's own folder"),
        (tmp_path / "link/catalogue.db", "it lies in a collection's own folder"),
        (out, "it holds another database and would be lost"),
        (tmp_path / "open.db", "open.db-wal beside it holds changes"),
    ):
        content = target.read_bytes() if target.exists() else None
        failed = cli("collection", "backup", photos, "--out", target)
        assert (failed.code, fault in " ".join(failed.err.split())) == (1, True), failed.err
        assert (target.read_bytes() if target.exists() else None) == content


def test_restore_accepts_an_older_catalogue_on_request(cli: Cli, photos: Path) -> None:
    older = (photos / ".wsabie/catalogue.db").read_bytes()
    cli("collection", "tag", photos, 2, "--accept", "land", "--by", "eve")
    for path in (photos / ".wsabie").glob("catalogue.db*"):
        path.unlink()
    (photos / ".wsabie/catalogue.db").write_bytes(older)
    refused = cli("collection", "status", photos)
    assert refused.code == 1
    assert "--accept" in refused.err
    assert cli("collection", "restore", photos, "--accept", "--by", "eve").code == 0
    assert cli("collection", "status", photos).code == 0


def test_restore_prints_postgresql_commands(cli: Cli, photos: Path) -> None:
    address = "postgresql://eve@localhost/photos"
    (photos / ".wsabie/collection.json").write_text(f'{{"schema": 1, "database": "{address}"}}')
    command = cli("collection", "restore", photos, "a.dump", "--json").json["command"]
    assert command.startswith("pg_restore --clean")
    assert command.endswith(f"--dbname={address} a.dump")
    assert "--accept" in cli("collection", "restore", photos).out


def test_backup_into_a_missing_folder_is_refused(cli: Cli, photos: Path, tmp_path: Path) -> None:
    failed = cli("collection", "backup", photos, "--out", tmp_path / "disk/photos.db")
    assert failed.code == 1
    assert "there is no folder" in failed.err
    assert not (tmp_path / "disk").exists()
