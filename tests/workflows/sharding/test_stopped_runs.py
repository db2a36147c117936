"""Stopped conversions: they go on, lose nothing and leave other files alone."""

import os
import resource
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shard_files import content, in_shards, same, toy_rows
from wsabie.core.errors import InputError
from wsabie.io.data_sources import open_source
from wsabie.io.formats.parquet_rows import write_parquet_rows
from wsabie.io.row_streams import InMemoryStream, StreamPart
from wsabie.io.shards import shard_folder
from wsabie.io.shards.shard_folder import format_shard_name
from wsabie.io.shards.sharded_table import open_shards
from wsabie.storage.column_files import map_columns
from wsabie.storage.rejects import Rejects
from wsabie.workflows import shard_runs, shard_writer
from wsabie.workflows.shard_runs import ShardOptions, SortedRuns

KILLED = """
    import sys
    from pathlib import Path
    sys.path.insert(0, {tests!r})
    from wsabie.workflows import shard_runs
    from wsabie.io.formats import parquet_rows
    shard_runs.ROWS_PER_RUN, parquet_rows._STREAM_BATCH = 100, 50
    before, left = Path.replace, {writes}
    def replace(self, target):
        global left
        if left == 0:
            import os, signal
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1
        return before(self, target)
    Path.replace = replace
    from shard_files import in_shards
    in_shards(Path({file!r}), Path({out!r}), rows=100)
"""


@pytest.mark.parametrize("writes", [1, 4, 5, 12, 13, 15, 18, 20, 22])
@pytest.mark.usefixtures("small_runs")
def test_killed_conversion_resumes_with_equal_shards(tmp_path: Path, writes: int) -> None:
    file, out = tmp_path / "rows.parquet", tmp_path / "out"
    write_parquet_rows(toy_rows(by_label=True), file)
    code = KILLED.format(tests=str(Path(__file__).parents[2]), writes=writes, file=str(file), out=str(out))
    killed = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=False, capture_output=True)
    assert killed.returncode == -9, killed.stderr.decode()
    with pytest.raises(InputError, match=r"not finished; run `shards\(\)` again in the same way"):
        open_shards(out)
    names_before = {name for name in content(out) if name.startswith(("run-", "rows-"))}
    assert len(names_before) == min(writes - 1, 18)
    rewritten = []
    stamps = {path: path.stat().st_mtime_ns for path in out.rglob("r*-*.safetensors")}
    in_shards(file, out, rows=100)
    rewritten = [path for path, stamp in stamps.items() if path.exists() and path.stat().st_mtime_ns != stamp]
    assert not rewritten  # what was whole is not written again
    in_shards(file, tmp_path / "whole", rows=100)
    assert content(out) == content(tmp_path / "whole")


@pytest.mark.usefixtures("small_runs")
def test_rejects_of_a_stopped_run_are_listed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [f"{i % 3} 1:{i}" if i % 10 else f"{i % 3} 1:nan" for i in range(400)]
    (tmp_path / "rows.txt").write_text("\n".join(lines) + "\n")
    monkeypatch.setattr("wsabie.io.parsers.text_files.iterate_line_blocks.__defaults__", (400,))
    first, second = Rejects(), Rejects()
    monkeypatch.setattr(shard_writer, "_write_missing_shards", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        in_shards(tmp_path / "rows.txt", tmp_path / "out", first)
    monkeypatch.undo()
    in_shards(tmp_path / "rows.txt", tmp_path / "out", second)
    assert first.listed == second.listed
    assert len(second) == 40


def test_rejects_of_a_complete_source_are_listed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tags.tsv").write_text("".join(f"item{i}\ttag{i % 3}\n" for i in range(9)) + "item9\titem0\tx\ty\n")
    first, second = Rejects(), Rejects()
    with monkeypatch.context() as patched:
        patched.setattr(shard_writer, "_write_missing_shards", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            in_shards(tmp_path / "tags.tsv", tmp_path / "out", first)
    assert len(first.listed) == 1
    in_shards(tmp_path / "tags.tsv", tmp_path / "out", second)
    assert (second.listed, second.counts) == (first.listed, first.counts)
    third = Rejects()
    in_shards(tmp_path / "tags.tsv", tmp_path / "out", third)
    assert (third.listed, third.counts) == (first.listed, first.counts)


@pytest.mark.usefixtures("small_runs")
@pytest.mark.parametrize("last", [1, 2, 3])
def test_rejects_are_counted_once_for_any_stop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last: int) -> None:
    """Between two runs the first part of the next one was read, and its rejects were told."""
    lines = [f"{i % 3} 1:{i}" if i % 10 else f"{i % 3} 1:nan" for i in range(400)]
    (tmp_path / "rows.txt").write_text("\n".join(lines) + "\n")
    monkeypatch.setattr("wsabie.io.parsers.text_files.iterate_line_blocks.__defaults__", (400,))
    add, runs = SortedRuns._add_run, []

    def stop(self: Any, *arguments: Any) -> None:
        add(self, *arguments)
        runs.append(None)
        if len(runs) == last:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(SortedRuns, "_add_run", stop)
        with pytest.raises(KeyboardInterrupt):
            in_shards(tmp_path / "rows.txt", tmp_path / "out")
    rejects = Rejects()
    in_shards(tmp_path / "rows.txt", tmp_path / "out", rejects)
    assert len(rejects) == len({where for where, *_ in rejects.listed}) == 40


def test_finished_shards_are_kept_and_foreign_ones_not_replaced(tmp_path: Path) -> None:
    in_shards(toy_rows(), tmp_path / "out", rows=100)
    times_before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").iterdir()}
    in_shards(toy_rows(), tmp_path / "out", rows=100)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "out").iterdir()} == times_before
    for rows, size in ((toy_rows(), 50), (toy_rows(60), 100)):
        with pytest.raises(InputError, match=r"holds shards of other data, .*or with other options"):
            in_shards(rows, tmp_path / "out", rows=size)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").touch()
    with pytest.raises(InputError, match=r"holds 'thesis\.txt', which is not of this command's making"):
        in_shards(toy_rows(), tmp_path / "mine")


@pytest.mark.usefixtures("small_runs")
def test_finished_shards_report_their_rejects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of every run and ids that came again, all counted; of the list no more than there was."""
    ids = [f"row-{i % 150}" for i in range(240)]
    rows = {"id": ids, "indices": [[i % 7] for i in range(240)]}
    rows["values"] = [[float("nan") if i % 100 == 3 else 1.0] for i in range(240)]
    pq.write_table(pa.table(rows | {"labels": [["a"], ["b"]] * 120}), tmp_path / "rows.parquet")
    first, second = Rejects(most=20), Rejects(most=20)
    in_shards(tmp_path / "rows.parquet", tmp_path / "out", first, rows=40)
    in_shards(tmp_path / "rows.parquet", tmp_path / "out", second, rows=40)
    assert len(first) > len(first.listed) == 20
    assert len(first.counts) == 2
    assert (second.listed, second.counts) == (first.listed, first.counts)


@pytest.mark.parametrize(
    "content_left", [None, "", "[]", "{}", '{"counts": {}, "rejected": [1]}', '{"counts": 1, "rejected": []}']
)
def test_lost_list_of_rejects_is_reported(tmp_path: Path, content_left: str | None) -> None:
    in_shards(toy_rows(), tmp_path / "out")
    (tmp_path / "out" / "rejected.json").unlink()
    if content_left is not None:
        (tmp_path / "out" / "rejected.json").write_text(content_left)
    assert len(open_shards(tmp_path / "out").shards) == 600
    with pytest.raises(InputError, match=r"rejected\.json, the list of what was rejected, is missing or damaged"):
        in_shards(toy_rows(), tmp_path / "out")


def test_unfinished_work_of_another_command_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shard_folder, "write_manifest", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        in_shards(toy_rows(60), tmp_path / "out", rows=100)
    monkeypatch.undo()
    with pytest.raises(InputError, match="holds unfinished shards of made-up, of other data or with other options"):
        in_shards(toy_rows(60), tmp_path / "out", rows=50)
    with pytest.raises(
        InputError, match=r"made-up has changed since the unfinished .* begun; delete .*/out to start over"
    ):
        in_shards(toy_rows(), tmp_path / "out", rows=100)
    assert same(in_shards(toy_rows(60), tmp_path / "out", rows=100).load(), toy_rows(60))


def test_source_that_changes_during_reading_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another program still adds rows to the file."""
    file, write = tmp_path / "rows.txt", SortedRuns.write

    def grow_source(self: SortedRuns, *arguments: Any) -> None:
        write(self, *arguments)
        with file.open("a") as more:
            more.write("1 4:1\n")

    file.write_text("1 2:1\n2 3:1\n")
    with monkeypatch.context() as patch:
        patch.setattr(SortedRuns, "write", grow_source)
        with pytest.raises(InputError, match=r"rows\.txt has changed while it was read; delete .*/out and give"):
            in_shards(file, tmp_path / "out")


def test_corrected_source_starts_over_without_finished_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, right = tmp_path / "rows.txt", "3 9 30\n1 2:1\n2 3:1\n1 4:1\n"
    file.write_text(right[:-6])
    with pytest.raises(InputError, match="holds 2 rows but its header promises 3"):
        in_shards(file, tmp_path / "out")
    file.write_text(right)
    with pytest.raises(InputError, match=r"holds unfinished shards of .*, of other data or with other options"):
        in_shards(file, tmp_path / "out", rows=2)
    monkeypatch.chdir(tmp_path)
    assert same(in_shards(Path("rows.txt"), tmp_path / "out").load(), open_source(file))


@pytest.mark.usefixtures("small_runs")
def test_corrected_source_keeps_finished_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wsabie.io.parsers.text_files.iterate_line_blocks.__defaults__", (400,))
    file, lines = tmp_path / "rows.txt", [f"{i % 3} 1:{i + 1}" for i in range(400)]
    file.write_text("\n".join(["401 9 30", *lines]) + "\n")
    with pytest.raises(InputError, match="holds 400 rows but its header promises 401"):
        in_shards(file, tmp_path / "out")
    runs = sorted((tmp_path / "out" / "unfinished").glob("run-*.safetensors"))
    assert runs
    file.write_text("\n".join(["400 9 30", *lines]) + "\n")
    with pytest.raises(InputError, match=r"rows\.txt has changed since"):
        in_shards(file, tmp_path / "out")
    assert sorted((tmp_path / "out" / "unfinished").glob("run-*.safetensors")) == runs


@pytest.mark.usefixtures("small_runs")
def test_concurrent_conversions_into_one_folder_are_refused(tmp_path: Path) -> None:
    class Another(InMemoryStream):
        """A source beside which a second command begins."""

        def iterate_parts(self, skip: int = 0) -> Iterator[StreamPart]:
            with pytest.raises(InputError, match="another command is changing"):
                in_shards(toy_rows(), tmp_path / "out", rows=100)
            return super().iterate_parts(skip)

    shard_writer.write_shards(InMemoryStream(Path("made-up"), toy_rows()), tmp_path / "whole", ShardOptions(rows=100))
    shard_writer.write_shards(Another(Path("made-up"), toy_rows()), tmp_path / "out", ShardOptions(rows=100))
    assert len(open_shards(tmp_path / "out").shards) == 600


@pytest.mark.parametrize("file_name", ["rows-00000-of-00001.safetensors", "names.json"])
def test_files_without_a_manifest_are_kept(tmp_path: Path, file_name: str) -> None:
    (tmp_path / file_name).write_text("mine")
    with pytest.raises(InputError, match=rf"holds {file_name}, but no manifest\.json that says what it is of; restore"):
        in_shards(toy_rows(), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [file_name]
    assert (tmp_path / file_name).read_text() == "mine"


def test_conversion_stopped_at_its_start_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "unfinished").mkdir()
    (tmp_path / "unfinished" / "run-00000.safetensors").write_text("of what?")
    assert same(in_shards(toy_rows(), tmp_path).load(), toy_rows())


@pytest.mark.parametrize("content_", ["0123", "{", "{}", "[]", "\0", '{"source": "x"}'])
def test_unfinished_work_of_unknown_origin_is_refused(tmp_path: Path, content_: str) -> None:
    (tmp_path / "unfinished").mkdir()
    (tmp_path / "unfinished" / "work.json").write_text(content_)
    with pytest.raises(InputError, match="holds unfinished shards of an unknown source"):
        in_shards(toy_rows(), tmp_path)


@pytest.mark.usefixtures("small_runs")
def test_runs_may_exceed_the_open_file_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shard_runs, "MAX_OPEN_SHARDS", 4)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(list(Path("/dev/fd").iterdir())) + 20, limits[1]))
    try:
        source = in_shards(toy_rows(4000), tmp_path / "out", rows=2000)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert same(source.load(), toy_rows(4000))


@pytest.mark.usefixtures("small_runs")
def test_reopened_run_is_not_checked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs beyond the limit of open files are opened again for every shard."""
    monkeypatch.setattr(shard_runs, "MAX_OPEN_SHARDS", 4)
    opened: list[bool] = []

    def mapped(path: Path, *, check: bool = True, **more: Any) -> Any:
        columns = map_columns(path, check=check, **more)
        if path.name.startswith("run-"):
            assert columns[1] == {}  # nothing to parse but where columns lie
            opened.append(check)
        return columns

    monkeypatch.setattr(shard_runs, "map_columns", mapped)
    with monkeypatch.context() as patched:
        patched.setattr(shard_writer, "_write_missing_shards", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            in_shards(toy_rows(4000), tmp_path / "out", rows=400)
    assert not opened
    source = in_shards(toy_rows(4000), tmp_path / "out", rows=400)
    assert sum(opened) == 40  # those of the stopped run, once
    assert len(opened) > 40 * 10
    assert same(source.load(), toy_rows(4000))


@pytest.mark.parametrize("note", [None, "{"])
@pytest.mark.usefixtures("small_runs")
def test_run_without_its_note_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, note: str | None) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(shard_writer, "_write_missing_shards", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            in_shards(toy_rows(), tmp_path / "out", rows=100)
    file = tmp_path / "out" / "unfinished" / "run-00002.json"
    file.unlink()
    if note is not None:
        file.write_text(note)
    in_shards(toy_rows(), tmp_path / "out", rows=100)
    in_shards(toy_rows(), tmp_path / "whole", rows=100)
    assert content(tmp_path / "out") == content(tmp_path / "whole")


@pytest.mark.usefixtures("small_runs")
@pytest.mark.parametrize(
    "name", ["unfinished/run-00002.json", "unfinished/run-00002.safetensors", format_shard_name(1, 6)]
)
def test_unreadable_files_are_not_rewritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(shard_folder, "write_manifest", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            in_shards(toy_rows(), tmp_path / "out", rows=100)
    contents_before = content(tmp_path / "out")

    def refusing(opened: Any) -> Any:
        def refused(path: Any, *arguments: Any, **more: Any) -> Any:
            if path == tmp_path / "out" / name:
                raise PermissionError(13, "Permission denied", str(path))
            return opened(path, *arguments, **more)

        return refused

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", refusing(os.open))
        patched.setattr(Path, "open", refusing(Path.open))
        with pytest.raises(InputError, match=rf"cannot read .*{name}: Permission denied; check its permissions"):
            in_shards(toy_rows(), tmp_path / "out", rows=100)
    assert content(tmp_path / "out") == contents_before


@pytest.mark.usefixtures("small_runs")
def test_strict_refuses_the_rejects_of_a_stopped_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [f"{i % 3} 1:{i}" if i % 10 else f"{i % 3} 1:nan" for i in range(400)]
    (tmp_path / "rows.txt").write_text("\n".join(lines) + "\n")
    monkeypatch.setattr(shard_writer, "_write_missing_shards", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        in_shards(tmp_path / "rows.txt", tmp_path / "out")
    monkeypatch.undo()
    with pytest.raises(InputError, match=r"rows\.txt:1: value that is not finite .*; run without `strict` to skip it"):
        in_shards(tmp_path / "rows.txt", tmp_path / "out", Rejects(strict=True))
