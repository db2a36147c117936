"""Results as JSON and as a table."""

import json

from wsabie.workflows.compare.comparison_table import Comparison, ModelOmission


def test_json_holds_all_results(comparison: Comparison) -> None:
    document = json.loads(json.dumps(comparison.as_dict(), allow_nan=False))
    assert document["schema"] == 1
    assert document["data"]["labels"] == 6
    assert set(document["data"]["fingerprint"]) == {"train", "valid", "test"}
    assert [model["name"] for model in document["models"]] == ["popularity", "wsabie", "nearest"]
    model = document["models"][1]
    assert {"fit_seconds", "tuning_seconds", "compile_seconds", "predict_ms_per_row", "bytes"} <= set(model)
    assert model["parameters"]["dim"] == 20
    low, high = model["intervals"]["p@1"]
    assert low <= model["metrics"]["p@1"] <= high
    assert set(model["differences"]["MAP"]) == {"baseline", "mean", "low", "high", "ahead"}
    assert document["models"][2]["option_figures"][0]["parameters"] == {"k": 1}
    assert "python" in document["versions"]


def test_table_shows_every_model_and_the_ceiling(comparison: Comparison) -> None:
    table = comparison.table()
    assert table.headers == ["model", *comparison.metrics, "train s", "ms/row", "MB"]
    assert [row[0] for row in table.rows] == [
        "most frequent labels",
        "WARP embedding",
        "k nearest neighbours",
        "highest possible",
    ]
    at = table.headers.index("p@5")
    assert table.rows[1][at] == f"{comparison['wsabie'].evaluation.means['p@5']:.3f}"
    assert table.rows[3][at] == f"{comparison.ceilings['p@5']:.3f}"
    assert table.rows[3][table.headers.index("MAP")] == ""
    assert len({len(row) for row in [table.headers, *table.rows]}) == 1


def test_skipped_model_has_a_row(comparison: Comparison) -> None:
    from dataclasses import replace

    with_skipped = replace(comparison, skipped=[ModelOmission("x", "too big a model", "why")])
    assert with_skipped.table().rows[-1][:2] == ["too big a model", "skipped"]


def test_best_model_has_the_highest_mean(comparison: Comparison) -> None:
    means = {entry.name: entry.evaluation.means["MAP"] for entry in comparison.entries}
    best, baseline = comparison.best("MAP"), comparison.best("MAP", baselines=True)
    assert best is not None
    assert means[best.name] == max(means.values())
    assert baseline is not None
    assert means[baseline.name] == max(means["popularity"], means["nearest"])
