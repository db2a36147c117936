"""Named columns of data frames: other names and another order are refused."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wsabie
from wsabie.core.errors import InputError
from wsabie.models.full_rank import FullRank

NAMES = ["width", "height", "weight", "age"]
LABELS = ["xyz"[i % 3] for i in range(60)]
TABLE = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)


@dataclass
class Frame:
    """Data frame with the parts of pandas and Polars that the library uses."""

    table: Any
    columns: Any

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.asarray(self.table, dtype)


@pytest.mark.parametrize(
    "model",
    [
        wsabie.Wsabie(dim=4, epochs=2, threads=1),
        wsabie.OneVsRest(threads=1),
        wsabie.NearestNeighbours(),
        wsabie.Ensemble(wsabie.Wsabie(dim=4, epochs=2), n=2, threads=1),
        FullRank(wsabie.Wsabie(dim=4, epochs=2), blend=1.0, threads=1),
    ],
    ids=lambda model: model.kind,
)
def test_reordered_columns_are_refused(model: Any, tmp_path: Path) -> None:
    frame, order = Frame(TABLE, NAMES), [3, 1, 2, 0]
    model.fit(frame, LABELS).save(tmp_path / "m")
    for fitted in (model, wsabie.load(tmp_path / "m")):
        fitted = getattr(fitted, "model", fitted)
        assert list(fitted.feature_names_in_) == NAMES
        with pytest.raises(
            InputError, match=r"column 0 of X is 'age', but \w+ was fitted with 'width' there; give the"
        ):
            fitted.rank(Frame(TABLE[:, order], [NAMES[i] for i in order]), 1)
        assert np.array_equal(fitted.rank(frame, 1)[0], fitted.rank(TABLE, 1)[0])
    model.fit(TABLE, LABELS)
    assert model.feature_names_in_ is None
    model.rank(frame, 1)


def test_numbered_columns_have_no_names() -> None:
    model = wsabie.Wsabie(dim=4, epochs=1, threads=1).fit(Frame(TABLE, range(4)), LABELS)
    assert model.feature_names_in_ is None
    model.rank(Frame(TABLE, NAMES), 1)
