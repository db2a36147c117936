"""Zero-shot labels by the vectors of their words (Frome et al. 2013, section 4.2): splits of labels."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from papers.datasets import PaperData
from papers.record import Cell, DataOpener, FindingRow, PaperRecord, RunFindings, RunSettings
from wsabie.core.arrays import Float32, Float64, Int64
from wsabie.core.errors import InputError
from wsabie.core.execution import SILENT, Executor, Progress
from wsabie.evaluation.score_evaluation import evaluate_scores
from wsabie.io.data_sources import open_source
from wsabie.io.records import FeatureTable, ItemList, ItemSource, ItemSubset, Source
from wsabie.io.vocabulary.knowledge_graphs import read_knowledge_graph
from wsabie.io.vocabulary.word_vector_files import read_word_vectors
from wsabie.models.conse import Conse
from wsabie.models.devise import Devise
from wsabie.models.joint_embedding.estimator import Wsabie
from wsabie.models.softmax import Softmax
from wsabie.storage.rejects import Rejects
from wsabie.vocabulary.knowledge_graph import KnowledgeGraph
from wsabie.vocabulary.word_vectors import WordVectors, compute_target_vectors, list_label_terms

N_SPLITS, N_HELD_OUT = 10, 25
KS = (1, 2, 5)
CHANCE = "chance"
PLANTED = "planted: "
_FEATURES, _NOISE = 200, 0.5
_DESCRIPTION: dict[str, Any] = {"n_components": 256, "size": 128}
_FEWEST = 100
_SYNSET = re.compile(r"(n\d{8})_")


@dataclass(frozen=True)
class UnextractedData(PaperData):
    """A collection with word vectors or knowledge of its labels; features are extracted after these.

    Attributes
    ----------
    collection : Source or None
    vectors : WordVectors or None
    knowledge : KnowledgeGraph or None
    n_held_out : int
        Held-out labels of a split.
    executor, progress, rejects
        As of `papers.datasets.open_data`.
    """

    collection: Source | None = field(default=None, repr=False)
    vectors: WordVectors | None = field(default=None, repr=False)
    knowledge: KnowledgeGraph | None = field(default=None, repr=False)
    n_held_out: int = N_HELD_OUT
    executor: Executor | None = field(default=None, repr=False)
    progress: Progress = SILENT
    rejects: Rejects = field(default_factory=Rejects, repr=False)

    @property
    def facts(self) -> dict[str, Any]:
        """Counts and the fingerprint of the collection, for JSON."""
        from wsabie.io.fingerprints import compute_fingerprint_or_none

        n, source = 0 if self.collection is None else len(self.collection), self.collection
        mark = "unknown" if source is None else compute_fingerprint_or_none(source) or "unknown"
        return {"name": self.name, "about": self.about, "rows": n, "fingerprint": {"data": mark}}


def open_labelled(
    name: str,
    *,
    seed: int = 0,
    executor: Executor | None = None,
    progress: Progress = SILENT,
    rejects: Rejects | None = None,
    vectors: Path | None = None,
    knowledge: Sequence[Path] = (),
    n_held_out: int = N_HELD_OUT,
) -> UnextractedData:
    """Open a collection with labels, to be combined with word vectors.

    Parameters
    ----------
    name : str
        A folder of images whose file names begin with a synset and "_", as in ImageNet: the synset is the label; or any
        collection with labels.
    seed, executor, progress, rejects
        As of `papers.datasets.open_data`.
    vectors : Path or None
        A file of word vectors.
    knowledge : sequence of Path
        Files with the terms of labels.
    n_held_out : int
        Held-out labels of each split.

    Raises
    ------
    InputError
        Nothing in it has a label.
    """
    from scipy.sparse import csr_matrix

    rejects = Rejects() if rejects is None else rejects
    source = _open_by_synset(Path(name)) or open_source(name, rejects=rejects, progress=progress)
    no_rows = FeatureTable(csr_matrix((0, 1), dtype=np.float32), csr_matrix((0, 0), dtype=np.int8), [], [])
    about = f"{Path(name).name}, {len(source):,} {'rows' if isinstance(source, FeatureTable) else source.modality}"
    return UnextractedData(
        Path(name).name,
        about,
        no_rows,
        no_rows,
        no_rows,
        collection=source,
        executor=executor,
        progress=progress,
        rejects=rejects,
        vectors=None if vectors is None else read_word_vectors(vectors, progress=progress),
        knowledge=read_knowledge_graph(*knowledge) if knowledge else None,
        n_held_out=n_held_out,
    )


def _open_by_synset(folder: Path) -> ItemList | None:
    """Return the images of a folder with their synsets from the file names; None if one has none."""
    source = open_source(folder, labels_from="none") if folder.is_dir() else None
    if source is None or isinstance(source, FeatureTable):
        return None
    items_and_matches = [(item, _SYNSET.match(Path(item.id).name)) for item in source]
    items = [item._replace(labels=(match_[1],)) for item, match_ in items_and_matches if match_]
    return ItemList(folder, items, source.modality) if items and len(items) == len(items_and_matches) else None


OPENING = DataOpener(
    open_labelled,
    "a collection with labels, such as a folder of ImageNet's pictures, and --vectors FILE",
    ("vectors", "knowledge", "n_held_out"),
)


class LabelledRows(NamedTuple):
    """Rows whose labels have a vector, one label each.

    Attributes
    ----------
    X : matrix
    y : (n,) int64
        Of `labels`.
    labels : list of str
    missing : list of str
        Labels without a vector.
    """

    X: Any
    y: Int64
    labels: list[str]
    missing: list[str]


def run_zero_shot(record: PaperRecord, setting: RunSettings) -> RunFindings:
    """Evaluate every entry on splits of the labels, and on a planted task with the same labels.

    Raises
    ------
    InputError
        No word vectors, or too few labels with one.
    """
    data = setting.required_data
    if not isinstance(data, UnextractedData) or data.collection is None or data.vectors is None:
        raise InputError(f"{record.name} needs word vectors beside the data; add --vectors FILE")
    labelled_rows = _collect_labelled_rows(data, setting)
    if len(labelled_rows.labels) <= data.n_held_out + 1:
        raise InputError(
            f"{len(labelled_rows.labels):,} labels of {data.name} have a word vector and {data.n_held_out} are held "
            "out each time; "
            "hold fewer out (--held), or give vectors of more words"
        )
    planted = labelled_rows._replace(X=_generate_planted(labelled_rows, data, setting.seed))
    tasks = {"": labelled_rows, PLANTED: planted}
    rows = [_evaluate_chance(task, tasks[task], data, setting.seed) for task in tasks]
    entries = [entry for entry in record.entries if not entry.row.startswith(PLANTED)]
    jobs = [(task, entry) for task in tasks for entry in entries]
    with setting.progress.stage("held-out labels", len(jobs) * N_SPLITS, "splits") as stage:
        for task, entry in jobs:
            make = _make_builder(entry.entrant, data, setting)
            split_metrics = [
                _evaluate_split(make, split, data, setting.seed)
                for split in _draw_splits(tasks[task], data.n_held_out, setting.seed, stage)
            ]
            rows.append(_make_finding(f"{task}{entry.row}", entry.entrant, split_metrics))
    return RunFindings(
        rows,
        notes=_describe_data(labelled_rows, data),
        groups=[labelled_rows.labels[y] for y in _list_test_labels(labelled_rows, data.n_held_out, setting.seed)],
    )


def _collect_labelled_rows(data: UnextractedData, setting: RunSettings) -> LabelledRows:
    """Return the rows; features are fitted on images whose labels have no vector."""
    source: Any = data.collection
    names = (
        source.label_names
        if isinstance(source, FeatureTable)
        else sorted({y for item in source for y in item.labels[:1]})
    )
    targets = compute_target_vectors(list_label_terms(names, data.knowledge), data.vectors)  # type: ignore[arg-type]  # checked before
    labels = [names[place] for place in targets.positions]
    label_set = set(labels)
    missing = [name for name in names if name not in label_set]
    for name in missing:
        data.rejects.add(name, "label without a word vector")
    rows = source if isinstance(source, FeatureTable) else _extract_features(source, label_set, data, setting)
    number = {name: y for y, name in enumerate(labels)}
    first = [next((number.get(name, -1) for name in row), -1) for row in _label_names(rows)]
    used_rows = np.flatnonzero(np.array(first, np.int64) >= 0)
    return LabelledRows(rows.X[used_rows], np.array(first, np.int64)[used_rows], labels, missing)


def _label_names(rows: FeatureTable) -> Iterator[list[str]]:
    Y = (rows.Y > 0).tocsr()
    for i in range(Y.shape[0]):
        yield [rows.label_names[y] for y in Y.indices[Y.indptr[i] : Y.indptr[i + 1]]]


def _extract_features(
    source: ItemSource, label_set: set[str], data: UnextractedData, setting: RunSettings
) -> FeatureTable:
    from wsabie.features.base.extraction import fit_extractor
    from wsabie.features.extractor_registry import create_extractor

    extractor = create_extractor(
        "colour,hog" if source.modality == "pictures" else None, modality=source.modality, **_choose_options(source)
    )
    unused_rows = [i for i, item in enumerate(source) if not label_set.intersection(item.labels[:1])]
    fitting_items = ItemSubset(source, np.array(unused_rows)) if len(unused_rows) >= _FEWEST else source
    fit_extractor(extractor, fitting_items, executor=data.executor, progress=setting.progress, rejects=data.rejects)
    return extractor.transform(source, executor=data.executor, progress=setting.progress, rejects=data.rejects)


def _choose_options(source: ItemSource) -> dict[str, Any]:
    return _DESCRIPTION if source.modality == "pictures" else {}


def _generate_planted(labelled_rows: LabelledRows, data: UnextractedData, seed: int) -> Float32:
    """Generate rows by a random map of the vectors of their labels, with noise."""
    rng = np.random.default_rng([seed, 5])
    table = compute_target_vectors(list_label_terms(labelled_rows.labels, data.knowledge), data.vectors).table  # type: ignore[arg-type]
    mapped = table[labelled_rows.y] @ rng.standard_normal((table.shape[1], _FEATURES))
    return np.asarray(mapped + _NOISE * rng.standard_normal(mapped.shape), np.float32)


class LabelSplit(NamedTuple):
    """Held-out labels, with their rows.

    Attributes
    ----------
    labelled_rows : LabelledRows
    held_out : (n_held,) int64
    train, test : (n,) int64
        Rows.
    """

    labelled_rows: LabelledRows
    held_out: Int64
    train: Int64
    test: Int64


def _draw_splits(labelled_rows: LabelledRows, n_held_out: int, seed: int, stage: Any = None) -> Iterator[LabelSplit]:
    for number in range(N_SPLITS):
        held_out = np.sort(
            np.random.default_rng([seed, 6, number]).choice(len(labelled_rows.labels), n_held_out, replace=False)
        )
        is_held_out = np.isin(labelled_rows.y, held_out)
        yield LabelSplit(labelled_rows, held_out, np.flatnonzero(~is_held_out), np.flatnonzero(is_held_out))
        if stage is not None:
            stage.advance()


def _list_test_labels(labelled_rows: LabelledRows, n_held_out: int, seed: int) -> Int64:
    return np.concatenate([labelled_rows.y[split.test] for split in _draw_splits(labelled_rows, n_held_out, seed)])


Make = Callable[[list[str]], Any]


def _make_builder(entrant: str, data: UnextractedData, setting: RunSettings) -> Make:
    """Return a function that makes an unfitted model from the held-out labels."""
    vectors: WordVectors = data.vectors  # type: ignore[assignment]  # checked before
    run: dict[str, Any] = {"seed": setting.seed, "threads": setting.threads}
    knowledge_options = {"knowledge": data.knowledge, **run}
    table = np.random.default_rng([setting.seed, 7]).standard_normal(vectors.table.shape).astype(np.float32)
    makers: dict[str, Make] = {
        "devise": lambda held_out: Devise(vectors, labels=held_out, **setting.parameters, **knowledge_options),
        "devise-random": lambda held_out: Devise(
            WordVectors(vectors.words, table), labels=held_out, **setting.parameters, **knowledge_options
        ),
        "conse": lambda held_out: Conse(vectors, labels=held_out, **knowledge_options),
        "softmax": lambda held_out: Softmax(),
        "wsabie": lambda held_out: Wsabie(vectors.dim, init="random", **setting.parameters, **run),
    }
    return makers[entrant]


def _evaluate_split(make: Make, split: LabelSplit, data: UnextractedData, seed: int) -> dict[str, Float64]:
    """Return the metrics of each test row, with the held-out labels as candidates."""
    from scipy.sparse import csr_matrix

    labelled_rows, held_out_labels = split.labelled_rows, [split.labelled_rows.labels[y] for y in split.held_out]
    n, y = len(split.train), labelled_rows.y[split.train]
    Y = csr_matrix((np.ones(n, np.int8), y, np.arange(n + 1)), shape=(n, len(labelled_rows.labels)))
    model = make(held_out_labels).fit(labelled_rows.X[split.train], Y, label_names=labelled_rows.labels)
    scores = model.scores(labelled_rows.X[split.test])[:, split.held_out]
    return _measure(scores, np.searchsorted(split.held_out, labelled_rows.y[split.test]), held_out_labels, data)


def _measure(scores: Float32, y: Int64, held_out_labels: Sequence[str], data: UnextractedData) -> dict[str, Float64]:
    hierarchy_distances: dict[str, Any] = {}
    kinds = data.hierarchy or (None if data.knowledge is None else data.knowledge.hierarchy(names=False))
    if kinds is not None:
        hierarchy_distances = {
            "hops": kinds.find_distances(held_out_labels),
            "heights": kinds.find_ancestors(held_out_labels),
        }
    return dict(evaluate_scores([(0, scores)], y, ks=KS, **hierarchy_distances).per_row)


def _evaluate_chance(task: str, labelled_rows: LabelledRows, data: UnextractedData, seed: int) -> FindingRow:
    """Return the figures of equal scores for all labels."""
    split_metrics = []
    for split in _draw_splits(labelled_rows, data.n_held_out, seed):
        held_out_labels = [labelled_rows.labels[y] for y in split.held_out]
        y = np.searchsorted(split.held_out, labelled_rows.y[split.test])
        split_metrics.append(_measure(np.zeros((len(y), data.n_held_out), np.float32), y, held_out_labels, data))
    return _make_finding(f"{task}{CHANCE}", "any order", split_metrics)


def _make_finding(row: str, title: str, split_metrics: list[dict[str, Float64]]) -> FindingRow:
    """Return means over the splits, with the standard error of hit@5."""
    means = {name: np.array([split[name].mean(dtype=float) for split in split_metrics]) for name in split_metrics[0]}
    figures: dict[str, Cell] = {name: float(values.mean()) for name, values in means.items()}
    figures["s.e. of hit@5"] = compute_standard_error(means["hit@5"].round(6))
    return FindingRow(
        row, title, figures, {name: np.concatenate([split[name] for split in split_metrics]) for name in means}
    )


def compute_standard_error(values: Float64) -> float:
    """Return the standard error of a mean.

    Examples
    --------
    >>> compute_standard_error(np.array([1.0, 3.0]))
    1.0
    """
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def check_above_chance(findings: RunFindings) -> tuple[bool, str]:
    """Check that DeViSE's hit@5 is above chance by two standard errors over the splits."""
    figures, chance = findings["DeViSE"].figures, findings[CHANCE].figures["hit@5"]
    hit, error = figures["hit@5"], figures["s.e. of hit@5"]
    words = f"{hit:.3f} with a standard error of {error:.3f}, chance {chance:.3f}"
    return float(hit or 0) - 2 * float(error or 0) > float(chance or 0), words


def check_thrice_chance(findings: RunFindings) -> tuple[bool, str]:
    """Check that it is three times chance on the planted task."""
    hit, chance = (float(findings[f"{PLANTED}{row}"].figures["hit@5"] or 0) for row in ("DeViSE", CHANCE))
    return hit >= 3 * chance, f"{hit:.3f}, chance {chance:.3f}"


def _describe_data(labelled_rows: LabelledRows, data: UnextractedData) -> list[str]:
    vectors: WordVectors = data.vectors  # type: ignore[assignment]  # checked before
    total = len(labelled_rows.labels) + len(labelled_rows.missing)
    names = [terms[0] for terms in list_label_terms([*labelled_rows.labels, *labelled_rows.missing], data.knowledge)]
    n_single_words = sum(len(vectors.find_rows(name)) == 1 for name in names)
    feature_note = "" if isinstance(data.collection, FeatureTable) else (
        "Pictures are described by colours and oriented gradients, brought to 256 kernel components that were learned "
        "from the pictures of labels without a vector. "
    )  # fmt: skip
    return [
        f"{feature_note}{total:,} labels; of {n_single_words:,} the first term has a vector itself, of "
        f"{len(labelled_rows.labels):,} its "
        f"words have: these take part, with {len(labelled_rows.y):,} rows. {data.n_held_out} of them are held out "
        "with all their "
        f"rows, {N_SPLITS} times, and are the only candidates. Left out: "
        f"{', '.join(names[len(labelled_rows.labels) :])}.",
        f"Planted: rows of {_FEATURES} numbers, a random map of the vector of the row's label and noise of "
        f"{_NOISE:g} times unit variance.",
    ]
