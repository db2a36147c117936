"""Indices of a model's labels: made, kept in its folder, found there again.

MODEL/index/   a folder as `storage.folder` writes it: the codes, and of which table of labels they are
"""

import logging
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, Literal

from wsabie.base.errors import InputError, WsabieError
from wsabie.storage.folder import Parts, load_folder, save_folder

if TYPE_CHECKING:
    from wsabie.search.exact import ExactIndex
    from wsabie.search.measured import MeasuredIndex

LabelIndexKind = Literal["ivf", "hnsw", "int8", "tree"]
FOLDER = "index"
_log = logging.getLogger("wsabie")


def index_labels(
    model: Any,
    *,
    kind: LabelIndexKind = "ivf",
    recall: float = 0.95,
    X: Any = None,
    seed: int = 0,
    folder: str | Path | None = None,
) -> "MeasuredIndex":
    """Make an index of the labels of a model; its `rank` uses it from now on, unless asked for `exact`.

    Parameters
    ----------
    model : Wsabie, Ensemble or Annotator
        Fitted.
    kind : {"ivf", "hnsw", "int8", "tree"}
        See `ApproximateIndex.build`; "int8" gives the exact answer, see `ScreenedIndex`; "tree" is a `LabelTree`.
    recall : float
        Share of the exact top 10 that is to be found; of "int8" it is 1.
    X : sparse matrix or array, (n, n_features), or None
        Rows like those that will be asked about, on which the recall is measured; None: on the labels' own points.
    seed : int
    folder : path or None
        The model's folder, in which the index is kept for all that load it.

    Raises
    ------
    InputError
        This kind of model has no index, faiss is not there ("ivf" and "hnsw" need it), or there are fewer than 1,000
        labels.

    Examples
    --------
    >>> import numpy as np
    >>> from wsabie.models.wsabie import Wsabie
    >>> rng = np.random.default_rng(0)
    >>> model = Wsabie(dim=4, epochs=1, threads=1).fit(rng.normal(size=(1500, 8)), np.arange(1500))
    >>> found = index_labels(model, recall=0.9)
    >>> found.recall > 0.5, model.rank(np.ones((1, 8)), k=2)[0].shape
    (True, (1, 2))
    """
    from wsabie.search.approximate import ApproximateIndex
    from wsabie.search.label_tree import LabelTree
    from wsabie.search.screened import ScreenedIndex

    model = indexable(model, kind)
    points = None if X is None else model.transform(X)
    exact, threads = model.exact_index(), model.threads
    found: MeasuredIndex
    if kind == "int8":
        found = ScreenedIndex.build(exact, queries=points, seed=seed, threads=threads)
    elif kind == "tree":
        found = LabelTree.build(exact, recall=recall, queries=points, seed=seed, threads=threads)
    else:
        found = ApproximateIndex.build(exact, kind=kind, recall=recall, queries=points, seed=seed, threads=threads)
    if folder is not None:
        save_folder(Path(folder) / FOLDER, found.to_parts())
    model.use_index(found)
    return found


def indexable(model: Any, kind: LabelIndexKind = "ivf") -> Any:
    """The estimator that would look for its labels by an index of some kind.

    Raises
    ------
    InputError
        In this order: this kind of model has no index, there are too few labels, faiss is not there.

    Examples
    --------
    >>> import numpy as np
    >>> from wsabie.models.wsabie import Wsabie
    >>> indexable(Wsabie(dim=2, epochs=1, threads=1).fit(np.eye(8), np.arange(8)))
    Traceback (most recent call last):
    ...
    wsabie.base.errors.InputError: an index is no gain for 8 labels, but from 1,000 on; search them exactly
    """
    from wsabie.search.codes import refuse_few, require_faiss

    found = _searched(model)
    if found is None:
        raise InputError("only models whose labels are points (wsabie, ensemble) have an index; search exactly")
    refuse_few(len(found.vocabulary_), "labels")
    if kind in ("ivf", "hnsw"):
        require_faiss()
    return found


def renew_index(model: Any, folder: Path) -> "MeasuredIndex | None":
    """Make the index in a model's folder anew where the labels are others now; None where that was not to be done.

    One that followed the labels (`MeasuredIndex.following`) is written down as it is. A new one is of the same kind, at
    the recall that was asked for, measured on the labels' own points: the queries it was measured on before are not
    kept. What stands in the way is told as a warning, and labels are searched exactly.
    """
    from wsabie.search.measured import WANTED

    place, searched = folder / FOLDER, _searched(model)
    if searched is None or not (place / "config.json").exists():
        return None
    try:
        kept = load_folder(place)
        if _opened(kept, searched.exact_index()) is not None:
            return None
        if (followed := searched._index()) is not None:
            save_folder(place, followed.to_parts())
            return None
        wanted = float(kept.config.get("wanted", WANTED))
        return index_labels(model, kind=kept.config["kind"], recall=wanted, folder=folder)
    except (WsabieError, KeyError, TypeError, ValueError) as error:
        _log.warning("the index in %s was not made anew (%s), so labels are searched exactly", place, error)
        return None


def find_index(model: Any, folder: Path) -> None:
    """Let a model use the index that lies in its folder, if one does.

    One that was made of other labels, is damaged, or cannot be read without faiss is passed by with a warning.
    """
    place, model = folder / FOLDER, _searched(model)
    if model is None or not (place / "config.json").exists():
        return
    again = f"labels are searched exactly; run: wsabie index {quote(str(folder))}"
    try:
        found = _opened(load_folder(place), model.exact_index())
    except WsabieError as error:
        _log.warning("%s; labels are searched exactly", error)
    except (KeyError, TypeError, ValueError) as error:
        _log.warning("%s cannot be used (%s), so %s", place, error, again)
    else:
        if found is None:
            _log.warning("%s was made of other labels than the model has, so %s", place, again)
        else:
            model.use_index(found)


def _opened(parts: Parts, exact: "ExactIndex") -> "MeasuredIndex | None":
    from wsabie.search import approximate, label_tree, screened

    if parts.kind == screened.KIND:
        return screened.ScreenedIndex.from_parts(parts, exact)
    if parts.kind == label_tree.KIND:
        return label_tree.LabelTree.from_parts(parts, exact)
    return approximate.ApproximateIndex.from_parts(parts, exact)


def _searched(model: Any) -> Any:
    """The estimator that looks for labels among points, if there is one; an ensemble has it inside."""
    inner = getattr(model, "model", model)
    inner = getattr(inner, "joined_", inner)
    return inner if getattr(inner, "kind", None) == "wsabie" else None
