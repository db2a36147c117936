"""Names of ImageNet's synsets that no photo taught: hit@k among 2-hop, 3-hop and all of its 21K names."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from papers.datasets import PaperData
from papers.record import Cell, DataOpener, FindingRow, PaperRecord, RunFindings, RunSettings
from papers.runs.correct_sets import ALL_LABELS, THREE, TWO, open_synsets
from wsabie.core.arrays import Bool, Float32
from wsabie.core.errors import InputError
from wsabie.core.execution import SILENT, Executor, Progress
from wsabie.features.encoders.text_encoders import SentenceEncoder
from wsabie.features.extractors.onnx_encoders import ConseEncoder
from wsabie.io.data_sources import open_source
from wsabie.io.records import FeatureTable, ItemList
from wsabie.storage.rejects import Rejects

KS = (1, 2, 5, 10, 20)
SEEN_TOO = "+ 1K"
CHANCE = "chance"
_SYNSET = re.compile(r"(n\d{8})_")


@dataclass(frozen=True)
class NamedPhotos(PaperData):
    """Photos with a synset each, as points, and names of many synsets as points among them.

    Attributes
    ----------
    points : (n, dim) float32
    photo_synsets : list of str, length n
    names : dict of str to str
        Names of all synsets.
    known_synsets : list of str
        Synsets that the network was trained on.
    """

    points: Float32 = field(default_factory=lambda: np.empty((0, 0), np.float32), repr=False)
    photo_synsets: list[str] = field(default_factory=list, repr=False)
    names: dict[str, str] = field(default_factory=dict, repr=False)
    known_synsets: list[str] = field(default_factory=list, repr=False)

    @property
    def facts(self) -> dict[str, Any]:
        """Counts and the fingerprint of the points, for JSON."""
        mark = hashlib.sha256(self.points.tobytes()).hexdigest()[:16]
        return {"name": self.name, "about": self.about, "rows": len(self.points), "fingerprint": {"points": mark}}


def open_named_photos(
    name: str,
    *,
    seed: int = 0,
    executor: Executor | None = None,
    progress: Progress = SILENT,
    rejects: Rejects | None = None,
    knowledge: Sequence[Path] = (),
) -> NamedPhotos:
    """Open photos whose file names begin with a synset, and a folder of ImageNet's lists with `words.txt`.

    Parameters
    ----------
    name : str
        A folder of photos.
    seed, executor, progress, rejects
        As of `papers.datasets.open_data`.
    knowledge : sequence of Path
        The folder of lists, as of `correct_sets.open_synsets`.

    Raises
    ------
    InputError
        There is no such folder, or a file name begins otherwise.
    """
    from scipy.sparse import csr_matrix

    source = open_source(name, labels_from="none")
    if len(knowledge) != 1 or isinstance(source, FeatureTable):
        raise InputError(f"give {OPENING.data_hint}")
    items = list(source)
    matches = [_SYNSET.match(Path(item.id).name) for item in items]
    synsets = [match[1] for match in matches if match]
    if len(synsets) < len(items) or not items:
        raise InputError(f"a file name in {name} begins with no synset; give {OPENING.data_hint}")
    lists = open_synsets(str(knowledge[0]))
    lines = (knowledge[0] / "words.txt").read_text(encoding="utf-8").splitlines()
    words = dict(line.split("\t", 1) for line in lines if "\t" in line)
    photos = ItemList(Path(name), items, source.modality)
    rejects = Rejects() if rejects is None else rejects
    table = ConseEncoder().fit(photos).transform(photos, executor=executor, progress=progress, rejects=rejects)
    number = {item.id: synset for item, synset in zip(items, synsets, strict=True)}
    no_rows = FeatureTable(csr_matrix((0, 1), dtype=np.float32), csr_matrix((0, 0), dtype=np.int8), [], [])
    about = f"{Path(name).name}, {len(items):,} photos of {len(set(synsets)):,} synsets; {lists.about}"
    return NamedPhotos(
        Path(name).name,
        about,
        no_rows,
        no_rows,
        no_rows,
        hierarchy=lists.hierarchy,
        points=np.asarray(table.X, np.float32),
        photo_synsets=[number[row] for row in table.ids],
        names={synset: words[synset] for synset in lists.labels if synset in words},
        known_synsets=lists.seeds,
    )


OPENING = DataOpener(
    open_named_photos,
    "a folder of photos whose file names begin with a synset, and --knowledge FOLDER with ImageNet's lists",
    ("knowledge",),
)


def run_synset_names(record: PaperRecord, setting: RunSettings) -> RunFindings:
    """Rank the names of each label set for the photos of its unseen synsets."""
    data = setting.required_data
    if not isinstance(data, NamedPhotos) or data.hierarchy is None:
        raise InputError(f"{record.name} needs names of synsets; give {OPENING.data_hint}")
    known_synsets, names = set(data.known_synsets), list(data.names)
    vectors = SentenceEncoder(setting.threads).encode(data.names.values())
    rows = []
    for title, hops in ((TWO, 2), (THREE, 3), (ALL_LABELS, 0)):
        near = set(data.hierarchy.find_within(data.known_synsets, hops)) if hops else set(names)
        for suffix, is_candidate in (
            ("", [name in near and name not in known_synsets for name in names]),
            (f" {SEEN_TOO}", [name in near or name in known_synsets for name in names]),
        ):
            rows += _rank_names(f"{title}{suffix}", data, vectors, np.array(is_candidate), near - known_synsets)
    return RunFindings(rows, notes=[_NOTE])


_NOTE = (
    "Photos are points of ConSE: the network knows the 1K, and a sentence encoder places its class names and all other "
    "names. Photos count whose synset is in the set and not among the 1K."
)


def _rank_names(
    title: str, data: NamedPhotos, vectors: Float32, is_candidate: Bool, unseen: set[str]
) -> list[FindingRow]:
    """Return the figures of ConSE and of chance, and hit@k of each photo."""
    columns = {name: column for column, name in enumerate(data.names)}
    photos = [row for row, synset in enumerate(data.photo_synsets) if synset in unseen and synset in columns]
    truth = [columns[data.photo_synsets[row]] for row in photos]
    scores = data.points[photos] @ vectors.T
    ranks = (scores[:, is_candidate] > scores[np.arange(len(photos)), truth][:, np.newaxis]).sum(axis=1)
    hits = {f"hit@{k}": (ranks < k).astype(np.float64) for k in KS}
    n_names = int(is_candidate.sum())
    counts: dict[str, Cell] = {"labels": n_names, "photos": len(photos)}
    means: dict[str, Cell] = {name: float(values.mean()) if len(values) else None for name, values in hits.items()}
    chances: dict[str, Cell] = {f"hit@{k}": min(1.0, k / n_names) if n_names else None for k in KS}
    return [
        FindingRow(title, "ConSE", {**counts, **means}, hits),
        FindingRow(f"{title}, {CHANCE}", "any order", {**counts, **chances}),
    ]
