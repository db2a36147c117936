"""Search indices of a model's labels: build them, save them in the model's folder, open them again.

MODEL/index/   a folder of `wsabie.storage.model_folder`: the codes, and a checksum of the label table
"""

import logging
from pathlib import Path
from typing import Any, Literal

from wsabie.core.arrays import Matrix
from wsabie.core.errors import InputError, WsabieError
from wsabie.search.approximate_index import ApproximateIndex, require_faiss
from wsabie.search.exact_index import ExactIndex
from wsabie.search.label_index import DEFAULT_RECALL, LabelSearchIndex, require_enough_vectors
from wsabie.search.label_tree import LabelTree
from wsabie.search.screening_index import ScreeningIndex
from wsabie.storage.model_folder import ModelState, open_model_folder, save_model_folder

LabelIndexKind = Literal["ivf", "hnsw", "int8", "tree"]
FOLDER = "index"
_log = logging.getLogger("wsabie")


def index_labels(
    model: Any,
    *,
    kind: LabelIndexKind = "ivf",
    recall: float = 0.95,
    X: Matrix = None,
    seed: int = 0,
    folder: str | Path | None = None,
) -> LabelSearchIndex:
    """Build an index of the labels of a model; its `rank` then uses it unless `exact` is set.

    Parameters
    ----------
    model : Wsabie, Ensemble or Annotator
        Fitted.
    kind : {"ivf", "hnsw", "int8", "tree"}
        See `ApproximateIndex.build`; "int8" gives exact results, see `ScreeningIndex`; "tree" is a `LabelTree`.
    recall : float
        Share of the exact top 10 that the index shall find; it is 1 for "int8".
    X : sparse matrix or array, (n, n_features), or None
        Rows like later queries, on which the recall is measured; None: the labels' points are the queries.
    seed : int
    folder : path or None
        The model's folder, where the index is saved.

    Returns
    -------
    ApproximateIndex, ScreeningIndex or LabelTree

    Raises
    ------
    InputError
        This kind of model has no index, faiss is missing ("ivf" and "hnsw" need it), or there are fewer than 1,000
        labels.

    Examples
    --------
    >>> import numpy as np
    >>> from wsabie import Wsabie
    >>> rng = np.random.default_rng(0)
    >>> model = Wsabie(dim=4, epochs=1, threads=1).fit(rng.normal(size=(1500, 8)), np.arange(1500))
    >>> index = index_labels(model, recall=0.9)
    >>> index.recall > 0.5, model.rank(np.ones((1, 8)), k=2)[0].shape
    (True, (1, 2))
    """
    model = require_indexable(model, kind)
    points = None if X is None else model.transform(X)
    exact, threads = model.exact_index(), model.threads
    index: LabelSearchIndex
    if kind == "int8":
        index = ScreeningIndex.build(exact, queries=points, seed=seed, threads=threads)
    elif kind == "tree":
        index = LabelTree.build(exact, recall=recall, queries=points, seed=seed, threads=threads)
    else:
        index = ApproximateIndex.build(exact, kind=kind, recall=recall, queries=points, seed=seed, threads=threads)
    if folder is not None:
        save_model_folder(Path(folder) / FOLDER, index.to_state())
    model.use_index(index)
    return index


def require_indexable(model: object, kind: LabelIndexKind = "ivf") -> Any:
    """Return the estimator of a model that can have an index of this kind.

    Raises
    ------
    InputError
        In this order: this kind of model has no index, there are too few labels, faiss is missing.

    Examples
    --------
    >>> import numpy as np
    >>> from wsabie import Wsabie
    >>> require_indexable(Wsabie(dim=2, epochs=1, threads=1).fit(np.eye(8), np.arange(8)))
    Traceback (most recent call last):
    ...
    wsabie.core.errors.InputError: an index of 8 labels saves no time, one of 1,000 does; search exactly
    """
    estimator = _find_estimator(model)
    if estimator is None:
        raise InputError("only models whose labels are points (wsabie, ensemble) have an index; search exactly")
    require_enough_vectors(len(estimator.vocabulary_), "labels")
    if kind in ("ivf", "hnsw"):
        require_faiss()
    return estimator


def renew_index(model: object, folder: Path) -> LabelSearchIndex | None:
    """Rebuild the index in a model's folder if the labels have changed; return it, else None.

    An index that followed the labels (`LabelSearchIndex.follow_changes`) is saved as it is. A new one has the same kind
    and requested recall, measured on the labels' points, because the queries of the first measurement are not saved. If
    the index cannot be rebuilt, a warning is logged and labels are searched exactly.
    """
    index_folder, estimator = folder / FOLDER, _find_estimator(model)
    if estimator is None or not (index_folder / "config.json").exists():
        return None
    try:
        stored = open_model_folder(index_folder)
        if _restore_index(stored, estimator.exact_index()) is not None:
            return None
        if (index := estimator._index()) is not None:
            save_model_folder(index_folder, index.to_state())
            return None
        recall = float(stored.config.get("target_recall", DEFAULT_RECALL))
        return index_labels(model, kind=stored.config["kind"], recall=recall, folder=folder)
    except (WsabieError, KeyError, TypeError, ValueError) as error:
        _log.warning("the index in %s was not made again (%s), so labels are searched exactly", index_folder, error)
        return None


def find_index(model: Any, folder: Path) -> None:
    """Let a model use the index in its folder, if there is one.

    An index of other labels, a damaged one, or one that needs missing faiss is ignored with a warning.
    """
    index_folder, estimator = folder / FOLDER, _find_estimator(model)
    if estimator is None or not (index_folder / "config.json").exists():
        return
    advice = f"labels are searched exactly; run: `index({str(folder)!r})`"
    try:
        index = _restore_index(open_model_folder(index_folder), estimator.exact_index())
    except WsabieError as error:
        _log.warning("%s; labels are searched exactly", error)
    except (KeyError, TypeError, ValueError) as error:
        _log.warning("%s cannot be used (%s), so %s", index_folder, error, advice)
    else:
        if index is None:
            _log.warning("%s was made of other labels than the model has, so %s", index_folder, advice)
        else:
            estimator.use_index(index)


def _restore_index(state: ModelState, exact: ExactIndex) -> LabelSearchIndex | None:
    kinds: tuple[type[LabelSearchIndex], ...] = (ScreeningIndex, LabelTree, ApproximateIndex)
    kind = next((kind for kind in kinds if kind.folder_kind == state.kind), ApproximateIndex)
    return kind.from_state(state, exact)


def _find_estimator(model: Any) -> Any:
    """Return the estimator that searches labels by their points, if there is one."""
    estimator = getattr(model, "model", model)
    estimator = getattr(estimator, "joined_", estimator)
    return estimator if getattr(estimator, "kind", None) == "wsabie" else None
