"""Demonstrations with bundled data: images with a comparison and a report, and documents in a space."""

import csv
import unicodedata
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Unpack

import numpy as np

from wsabie.core.arrays import Matrix
from wsabie.core.execution import SILENT, Progress
from wsabie.evaluation.bootstrap import PairedDifference, paired_bootstrap
from wsabie.evaluation.score_evaluation import Evaluation
from wsabie.evaluation.splits import Split
from wsabie.features.base.feature_extractor import FeatureExtractor
from wsabie.features.base.sampling import RunOptions, WorkContext
from wsabie.features.extractor_choice import AUTO
from wsabie.features.extractor_registry import create_extractor
from wsabie.features.extractors.bag_of_words import BagOfWords
from wsabie.features.extractors.visual_words import VisualWords
from wsabie.io.data_sources import open_source
from wsabie.io.fingerprints import compute_fingerprint, compute_row_hashes
from wsabie.io.records import FeatureTable, ItemList
from wsabie.io.vocabulary.hierarchy_files import read_hierarchy
from wsabie.models.annotators import Annotator
from wsabie.models.entity_space.relations import EntityKind, Relation
from wsabie.models.entity_space.space import Space
from wsabie.models.entity_space.space_annotator import SpaceAnnotator
from wsabie.samples import PARTS, get_documents_path, get_photo_folder, get_sample_path
from wsabie.storage.rejects import Rejects
from wsabie.workflows.compare.comparison import compare_models
from wsabie.workflows.compare.comparison_table import Comparison
from wsabie.workflows.compare.comparison_task import build_comparison_task
from wsabie.workflows.compare.entrants import build_entrants
from wsabie.workflows.data_splits import split_rows
from wsabie.workflows.report import report_input
from wsabie.workflows.report.html_report import write_report
from wsabie.workflows.spaces.relation_methods import evaluate_cosine

N_VISUAL_WORDS = 3000
SIZE = 128
MIN_PICTURES = 2
SHOWN_LABELS = (
    "star", "ship", "clock", "hond", "gato", "lune", "pomme", "book", "train", "flower", "house", "computer",
    "fish", "castle", "hand tool", "windmill", "farm animal", "music",
)  # fmt: skip
DESCRIPTIONS = {
    "photos": "Photos of animals, monuments, tools and machines, at most 320 pixels wide, with labels written by hand. "
    "They are few and easy: this report shows what wsabie does, and its figures are not a benchmark.",
    "emoji": "Noto Color Emoji at 96 pixels, labelled by the Unicode CLDR in 25 languages, so that one picture carries "
    "synonyms and translations as labels of their own.",
    "drawings": "Open Clip Art at 128 pixels, tagged by the people who drew it: noisy, uneven, English.",
}
PHOTO_ORIGIN = {
    "source": "Debian package gcompris-qt-data 3.1-2",
    "licence": "public domain, CC0 or Creative Commons; the author and the licence stand with each photo",
}
KIND = "text"
QUESTION = "sounds recorded at another sample rate"
WORD = "kernel"
KS = (1, 10)


def run_image_demo(
    out: Path, *, part: str = "photos", threads: int | None = None, seed: int = 0, **context: Unpack[RunOptions]
) -> Comparison:
    """Train on the bundled images, compare on held-out groups, write "model" and "report.html" into `out`.

    Parameters
    ----------
    out : Path
    part : {"photos", "emoji", "drawings", "all"}
        "all" is emoji and drawings.

    Raises
    ------
    InputError
        The part is unknown or not bundled.
    """
    images = open_sample_images(part)
    extractor = create_extractor(AUTO, source=images, seed=seed) if part == "photos" else create_visual_words(seed)
    rows, sides = extract_sample(images, extractor, 0.2 if part == "photos" else 0.1, seed, **context)
    train, valid, test = (rows.take(side) for side in (sides.train, sides.valid, sides.test))
    entrants = build_entrants(["wsabie", "nearest", "popularity"], seed=seed, threads=threads)
    task = build_comparison_task(train, valid, test, min_rows=MIN_PICTURES)
    comparison = compare_models(task, entrants, seed=seed, progress=WorkContext.from_options(**context).progress)
    facts = {
        "source": f"bundled sample, part {part!r}",
        "fingerprint": compute_fingerprint(rows),
        "rows": len(rows),
        "split": _describe_split(part, seed),
    }
    model, row_hashes = comparison["wsabie"].model, compute_row_hashes(train)
    Annotator(model, extractor, None, facts, rows.extractor_fingerprint, row_hashes).save(out / "model")
    write_report(out / "report.html", _build_report_input(comparison, extractor, images, part, seed))
    return comparison


def open_sample_images(part: str) -> ItemList:
    """Open the bundled images of a part, or of "all" parts but the photos."""
    names = PARTS if part == "all" else (part,)
    paths = [get_photo_folder() if name == "photos" else get_sample_path(name) for name in names]
    return ItemList(paths[0], [item for path in paths for item in open_source(path)])  # type: ignore[union-attr]


def create_visual_words(seed: int = 0) -> VisualWords:
    """Return the extractor of small drawings, where visual words take a fraction of a network's time."""
    return VisualWords(n_words=N_VISUAL_WORDS, size=SIZE, seed=seed)


def extract_sample(
    pictures: ItemList, extractor: FeatureExtractor, test: float = 0.1, seed: int = 0, **context: Unpack[RunOptions]
) -> tuple[FeatureTable, Split]:
    """Fit an extractor on the training side of a split by group, and extract all images with it.

    `test` is the share of the test side. Returns the rows and the split. An unreadable bundled image is an error.
    """
    context["rejects"] = Rejects(strict=True)
    return report_input.extract_split(
        pictures, extractor, lambda rows: split_rows(rows, "auto", 0.1, test, seed), **context
    )


def _build_report_input(
    comparison: Comparison, extractor: FeatureExtractor, images: ItemList, part: str, seed: int
) -> report_input.ReportInput:
    entry, test = comparison["wsabie"], comparison.task.test
    names = PARTS if part == "all" else (part,)
    origins = [_read_origin(name) for name in names]
    credits = read_photo_credits() if part == "photos" else {}
    similar = None if credits else read_hierarchy(*map(get_sample_path, names)).find_siblings(test.label_names)
    report = report_input.ReportInput(
        title="Annotating pictures with a joint embedding",
        comparison=comparison,
        modality="pictures",
        description=" ".join(DESCRIPTIONS[name] for name in names),
        data={
            "Collection": " and ".join(names),
            "Source": "; ".join(origin["source"] for origin in origins),
            "Licence": "; ".join(origin["licence"] for origin in origins),
            "Split": f"{_describe_split(part, seed)}.",
        },
        examples=report_input.build_image_examples(
            entry, test, images, extractor, title=lambda name: credits.get(name) or format_title(name), similar=similar
        ),
        examples_note=report_input.SPREAD,
        neighbours_note="These labels were chosen by hand, before the model was trained.",
        siblings_note=""
        if similar is None
        else "most of their pictures lie in one category, which training did not see",
        label_notes=list_label_languages() if "emoji" in names else {},
        command=f"wsabie demo --part {part} --seed {seed}",
        created=date.today().isoformat(),
    )
    return report_input.add_model_facts(report, SHOWN_LABELS, similar)


def _describe_split(part: str, seed: int) -> str:
    if part == "photos":
        return f"By photo, a tenth for validation and a fifth for test, seed {seed}"
    group = "one concept, or one drawing with its variants"
    return f"By group ({group}), a tenth each for validation and test, seed {seed}"


def _read_origin(part: str) -> dict[str, str]:
    """Return source and licence of a part."""
    import pyarrow.parquet as pq

    if part == "photos":
        return PHOTO_ORIGIN
    metadata = pq.read_schema(get_sample_path(part)).metadata
    return {name: metadata[name.encode()].decode() for name in PHOTO_ORIGIN}


def read_photo_credits() -> dict[str, str]:
    """Return author and licence of each bundled photo, by its path in the folder."""
    with (get_photo_folder() / "metadata.csv").open(encoding="utf-8", newline="") as file:
        return {row["file_name"]: f"Photo: {row['author']}, {row['licence']}" for row in csv.DictReader(file)}


def format_title(picture_id: str) -> str:
    """Return the title of a bundled image: the Unicode name of an emoji, the file name of a drawing.

    Examples
    --------
    >>> format_title("emoji-1f42c"), format_title("drawing-animals/birds/blue_bird_01")
    ('dolphin', 'blue bird 01')
    """
    part, _, name_part = picture_id.partition("-")
    if part != "emoji":
        return name_part.rpartition("/")[2].replace("_", " ").strip()
    names = [unicodedata.name(chr(int(code, 16)), "") for code in name_part.split("-")]
    return " ".join(name.lower() for name in names if name and "SELECTOR" not in name and "JOINER" not in name)


def list_label_languages() -> dict[str, str]:
    """Return the languages that use each emoji label, at most three."""
    import pyarrow.parquet as pq

    table = pq.read_table(get_sample_path("emoji"), columns=["labels", "languages"]).to_pydict()
    languages_by_label: dict[str, dict[str, None]] = {}
    for labels, languages in zip(table["labels"], table["languages"], strict=True):
        for label, codes in zip(labels, languages, strict=True):
            languages_by_label.setdefault(label, {}).update(dict.fromkeys(codes))
    return {label: " ".join([*codes][:3]) for label, codes in languages_by_label.items()}


@dataclass(frozen=True)
class DocumentDemo:
    """The result of a run.

    Attributes
    ----------
    facts : dict
        Numbers of documents, words and pairs.
    evaluations : dict of str to Evaluation
        Evaluations of the space and of the cosine of tf-idf, on the same held-out documents.
    difference : PairedDifference
        Space minus cosine in recall@10.
    answers, words : list of (name, score)
        Documents for `QUESTION`, and words near `WORD`.
    """

    facts: dict[str, int]
    evaluations: dict[str, Evaluation]
    difference: PairedDifference
    answers: list[tuple[str, float]]
    words: list[tuple[str, float]]


def run_document_demo(
    model: Path, *, threads: int | None = None, seed: int = 0, progress: Progress = SILENT
) -> DocumentDemo:
    """Learn related texts, evaluate on held-out texts, and save the space in the folder `model`."""
    documents = open_source(get_documents_path())
    bag = BagOfWords().fit(documents)  # type: ignore[arg-type]
    rows = bag.transform(documents)  # type: ignore[arg-type]
    sides = split_rows(rows, "row", 0.1, 0.2, seed)
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
    facts = {"documents": len(rows), "words": int(rows.X.shape[1]), "holdout": len(test), "pairs": relation.n_pairs}
    columns = {"feature_names": rows.feature_names, "extractor_fingerprint": rows.extractor_fingerprint}
    for holdout in (valid, test):  # the evaluation is over: these can be found, too
        space.add(EntityKind(KIND, holdout.X, holdout.ids, "tfidf"))
    annotator = SpaceAnnotator(space, {KIND: bag}, {KIND: columns}, {"source": "bundled documents"})
    annotator.save(model)
    (answers,) = space.annotate(KIND, KIND, annotator.text(KIND, QUESTION), 3)
    gap = paired_bootstrap(space_recall, cosine_recall, seed=seed)
    return DocumentDemo(facts, evaluations, gap, answers, annotator.words_near(KIND, WORD, 5))


def build_similarity_matrix(queries: FeatureTable, targets: FeatureTable) -> Matrix:
    """Return 1 where two different documents share a page, (queries, targets)."""
    shared = ((queries.Y > 0).astype(np.int8) @ (targets.Y > 0).astype(np.int8).T).tocsr()
    if queries is targets:
        shared.setdiag(0)
        shared.eliminate_zeros()
    return shared


def _build_test_relation(rows: FeatureTable, train: FeatureTable) -> Relation:
    return Relation(EntityKind(KIND, rows.X, rows.ids, "tfidf"), KIND, build_similarity_matrix(rows, train), "page")
