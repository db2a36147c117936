"""Sparse matrices whose arrays lie, and every public door that takes one."""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

N, WIDTH, LABELS = 12, 6, 4
HUGE = [-1, -(2**31), -(2**62), 7, 100, 2**20, 2**31 - 1, 2**31, 2**40, 2**62]


def random_matrix(rng: np.random.Generator, shape: tuple[int, int], *, binary: bool = False) -> Any:
    """A usable matrix, with at least one entry."""
    dense = rng.random(shape) * (rng.random(shape) < 0.5)
    dense[0, 0] = 1
    return sp.csr_matrix((dense > 0).astype(np.int8) if binary else dense.astype(np.float32))


def _with_arrays(matrix: Any, **arrays: Any) -> Any:
    for name, array in arrays.items():
        object.__setattr__(matrix, name, array)
    return matrix


def _poke(rng: np.random.Generator, array: Any, dtype: Any = np.int64) -> Any:
    """One entry, or all, somewhere else."""
    changed = array.astype(dtype)
    at = slice(None) if rng.random() < 0.1 else rng.integers(len(changed))
    with np.errstate(all="ignore"):
        changed[at] = np.array(rng.choice(HUGE)).astype(dtype)
    return changed


def _resize(rng: np.random.Generator, array: Any) -> Any:
    return array[: rng.integers(len(array))] if rng.random() < 0.5 else np.concatenate([array, array])


def _retype(rng: np.random.Generator, array: Any) -> Any:
    dtype = rng.choice(["u1", "u2", "u4", "u8", "i1", "i8", ">i4", ">i8", "f4", "f8", "f2", "?", "O", "c8", "U3"])
    with np.errstate(all="ignore"):
        return array.astype(dtype)


def _restride(rng: np.random.Generator, array: Any) -> Any:
    return [array[::-1], np.repeat(array, 2)[::2], array[:, None], array.tolist(), np.array(array[0])][rng.integers(5)]


def hostile_matrix(rng: np.random.Generator, shape: tuple[int, int], *, binary: bool = False) -> Any:
    """A matrix that scipy holds, and one of whose arrays is wrong (now and then by luck none)."""
    form = str(rng.choice(["csr"] * 6 + ["csc", "csc", "coo", "bsr", "dia", "lil", "dok"]))
    matrix = random_matrix(rng, shape, binary=binary)
    matrix = (getattr(sp, f"{form}_array") if rng.random() < 0.3 else getattr(sp, f"{form}_matrix"))(matrix)
    if form == "lil":
        matrix.rows[rng.integers(shape[0])] = [int(rng.choice(HUGE))] * int(rng.integers(3))
        return matrix
    if form == "dok":
        matrix._dict[int(rng.choice(HUGE)), 0] = 1
        return matrix
    names = {"coo": ["row", "col", "data"], "dia": ["offsets", "data"]}.get(form, ["indptr", "indices", "data"])
    name = str(rng.choice(names))
    array = getattr(matrix, name)
    if name != "data" and rng.random() < 0.6:
        changed = _poke(rng, array, rng.choice([np.int32, np.int64, np.uint32, np.uint64]))
    else:
        changed = [_resize, _retype, _restride][rng.integers(3)](rng, array)
    if form == "coo" and name != "data":
        coords = (changed, matrix.col) if name == "row" else (matrix.row, changed)
        return _with_arrays(matrix, coords=coords)
    if rng.random() < 0.3 and form == "csr":
        _ = matrix.has_canonical_format  # is remembered
    if rng.random() < 0.1:
        return _with_arrays(matrix, _shape=(shape[0] + int(rng.choice([-1, 1])), shape[1]))
    return _with_arrays(matrix, **{name: changed})


def doors() -> dict[str, Callable[[Any, Any, Any], Any]]:
    """Functions that take matrices, by name: features (N, WIDTH), labels (N, LABELS) and label pairs."""
    import wsabie
    from wsabie.evaluation.positive_ranks import rank_embeddings
    from wsabie.evaluation.splits import Split, drop_near
    from wsabie.kernels.embedding.candidates import Dot
    from wsabie.search.query_labels import LabelAliases
    from wsabie.vocabulary.hierarchy_distances import AncestorHeights, HopDistances
    from wsabie.vocabulary.label_similarity import SiblingSimilarity

    rng = np.random.default_rng(0)
    X, Y = random_matrix(rng, (N, WIDTH)), random_matrix(rng, (N, LABELS), binary=True)
    models = {
        "wsabie": wsabie.Wsabie(dim=4, threads=1, epochs=2).fit(X, Y, validation=(X, Y)),
        "nearest": wsabie.NearestNeighbours().fit(X, Y),
        "popularity": wsabie.Popularity().fit(X, Y),
        "one-vs-rest": wsabie.OneVsRest().fit(X, Y),
    }
    space = wsabie.Space(dim=4, threads=1, epochs=1).fit(
        [wsabie.Relation("label", "label", [(f"{i}", f"{j}") for i in range(LABELS) for j in range(i)])]
    )
    calls: dict[str, Callable[[Any, Any, Any], Any]] = {}
    for name, model in models.items():
        calls |= {
            f"{name}.rank": lambda x, y, s, m=model: m.rank(x, 2),
            f"{name}.exclude": lambda x, y, s, m=model: m.rank(X, 2, exclude=y),
            f"{name}.scores": lambda x, y, s, m=model: m.scores(x),
            f"{name}.annotate": lambda x, y, s, m=model: m.annotate(x, 2),
            f"{name}.score": lambda x, y, s, m=model: m.score(X, y),
            f"{name}.fit X": lambda x, y, s, m=model: type(m)(**m.get_params()).fit(x, Y),
            f"{name}.fit Y": lambda x, y, s, m=model: type(m)(**m.get_params()).fit(X, y),
        }
    wsabie_model = models["wsabie"]
    points, vectors = wsabie_model.transform(X), wsabie_model.label_vectors
    dot = Dot(np.ascontiguousarray(vectors), np.zeros(LABELS, np.float32))
    train = lambda **options: wsabie.Wsabie(dim=4, threads=1, epochs=1).fit(X, Y, **options)  # noqa: E731
    split = Split(np.arange(6), np.arange(6, 9), np.arange(9, 12))
    return calls | {
        "transform": lambda x, y, s: wsabie_model.transform(x),
        "predict_proba": lambda x, y, s: wsabie_model.predict_proba(x),
        "calibrate": lambda x, y, s: wsabie_model.calibrate(x, Y),
        "partial_fit X": lambda x, y, s: train().partial_fit(x, Y, epochs=1),
        "partial_fit Y": lambda x, y, s: train().partial_fit(X, y, epochs=1),
        "validation X": lambda x, y, s: train(validation=(x, Y)),
        "validation Y": lambda x, y, s: train(validation=(X, y)),
        "sample_weight": lambda x, y, s: train(sample_weight=x),
        "candidates": lambda x, y, s: wsabie_model.rank(X, 2, candidates=y),
        "evaluate": lambda x, y, s: wsabie.evaluate_scores([(0, points @ vectors.T)], y),
        "evaluate exclude": lambda x, y, s: wsabie.evaluate_scores([(0, points @ vectors.T)], Y, exclude=y),
        "evaluate similar": lambda x, y, s: wsabie.evaluate_scores([(0, points @ vectors.T)], Y, similar=s),
        "ranks_of_points": lambda x, y, s: rank_embeddings(dot, points, y, exclude=y, threads=1),
        "top_k exclude": lambda x, y, s: wsabie.find_top_k(points, vectors, 2, exclude=y),
        "split": lambda x, y, s: wsabie.split(N, Y=y),
        "split_quadruplets": lambda x, y, s: wsabie.split_quadruplets(y, [(0, 1)]),
        "Quadruplets": lambda x, y, s: wsabie.Quadruplets(y, [(0, 1)]),
        "hold_out_labels": lambda x, y, s: wsabie.hold_out_labels(y),
        "drop_near": lambda x, y, s: drop_near(x, split, 0.9),
        "KernelPca.fit": lambda x, y, s: wsabie.KernelPca(2, n_landmarks=3).fit(x),
        "Softmax.fit": lambda x, y, s: wsabie.Softmax().fit(x, y),
        "LinearRanker.fit": lambda x, y, s: wsabie.LinearRanker(epochs=1, threads=1).fit(x, y),
        "Ensemble.fit": lambda x, y, s: wsabie.Ensemble(wsabie.Wsabie(dim=4, epochs=1), n=2, threads=1).fit(x, y),
        "Kind": lambda x, y, s: wsabie.Space(dim=4, threads=1, epochs=1).fit(
            [wsabie.Relation(wsabie.EntityKind("thing", x), "label", Y)]
        ),
        "Relation": lambda x, y, s: wsabie.Space(dim=4, threads=1, epochs=1).fit([wsabie.Relation("a", "b", s)]),
        "Space.rank": lambda x, y, s: space.rank("label", "label", None, 2, exclude=s),
        "SiblingSimilarity": lambda x, y, s: SiblingSimilarity(y),
        "HopDistances": lambda x, y, s: HopDistances(y, s).compute_hops([0], 2),
        "AncestorHeights": lambda x, y, s: AncestorHeights(y, s),
        "LabelAliases": lambda x, y, s: LabelAliases(y, list("abcd")).nearest("a", "bcd"),
        "Rows": lambda x, y, s: wsabie.FeatureTable(x, y, list("abcd"), [str(i) for i in range(N)]).take([0, 1]),
    }
