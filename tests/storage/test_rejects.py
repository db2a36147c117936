"""Skipped inputs are counted by reason and listed."""

import json
from pathlib import Path

import pytest

from wsabie.core.errors import InputError
from wsabie.storage.rejects import Rejects


def test_counts_and_summary() -> None:
    rejects = Rejects()
    assert (len(rejects), rejects.summary()) == (0, "")
    for where, reason in (("a", "truncated picture"), ("b", "empty file"), ("c", "truncated picture")):
        rejects.add(where, reason)
    assert len(rejects) == 3
    assert rejects.summary() == "3 skipped: truncated picture (2), empty file (1)"


def test_written_as_json_lines(tmp_path: Path) -> None:
    rejects = Rejects()
    rejects.add("Größe.jpg", "truncated picture", "at byte 7")
    rejects.add("bad\udcff.jpg", "empty file")  # a file name that is not UTF-8, as os.fsdecode gives it
    rejects.write(tmp_path / "r.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "r.jsonl").read_text(encoding="utf-8").splitlines()]
    assert lines == [
        {"where": "Größe.jpg", "reason": "truncated picture", "detail": "at byte 7"},
        {"where": "bad\udcff.jpg", "reason": "empty file", "detail": ""},
    ]


def test_the_list_is_bounded_and_says_so(tmp_path: Path) -> None:
    rejects = Rejects(most=2)
    for i in range(5):
        rejects.add(str(i), "broken row")
    rejects.write(tmp_path / "r.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "r.jsonl").read_text().splitlines()]
    assert len(rejects) == 5
    assert [line.get("where") for line in lines] == ["0", "1", None]
    assert lines[-1] == {"not_listed": 3}


def test_another_list_is_taken_over_within_the_bound() -> None:
    ours, theirs = Rejects(most=3), Rejects()
    ours.add("a", "broken row")
    for i in range(4):
        theirs.add(str(i), "broken row" if i else "empty file")
    ours.add_all(theirs)
    assert [where for where, _, _ in ours.listed] == ["a", "0", "1"]
    assert ours.summary() == "5 skipped: broken row (4), empty file (1)"


def test_strict_refuses_the_first() -> None:
    with pytest.raises(InputError, match=r"rows.txt:3: broken row \(no label\); run without `strict` to skip it"):
        Rejects(strict=True).add("rows.txt:3", "broken row", "no label")
