"""`wsabie features kpca`: learn, use again, and what comes after it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wsabie.features.kernel_pca import KernelPca
from wsabie.io.recognition import open_source

Cli = Callable[..., Any]


def test_from_sparse_rows_to_judged_annotations(cli: Cli, rows: Path, tmp_path: Path) -> None:
    out, again, model = tmp_path / "out.parquet", tmp_path / "again.parquet", tmp_path / "m"
    learnt = cli("features", "kpca", rows, "--out", out, "--dim", 2, "--json")
    assert learnt.code == 0, learnt.err
    assert "landmarks takes about" in learnt.err
    assert (learnt.json["rows"], learnt.json["components"], learnt.json["held_out"]) == (90, 2, False)
    found = open_source(out)
    assert found.X.shape == (90, 2)
    given = open_source(rows)
    np.testing.assert_array_equal(found.X, KernelPca.load(tmp_path / "out.parquet.map").transform(given.X))
    assert (found.ids, found.label_names, found.Y.toarray().tolist()) == (
        given.ids,
        given.label_names,
        given.Y.toarray().tolist(),
    )
    used = cli("features", "kpca", rows, "--out", again, "--map", tmp_path / "out.parquet.map")
    assert used.code == 0, used.err
    np.testing.assert_array_equal(open_source(again).X, found.X)
    assert "\nthe map, when it was learnt, on 90 rows of the map's own: " in used.out
    trained = cli("train", out, "--model", model, "--threads", 1, "--epochs", 10)
    assert trained.code == 0, trained.err
    judged = cli("evaluate", model, again, "--allow-overlap", "--json")
    assert judged.code == 0, judged.err
    assert judged.json["metrics"]["p@1"] > 0.9
    assert cli("annotate", model, again, "-k", 1, "--json").code == 0
    assert cli("compare", out, "--threads", 1, "--models", "wsabie,nearest", "--json").code == 0
    refused = cli("evaluate", model, again)
    assert refused.code == 1  # the training rows, known again by the bits of their components


def test_maps_do_not_mix(cli: Cli, rows: Path, tmp_path: Path) -> None:
    for name, seed in (("a", 0), ("b", 1)):
        made = cli("features", "kpca", rows, "--out", tmp_path / name, "--dim", 2, "--landmarks", 4, "--seed", seed)
        assert made.code == 0, made.err
    assert cli("train", tmp_path / "a", "--model", tmp_path / "m", "--threads", 1, "--epochs", 1).code == 0
    refused = cli("evaluate", tmp_path / "m", tmp_path / "b")
    assert refused.code == 1
    assert "not made with it" in refused.err


def test_a_map_that_is_there_is_used_or_refused(cli: Cli, rows: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    assert cli("features", "kpca", rows, "--out", out, "--dim", 3).code == 0
    before = out.read_bytes()
    again = cli("features", "kpca", rows, "--out", out, "--dim", 3)
    assert again.code == 0
    assert "using the map that is there" in again.err
    assert out.read_bytes() == before
    other = cli("features", "kpca", rows, "--out", out, "--dim", 2)
    assert other.code == 1
    assert "n_components 3 and not 2" in other.err


def test_features_are_known_to_a_map_by_their_names(cli: Cli, tmp_path: Path) -> None:
    lines = [f"__label__a {'red ' * (i % 3)}{'blue ' * (i % 4)}green" for i in range(24)]
    (tmp_path / "learnt.txt").write_text("\n".join(lines))
    (tmp_path / "new.txt").write_text(
        "\n".join([*lines[:6], *["__label__a red red red"] * 99])
    )  # another order of words
    assert cli("features", "kpca", tmp_path / "learnt.txt", "--out", tmp_path / "a", "--dim", 3).code == 0
    used = cli("features", "kpca", tmp_path / "new.txt", "--out", tmp_path / "b", "--map", tmp_path / "a.map")
    assert used.code == 0, used.err
    np.testing.assert_allclose(open_source(tmp_path / "b").X[:6], open_source(tmp_path / "a").X[:6], atol=1e-5)


def test_what_a_stopped_save_left_is_no_map(cli: Cli, rows: Path, tmp_path: Path) -> None:
    out, left = tmp_path / "out.parquet", tmp_path / "out.parquet.map"
    (left / "tensors").mkdir(parents=True)
    made = cli("features", "kpca", rows, "--out", out, "--dim", 3)
    assert (made.code, (left / "config.json").is_file()) == (0, True), made.err
    other = tmp_path / "other.parquet.map"
    other.mkdir()
    (other / "mine.txt").touch()
    refused = cli("features", "kpca", rows, "--out", tmp_path / "other.parquet", "--dim", 3)
    assert refused.code == 1
    assert refused.err == f"wsabie: {other} is a folder that holds other files; choose an empty or new folder\n"


def test_fewer_components_are_told(cli: Cli, rows: Path, tmp_path: Path) -> None:
    said = cli("features", "kpca", rows, "--out", tmp_path / "o", "--threads", 1)
    assert said.code == 0, said.err
    assert "\non 90 rows of the map's own: " in said.out
    assert "fewer than the 90 asked for" in said.err
    assert "of the variance explained" in said.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("{rows}", "--dim", "91"), "91 components are asked for, but 90 rows have no more than 90"),
        (("{rows}", "--dim", "9", "--landmarks", "5"), "5 landmarks have no more than 5"),
        (("{rows}", "--map", "{tmp}/none"), "there is no map at"),
        (("{rows}", "--n-words", "9"), "leave --n-words out"),
        (("{tmp}/negative.txt",), "row 1 holds -2 in column 1"),
        (("{tmp}/negative.txt", "--map", "{tmp}/wide.map"), "2 features but the model takes 9"),
        (("{pictures}",), "describe them first: wsabie features images"),
    ],
)
def test_mistakes_get_one_sentence(
    cli: Cli, rows: Path, pictures: Path, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    (tmp_path / "negative.txt").write_text("2 2 2\n0 0:1\n1 1:-2\n")
    KernelPca(2).fit(open_source(rows).X).save(tmp_path / "wide.map")
    filled = [word.format(rows=rows, tmp=tmp_path, pictures=pictures) for word in words]
    ran = cli("features", "kpca", *filled, "--out", tmp_path / "out.parquet")
    assert ran.code == 1
    assert said in ran.err
    assert "Traceback" not in ran.err
    assert not (tmp_path / "out.parquet").exists()


def test_options_of_kpca_are_refused_for_pictures(cli: Cli, pictures: Path, tmp_path: Path) -> None:
    ran = cli("features", "images", pictures, "--out", tmp_path / "o", "--dim", 3)
    assert (ran.code, "leave --dim out" in ran.err) == (1, True)


def test_corel5k_by_landmarks(cli: Cli, data_dir: Path, tmp_path: Path) -> None:
    """Real rows, the way a user runs it: names of features are kept, so that the test rows are matched by name."""
    folder, out = data_dir / "corel5k_mulan", tmp_path / "train.parquet"
    learnt = cli("features", "kpca", folder / "Corel5k-train-sparse.arff", "--out", out, "--dim", 64, "--json")
    assert learnt.code == 0, learnt.err
    assert learnt.json["held_out"]
    assert learnt.json["kernel_error"] < 0.8  # .695 with all rows
    test = tmp_path / "test.parquet"
    used = cli("features", "kpca", folder / "Corel5k-test-sparse.arff", "--out", test, "--map", f"{out}.map")
    assert used.code == 0, used.err
    assert open_source(test).X.shape == (500, 64)
