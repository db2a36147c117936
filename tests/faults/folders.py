"""One small folder of each kind of model, index, checkpoint and shards, and what opens and uses it as people do."""

import json
import sys
import warnings
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

sys.path.insert(0, str(Path(__file__).parents[1]))

import wsabie
from shard_files import in_shards, toy_rows
from toy_tasks import N_LABELS, names, toy
from wsabie.core.errors import WsabieError
from wsabie.features.extractor_registry import load_extractor
from wsabie.io.records import Item, ItemList
from wsabie.models.loader import KINDS, find_model_class
from wsabie.vocabulary.word_vectors import WordVectors

X, Y, ANSWER = toy(40)
WORDS = WordVectors(
    [f"label_{y}" for y in range(N_LABELS)], np.random.default_rng(0).standard_normal((N_LABELS, 4)).astype(np.float32)
)
SMALL: dict[str, dict[str, Any]] = {
    "wsabie": {"dim": 16, "epochs": 2, "replay": 10},
    "ensemble": {"n": 2},
    "linear": {"epochs": 2},
    "full-rank": {"blend": 2.0},
    "parts": {"dim": 16, "epochs": 2, "relations": [["label 0", "label 3"]], "tables": "unshared"},
    "one-vs-rest": {"scaling": "auto"},
    "devise": {"epochs": 2, "vectors": WORDS},
    "conse": {"vectors": WORDS},
}
GOLDEN = Path(__file__).parents[1] / "golden" / "0.1.0"
PICTURES = ["colour", "textons", "hog", "visual-words,colour"]


def make_folder(name: str, folder: Path) -> None:
    """Write the folder of this name (`FOLDERS`)."""
    if name == "annotator":
        wsabie.load(GOLDEN / "annotator").save(folder)
    elif name in ("space", "space-annotator"):
        space = _space()
        if name == "space":
            space.save(folder)
        else:
            from wsabie.models.entity_space.space_annotator import SpaceAnnotator

            SpaceAnnotator(space, {}, {}, {}).save(folder)
    elif name == "embeddings":
        wsabie.EmbeddingSet([str(i) for i in range(9)], np.ones((9, 4), np.float32)).save(folder)
    elif name == "index":
        _indexed(folder)
    elif name == "checkpoint":
        find_model_class("wsabie")(dim=16, epochs=2, threads=1).fit(X, names(ANSWER), checkpoint=folder)
    elif name.startswith("shards"):
        in_shards(toy_rows(40, dense=name == "shards-dense"), folder)
    elif name.startswith("extractor"):
        extractor_names = name.partition(" ")[2]
        options = {"n_words": 12} if "visual-words" in extractor_names else {}
        options |= {"n_textons": 8} if "textons" in extractor_names else {}
        wsabie.create_extractor(extractor_names, **options).fit(_pictures()).save(folder)
    else:
        kind, _, dense = name.partition(" ")
        rows = X.toarray() if dense else X
        more = {"validation": (rows, names(ANSWER))} if kind in ("wsabie", "linear") else {}
        find_model_class(kind)(**SMALL.get(kind, {})).fit(rows, names(ANSWER), **more).save(folder)


def _space() -> Any:
    pairs = [(f"a{i}", f"b{i % 3}") for i in range(12)]
    items = wsabie.EntityKind("item", X[:12], [f"a{i}" for i in range(12)])
    return wsabie.Space(dim=4, epochs=1, threads=1).fit([wsabie.Relation(items, "tag", pairs)])


def _pictures() -> ItemList:
    answers = json.loads((GOLDEN / "answers.json").read_text("utf-8"))
    import base64

    contents = [base64.b64decode(picture) for picture in answers["pictures"]] * 4
    return ItemList(Path("pictures"), [Item(str(n), content, ("a",)) for n, content in enumerate(contents)])


def _indexed(folder: Path) -> None:
    from wsabie.models.index_files import index_labels

    rng = np.random.default_rng(0)
    labels = np.arange(1200)
    rows = rng.standard_normal((1200, 6)).astype(np.float32)
    model = wsabie.Wsabie(dim=8, epochs=1, threads=1).fit(rows, labels)
    model.save(folder)
    index_labels(model, kind="tree", folder=folder)


def use_folder(name: str, folder: Path) -> None:
    """Open a folder and ask it what people ask."""
    if name == "checkpoint":
        find_model_class("wsabie")(dim=16, epochs=2, threads=1).fit(X, names(ANSWER), checkpoint=folder, resume=True)
    elif name.startswith("shards"):
        _use_shards(folder)
    elif name.startswith("extractor"):
        extractor = load_extractor(folder)
        extractor.fingerprint()
        extractor.transform(_pictures())
    elif name == "embeddings":
        embeddings = wsabie.EmbeddingSet.load(folder)
        wsabie.find_top_k(np.ones((1, 4), np.float32), embeddings.vectors, 3)
        json.dumps(embeddings.ids)
    else:
        model = wsabie.load(folder)
        if name in ("space", "space-annotator"):
            _use_space(getattr(model, "space", model))
        else:
            _use_model(model)
    if name not in ("checkpoint", "embeddings") and not name.startswith("extractor"):
        _info(folder)


def _use_space(space: Any) -> None:
    space.rank("item", "tag", None, 2)
    space.annotate("item", "tag", X[:2], 2)
    space.find_similar("tag", space.entity_names("tag")[0], 2)
    json.dumps(space.facts())


def _use_model(loaded: Any) -> None:
    model = getattr(loaded, "model", loaded)
    width = model.n_features_in_
    if width > 10_000:
        return
    rows = X[:3] if width == X.shape[1] else csr_matrix(np.eye(width, dtype=np.float32)[:3])
    inner = getattr(model, "joined_", getattr(model, "embedding_", getattr(model, "classifier_", model)))
    if hasattr(inner, "scaling_") and len(inner.scaling_.shift):
        rows = rows.toarray()
    model.rank(rows, 3)
    model.annotate(rows, 2)
    model.scores(rows)
    if hasattr(model, "transform"):
        model.transform(rows)
    if hasattr(model, "predict_proba"):
        model.predict_proba(rows)
    for ask in (lambda: model.neighbours(0, 2), lambda: model.label_vectors.sum()):
        try:
            ask()
        except WsabieError as error:
            refused = str(error)
            assert refused
    if getattr(loaded, "extractor", None) is not None:
        loaded.extractor.fingerprint()
        loaded.rows(_pictures())
    if hasattr(model, "replay_buffer_") and model.replay_buffer_ is not None:
        model.partial_fit(rows, ["label_0"] * rows.shape[0], epochs=1)


def _use_shards(folder: Path) -> None:
    rows = wsabie.open_shards(folder)
    rows.compute_label_statistics()
    rows.load()
    json.dumps(rows.identity)
    wsabie.Wsabie(dim=4, epochs=1, threads=1).fit(rows)


def _info(folder: Path) -> None:
    """Print `wsabie info` twice."""
    from wsabie.cli.models.info import InfoOptions, info
    from wsabie.io.shards.shard_folder import is_shard_folder

    for as_json in (False, True):
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            info(InfoOptions(model=folder, epochs=not is_shard_folder(folder), json=as_json))


FOLDERS = [*KINDS, "wsabie dense", "nearest dense", "approximate-nearest dense", "annotator", "space"]
FOLDERS += ["space-annotator", "embeddings", "index", "checkpoint", "shards", "shards-dense"]
FOLDERS += [f"extractor {extractor_names}" for extractor_names in PICTURES]


def write_folder(name: str) -> None:
    """Write the folder `m`, and its name beside it."""
    make_folder(name, Path("m"))
    Path("name").write_text(name)


def use_written_folder(folder: Path) -> None:
    """Use the folder that `write_folder` wrote."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        use_folder(Path("name").read_text(), folder)
