"""Demonstration with documents: from the bundled texts to a space that finds related texts."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from wsabie.core.arrays import Matrix
from wsabie.core.progress import SILENT, Progress
from wsabie.evaluation.bootstrap import PairedDifference, paired_bootstrap
from wsabie.evaluation.score_evaluation import Evaluation
from wsabie.features.text.bag_of_words import BagOfWords
from wsabie.io.recognition import open_source
from wsabie.io.records import FeatureTable, ItemSource
from wsabie.models.annotators.space_annotator import SpaceAnnotator
from wsabie.models.entity_space.relations import EntityKind, Relation
from wsabie.models.entity_space.space import Space
from wsabie.samples import get_documents_path
from wsabie.workflows.collection_splits import split_collection
from wsabie.workflows.spaces.relation_methods import evaluate_cosine

KIND = "text"
QUESTION = "sounds recorded at another sample rate"
WORD = "kernel"
KS = (1, 10)


@dataclass(frozen=True)
class DocumentDemo:
    """The result of a run.

    Attributes
    ----------
    model : Path
    facts : dict
        Numbers of documents, words and pairs.
    found : dict of str to Evaluation
        Of the space and of the cosine of tf-idf, on the same held-out documents.
    difference : PairedDifference
        Space minus cosine in recall@10.
    answers, words : list of (name, score)
        Documents for `QUESTION`, and words near `WORD`.
    """

    model: Path
    facts: dict[str, int]
    found: dict[str, Evaluation]
    difference: PairedDifference
    answers: list[tuple[str, float]]
    words: list[tuple[str, float]]


def run_document_demo(
    model: Path, *, threads: int | None = None, seed: int = 0, progress: Progress = SILENT
) -> DocumentDemo:
    """Learn related texts, evaluate on held-out texts, and save the space in the folder `model`."""
    bag, rows = extract_document_features(open_sample_documents())
    sides = split_collection(rows, "row", 0.1, 0.2, seed)
    train, valid, test = (rows.take(side) for side in (sides.train, sides.valid, sides.test))
    kind = EntityKind(KIND, train.X, train.ids, "tfidf")
    relation = Relation(kind, kind, build_similarity_matrix(train, train), "page")
    space = Space(negatives=0, threads=threads, seed=seed)
    space.fit([relation], validation=[_build_test_relation(valid, train)], progress=progress)
    test_relation = _build_test_relation(test, train)
    evaluations = {
        "space": space.evaluate([test_relation], ks=KS)["page"],
        "tf-idf cosine": evaluate_cosine(train.X, test.X, train.X, test_relation.pairs, KS),
    }
    space_recall, cosine_recall = (evaluations[name].per_row["recall@10"] for name in evaluations)
    facts = {"documents": len(rows), "words": int(rows.X.shape[1]), "held_out": len(test), "pairs": relation.n_pairs}
    columns: dict[str, Any] = {KIND: {"feature_names": rows.feature_names, "dictionary": rows.dictionary}}
    for held_out in (valid, test):  # the evaluation is over: these can be found, too
        space.add(EntityKind(KIND, held_out.X, held_out.ids, "tfidf"))
    annotator = SpaceAnnotator(space, {KIND: bag}, columns, {"source": "bundled documents"})
    annotator.save(model)
    (answers,) = space.annotate(KIND, KIND, annotator.text(KIND, QUESTION), 3)
    gap = paired_bootstrap(space_recall, cosine_recall, seed=seed)
    return DocumentDemo(model, facts, evaluations, gap, answers, annotator.words_near(KIND, WORD, 5))


def open_sample_documents() -> ItemSource:
    """The bundled documents, with their pages as labels."""
    source = open_source(get_documents_path())
    if isinstance(source, FeatureTable):
        raise ValueError("the bundled documents are no rows")
    return source


def extract_document_features(source: ItemSource) -> tuple[BagOfWords, FeatureTable]:
    """Count the words of documents."""
    bag = BagOfWords().fit(source)
    return bag, bag.transform(source)


def build_similarity_matrix(queries: FeatureTable, targets: FeatureTable) -> Matrix:
    """Return 1 where two different documents share a page, (queries, targets)."""
    shared = ((queries.Y > 0).astype(np.int8) @ (targets.Y > 0).astype(np.int8).T).tocsr()
    if queries is targets:
        shared.setdiag(0)
        shared.eliminate_zeros()
    return shared


def _build_test_relation(rows: FeatureTable, train: FeatureTable) -> Relation:
    return Relation(EntityKind(KIND, rows.X, rows.ids, "tfidf"), KIND, build_similarity_matrix(rows, train), "page")
