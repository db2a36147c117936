"""Lists of ids: what a list holds is read back, and what it cannot hold is refused."""

import contextlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from wsabie.core.errors import InputError
from wsabie.io.formats.id_labels import read_ids, refuse_unlistable_id, select_listed_ids, write_ids
from wsabie.io.records import FeatureTable
from wsabie.storage.rejects import Rejects


def is_storable(name: str) -> bool:
    try:
        refuse_unlistable_id(name)
    except InputError:
        return False
    return True


@given(st.lists(st.text(), min_size=1, unique=True))
def test_written_ids_are_read_back(tmp_path_factory: pytest.TempPathFactory, names: list[str]) -> None:
    file, names = tmp_path_factory.mktemp("ids") / "ids.txt", [name for name in names if is_storable(name)]
    write_ids(file, [*names, "last"])
    assert read_ids(file, rejects=Rejects()) == list(dict.fromkeys([*names, "last"]))


@pytest.mark.parametrize("name", ["", " a", "a\tb", "a\nb", "a\x85b", "\ufeffa", "a\udce4"])
def test_unstorable_ids_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="which a list cannot hold; give another id"):
        write_ids(tmp_path / "ids.txt", ["a", name])
    assert not (tmp_path / "ids.txt").exists()


@given(st.binary())
def test_any_bytes_give_ids_or_one_sentence(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    file = tmp_path_factory.mktemp("ids") / "ids.txt"
    file.write_bytes(content)
    with contextlib.suppress(InputError):
        assert read_ids(file, rejects=Rejects())


def test_ids_without_data_are_listed(tmp_path: Path) -> None:
    rows = FeatureTable(np.eye(3, dtype=np.float32), csr_matrix((3, 0), dtype=np.int8), [], ["a", "b", "c"])
    write_ids(tmp_path / "ids.txt", ["c", "x", "a"])
    rejects = Rejects()
    selected = select_listed_ids(rows, tmp_path / "ids.txt", rejects=rejects)
    assert isinstance(selected, FeatureTable)
    assert selected.ids == ["a", "c"], "in the order of the data"
    assert [reason for _, reason, _ in rejects.listed] == ["id without data"]
