"""The demonstration of documents: from the bundled texts to a space that finds those that belong together."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from wsabie.base.arrays import Matrix
from wsabie.base.progress import SILENT, Progress
from wsabie.evaluation.bootstrap import Difference, paired_bootstrap
from wsabie.evaluation.evaluate import Evaluation
from wsabie.features.bag_of_words import BagOfWords
from wsabie.models.relations import Kind, Relation
from wsabie.models.space import Space
from wsabie.models.space_annotator import SpaceAnnotator
from wsabie.samples import documents_path
from wsabie.sources.open import open_source
from wsabie.sources.records import ItemSource, Rows
from wsabie.studies.relation_methods import cosines
from wsabie.studies.splitting import split_rows

KIND = "text"
QUESTION = "sounds recorded at another sample rate"
WORD = "kernel"
KS = (1, 10)


@dataclass(frozen=True)
class DocumentsDemonstration:
    """What a run made.

    Attributes
    ----------
    model : Path
    facts : dict
        Numbers of documents, words and pairs.
    found : dict of str to Evaluation
        Of the space and of the cosine of tf-idf, on the same held-out documents.
    difference : Difference
        Space minus cosine in recall@10.
    answers, words : list of (name, score)
        Documents for `QUESTION`, and words near `WORD`.
    """

    model: Path
    facts: dict[str, int]
    found: dict[str, Evaluation]
    difference: Difference
    answers: list[tuple[str, float]]
    words: list[tuple[str, float]]


def demonstrate_documents(
    model: Path, *, threads: int | None = None, seed: int = 0, progress: Progress = SILENT
) -> DocumentsDemonstration:
    """Learn which texts belong together, look for those of held-out texts, and save the space in the folder `model`."""
    bag, rows = described(open_documents())
    sides = split_rows(rows, "row", 0.1, 0.2, seed)
    known, valid, test = (rows.take(side) for side in (sides.train, sides.valid, sides.test))
    kind = Kind(KIND, known.X, known.ids, "tfidf")
    learnt = Relation(kind, kind, alike(known, known), "page")
    space = Space(negatives=0, threads=threads, seed=seed)
    space.fit([learnt], validation=[_asking(valid, known)], progress=progress)
    asked = _asking(test, known)
    found = {
        "space": space.evaluate([asked], ks=KS)["page"],
        "tf-idf cosine": cosines(known.X, test.X, known.X, asked.pairs, KS),
    }
    one, other = (found[name].per_row["recall@10"] for name in found)
    facts = {"documents": len(rows), "words": int(rows.X.shape[1]), "held_out": len(test), "pairs": learnt.n_pairs}
    columns: dict[str, Any] = {KIND: {"feature_names": rows.feature_names, "dictionary": rows.dictionary}}
    for rows_aside in (valid, test):  # all is measured: they can be found too
        space.add(Kind(KIND, rows_aside.X, rows_aside.ids, "tfidf"))
    annotator = SpaceAnnotator(space, {KIND: bag}, columns, {"source": "bundled documents"})
    annotator.save(model)
    (answers,) = space.annotate(KIND, KIND, annotator.text(KIND, QUESTION), 3)
    gap = paired_bootstrap(one, other, seed=seed)
    return DocumentsDemonstration(model, facts, found, gap, answers, annotator.words_near(KIND, WORD, 5))


def open_documents() -> ItemSource:
    """The bundled documents, with their pages as labels."""
    source = open_source(documents_path())
    if isinstance(source, Rows):
        raise ValueError("the bundled documents are no rows")
    return source


def described(source: ItemSource) -> tuple[BagOfWords, Rows]:
    """Documents as counts of their words."""
    bag = BagOfWords().fit(source)
    return bag, bag.transform(source)


def alike(queries: Rows, targets: Rows) -> Matrix:
    """1 where two documents are of one page, (queries, targets); a document is not its own mate."""
    shared = ((queries.Y > 0).astype(np.int8) @ (targets.Y > 0).astype(np.int8).T).tocsr()
    if queries is targets:
        shared.setdiag(0)
        shared.eliminate_zeros()
    return shared


def _asking(rows: Rows, known: Rows) -> Relation:
    return Relation(Kind(KIND, rows.X, rows.ids, "tfidf"), KIND, alike(rows, known), "page")
