"""Splits of rows: views of one picture stay together, other rows are independent."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from wsabie.core.errors import InputError
from wsabie.features.images.augmentation import strip_view_ids
from wsabie.io.records import FeatureTable
from wsabie.workflows.data_splits import group_bursts, split_labels, split_rows

NAMES = [f"song {i}{view}" for i in range(50) for view in ("", "#2")]


def build_rows(ids: list[str], **more: object) -> FeatureTable:
    labels = csr_matrix(np.eye(5, dtype=np.int8)[np.arange(len(ids)) % 5])
    return replace(FeatureTable(csr_matrix((len(ids), 3)), labels, list("abcde"), ids), **more)


@pytest.mark.parametrize("by", ["auto", "row", "label"])
def test_names_alone_make_no_view(by: str) -> None:
    """Ids of songs that look like views: every row is on a side."""
    sides = split_rows(build_rows(NAMES), by, 0.2, 0.2, 0)
    assert (sides.sides(100) >= 0).all()
    assert split_rows(build_rows(NAMES, extractor_fingerprint="d", augment=1), by, 0.2, 0.2, 0).sides(100).min() == 0


def test_views_stay_together_and_only_the_centred_one_is_held_out() -> None:
    for by in ("auto", "row", "label"):
        sides = split_rows(build_rows(NAMES, augment=2), by, 0.2, 0.2, 0)
        held_out_names = [NAMES[i] for i in (*sides.valid, *sides.test)]
        assert held_out_names
        assert not [name for name in held_out_names if "#" in name]
        assert not {name.split("#")[0] for name in map(NAMES.__getitem__, sides.train)} & set(held_out_names)
        assert len(sides.train) + 2 * len(held_out_names) == 100


def test_groups_keep_views_of_several_pictures_together() -> None:
    """A label split of augmented rows keeps to the groups too, as it does without views."""
    groups = [f"g{i // 4}" for i in range(100)]
    for by in ("group", "label", "time"):
        times = [f"2020-01-{1 + i // 10:02d}" for i in range(100)]
        sides = split_rows(build_rows(NAMES, augment=2, groups=groups, times=times), by, 0.2, 0.2, 0)
        side_groups = [{groups[i] for i in side} for side in (sides.train, sides.valid, sides.test)]
        assert all(side_groups)
        assert sum(map(len, side_groups)) == len(set().union(*side_groups))


def test_view_numbers_are_recognised_only_as_written() -> None:
    ids = ["a", "a#1", "a#01", "a#\u0661", "a#3", "a#" + "9" * 5000, "b", "#1", "a#1#1"]
    views = {"a#1": "a", "a#1#1": "a#1"}
    assert strip_view_ids(ids, 2) == [views.get(name, name) for name in ids]
    sides = split_rows(build_rows(ids, augment=2), "row", 0.0, 0.6, 3)
    assert {ids[i] for i in np.flatnonzero(sides.sides(len(ids)) < 0)} <= set(views)


def test_unknown_split_method_is_refused() -> None:
    with pytest.raises(InputError, match="a split by 'colour' is unknown; choose one of 'row', 'group'"):
        split_rows(build_rows(NAMES), "colour", 0.1, 0.1, 0)


def test_held_out_labels_are_on_one_side_each() -> None:
    Y = csr_matrix(np.array([[1, 1, 1, -1], [1, 1, 0, 0], [1, 0, 0, 0]] * 10, np.int8))
    rows = FeatureTable(csr_matrix(np.eye(30, dtype=np.float32)), Y, list("abcd"), [str(i) for i in range(30)])
    sides = split_labels(rows, 0.5, 1.0, 0)
    assert {name: len(part) for name, part in sides.items()} == {"train": 30, "test": 20, "valid": 5}
    n_pairs = sum(part.Y.sum() for part in sides.values())
    assert n_pairs == Y.sum()
    place = {name: i for i, name in enumerate(sides["train"].ids)}
    for name in ("test", "valid"):
        part = sides[name]
        assert (part.Y.sum(axis=1) == 1).all()
        index = [place[i] for i in part.ids]
        assert sides["train"].Y[index].multiply(part.Y).nnz == 0
        assert (rows.X[index] != part.X).nnz == 0
    assert set(split_labels(rows, 0.0, 1.0, 0, least=1)) == {"train", "test"}
    with pytest.raises(InputError, match="further views of a picture would keep the label that is held out"):
        split_labels(replace(rows, augment=1), 0.0, 1.0, 0)


@pytest.mark.parametrize("augment", [0, 1])
def test_near_copies_stay_together_by_burst(augment: int) -> None:
    """Three noisy copies of fifty scenes; as rows they are on several sides."""
    rng = np.random.default_rng(0)
    scenes = np.repeat(np.arange(50), 3)
    views = ("", "#1") if augment else ("",)
    ids = [f"{number}{view}" for number in range(150) for view in views]
    of_row = np.repeat(scenes, len(views))
    X = rng.standard_normal((50, 60))[of_row] + 0.2 * rng.standard_normal((len(ids), 60))
    rows = build_rows(ids, X=X.astype(np.float32), augment=augment, near_equality=0.85)
    grouped, n_bursts = group_bursts(rows)
    assert n_bursts == 50

    def count_parted(rows: FeatureTable) -> int:
        sides = split_rows(rows, "auto", 0.0, 0.2, 0)
        assert len(sides.test) == pytest.approx(30, abs=3)
        return len(np.intersect1d(of_row[sides.train], of_row[sides.test]))

    assert count_parted(grouped) == 0
    assert count_parted(rows) > 10


def test_bursts_join_the_groups_that_they_touch() -> None:
    """Rows 0 and 1 are near, 1 and 2 of one group, 3 and 4 of one moment; nothing joins 5 and 6."""
    X = np.eye(7, dtype=np.float32)
    X[1], X[4] = X[0] + 0.1 * X[1], X[3] + X[4]
    times = ["", "", "", "2024-05-01T10:00:00", "2024-05-01T10:00:09", "2024-05-01", "2024-05-01"]
    groups = ["p", "q", "q", "", "", "r", ""]
    rows = build_rows(list("abcdefg"), X=X, groups=groups, times=times, near_equality=0.85)
    grouped, n_bursts = group_bursts(rows)
    assert (grouped.groups, n_bursts) == (["p", "p", "p", "d", "d", "r", ""], 2)
    assert group_bursts(replace(rows, near_equality=None, times=None))[0].groups == groups


@pytest.mark.parametrize("augment", [0, 1])
@pytest.mark.parametrize("groups", [None, [f"g{i // 4}" for i in range(100)]])
def test_rows_without_bursts_keep_their_sides(augment: int, groups: list[str] | None) -> None:
    """One burst of two rows is joined; every other row stays where it was for most seeds."""
    X = np.eye(100, dtype=np.float32)
    X[3] = X[0]
    rows = build_rows(NAMES, X=X, augment=augment, groups=groups, near_equality=0.85)
    n_same = 0
    for seed in range(10):
        before, after = (split_rows(r, "auto", 0.1, 0.1, seed).sides(100) for r in (rows, group_bursts(rows)[0]))
        n_same += int((before == after).sum())
    assert n_same > 900
