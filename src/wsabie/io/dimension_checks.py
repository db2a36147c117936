"""Checks of promised numbers of features and labels: a model has a vector for each."""

from pathlib import Path

from wsabie.core.input_limits import make_limit_error, read_limits
from wsabie.io.parsers.text_files import format_path

PER_VALUE = 10
"""Features for each value that is not 0, and labels for each label of a row, that are always accepted."""


def check_feature_count(path: Path, n_features: int, n_values: int) -> None:
    """Refuse a width that would cost far more memory than the values of a source.

    Raises
    ------
    InputError
        More features than `columns`, or than `empty_columns` beyond 10 for each value.

    Examples
    --------
    >>> check_feature_count(Path("a.txt"), 1 << 24, 2_000_000)
    >>> check_feature_count(Path("a.txt"), 2_000_000, 1)
    Traceback (most recent call last):
    wsabie.core.errors.InputError: a.txt has 2,000,000 features for at most 1 values, 1,999,990 beyond 10 for each, and
    at most 1,048,576 are allowed; if the file is right, set WSABIE_LIMITS="empty_columns=1999990"
    """
    _check(path, n_features, n_values, "columns", "features", "values")


def check_label_count(path: Path, n_labels: int, n_pairs: int) -> None:
    """Refuse a number of labels without names that would cost far more memory than the labels of the rows.

    Raises
    ------
    InputError
        More labels than `labels`, or than `empty_labels` beyond 10 for each label of a row.
    """
    _check(path, n_labels, n_pairs, "labels", "labels", "labels of rows")


def _check(path: Path, n: int, content: int, limit: str, unit: str, content_unit: str) -> None:
    limits = read_limits()
    if (empty := n - PER_VALUE * content) > getattr(limits, f"empty_{limit}"):
        excess = (
            f"{format_path(path)} has {n:,} {unit} for at most {content:,} {content_unit}, "
            f"{empty:,} beyond {PER_VALUE} for each"
        )
        raise make_limit_error(f"empty_{limit}", excess, empty)
    if n > getattr(limits, limit):
        raise make_limit_error(limit, f"{format_path(path)} has {n:,} {unit}", n)
