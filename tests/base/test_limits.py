"""Limits on input from outside, as the variable WSABIE_LIMITS changes them."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from wsabie.base.errors import InputError
from wsabie.base.limits import VARIABLE, Limits, current_limits, limit_error


def test_variable_changes_the_limits_it_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "columns=3e9, depth=7")
    assert current_limits() == Limits(columns=3_000_000_000, depth=7)
    assert "at most 7 are allowed" in str(limit_error("depth", "a.json:1 nests 8 lists"))


def test_each_limit_stands_in_the_table_of_the_docs() -> None:
    page = (Path(__file__).parents[2] / "docs" / "sources.md").read_text(encoding="utf-8")
    rows = [line.split("|") for line in page.split("## Limits")[1].split("\n## ")[0].splitlines() if line[:3] == "| `"]
    names = [name for row in rows for name in re.findall("`([a-z_]+)`", row[1])]
    assert names == [field.name for field in fields(Limits)]


@pytest.mark.parametrize(
    "text", ["colums=5", "columns", "columns=", "columns=many", "columns=0", "depth=-1", "depth=inf", "depth=nan"]
)
def test_other_words_are_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(VARIABLE, text)
    with pytest.raises(InputError, match=r"write name=number, with a name of columns, .*depth"):
        current_limits()
