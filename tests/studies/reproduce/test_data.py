"""What --data may name."""

from pathlib import Path

import numpy as np
import pytest

from wsabie.base.errors import InputError
from wsabie.studies.reproduce import visterms
from wsabie.studies.reproduce.data import open_data


def test_a_generated_task_has_families(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    size = visterms.Size(400, 60, 40)
    monkeypatch.setitem(visterms.SIZES, "tiny", size)
    data = open_data("visterm:tiny")
    assert (len(data.train), len(data.valid), len(data.test)) == (360, 40, 60)
    assert data.train.X.shape[1] == visterms.N_WORDS
    parents = visterms.world_of(40).parents
    assert data.train.label_names[7] == f"family {parents[7]} label 7"
    assert data.similar is not None
    similar = data.similar(data.train.label_names)
    alike = np.stack([similar.to([y]) for y in range(40)])
    assert np.array_equal(alike > 0, parents[:, None] == parents)
    monkeypatch.delattr(visterms, "generate")  # the second time it comes from the cache
    assert (open_data("visterm:tiny").train.X != data.train.X).nnz == 0


def test_a_cache_that_cannot_be_written_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "wsabie").write_text("a file where the folder should be")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setitem(visterms.SIZES, "tiny", visterms.Size(50, 10, 8))
    assert len(open_data("visterm:tiny").test) == 10


@pytest.mark.parametrize("name", ["visterm:", "visterm:S:12", "visterm:S:many", "visterm:S:99999999999"])
def test_bad_tasks(name: str) -> None:
    with pytest.raises(InputError, match=r"no visual-word task|no number of training rows"):
        open_data(name)


def test_a_collection_is_split(tmp_path: Path) -> None:
    file = tmp_path / "rows.txt"
    file.write_text("50 4 2\n" + "".join(f"{i % 2} {i % 4}:{1 + i}\n" for i in range(50)))
    data = open_data(str(file))
    assert (data.name, len(data.train), len(data.valid), len(data.test)) == ("rows.txt", 40, 5, 5)


def test_a_missing_path() -> None:
    with pytest.raises(InputError, match="no-such-file"):
        open_data("no-such-file")


def test_published_rows_of_mulan_stay_the_test(data_dir: Path) -> None:
    data = open_data(str(data_dir / "corel5k_mulan"))
    assert (data.name, len(data.train), len(data.valid), len(data.test)) == ("corel5k", 4050, 450, 500)
    assert data.published_split
