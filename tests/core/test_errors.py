"""Errors are caught by the kind of mistake, and print as one sentence."""

from copy import copy  # as processes hand it on

import pytest

from wsabie.core import errors


@pytest.mark.parametrize(
    ("kind", "also"),
    [
        (errors.InputError, ValueError),
        (errors.DivergenceError, FloatingPointError),
        (errors.UnknownLabelError, KeyError),
        (errors.ModelFolderError, Exception),
    ],
)
def test_every_error_is_ours_and_the_languages(kind: type[Exception], also: type[Exception]) -> None:
    error = kind("there is no label 'x'; did you mean 'y'?")
    assert isinstance(error, errors.WsabieError)
    assert isinstance(error, also)
    assert str(error) == "there is no label 'x'; did you mean 'y'?"


def test_served_message_of_an_error_is_pickled() -> None:
    error = errors.InputError("there is no model; run: wsabie train", web_message="there is no model")
    assert str(error) == "there is no model; run: wsabie train"
    assert copy(error).web_message == "there is no model"
    assert errors.UnknownLabelError("x").web_message == ""
