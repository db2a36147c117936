"""Methods for relations against manual values, and features of held-out entities."""

import json
from pathlib import Path

import numpy as np
import pytest

from relation_world import by, features, make
from wsabie.core.execution import SILENT, SerialExecutor
from wsabie.features.base.sampling import WorkContext
from wsabie.io.records import FeatureTable
from wsabie.io.space_declaration import read_declaration
from wsabie.models.entity_space.relations import EntityKind, Relation
from wsabie.storage.rejects import Rejects
from wsabie.workflows.compare.entrants import build_entrants
from wsabie.workflows.spaces.declared_data import EntityFeatureExtractor
from wsabie.workflows.spaces.method_comparison import ComparisonOptions, compare_relations
from wsabie.workflows.spaces.relation_holdout import ThreeWayRelations, plan_three_way_split, split_three_ways
from wsabie.workflows.spaces.relation_methods import RelationFigures


def part(lo: int, hi: int) -> tuple[EntityKind, list[tuple[str, str]]]:
    kind = EntityKind("track", features()[lo:hi], [f"t{i}" for i in range(lo, hi)])
    return kind, [(track, artist) for track, artist in by() if lo <= int(track[1:]) < hi]


@pytest.fixture(scope="module")
def figures() -> dict[str, RelationFigures]:
    """Tracks 0 to 29 teach, 30 to 35 choose, the rest are the test; every track is like those of its group."""
    (training, a), (valid, b), (test, c) = part(0, 30), part(30, 36), part(36, 48)
    near = [[(f"t{i}", f"t{j}") for i in side for j in range(30) if i % 6 == j % 6 and i != j] for side in
            (range(30), range(30, 36), range(36, 48))]  # fmt: skip
    sides = ThreeWayRelations(
        [Relation(training, "artist", a, "by"), Relation(training, training, near[0], "near")],
        [Relation(valid, "artist", b, "by"), Relation(valid, training, near[1], "near")],
        [Relation(test, "artist", [*c, ("t36", "nobody")], "by"), Relation(test, training, near[2], "near")],
        [],
    )
    options = ComparisonOptions(entrants=build_entrants(["one-vs-rest"], threads=1), resamples=50)
    return {relation.name: relation for relation in compare_relations(sides, make(), options, progress=SILENT)}


def test_every_method_has_the_same_queries_and_candidates(figures: dict[str, RelationFigures]) -> None:
    assert [m.name for m in figures["by"].methods] == ["all", "alone", "popularity", "one-vs-rest"]
    assert [m.name for m in figures["near"].methods] == ["all", "alone", "popularity", "cosine"]
    assert {(m.evaluation.n_rows, m.evaluation.n_labels) for m in figures["by"].methods} == {(12, 12)}
    assert {(m.evaluation.n_rows, m.evaluation.n_labels) for m in figures["near"].methods} == {(12, 30)}
    for relation in figures.values():
        assert relation.methods[0].evaluation.means["p@1"] > 0.8


def test_popularity_equals_chance_for_uniform_targets(figures: dict[str, RelationFigures]) -> None:
    """Five training tracks for each artist: two of twelve are right wherever one looks."""
    assert figures["by"].methods[2].evaluation.means["p@1"] == pytest.approx(2 / 12, abs=1e-6)


def test_cosines_are_those_of_tf_idf(figures: dict[str, RelationFigures]) -> None:
    from sklearn.preprocessing import normalize

    X = features().toarray()
    idf = np.log(30 / np.maximum((X[:30] > 0).sum(0), 1))
    unit = normalize(X * idf)
    best = (unit[36:] @ unit[:30].T).argmax(1)
    assert figures["near"].methods[3].evaluation.means["p@1"] == pytest.approx(
        np.mean(best % 6 == np.arange(36, 48) % 6), abs=0.09
    )


def test_held_out_documents_teach_no_words(tmp_path: Path) -> None:
    """A word that only documents of the other sides have is not a feature; the sides are disjoint."""
    lines = [{"id": f"d{i}", "text": f"sea shore word{i} word{i}", "labels": [f"topic {i % 3}"]} for i in range(40)]
    (tmp_path / "docs.jsonl").write_text("\n".join(map(json.dumps, lines)))
    (tmp_path / "docs.toml").write_text(
        '[kinds.text]\ndata = "docs.jsonl"\nmin_count = 1\n[relations.topics]\nquery = "text"\ntarget = "topic"\n'
        'names = "labels"\n[relations.like]\nquery = "text"\ntarget = "text"\nnames = "labels"\n'
    )
    declared, rejects = read_declaration(tmp_path / "docs.toml"), Rejects()
    planned = plan_three_way_split(declared, 0.2, 0.2, 0, rejects)
    side = planned.sides["text"]
    assert [len(side.train), len(side.valid), len(side.test)] == [24, 8, 8]
    run = WorkContext(SerialExecutor(), SILENT, rejects)
    extractor = EntityFeatureExtractor(0, run, fitting_sides=planned.sides)
    rows = extractor.extract_kind(declared.kinds["text"], planned.data.sources["text"])
    assert isinstance(rows, FeatureTable)
    assert rows.X.shape == (40, 24 + 2), "a word of each training document, sea and shore"
    dealt = split_three_ways(planned)
    query_ids = [set(relation.query.ids) for relation in (dealt.training[0], dealt.valid[0], dealt.test[0])]
    assert [len(names) for names in query_ids] == [24, 8, 8]
    assert len(set.union(*query_ids)) == 40
    assert len(dealt.test[1].target.ids) == 32, "test documents look among those of training and validation"
    assert len(dealt.valid[1].target.ids) == 24
