"""Sums of models, explanations, exports and learning row by row, on Corel5k of WSABIE_TEST_DATA."""

import os
import warnings
from copy import deepcopy
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from benchmarks.exports import pad_rows
from benchmarks.libraries.measure import Work, compare
from benchmarks.tasks import Side, sides
from wsabie.core.validation import check_features
from wsabie.evaluation.score_evaluation import evaluate_scores
from wsabie.models.explanations import compute_contributions
from wsabie.models.exporters.export_formats import export
from wsabie.models.joint_embedding.estimator import Wsabie
from wsabie.models.linear_ranker import LinearRanker
from wsabie.models.one_vs_rest import OneVsRest
from wsabie.models.stacking.fusion import Fusion
from wsabie.search.exact_index import find_top_k

LABELS, DIMENSIONS, MEMBERS, QUERIES, LATER = 16_000, 100, 3, 256, 45


def run(folder: Path) -> None:
    """Compare each; without Corel5k only the search in a sum of models."""
    _compare_sums()
    data = Path(os.environ.get("WSABIE_TEST_DATA", folder)) / "corel5k_mulan"
    if data.is_dir():
        task = sides("corel5k", data)
        _compare_stacking(task.fit, task.test)
        _compare_explanations(task.fit, task.test)
        _compare_exports(task.fit, task.test, folder)
        _compare_streams(task.fit, task.valid)


def _classifiers() -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier

    return OneVsRestClassifier(LogisticRegression(solver="liblinear"))


def _compare_sums() -> None:
    rng = np.random.default_rng(0)
    tables = [rng.normal(size=(LABELS, DIMENSIONS)).astype(np.float32) for _ in range(MEMBERS)]
    points = [rng.normal(size=(QUERIES, DIMENSIONS)).astype(np.float32) for _ in range(MEMBERS)]

    def ours() -> Work:
        return partial(find_top_k, np.hstack(points), np.hstack(tables), 10, threads=1)

    def numpy() -> Work:
        def work() -> Any:
            scores = sum(p @ table.T for p, table in zip(points, tables, strict=True))
            return np.argpartition(-scores, 10, axis=1)[:, :10]  # type: ignore[operator]

        return work

    title = f"{QUERIES} rows, {LABELS:,} labels, {MEMBERS} models of {DIMENSIONS} dimensions, top 10 of their sum"
    compare(title, {"ours": ours, "numpy sum": numpy})


def _compare_stacking(train: Side, test: Side) -> None:
    def note(scores: Any) -> str:
        if isinstance(scores, str):
            return scores
        means = evaluate_scores([(0, scores)], test.Y, ks=(1, 10)).means
        return f"p@1 {means['p@1']:.3f}, nDCG@10 {means['ndcg@10']:.3f}"

    def ours() -> Work:
        return lambda: Fusion(threads=1).fit(train.X, train.Y).scores(test.X)

    def stacking() -> Work:
        from sklearn.ensemble import StackingClassifier
        from sklearn.multiclass import OneVsRestClassifier
        from sklearn.naive_bayes import MultinomialNB

        members = [("linear", _classifiers()), ("bayes", OneVsRestClassifier(MultinomialNB()))]

        def work() -> Any:
            model = StackingClassifier(members, _classifiers()).fit(train.X, train.Y.toarray())
            return model.final_estimator_.predict_proba(model.transform(test.X))  # `predict_proba` fails for this one

        return partial(_attempt, work)

    def voting() -> Work:
        from sklearn.ensemble import VotingClassifier

        members = [(name, _classifiers()) for name in "abc"]
        return partial(_attempt, lambda: VotingClassifier(members, voting="soft").fit(train.X, train.Y.toarray()))

    entrants = {"ours": ours, "scikit-learn stacking": stacking, "scikit-learn voting": voting}
    compare("sums of several kinds of models on Corel5k", entrants, note, repeats=1, with_memory=False)


def _attempt(work: Work) -> object:
    try:
        with warnings.catch_warnings(action="ignore"):
            return work()
    except Exception as error:
        return f"fails: {type(error).__name__}: {' '.join(str(error).split())[:90]}"


def _scale(model: LinearRanker, rows: Any) -> Any:
    csr = model.scaling_(check_features(rows, n_features=model.n_features_in_))
    return (
        csr_matrix((csr.data, csr.indices, csr.indptr), (rows.shape[0], model.n_features_in_)).toarray().astype(float)
    )


def _compare_explanations(train: Side, test: Side) -> None:
    model = LinearRanker(threads=1).fit(train.X, train.Y)
    row, label = test.X[:1], model.annotate(test.X[:1], 1)[0][0][0]
    weights = model.coef_[model.vocabulary_.ids([label])[0]].astype(np.float64)
    scaled = _scale(model, row)
    expected = compute_contributions(model, row, label)

    def ours() -> Work:
        return lambda: compute_contributions(model, row, label)

    def shap() -> Work:
        import shap as library

        def work() -> Any:
            explainer = library.LinearExplainer((weights, 0.0), np.zeros_like(scaled))
            return explainer.shap_values(scaled)[0]

        return work

    def lime() -> Work:
        from lime.lime_tabular import LimeTabularExplainer

        background = _scale(model, train.X[:500])
        seeds = count()

        def score(rows: Any) -> Any:
            return rows @ weights

        def work() -> Any:
            explainer = LimeTabularExplainer(
                background, mode="regression", discretize_continuous=False, random_state=next(seeds)
            )
            out = np.zeros(scaled.shape[1])
            for column, weight in explainer.explain_instance(scaled[0], score, num_features=10).as_map()[1]:
                out[column] = weight
            return out

        return work

    def note(values: Any) -> str:
        best, others = np.argsort(-np.abs(expected))[:5], np.argsort(-np.abs(values))[:5]
        shared = len({*best.tolist()} & {*others.tolist()})
        return f"largest difference {np.abs(values - expected).max():.1e}, {shared} of our 5 strongest"

    compare("parts of one score", {"ours": ours, "shap LinearExplainer": shap, "lime": lime}, note, with_memory=False)


def _compare_exports(train: Side, test: Side, folder: Path) -> None:
    from onnxruntime import InferenceSession, SessionOptions

    options = SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    rows = test.X[:QUERIES]

    def start(file: Path, inputs: dict[str, Any]) -> Work:
        session = InferenceSession(file, options, providers=["CPUExecutionProvider"])

        def work() -> str:
            session.run(None, inputs)
            import onnx

            n_nodes = len(onnx.load(file).graph.node) if file not in sizes else sizes[file]
            sizes[file] = n_nodes
            return f"{n_nodes} nodes, {file.stat().st_size / 1e3:,.0f} kB"

        return work

    sizes: dict[Path, int] = {}

    def ours(X: Any, name: str) -> Work:
        model = OneVsRest(threads=1).fit(X[0], train.Y)
        export(model, folder / name, "onnx", k=10)
        return start(folder / name, pad_rows(X[1]))

    def skl2onnx() -> Work:
        from skl2onnx import to_onnx

        model = _classifiers().fit(train.X.toarray(), train.Y.toarray())
        content = to_onnx(model, train.X[:1].toarray().astype(np.float32), options={id(model): {"zipmap": False}})
        (folder / "sklearn.onnx").write_bytes(content.SerializeToString())
        return start(folder / "sklearn.onnx", {"X": rows.toarray().astype(np.float32)})

    def embedding() -> Work:
        from skl2onnx import to_onnx

        model = Wsabie(threads=1).fit(train.X, train.Y)
        return lambda: _attempt(lambda: to_onnx(model, train.X[:1].toarray().astype(np.float32)))

    dense = train.X.toarray(), rows.toarray()
    entrants = {
        "ours, dense": partial(ours, dense, "dense.onnx"),
        "ours, sparse": partial(ours, (train.X, rows), "sparse.onnx"),
        "skl2onnx": skl2onnx,
        "skl2onnx of Wsabie": embedding,
    }
    title = f"one classifier a label in ONNX Runtime, {QUERIES} rows"
    compare(title, entrants, lambda note: str(note)[:120], with_memory=False)


def _compare_streams(train: Side, later: Side) -> None:
    rows, labels = later.X[:LATER], later.Y[:LATER].toarray() > 0

    def ours() -> Work:
        model = Wsabie(threads=1, replay="auto").fit(train.X, train.Y)
        return lambda: deepcopy(model).partial_fit(rows, labels.astype(np.float32))

    def river() -> Work:
        from river.linear_model import LogisticRegression

        inputs = [dict(zip(row.indices.tolist(), row.data.tolist(), strict=True)) for row in rows]

        def work() -> int:
            models = [LogisticRegression() for _ in range(labels.shape[1])]
            for row, targets in zip(inputs, labels.tolist(), strict=True):
                for model, is_label in zip(models, targets, strict=True):
                    model.learn_one(row, is_label)
            return len(models)

        return work

    title = f"{LATER} more rows of {labels.shape[1]} labels"
    compare(title, {"ours": ours, "river": river}, lambda _: "", repeats=3, with_memory=False)
