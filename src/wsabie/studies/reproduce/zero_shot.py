"""Labels that no model has seen, by the vectors of their words ([D] section 4.2): splits of labels, not of rows."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from wsabie.base.arrays import Float32, Float64, Int64
from wsabie.base.errors import InputError
from wsabie.base.executor import Executor
from wsabie.base.progress import SILENT, Progress
from wsabie.evaluation.evaluate import evaluate_scores
from wsabie.labels.knowledge import Knowledge
from wsabie.labels.terms import target_vectors, terms_of
from wsabie.labels.vectors import Vectors
from wsabie.models.conse import Conse
from wsabie.models.devise import Devise
from wsabie.models.softmax import Softmax
from wsabie.models.wsabie import Wsabie
from wsabie.sources.knowledge import read_knowledge
from wsabie.sources.open import open_source
from wsabie.sources.records import ItemList, ItemPart, ItemSource, Rows, Source
from wsabie.sources.vectors import read_vectors
from wsabie.storage.rejects import Rejects
from wsabie.studies.reproduce.data import Data
from wsabie.studies.reproduce.record import Cell, Findings, Found, Opening, Record, Setting

N_SPLITS, HELD = 10, 25
KS = (1, 2, 5)
CHANCE = "chance"
PLANTED = "planted: "
_FEATURES, _NOISE = 200, 0.5
_DESCRIPTION: dict[str, Any] = {"n_components": 256, "size": 128}
_FEWEST = 100
_SYNSET = re.compile(r"(n\d{8})_")


@dataclass(frozen=True)
class Unread(Data):
    """A collection whose labels have meanings that are given beside it; pictures are described when those are known.

    Attributes
    ----------
    collection : Source or None
    vectors : Vectors or None
    knowledge : Knowledge or None
    held : int
        Labels that a split holds out.
    executor, progress, rejects
        As of `wsabie.studies.reproduce.data.open_data`.
    """

    collection: Source | None = field(default=None, repr=False)
    vectors: Vectors | None = field(default=None, repr=False)
    knowledge: Knowledge | None = field(default=None, repr=False)
    held: int = HELD
    executor: Executor | None = field(default=None, repr=False)
    progress: Progress = SILENT
    rejects: Rejects = field(default_factory=Rejects, repr=False)

    @property
    def facts(self) -> dict[str, Any]:
        """Counts and the fingerprint of the collection, for JSON."""
        from wsabie.sources.fingerprint import fingerprint_or_none

        n, source = 0 if self.collection is None else len(self.collection), self.collection
        mark = "unknown" if source is None else fingerprint_or_none(source) or "unknown"
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
    held: int = HELD,
) -> Unread:
    """A collection with labels, for word vectors to be put beside.

    Parameters
    ----------
    name : str
        A folder of pictures whose file names begin with a synset and "_", as ImageNet's do: that is their label; or any
        collection with labels.
    seed, executor, progress, rejects
        As of `wsabie.studies.reproduce.data.open_data`.
    vectors : Path or None
        A file of word vectors.
    knowledge : sequence of Path
        Files that say which terms a label has.
    held : int
        Labels that each split holds out.

    Raises
    ------
    InputError
        Nothing in it has a label.
    """
    from scipy.sparse import csr_matrix

    rejects = Rejects() if rejects is None else rejects
    source = _by_synset(Path(name)) or open_source(name, rejects=rejects, progress=progress)
    none = Rows(csr_matrix((0, 1), dtype=np.float32), csr_matrix((0, 0), dtype=np.int8), [], [])
    about = f"{Path(name).name}, {len(source):,} {'rows' if isinstance(source, Rows) else source.things}"
    return Unread(
        Path(name).name,
        about,
        none,
        none,
        none,
        collection=source,
        executor=executor,
        progress=progress,
        rejects=rejects,
        vectors=None if vectors is None else read_vectors(vectors, progress=progress),
        knowledge=read_knowledge(*knowledge) if knowledge else None,
        held=held,
    )


def _by_synset(folder: Path) -> ItemList | None:
    """Pictures in a folder, each with the synset that its file name begins with; None where one has none."""
    source = open_source(folder, labels_from="none") if folder.is_dir() else None
    if source is None or isinstance(source, Rows):
        return None
    meant = [(item, _SYNSET.match(Path(item.id).name)) for item in source]
    items = [item._replace(labels=(found[1],)) for item, found in meant if found]
    return ItemList(folder, items, source.things) if items and len(items) == len(meant) else None


OPENING = Opening(
    open_labelled,
    "a collection with labels, such as a folder of ImageNet's pictures, and --vectors FILE",
    ("vectors", "knowledge", "held"),
)


class Known(NamedTuple):
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


def zero_shot(record: Record, setting: Setting) -> Findings:
    """Every entry on splits of the labels, and on a planted task with the same labels.

    Raises
    ------
    InputError
        No word vectors, or too few labels that have one.
    """
    data = setting.given
    if not isinstance(data, Unread) or data.collection is None or data.vectors is None:
        raise InputError(f"{record.name} needs word vectors beside the data; add --vectors FILE")
    known = _known(data, setting)
    if len(known.labels) <= data.held + 1:
        raise InputError(
            f"{len(known.labels):,} labels of {data.name} have a word vector and {data.held} are held out each time; "
            "hold fewer out (--held), or give vectors of more words"
        )
    planted = known._replace(X=_planted(known, data, setting.seed))
    tasks = {"": known, PLANTED: planted}
    rows = [_chance(task, tasks[task], data, setting.seed) for task in tasks]
    entries = [entry for entry in record.entries if not entry.row.startswith(PLANTED)]
    jobs = [(task, entry) for task in tasks for entry in entries]
    with setting.progress.stage("held-out labels", len(jobs) * N_SPLITS, "splits") as stage:
        for task, entry in jobs:
            make = _maker(entry.entrant, data, setting)
            judged = [
                _judged(make, split, data, setting.seed)
                for split in _splits(tasks[task], data.held, setting.seed, stage)
            ]
            rows.append(_found(f"{task}{entry.row}", entry.entrant, judged))
    return Findings(
        rows, notes=_told(known, data), groups=[known.labels[y] for y in _tested(known, data.held, setting.seed)]
    )


def _known(data: Unread, setting: Setting) -> Known:
    """The rows, described by what is learnt from those that are left out, as their labels have no vector."""
    source: Any = data.collection
    names = source.label_names if isinstance(source, Rows) else sorted({y for item in source for y in item.labels[:1]})
    found = target_vectors(terms_of(names, data.knowledge), data.vectors)  # type: ignore[arg-type]  # looked at before
    labels = [names[place] for place in found.places]
    there = set(labels)
    missing = [name for name in names if name not in there]
    for name in missing:
        data.rejects.add(name, "label without a word vector")
    rows = source if isinstance(source, Rows) else _described(source, there, data, setting)
    number = {name: y for y, name in enumerate(labels)}
    first = [next((number.get(name, -1) for name in row), -1) for row in _label_names(rows)]
    kept = np.flatnonzero(np.array(first, np.int64) >= 0)
    return Known(rows.X[kept], np.array(first, np.int64)[kept], labels, missing)


def _label_names(rows: Rows) -> Iterator[list[str]]:
    Y = (rows.Y > 0).tocsr()
    for i in range(Y.shape[0]):
        yield [rows.label_names[y] for y in Y.indices[Y.indptr[i] : Y.indptr[i + 1]]]


def _described(source: ItemSource, there: set[str], data: Unread, setting: Setting) -> Rows:
    from wsabie.features.extract import learn
    from wsabie.features.registry import describer

    how = describer("colour,hog" if source.things == "pictures" else None, things=source.things, **_options(source))
    others = [i for i, item in enumerate(source) if not there.intersection(item.labels[:1])]
    taught = ItemPart(source, np.array(others)) if len(others) >= _FEWEST else source
    learn(how, taught, data.executor, setting.progress, data.rejects)
    return how.transform(source, executor=data.executor, progress=setting.progress, rejects=data.rejects)


def _options(source: ItemSource) -> dict[str, Any]:
    return _DESCRIPTION if source.things == "pictures" else {}


def _planted(known: Known, data: Unread, seed: int) -> Float32:
    """Rows that a random map makes of the vectors of their labels, with noise."""
    rng = np.random.default_rng([seed, 5])
    table = target_vectors(terms_of(known.labels, data.knowledge), data.vectors).table  # type: ignore[arg-type]
    mapped = table[known.y] @ rng.standard_normal((table.shape[1], _FEATURES))
    return np.asarray(mapped + _NOISE * rng.standard_normal(mapped.shape), np.float32)


class Split(NamedTuple):
    """Labels held out, with their rows.

    Attributes
    ----------
    known : Known
    held : (n_held,) int64
    train, test : (n,) int64
        Rows.
    """

    known: Known
    held: Int64
    train: Int64
    test: Int64


def _splits(known: Known, n: int, seed: int, stage: Any = None) -> Iterator[Split]:
    for number in range(N_SPLITS):
        held = np.sort(np.random.default_rng([seed, 6, number]).choice(len(known.labels), n, replace=False))
        out = np.isin(known.y, held)
        yield Split(known, held, np.flatnonzero(~out), np.flatnonzero(out))
        if stage is not None:
            stage.advance()


def _tested(known: Known, n: int, seed: int) -> Int64:
    return np.concatenate([known.y[split.test] for split in _splits(known, n, seed)])


Make = Callable[[list[str]], Any]


def _maker(entrant: str, data: Unread, setting: Setting) -> Make:
    """What makes an unfitted model from the labels that are held out."""
    vectors: Vectors = data.vectors  # type: ignore[assignment]  # looked at before
    run: dict[str, Any] = {"seed": setting.seed, "threads": setting.threads}
    given = {"knowledge": data.knowledge, **run}
    table = np.random.default_rng([setting.seed, 7]).standard_normal(vectors.table.shape).astype(np.float32)
    makers: dict[str, Make] = {
        "devise": lambda held: Devise(vectors, labels=held, **setting.parameters, **given),
        "devise-random": lambda held: Devise(Vectors(vectors.words, table), labels=held, **setting.parameters, **given),
        "conse": lambda held: Conse(vectors, labels=held, **given),
        "softmax": lambda held: Softmax(),
        "wsabie": lambda held: Wsabie(vectors.dim, **setting.parameters, **run),
    }
    return makers[entrant]


def _judged(make: Make, split: Split, data: Unread, seed: int) -> dict[str, Float64]:
    """Metrics of each test row, the held-out labels being all candidates."""
    from scipy.sparse import csr_matrix

    known, held = split.known, [split.known.labels[y] for y in split.held]
    n, y = len(split.train), known.y[split.train]
    Y = csr_matrix((np.ones(n, np.int8), y, np.arange(n + 1)), shape=(n, len(known.labels)))
    model = make(held).fit(known.X[split.train], Y, label_names=known.labels)
    scores = model.scores(known.X[split.test])[:, split.held]
    return _measured(scores, np.searchsorted(split.held, known.y[split.test]), held, data)


def _measured(scores: Float32, y: Int64, held: Sequence[str], data: Unread) -> dict[str, Float64]:
    near: dict[str, Any] = {}
    kinds = data.hierarchy or (None if data.knowledge is None else data.knowledge.hierarchy(names=False))
    if kinds is not None:
        near = {"hops": kinds.hops(held), "heights": kinds.heights(held)}
    return dict(evaluate_scores([(0, scores)], y, ks=KS, **near).per_row)


def _chance(task: str, known: Known, data: Unread, seed: int) -> Found:
    """What equal scores for all give."""
    judged = []
    for split in _splits(known, data.held, seed):
        held = [known.labels[y] for y in split.held]
        y = np.searchsorted(split.held, known.y[split.test])
        judged.append(_measured(np.zeros((len(y), data.held), np.float32), y, held, data))
    return _found(f"{task}{CHANCE}", "any order", judged)


def _found(row: str, title: str, judged: list[dict[str, Float64]]) -> Found:
    """Means over the splits, with the standard error of hit@5."""
    means = {name: np.array([split[name].mean(dtype=float) for split in judged]) for name in judged[0]}
    figures: dict[str, Cell] = {name: float(values.mean()) for name, values in means.items()}
    figures["s.e. of hit@5"] = standard_error(means["hit@5"].round(6))
    return Found(row, title, figures, {name: np.concatenate([split[name] for split in judged]) for name in means})


def standard_error(values: Float64) -> float:
    """Of a mean.

    Examples
    --------
    >>> standard_error(np.array([1.0, 3.0]))
    1.0
    """
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def above_chance(findings: Findings) -> tuple[bool, str]:
    """Whether DeViSE's hit@5 is above chance by two standard errors over the splits."""
    found, chance = findings["DeViSE"].figures, findings[CHANCE].figures["hit@5"]
    hit, error = found["hit@5"], found["s.e. of hit@5"]
    words = f"{hit:.3f} with a standard error of {error:.3f}, chance {chance:.3f}"
    return float(hit or 0) - 2 * float(error or 0) > float(chance or 0), words


def thrice_chance(findings: Findings) -> tuple[bool, str]:
    """Whether it is three times chance on the planted task."""
    hit, chance = (float(findings[f"{PLANTED}{row}"].figures["hit@5"] or 0) for row in ("DeViSE", CHANCE))
    return hit >= 3 * chance, f"{hit:.3f}, chance {chance:.3f}"


def _told(known: Known, data: Unread) -> list[str]:
    vectors: Vectors = data.vectors  # type: ignore[assignment]  # looked at before
    total = len(known.labels) + len(known.missing)
    names = [terms[0] for terms in terms_of([*known.labels, *known.missing], data.knowledge)]
    whole = sum(len(vectors.rows(name)) == 1 for name in names)
    described = "" if isinstance(data.collection, Rows) else (
        "Pictures are described by colours and oriented gradients, brought to 256 kernel components that were learnt "
        "from the pictures of labels without a vector. "
    )  # fmt: skip
    return [
        f"{described}{total:,} labels; of {whole:,} the first term has a vector itself, of {len(known.labels):,} its "
        f"words have: these take part, with {len(known.y):,} rows. {data.held} of them are held out with all their "
        f"rows, {N_SPLITS} times, and are the only candidates. Left out: {', '.join(names[len(known.labels) :])}.",
        f"Planted: rows of {_FEATURES} numbers, a random map of the vector of the row's label and noise of "
        f"{_NOISE:g} times unit variance.",
    ]
