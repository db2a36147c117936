"""fastText's text and ARFF to shards: parts give the rows of a whole read."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shard_files import content, in_shards, same
from wsabie.core.errors import InputError
from wsabie.io.data_sources import open_row_stream, open_source
from wsabie.storage.column_files import write_columns
from wsabie.storage.rejects import Rejects
from wsabie.workflows import shard_runs, shard_writer
from wsabie.workflows.shard_runs import ShardOptions
from wsabie.workflows.shard_writer import write_shards

PARTS = {"wsabie.io.formats.fasttext._WORDS_AT_ONCE": 60, "wsabie.io.formats.mulan._CHUNK_VALUES": 60}
"""So that the rows of `format_fasttext` and `format_arff` come in many parts."""


def format_fasttext() -> str:
    """fastText's text: some lines have no label, some no word, some nothing, and some cannot be used."""
    lines = [f"__label__a{i % 7} the w{i % 23} the w{i * i % 19}" for i in range(300)]
    lines[5], lines[6], lines[7] = "", "__label__only", "no label"
    lines[8::2] = ["__label__ and so on"] * len(lines[8::2])
    return "\n".join(lines) + "\n"


def format_arff(*, dense: bool, has_names: bool) -> str:
    """ARFF of 200 rows, of which some cannot be used, and every tenth has the name of another."""
    head = "@relation r\n@attribute name string\n" if has_names else "@relation r\n"
    head += "@attribute x numeric\n@attribute y {red,blue}\n@attribute z numeric\n"
    head += "@attribute one {0,1}\n@attribute two {0,1}\n@data\n"
    lines = []
    for i in range(200):
        x = "?" if i % 3 == 1 else f"{i}.5"
        cells = [f"row{i // 10 if i % 10 == 3 else i}"] * has_names + [
            x,
            ["red", "blue"][i % 2],
            str(i % 3),
            str(i % 2),
            "1",
        ]
        lines.append(
            ",".join(cells) if dense else "{" + ",".join(f"{at} {cell}" for at, cell in enumerate(cells)) + "}"
        )
    return head + "\n".join(lines) + "\n"


@pytest.fixture(params=["fasttext", "dense", "sparse", "named"])
def in_lines(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Text of lines that comes in many parts, in many runs."""
    for name, size in PARTS.items():
        monkeypatch.setattr(name, size)
    monkeypatch.setattr(shard_runs, "ROWS_PER_RUN", 40)
    if request.param == "fasttext":
        (tmp_path / "rows.txt").write_text(format_fasttext())
        return tmp_path / "rows.txt"
    (tmp_path / "rows.xml").write_text('<labels><label name="two"/><label name="one"/></labels>')
    (tmp_path / "rows.arff").write_text(format_arff(dense=request.param == "dense", has_names=request.param == "named"))
    return tmp_path / "rows.arff"


def test_line_formats_are_read_as_in_memory(tmp_path: Path, in_lines: Path) -> None:
    shard_rejects, expected_rejects = Rejects(), Rejects()
    table = in_shards(in_lines, tmp_path / "shards", shard_rejects, rows=30).load()
    assert same(table, open_source(in_lines, rejects=expected_rejects))
    assert sorted(shard_rejects.listed) == sorted(expected_rejects.listed) != []


def test_stopped_conversion_of_lines_resumes(tmp_path: Path, in_lines: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rejects, again, written = Rejects(), Rejects(), 0

    def stopping(*arguments: Any) -> None:
        nonlocal written
        if written == 2:
            raise KeyboardInterrupt
        written += 1
        write_columns(*arguments)

    in_shards(in_lines, tmp_path / "whole", rejects, rows=30)
    with monkeypatch.context() as patch:
        patch.setattr(shard_runs, "write_columns", stopping)
        with pytest.raises(KeyboardInterrupt):
            in_shards(in_lines, tmp_path / "out", rows=30)
    assert len([name for name in content(tmp_path / "out") if name.startswith("run-") and "json" not in name]) == 2
    in_shards(in_lines, tmp_path / "out", again, rows=30)
    assert content(tmp_path / "out") == content(tmp_path / "whole")
    assert sorted(again.listed) == sorted(rejects.listed)


def test_conversion_stopped_after_the_last_line_reads_none_again(
    tmp_path: Path, in_lines: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rejects, again = Rejects(), Rejects()
    with monkeypatch.context() as patch:
        patch.setattr(shard_writer.shard_folder, "write_shard", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            in_shards(in_lines, tmp_path / "out", rejects, rows=30)
    in_shards(in_lines, tmp_path / "out", again, rows=30)
    assert sorted(again.listed) == sorted(rejects.listed) != []


def test_rejects_are_split_at_a_position(in_lines: Path) -> None:
    expected_rejects, rejects_before = Rejects(), Rejects()
    list(open_row_stream(in_lines, expected_rejects).iterate_parts())
    followed = 0
    for part in open_row_stream(in_lines, rejects_before).iterate_parts():
        behind = Rejects()
        if list(open_row_stream(in_lines, behind).iterate_parts(part.position)):
            assert rejects_before.listed + behind.listed == expected_rejects.listed
            followed += 1
    assert followed > 2


@pytest.mark.parametrize(
    ("name", "rows", "label_file", "old_text", "new_text"),
    [
        ("rows.arff", format_arff(dense=True, has_names=False), "rows.xml",
         '<l><label name="two"/><label name="one"/></l>', '<l><label name="one"/></l>'),
        ("rows.txt", "0 1:2\n1 3:4\n", "labels.txt", "sky\nsea\n", "sky\nmoon\n"),
    ],
    ids=["arff", "svmlight"],
)  # fmt: skip
def test_changed_label_file_makes_other_shards(
    tmp_path: Path, name: str, rows: str, label_file: str, old_text: str, new_text: str
) -> None:
    (tmp_path / name).write_text(rows)
    (tmp_path / label_file).write_text(old_text)
    in_shards(tmp_path / name, tmp_path / "shards")
    (tmp_path / label_file).write_text(new_text)
    with pytest.raises(InputError, match="holds shards of other data"):
        in_shards(tmp_path / name, tmp_path / "shards")


def test_file_that_changes_during_word_counting_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "rows.txt"
    file.write_text(format_fasttext())
    stream = open_row_stream(file, Rejects())
    file.write_text(format_fasttext() + "__label__a another\n")
    with pytest.raises(InputError, match="has changed while it was read; give the command again"):
        write_shards(stream, tmp_path / "out", ShardOptions())


@given(st.lists(st.text("_label ab\n\t\0ü", max_size=20) | st.sampled_from(["__label__a b", "__label__"]), max_size=9))
def test_any_lines_are_converted_or_refused_as_in_memory(tmp_path_factory: Any, lines: list[str]) -> None:
    file = tmp_path_factory.mktemp("lines") / "rows.txt"
    file.write_text("\n".join(["__label__a b", *lines]), encoding="utf-8")
    assert same(in_shards(file, file.with_name("shards"), rows=2).load(), open_source(file))
