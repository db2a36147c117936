"""Limits on input from outside, as the variable WSABIE_LIMITS changes them."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from wsabie.core.errors import InputError
from wsabie.core.input_limits import VARIABLE, InputLimits, make_limit_error, read_limits
from wsabie.io.formats.documents import read_table_rows
from wsabie.storage.rejects import Rejects


def test_variable_changes_the_limits_it_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "columns=3e9, depth=7")
    assert read_limits() == InputLimits(columns=3_000_000_000, depth=7)


def test_refusal_has_the_whole_setting_that_lets_the_input_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "ratio=1000 depth=7")
    sentence = str(make_limit_error("depth", "a.json:1 nests 8 lists", 8))
    assert "at most 7 are allowed" in sentence
    setting = re.search(f'set {VARIABLE}="(.*)"$', sentence)
    assert setting is not None
    monkeypatch.setenv(VARIABLE, setting[1])
    assert read_limits() == InputLimits(ratio=1000, depth=8)


def test_table_passes_with_the_setting_of_its_refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "table_columns=5 rows=100")
    table = tmp_path / "a.csv"
    table.write_text("a,b,c,d,e,f,g\n1,2,3,4,5,6,7\n")
    with pytest.raises(InputError, match=f'set {VARIABLE}="rows=100 table_columns=7"$'):
        list(read_table_rows(table, Rejects()))
    monkeypatch.setenv(VARIABLE, "rows=100 table_columns=7")
    assert len(list(read_table_rows(table, Rejects()))) == 1


def test_numbers_are_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, f"expanded_bytes={2**60 + 1}")
    assert read_limits().expanded_bytes == 2**60 + 1


def test_each_limit_stands_in_the_table_of_the_docs() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "sources.md").read_text(encoding="utf-8")
    rows = [line.split("|") for line in page.split("## Limits")[1].split("\n## ")[0].splitlines() if line[:3] == "| `"]
    names = [name for row in rows for name in re.findall("`([a-z_]+)`", row[1])]
    assert names == [field.name for field in fields(InputLimits)]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("colums=5", "'colums=5', and there is no limit 'colums'; write columns=5"),
        ("=5", "there is no limit ''; the limits are columns, depth"),
        ("memory=5", "there is no limit 'memory'; the limits are columns, depth"),
        ("columns", "'columns', and no number for it; write name=number without blanks"),
        ("depth = 5", "'depth', and no number for it; write name=number without blanks"),
        ("columns=2,000", "'000', and no number for it"),
        ("depth=", 'there is no number behind the =; write digits, such as "depth=100"'),
        ("depth=many", "'many' is not a number from 1 on"),
        ("depth=0", "'0' is not a number from 1 on"),
        ("depth=-1", "'-1' is not a number from 1 on"),
        ("depth=inf", "'inf' is not a number from 1 on"),
        ("depth=nan", "'nan' is not a number from 1 on"),
        ("picture_bytes=4GiB", "'4GiB' is not a number from 1 on"),
    ],
)
def test_refusal_of_a_setting_says_what_is_wrong_with_it(
    monkeypatch: pytest.MonkeyPatch, text: str, fault: str
) -> None:
    monkeypatch.setenv(VARIABLE, text)
    with pytest.raises(InputError, match=re.escape(fault)):
        read_limits()
