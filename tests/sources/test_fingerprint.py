"""The short name of a collection's content."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from wsabie.base.errors import InputError
from wsabie.sources.fingerprint import fingerprint
from wsabie.sources.records import Picture, PictureList, Rows

X = csr_matrix(np.array([[0, 1, 2], [3, 0, 0]], np.float32))
ROWS = Rows(X, csr_matrix(np.array([[1, 0], [1, 1]], np.int8)), ["a", "b"], ["x", "y"])
PICTURES = PictureList(Path("p"), [Picture("1", b"pixels", ("cat",)), Picture("2", b"more", ("cat", "dog"))])


def test_it_is_the_same_on_every_machine_and_in_every_run():
    assert fingerprint(ROWS) == "b07bd873c3b3b502"
    assert fingerprint(PICTURES) == "904b13de84a87d6a"


def test_types_and_order_in_memory_do_not_count():
    wide = csr_matrix((X.data.astype(np.float64), X.indices.astype(np.int64), X.indptr.astype(np.int64)), X.shape)
    assert fingerprint(replace(ROWS, X=wide)) == fingerprint(ROWS)
    turned = csr_matrix((X.data[[1, 0, 2]], X.indices[[1, 0, 2]], X.indptr), X.shape)
    assert fingerprint(replace(ROWS, X=turned)) == fingerprint(ROWS)


@pytest.mark.parametrize(
    "changed",
    [
        replace(ROWS, X=2 * X),
        replace(ROWS, X=X.toarray()),
        replace(ROWS, X=csr_matrix((X.data, X.indices, X.indptr), (2, 4))),
        replace(ROWS, Y=ROWS.Y[::-1]),
        replace(ROWS, label_names=["a", "c"]),
        replace(ROWS, ids=["x", "z"]),
        replace(ROWS, groups=["g", "g"]),
        replace(ROWS, times=["t", "t"]),
        replace(ROWS, counts=True),
        replace(ROWS, feature_names=["p", "q", "r"]),
    ],
)
def test_any_change_of_content_shows(changed):
    assert fingerprint(changed) != fingerprint(ROWS)


def test_pictures_count_by_their_beginnings_and_not_by_their_paths(tmp_path):
    (tmp_path / "a.png").write_bytes(b"pixels")
    (tmp_path / "b.png").write_bytes(b"pixels")
    first, second = PICTURES.pictures
    for place in (tmp_path / "a.png", tmp_path / "b.png"):
        assert fingerprint(PictureList(tmp_path, [first._replace(content=place), second])) == fingerprint(PICTURES)
    for other in (first._replace(content=b"other"), first._replace(id="3"), first._replace(labels=("dog",))):
        assert fingerprint(PictureList(tmp_path, [other, second])) != fingerprint(PICTURES)
    large = [Picture("1", b"x" * 65_536 + tail, ()) for tail in (b"a", b"b")]
    assert fingerprint(PictureList(tmp_path, large[:1])) == fingerprint(PictureList(tmp_path, large[1:]))
    with pytest.raises(InputError, match="there is no file"):
        fingerprint(PictureList(tmp_path, [first._replace(content=tmp_path / "gone.png")]))
