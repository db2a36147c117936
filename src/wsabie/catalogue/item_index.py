"""Approximate indices of the points of items, beside them, for collections that are too large to be scanned.

models/FOLDER/points/index-SIMILARITY/   the codes, and "items" and "marks": which points they are of

What comes after an index was made is scored one by one and what is gone is passed by, until it is made anew: by
`apply`, when that is more than a fiftieth of all.
"""

import logging
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from wsabie.base.arrays import Int64
from wsabie.base.errors import InputError, WsabieError
from wsabie.base.progress import SILENT, Progress
from wsabie.catalogue.few import Few
from wsabie.storage.folder import Parts, load_folder, save_folder

if TYPE_CHECKING:
    from wsabie.catalogue.collection import Collection
    from wsabie.catalogue.points import Points
    from wsabie.search.approximate import ApproximateIndex
    from wsabie.search.codes import CodesKind
    from wsabie.search.exact import ExactIndex

CHANGED = 0.02
"""Share of the points from which on an index is made anew."""

SENSIBLE = 100_000
"""Items from which on an index is proposed: fewer are searched exactly in a millisecond or two."""

_SIMILARITIES = ("dot", "cosine")
_log = logging.getLogger("wsabie")


class Indexed(NamedTuple):
    """An index that was made: its similarity, and what `ApproximateIndex.facts` tells."""

    similarity: str
    facts: dict[str, Any]


class IndexStanding(NamedTuple):
    """Whether there is an index of a model's items, or there could be one.

    Attributes
    ----------
    state : {"ready", "none", "few", "not installed"}
        "few": fewer than `SENSIBLE` items and none was made.
    recall : float or None
        Share of the ten nearest that it finds, of the similarity of which it finds fewer.
    milliseconds, exact_milliseconds : float or None
        Of a search with it and without, of the slower similarity.
    """

    state: Literal["ready", "none", "few", "not installed"]
    recall: float | None = None
    milliseconds: float | None = None
    exact_milliseconds: float | None = None


def index_standing(model: Path, n_items: int) -> IndexStanding:
    """How it stands with the index of a model that so many items are searched by."""
    if find_spec("faiss") is None:
        return IndexStanding("not installed")
    kept = [parts.config for similarity in _SIMILARITIES if (parts := _parts(model, similarity, verify=False))]
    if len(kept) < len(_SIMILARITIES):
        return IndexStanding("few" if n_items < SENSIBLE else "none")
    try:
        took = [{effort: ms for effort, _, ms in config["curve"]}[config["effort"]] for config in kept]
        recall = min(float(config["recall"]) for config in kept)
        exact = max(float(config["exact_milliseconds"]) for config in kept)
        return IndexStanding("ready", recall, max(took), exact)
    except (KeyError, TypeError, ValueError):
        return IndexStanding("none")


def index_items(
    collection: "Collection", *, kind: "CodesKind" = "ivf", recall: float = 0.95, progress: Progress = SILENT
) -> list[Indexed]:
    """Make the indices of the model in use, by inner product and by cosine, measured on the items' own points.

    Raises
    ------
    InputError
        There is no model, it has seen fewer than 1,000 items, or faiss is not there.
    """
    from wsabie.catalogue.points import opened_model, searched

    place = opened_model(collection).path
    return _make(place, searched(place), kind, recall, progress)


def renew(collection: "Collection", model: Path, progress: Progress = SILENT) -> list[Indexed]:
    """Make the indices of a model anew where much has changed, or where an earlier model has some and this one none."""
    from wsabie.catalogue.points import searched
    from wsabie.search.measured import WANTED

    if not any(collection.models.glob("*/points/index-*/config.json")):
        return []
    try:
        seen = searched(model)
    except InputError:  # it has seen no item that is there
        return []
    kept = [_parts(model, similarity) for similarity in _SIMILARITIES]
    if all(one is not None and _is_near(one, seen[0]) for one in kept):
        return []
    config = next((one.config for one in kept if one is not None), {})
    try:
        return _make(model, seen, config.get("kind", "ivf"), float(config.get("wanted", WANTED)), progress)
    except InputError as error:
        _log.warning("the index of the items was not made anew: %s", error)
        return []


def _is_near(kept: Parts, points: "Points") -> bool:
    """Whether few of the points have no code, and few codes no point."""
    places = _places(kept, points)
    if places is None:
        return False
    stayed = int((places >= 0).sum())
    return all(n - stayed <= CHANGED * n for n in (len(points.items), len(places)))


def quick_index(model: Path, points: "Points", exact: "ExactIndex") -> "ExactIndex | ApproximateIndex":
    """The index of the points, where one was made and fits, or else the exact one."""
    config = _folder(model, exact.similarity) / "config.json"
    try:
        stat = config.stat()
    except OSError:
        return exact
    # What is kept holds the exact index, so that no other one has its id meanwhile.
    key = config, stat.st_mtime_ns, stat.st_ino, id(exact)
    return _opened.get(key, lambda: _open(model, points, exact))


_opened = Few["ExactIndex | ApproximateIndex"](4)


def _open(model: Path, points: "Points", exact: "ExactIndex") -> "ExactIndex | ApproximateIndex":
    from wsabie.search.approximate import ApproximateIndex

    kept = _parts(model, exact.similarity)
    places = None if kept is None else _places(kept, points)
    if kept is None or places is None:
        return exact
    try:
        found = ApproximateIndex.from_parts(kept, exact, places)
    except (WsabieError, KeyError, TypeError, ValueError) as error:
        _log.warning("%s cannot be used (%s), so items are searched exactly", _folder(model, exact.similarity), error)
        return exact
    return exact if found is None else found


def _make(
    model: Path,
    seen: "tuple[Points, ExactIndex, ExactIndex]",
    kind: "CodesKind",
    recall: float,
    progress: Progress,
) -> list[Indexed]:
    from wsabie.search.approximate import ApproximateIndex

    points, made = seen[0], []
    with progress.stage("indexing", len(_SIMILARITIES), "indices") as bar:
        for similarity, exact in zip(_SIMILARITIES, seen[1:], strict=True):
            index = ApproximateIndex.build(exact, kind=kind, recall=recall)
            parts = index.to_parts()
            own = {"items": points.items, "marks": points.marks}
            save_folder(_folder(model, similarity), Parts(parts.kind, parts.config, parts.tensors | own))
            made.append(Indexed(similarity, index.facts()))
            bar.advance(1)
    return made


def _folder(model: Path, similarity: str) -> Path:
    return model / "points" / f"index-{similarity}"


def _parts(model: Path, similarity: str, *, verify: bool = True) -> Parts | None:
    folder = _folder(model, similarity)
    if not (folder / "config.json").exists():
        return None
    try:
        return load_folder(folder, verify=verify)
    except WsabieError as error:
        _log.warning("%s; items are searched exactly", error)
        return None


def _places(kept: Parts, points: "Points") -> Int64 | None:
    """Where each point that has a code is now, -1 where it is gone or another; None: nothing of the kind is told."""
    items, marks = kept.tensors.get("items"), kept.tensors.get("marks")
    if items is None or marks is None or items.ndim != 1 or items.shape != marks.shape or not len(points.items):
        return None
    places: Int64 = np.minimum(np.searchsorted(points.items, items), len(points.items) - 1)
    return np.where(points.has(items, marks), places, -1)
