"""Records run from data to files: models, sweeps, neighbours, nested labels, texts, ids."""

import csv
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from papers.claims import HOLDS, NOT_RUN, OrderingClaim
from papers.data.music_data import split_label_kinds
from papers.datasets import PaperData
from papers.record import RecordEntry
from papers.record_run import RecordRun, run_record
from papers.records.record_index import find_record
from papers.runs.leave_one_out import split_label_holdout
from papers.runs.neighbour_search import _compute_find_chances, _compute_hit_chances
from wsabie.core.errors import InputError
from wsabie.io.records import FeatureTable
from wsabie.vocabulary.concept_hierarchy import Hierarchy
from wsabie.vocabulary.label_similarity import SiblingSimilarity

QUICK = {"epochs": 3, "dim": 20}


def some_rows(n: int, prefix: str, seed: int, n_labels: int = 8) -> FeatureTable:
    """Two labels a row out of eight, each with features of its own."""
    rng = np.random.default_rng(seed)
    first = rng.integers(0, n_labels, n)
    second = (first + 1 + rng.integers(0, 2, n)) % n_labels
    X = np.zeros((n, 4 * n_labels), np.float32)
    for label in (first, second):
        X[np.arange(n), 4 * label + rng.integers(0, 4, n)] += 1
    X[np.arange(n), rng.integers(0, 4 * n_labels, n)] += 1
    Y = np.zeros((n, n_labels), np.int8)
    Y[np.arange(n), first] = Y[np.arange(n), second] = 1
    return FeatureTable(
        sp.csr_matrix(X), sp.csr_matrix(Y), [f"label {y}" for y in range(n_labels)], [f"{prefix}{i}" for i in range(n)]
    )


def pairs_of(labels: Sequence[str]) -> SiblingSimilarity:
    """Labels 0 and 1, 2 and 3 ... are siblings."""
    return Hierarchy((name, f"kind {int(name.split()[1]) // 2}") for name in labels).find_siblings(labels)


@pytest.fixture(scope="module")
def data() -> PaperData:
    parts = [some_rows(n, prefix, seed) for seed, (n, prefix) in enumerate(((240, "a"), (60, "b"), (60, "c")))]
    return PaperData("toy", "toy rows", *parts, published_split=True, similar=pairs_of)


def ran(name: str, data: PaperData | None, seeds: int | None = None, **changes: object) -> RecordRun:
    record = replace(find_record(name), **changes)  # type: ignore[arg-type]
    return run_record(record, data, threads=1, parameters=QUICK, seeds=seeds)


def test_models_stand_beside_the_figures_of_the_paper(data: PaperData, tmp_path: Path) -> None:
    entries_at_hand = (
        RecordEntry("k-NN", "nearest"),
        RecordEntry("WSABIE low", "wsabie"),
        RecordEntry("most frequent", "popularity"),
    )
    run = ran("wsabie-table-2", data, entries=(*entries_at_hand, RecordEntry("WSABIE full", "no-such-model")))
    table = run.table()
    assert table.headers[:3] == ["row", "p@1 %, ImageNet", "p@1 %, toy"]
    cells = {row[0]: row[1:] for row in table.rows}
    assert cells["k-NN"][0] == "4.53"
    assert float(cells["k-NN"][1]) > 20  # per cent of rows
    assert table.headers[5:7] == ["psib@10 %, ImageNet", "psib@10 %, toy"]
    low = run.findings["WSABIE low"].figures
    assert float(low["psib@1"]) > float(low["p@1"])  # type: ignore[arg-type]
    assert cells["WSABIE full"][1] == ""
    assert run.findings.missing == {"WSABIE full": "no-such-model is not available in this version"}
    verdicts = {verdict.text: verdict for verdict in run.verdicts}
    assert verdicts["WSABIE full > WSABIE low in p@1"].here == NOT_RUN
    assert verdicts["WSABIE low > k-NN in MAP"].difference is not None

    files = run.write(tmp_path)
    assert [file.name for file in files] == ["table.csv", "about.md"]
    with (tmp_path / "table.csv").open(newline="") as stream:
        assert next(csv.reader(stream)) == table.headers
    page = (tmp_path / "about.md").read_text()
    assert "no-such-model is not available in this version" in page
    assert "Data: toy rows. Fingerprints: train " in page
    assert "seed 0, epochs = 3, dim = 20" in page
    assert json.loads(json.dumps(run.as_dict(), allow_nan=False))["schema"] == 1


def test_a_sweep_keeps_the_parameters_of_its_rows(data: PaperData, tmp_path: Path) -> None:
    entries = tuple(RecordEntry(f"D = {dim}", "wsabie", {"dim": dim}) for dim in (4, 20))
    run = ran("wsabie-table-5", data, entries=entries)
    assert [row.title for row in run.findings.rows] == ["WARP embedding (dim = 4)", "WARP embedding (dim = 20)"]
    assert {file.name for file in run.write(tmp_path)} == {"table.csv", "figure.svg", "figure.png", "about.md"}
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")


def test_two_losses(data: PaperData) -> None:
    run = ran("wsabie-table-6", data)
    losses = {finding.row: finding.title for finding in run.findings.rows if finding.row.startswith("embedding")}
    assert losses["embedding, AUC"] == "WARP embedding (loss = auc)"
    assert losses["embedding, WARP"] == "WARP embedding"


def test_a_lost_neighbour_costs_accuracy(data: PaperData) -> None:
    record_entries = find_record("wsabie-nearest-neighbour").entries
    run = ran("wsabie-nearest-neighbour", data, entries=(*record_entries[:5], RecordEntry("tree", "no-such-model")))
    assert set(run.findings.missing) == {"tree"}
    values = [run.findings[row].figures["p@1"] for row in ("always", "each 25 %", "each 10 %")]
    assert values == sorted(values, reverse=True)  # type: ignore[type-var]


def test_a_colon_in_a_label_is_no_kind() -> None:
    assert split_label_kinds(["homem: barba", "barba"]) == {
        "homem: barba": ("", "homem: barba"),
        "barba": ("", "barba"),
    }
    assert split_label_kinds(["artist: a", "genre: b"]) == {"artist: a": ("artist", "a"), "genre: b": ("genre", "b")}


def test_losing_neighbours_is_summed_by_its_law() -> None:
    assert _compute_find_chances({"first": 0.5, "rest": 1.0}, 4).tolist() == [0.5, 0.5, 0, 0]
    assert _compute_find_chances({"first": 0.25, "rest": 0.25}, 3).tolist() == [0.25, 0.75 * 0.25, 0.75**2]
    train, test = sp.csr_matrix([[1, 1, 0], [0, 0, 1]]), sp.csr_matrix([[1, 0, 0], [1, 1, 0]])
    assert _compute_hit_chances(np.array([[0, 1], [1, 0]]), train, test).tolist() == [[0.5, 0], [0, 1]]


def test_label_sets_are_nested_and_grow(data: PaperData) -> None:
    run = ran(
        "slides-size-matters",
        data,
        entries=(RecordEntry("k-NN", "nearest"), RecordEntry("most frequent", "popularity")),
    )
    counts = [finding.figures["labels"] for finding in run.findings.rows if finding.row.startswith("k-NN")]
    assert counts == [2, 2, 2, 4, 8]
    assert [chart.title for chart in run.findings.charts] == [
        "p@1 and the number of labels",
        "MAP and the number of labels",
    ]


def test_nearest_labels_and_annotations_mark_siblings(data: PaperData) -> None:
    near = ran("wsabie-table-4", data)
    neighbours = str(near.findings["label 0"].figures["nearest"])
    assert "[label 1]" in neighbours
    assert "[label 2]" not in neighbours
    notes = ran("wsabie-table-9", data, entries=(RecordEntry("WSABIE low", "wsabie"), RecordEntry("k-NN", "nearest")))
    marked = [str(row.figures["annotations"]) for row in notes.findings.rows]
    assert any("*label" in cell for cell in marked)


def test_curves_of_training(data: PaperData) -> None:
    run = ran(
        "wsabie-figure-2", data, entries=(RecordEntry("WARP", "wsabie"), RecordEntry("AUC", "wsabie", {"loss": "auc"}))
    )
    epochs = [finding.row for finding in run.findings.rows]
    assert epochs[0] == "WARP, epoch 1"
    assert "AUC, epoch 1" in epochs


def test_curves_by_length_of_the_list(data: PaperData) -> None:
    run = ran("wsabie-figure-1", data, entries=(RecordEntry("k-NN", "nearest"), RecordEntry("WSABIE low", "wsabie")))
    assert [chart.title for chart in run.findings.charts] == ["Precision at k", "Sibling precision at k"]
    assert {series.name for series in run.findings.charts[0].series} == {"k-NN", "WSABIE low"}


@pytest.mark.parametrize("name", ["wsabie-table-1", "wsabie-table-7", "vse-ens-table-1"])
def test_counts(data: PaperData, name: str) -> None:
    assert ran(name, data).findings.rows


def test_time_and_memory(data: PaperData) -> None:
    run = ran("wsabie-table-8", data, entries=(RecordEntry("WSABIE low", "wsabie", {"dim": 100}),))
    tables = 4 * 100 * (32 + 8)  # D = 100: V and W
    assert float(run.findings["WSABIE low"].figures["MB"]) * 1e6 >= tables  # type: ignore[arg-type]
    assert "MB, toy" in run.table().headers
    measured = float(run.findings["WSABIE low"].figures["MB"])  # type: ignore[arg-type]
    at_scale = str(run.findings["WSABIE low"].figures["space at ImageNet's size"])
    assert float(at_scale.split()[0]) == pytest.approx(measured * (15_952 + 10_000) / (8 + 32) / 1000, rel=0.01)


def test_labels_of_rows_as_ids_are_dealt_out(data: PaperData) -> None:
    sides = split_label_holdout(data, 0)
    train, test = sides["train"], sides["test"]
    assert train.Y.shape == test.Y.shape == (360, 8)
    assert np.all(test.Y.getnnz(axis=1) == 1)
    assert train.Y.multiply(test.Y).nnz == 0


def test_rows_of_one_label_are_trained_on(data: PaperData) -> None:
    Y = data.train.Y.toarray()
    Y[:30] = np.eye(8, dtype=np.int8)[np.arange(30) % 8]
    Y[30:40] = 0
    data = replace(data, train=replace(data.train, Y=sp.csr_matrix(Y)))
    sides, counts = split_label_holdout(data, 0), ran("vse-ens-table-1", data).findings
    assert [counts[row].figures["count"] for row in ("Images", "Test")] == [350, 320]
    assert sides["train"].Y.getnnz(axis=1).min() == 1
    assert not set(sides["test"].ids) & {str(i) for i in range(30)}


def families(rows: FeatureTable) -> FeatureTable:
    """The same rows with three of the four labels of one half, so that labels tell of each other."""
    Y = np.kron(np.eye(2, dtype=np.int8), np.ones((1, 4), np.int8))[np.arange(len(rows)) % 2]
    Y[np.arange(len(rows)), 4 * (np.arange(len(rows)) % 2) + np.arange(len(rows)) // 2 % 4] = 0
    return replace(rows, Y=sp.csr_matrix(Y))


def test_rows_as_ids(data: PaperData) -> None:
    data = replace(data, train=families(data.train), valid=families(data.valid), test=families(data.test))
    warp = (RecordEntry("WARP", "wsabie", {"max_sampled": None, "epochs": 60}), RecordEntry("VSE-ens", "no-such-model"))
    run = ran("vse-ens-table-2", data, entries=warp, seeds=2)
    assert set(run.findings.missing) == {"VSE-ens"}
    figures = run.findings["WARP"].figures
    assert float(figures["AUC"]) > 0.55  # type: ignore[arg-type]
    assert 1 <= float(figures["epoch"]) <= 60  # type: ignore[arg-type]
    assert run.findings.notes[0].startswith("2 seeds, of which the first chooses the settings. ")
    epochs = re.search(r"epochs (\d+), (\d+) of 60", run.findings.notes[1])
    assert epochs is not None
    assert figures["epoch"] == (int(epochs[1]) + int(epochs[2])) / 2
    assert len(run.findings["WARP"].per_row["MAP"]) == len(run.findings.groups or ())
    pair = (RecordEntry("VSE-ens", "wsabie", {"epochs": 1}), RecordEntry("WARP", "wsabie", {"epochs": 1}))
    gain = ran("vse-ens-table-2", data, entries=pair, seeds=1).findings["Improve"].figures
    assert gain["MAP"] == "0.00%"
    draws = ran("vse-ens-figure-1", data, entries=warp)
    assert all(1 <= float(row.figures["draws per visit"]) <= 8 for row in draws.findings.rows)  # type: ignore[arg-type]
    assert len(draws.findings.charts[0].series[0].y) == len(draws.findings.rows)
    assert ran("vse-ens-table-3", data).findings["VSE-ens"].figures == {"multiplications": 200}


def test_ids_need_several_labels(data: PaperData) -> None:
    single = replace(data, **{
        side: replace(rows, Y=sp.csr_matrix(np.eye(8, dtype=np.int8)[np.arange(len(rows)) % 8]))
        for side, rows in (("train", data.train), ("valid", data.valid), ("test", data.test))
    })  # fmt: skip
    with pytest.raises(InputError, match="no row has 2 labels or more"):
        ran("vse-ens-table-2", single)


def test_records_that_need_data_say_so() -> None:
    with pytest.raises(InputError, match="wsabie-table-2 needs data"):
        run_record(find_record("wsabie-table-2"))


def test_the_example_of_the_slides() -> None:
    run = run_record(find_record("slides-example"))
    assert [verdict.here for verdict in run.verdicts] == [HOLDS, HOLDS]
    assert run.data is None


def test_unpublished_rows_stand_apart(data: PaperData) -> None:
    entry = RecordEntry("Wsabie", "wsabie")
    longer = find_record("slides-ensembles").entries[-1]
    claims = (
        OrderingClaim("Wsabie > Wsabie in MAP"),
        OrderingClaim("Wsabie > Wsabie, three times the epochs in MAP", ours=True),
    )
    run = ran("slides-ensembles", data, entries=(entry, longer), claims=claims)
    assert run.findings[longer.row].title == "WARP embedding (epochs = 9)"
    paper_claims, besides = run.about().split("## Asked here besides")
    assert "- Wsabie > Wsabie in MAP" in paper_claims.split("## What the paper says")[1]
    assert "three times the epochs in MAP" in besides
