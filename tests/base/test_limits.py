"""Limits on input from outside, as the variable WSABIE_LIMITS changes them."""

import pytest

from wsabie.base.errors import InputError
from wsabie.base.limits import VARIABLE, Limits, current_limits, limit_error


def test_variable_changes_the_limits_it_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "columns=3e9, depth=7")
    assert current_limits() == Limits(columns=3_000_000_000, depth=7)
    assert "at most 7 are read" in str(limit_error("depth", "a.json:1 nests 8 lists"))


@pytest.mark.parametrize(
    "text", ["colums=5", "columns", "columns=", "columns=many", "columns=0", "depth=-1", "depth=inf", "depth=nan"]
)
def test_other_words_are_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(VARIABLE, text)
    with pytest.raises(InputError, match=r"write name=number, with a name of columns, .*depth"):
        current_limits()
