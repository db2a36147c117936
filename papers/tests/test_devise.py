"""The tables of DeViSE's appendix: sizes worked by hand, readings that differ, and labels never seen, in small."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from papers.record_run import run_record
from papers.records.record_index import find_record
from papers.runs import correct_sets, synset_names, zero_shot
from papers.runs.correct_sets import ALL_LABELS, THREE, TWO
from wsabie.core.arrays import Float32
from wsabie.core.errors import InputError
from wsabie.io.records import FeatureTable
from wsabie.storage.rejects import Rejects
from wsabie.vocabulary.concept_hierarchy import Hierarchy
from wsabie.vocabulary.word_vectors import WordVectors


def synset(number: int) -> str:
    return f"n{number:08}"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Two parents of three and two; the first of each are the small set; one lone synset."""
    pairs = [(0, 10), (1, 10), (2, 10), (3, 11), (4, 11), (10, 12), (11, 12)]
    folder = tmp_path / "synsets"
    folder.mkdir()
    (folder / "wordnet.is_a.txt").write_text("".join(f"{synset(p)} {synset(c)}\n" for c, p in pairs))
    (folder / "few.txt").write_text("".join(f"{synset(c)}\n" for c in (0, 3)))
    (folder / "all.txt").write_text("".join(f"{synset(c)}\n" for c in (0, 1, 2, 3, 4, 10, 11, 20)))
    return folder


def test_sizes_worked_by_hand(tree: Path) -> None:
    """0 and 3 are four hops apart: two labels need all of these rings, and there are no more."""
    size_findings = run_record(find_record("devise-table1"), correct_sets.open_synsets(str(tree))).findings
    direct = size_findings[correct_sets.SEEDS].figures
    assert direct == {"labels": 2, "k = 2": 2, "k = 5": 2, "k = 10": 2, "k = 20": 2}
    nearer = size_findings[f"{correct_sets.TWO}, one hop less"].figures  # 10 and 11: 0 or 3 is one hop away
    assert (nearer["labels"], nearer["k = 2"]) == (4, 2)
    assert size_findings[correct_sets.TWO].figures["labels"] == 7  # 1, 2 and 4 too; 12 is not a label
    # 10 and 11 reach 4 and 3 labels in a ring; 1, 2 and 4 have their parent
    assert size_findings[correct_sets.TWO].figures["k = 2"] == pytest.approx((4 + 3 + 2 + 2 + 2) / 5)
    assert size_findings[f"{correct_sets.SEEDS}, with Misc"].figures["k = 2"] == 2


def test_readings_of_rings() -> None:
    within = np.array([1, 1, 3, 4, 9])
    assert [correct_sets.expand_to_at_least(within, k) for k in (1, 2, 3, 5, 20)] == [1, 3, 3, 9, 9]
    assert [correct_sets.expand_to_more_than(within, k) for k in (1, 3, 4)] == [3, 4, 9]
    assert [correct_sets.expand_one_ring_further(within, k) for k in (1, 2, 4, 9)] == [1, 4, 9, 9]
    assert [correct_sets.expand_even_rings(within, k) for k in (1, 2, 4)] == [1, 3, 9]


def test_synsets_without_a_top_category_go_to_misc() -> None:
    animal = correct_sets.ROOTS[-1]
    kinds = Hierarchy([(synset(1), animal), (synset(2), synset(3))])
    tree = correct_sets.build_tree_with_misc(kinds, [synset(1), synset(2), synset(3), animal])
    assert tree.parents(synset(1)) == [animal]
    assert tree.parents(synset(2)) == tree.parents(synset(3)) == [correct_sets.MISC]
    assert correct_sets.build_tree(Hierarchy([("a", "b"), ("a", "c")]), []).parents("a") == ["b"]


def test_a_folder_without_lists_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds 0 lists of synsets; give a folder"):
        correct_sets.open_synsets(str(tmp_path))


def test_the_shared_lists_give_the_direct_reading(data_dir: Path) -> None:
    data = correct_sets.open_synsets(str(data_dir / "imagenet_synsets"))
    assert (len(data.seeds), len(data.labels)) == (1000, 21842)
    assert data.hierarchy is not None
    means = correct_sets._compute_means(data.hierarchy, data.seeds, np.arange(1000), correct_sets.DIRECT)
    assert means == pytest.approx([4.54, 9.48, 17.99, 33.82], abs=0.005)


# ---- labels never seen

LABELS = [f"word{i}" for i in range(40)]


def label_data(rows: FeatureTable, **options: object) -> zero_shot.UnextractedData:
    none = rows.take(np.arange(0))
    return zero_shot.UnextractedData("toy", "toy rows", none, none, none, collection=rows, **options)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def rows() -> tuple[FeatureTable, WordVectors]:
    """Rows that a random map makes of their words, of forty labels and one that has no word."""
    rng = np.random.default_rng(0)
    table = rng.standard_normal((len(LABELS), 10)).astype(np.float32)
    y = np.repeat(np.arange(len(LABELS) + 1), 4)
    X = np.vstack([table, np.zeros(10)])[y] @ rng.standard_normal((10, 30)) + 0.5 * rng.standard_normal((len(y), 30))
    Y = sp.csr_matrix(np.eye(len(LABELS) + 1, dtype=np.int8)[y])
    names = [*LABELS, "unheard of"]
    return FeatureTable(X.astype(np.float32), Y, names, [f"row {i}" for i in range(len(y))]), WordVectors(LABELS, table)


def test_labels_never_seen_in_small(rows: tuple[FeatureTable, WordVectors]) -> None:
    rejects = Rejects()
    kinds = Hierarchy([(name, f"family {i % 5}") for i, name in enumerate(LABELS)])
    data = label_data(rows[0], vectors=rows[1], hierarchy=kinds, rejects=rejects)
    run = run_record(find_record("devise-zero-shot"), data, threads=1, parameters={"epochs": 10})
    split_findings = run.findings
    chance = split_findings[zero_shot.CHANCE].figures
    assert (chance["hit@1"], chance["hit@5"], chance["s.e. of hit@5"]) == pytest.approx((1 / 25, 1 / 5, 0))
    assert split_findings["softmax"].figures["hit@5"] == pytest.approx(1 / 5)  # all are tied: it knows none of them
    verdicts = {verdict.text: verdict.here for verdict in run.verdicts}
    assert verdicts["hit@5 of DeViSE is above chance by two standard errors"] == "holds"
    assert verdicts["on the planted task it is three times chance or more"] == "holds"
    assert verdicts["DeViSE > free label vectors in hp@5"] == "holds"
    assert rejects.counts == {"label without a word vector": 1}
    assert "Left out: unheard of." in " ".join(split_findings.notes)
    assert len(split_findings.groups) == len(split_findings["DeViSE"].per_row["hit@5"]) == 10 * 25 * 4  # type: ignore[arg-type]


@pytest.mark.parametrize("n_held_out", [zero_shot.N_HELD_OUT, 8])
def test_splits_share_no_label(rows: tuple[FeatureTable, WordVectors], n_held_out: int) -> None:
    labelled = zero_shot.LabelledRows(rows[0].X, np.repeat(np.arange(40), 4), LABELS, [])
    for split in zero_shot._draw_splits(labelled, n_held_out, 3):
        assert len(split.held_out) == n_held_out
        assert not set(labelled.y[split.train]) & set(labelled.y[split.test])
        assert set(labelled.y[split.test]) == set(split.held_out)


def test_missing_inputs_are_named(rows: tuple[FeatureTable, WordVectors]) -> None:
    with pytest.raises(InputError, match="needs word vectors beside the data; add --vectors FILE"):
        run_record(find_record("devise-zero-shot"), label_data(rows[0]))
    few = WordVectors(LABELS[:9], rows[1].table[:9])
    with pytest.raises(
        InputError, match="9 labels of toy have a word vector and 25 are held out each time; hold fewer out"
    ):
        run_record(find_record("devise-zero-shot"), label_data(rows[0], vectors=few))


def test_names_never_seen_are_ranked_among_each_label_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """n0 is seen; n1, n2 and n3 are 1, 2 and 3 hops away. The photo of n1 is nearest to n0, then to n3."""

    class AxisEncoder:
        def __init__(self, threads: int | None) -> None: ...

        def encode(self, names: Iterable[str]) -> Float32:
            return np.eye(4, dtype=np.float32)[[int(name) for name in names]]

    monkeypatch.setattr(synset_names, "SentenceEncoder", AxisEncoder)
    no_rows = FeatureTable(sp.csr_matrix((0, 1), dtype=np.float32), sp.csr_matrix((0, 0), dtype=np.int8), [], [])
    data = synset_names.NamedPhotos(
        "toy", "", no_rows, no_rows, no_rows,
        hierarchy=Hierarchy([("n1", "n0"), ("n2", "n1"), ("n3", "n2")]),
        points=np.array([[0.9, 0.2, 0.1, 0.3], [0, 0, 1, 0], [0, 0, 0, 1], [1, 0, 0, 0]], np.float32),
        photo_synsets=["n1", "n2", "n3", "n0"],
        names={"n0": "0", "n1": "1", "n2": "2", "n3": "3"},
        known_synsets=["n0"],
    )  # fmt: skip
    findings = run_record(find_record("devise-21k"), data, threads=1).findings
    figures = [
        (findings[row].figures["labels"], findings[row].figures["photos"], findings[row].figures["hit@1"])
        for row in (TWO, f"{TWO} + 1K", THREE, f"{ALL_LABELS} + 1K", f"{THREE}, chance")
    ]
    assert figures == [
        (2, 2, 1.0),
        (3, 2, 0.5),
        (3, 3, pytest.approx(2 / 3)),
        (4, 3, pytest.approx(2 / 3)),
        (3, 3, pytest.approx(1 / 3)),
    ]
    assert findings[ALL_LABELS].figures["hit@2"] == 1.0
    assert findings[f"{ALL_LABELS} + 1K"].figures["hit@2"] == pytest.approx(2 / 3)
