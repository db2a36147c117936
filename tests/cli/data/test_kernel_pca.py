"""`wsabie features kpca`: fitting a map, reusing it, and training on its components."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wsabie.features.kernel_pca import KernelPca
from wsabie.io.data_sources import open_source

Cli = Callable[..., Any]


def test_components_of_sparse_rows_train_a_model(cli: Cli, rows: Path, tmp_path: Path) -> None:
    out, again, model = tmp_path / "out.parquet", tmp_path / "again.parquet", tmp_path / "m"
    result = cli("features", "kpca", rows, "--out", out, "--dim", 2, "--json")
    assert result.code == 0, result.err
    assert "landmarks takes about" in result.err
    assert (result.json["rows"], result.json["components"], result.json["holdout"]) == (90, 2, False)
    table = open_source(out)
    assert table.X.shape == (90, 2)
    source = open_source(rows)
    np.testing.assert_array_equal(table.X, KernelPca.load(tmp_path / "out.parquet.map").transform(source.X))
    assert (table.ids, table.label_names, table.Y.toarray().tolist()) == (
        source.ids,
        source.label_names,
        source.Y.toarray().tolist(),
    )
    used = cli("features", "kpca", rows, "--out", again, "--map", tmp_path / "out.parquet.map")
    assert used.code == 0, used.err
    np.testing.assert_array_equal(open_source(again).X, table.X)
    assert "\nthe map, when it was learned, on 90 rows of the map's own: " in used.out
    trained = cli("train", out, "--model", model, "--threads", 1, "--epochs", 10)
    assert trained.code == 0, trained.err
    evaluation = cli("evaluate", model, again, "--allow-overlap", "--json")
    assert evaluation.code == 0, evaluation.err
    assert evaluation.json["metrics"]["p@1"] > 0.9
    assert cli("annotate", model, again, "-k", 1, "--json").code == 0
    assert cli("compare", out, "--threads", 1, "--models", "wsabie,nearest", "--json").code == 0
    refused = cli("evaluate", model, again)
    assert refused.code == 1  # the training rows, known again by the bits of their components


def test_rows_of_another_map_are_refused(cli: Cli, rows: Path, tmp_path: Path) -> None:
    for name, seed in (("a", 0), ("b", 1)):
        result = cli("features", "kpca", rows, "--out", tmp_path / name, "--dim", 2, "--landmarks", 4, "--seed", seed)
        assert result.code == 0, result.err
    assert cli("train", tmp_path / "a", "--model", tmp_path / "m", "--threads", 1, "--epochs", 1).code == 0
    refused = cli("evaluate", tmp_path / "m", tmp_path / "b")
    assert refused.code == 1
    assert "not made with it" in refused.err


def test_existing_map_is_reused_or_refused(cli: Cli, rows: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    assert cli("features", "kpca", rows, "--out", out, "--dim", 3).code == 0
    contents_before = out.read_bytes()
    again = cli("features", "kpca", rows, "--out", out, "--dim", 3)
    assert again.code == 0
    assert "using the existing map" in again.err
    assert out.read_bytes() == contents_before
    mismatch = cli("features", "kpca", rows, "--out", out, "--dim", 2)
    assert mismatch.code == 1
    assert "n_components 3 and not 2" in mismatch.err


def test_map_matches_features_by_name(cli: Cli, tmp_path: Path) -> None:
    lines = [f"__label__a {'red ' * (i % 3)}{'blue ' * (i % 4)}green" for i in range(24)]
    (tmp_path / "learned.txt").write_text("\n".join(lines))
    (tmp_path / "new.txt").write_text(
        "\n".join([*lines[:6], *["__label__a red red red"] * 99])
    )  # another order of words
    assert cli("features", "kpca", tmp_path / "learned.txt", "--out", tmp_path / "a", "--dim", 3).code == 0
    used = cli("features", "kpca", tmp_path / "new.txt", "--out", tmp_path / "b", "--map", tmp_path / "a.map")
    assert used.code == 0, used.err
    np.testing.assert_allclose(open_source(tmp_path / "b").X[:6], open_source(tmp_path / "a").X[:6], atol=1e-5)


def test_unfinished_map_is_replaced(cli: Cli, rows: Path, tmp_path: Path) -> None:
    out, broken_map = tmp_path / "out.parquet", tmp_path / "out.parquet.map"
    (broken_map / "tensors").mkdir(parents=True)
    result = cli("features", "kpca", rows, "--out", out, "--dim", 3)
    assert (result.code, (broken_map / "config.json").is_file()) == (0, True), result.err
    foreign_folder = tmp_path / "other.parquet.map"
    foreign_folder.mkdir()
    (foreign_folder / "mine.txt").touch()
    refused = cli("features", "kpca", rows, "--out", tmp_path / "other.parquet", "--dim", 3)
    assert refused.code == 1
    assert (
        refused.err == f"wsabie: {foreign_folder} is a folder that holds other files; choose an empty or new folder\n"
    )


def test_fewer_components_are_reported(cli: Cli, rows: Path, tmp_path: Path) -> None:
    result = cli("features", "kpca", rows, "--out", tmp_path / "o", "--threads", 1)
    assert result.code == 0, result.err
    assert "\non 90 rows of the map's own: " in result.out
    assert "fewer than the 90 asked for" in result.err
    assert "of the variance explained" in result.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("{rows}", "--dim", "91"), "91 components are asked for, but 90 rows have no more than 90"),
        (("{rows}", "--dim", "9", "--landmarks", "5"), "5 landmarks have no more than 5"),
        (("{rows}", "--map", "{tmp}/none"), "there is no map at"),
        (("{rows}", "--n-words", "9"), "leave --n-words out"),
        (("{tmp}/negative.txt",), "row 1 holds -2 in column 1"),
        (("{tmp}/negative.txt", "--map", "{tmp}/wide.map"), "2 features but the model takes 9"),
        (("{pictures}",), "extract features first: wsabie features images"),
    ],
)
def test_bad_arguments_give_one_sentence(
    cli: Cli, rows: Path, pictures: Path, tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    (tmp_path / "negative.txt").write_text("2 2 2\n0 0:1\n1 1:-2\n")
    KernelPca(2).fit(open_source(rows).X).save(tmp_path / "wide.map")
    filled = [word.format(rows=rows, tmp=tmp_path, pictures=pictures) for word in words]
    result = cli("features", "kpca", *filled, "--out", tmp_path / "out.parquet")
    assert result.code == 1
    assert message in result.err
    assert "Traceback" not in result.err
    assert not (tmp_path / "out.parquet").exists()


def test_kpca_options_are_refused_for_pictures(cli: Cli, pictures: Path, tmp_path: Path) -> None:
    result = cli("features", "images", pictures, "--out", tmp_path / "o", "--dim", 3)
    assert (result.code, "leave --dim out" in result.err) == (1, True)


def test_landmarks_reduce_corel5k(cli: Cli, data_dir: Path, tmp_path: Path) -> None:
    """Real rows, the way a user runs it: names of features are kept, so that the test rows are matched by name."""
    folder, out = data_dir / "corel5k_mulan", tmp_path / "train.parquet"
    result = cli("features", "kpca", folder / "Corel5k-train-sparse.arff", "--out", out, "--dim", 64, "--json")
    assert result.code == 0, result.err
    assert result.json["holdout"]
    assert result.json["kernel_error"] < 0.8  # .695 with all rows
    test = tmp_path / "test.parquet"
    used = cli("features", "kpca", folder / "Corel5k-test-sparse.arff", "--out", test, "--map", f"{out}.map")
    assert used.code == 0, used.err
    assert open_source(test).X.shape == (500, 64)
