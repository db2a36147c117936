"""Errors are caught by the kind of mistake, and print as one sentence."""

import pytest

from wsabie.base import errors


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
