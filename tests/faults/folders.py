"""One small folder of each format of ours, and what opens and uses it as people do.

    python -m tests.faults.folders SEED COUNT [NAME ...]

changes each folder COUNT times (`mutations`), and prints by name how often it was refused and each other error.
"""

import json
import resource
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.faults.mutations import mutate_folders

import wsabie
from sharded import in_shards, toy_rows
from toys import N_LABELS, names, toy
from wsabie.base.errors import WsabieError
from wsabie.features.registry import load_describer
from wsabie.labels.vectors import Vectors
from wsabie.models.kinds import KINDS, model_class
from wsabie.sources.records import Item, ItemList

X, Y, ANSWER = toy(40)
WORDS = Vectors(
    [f"label_{y}" for y in range(N_LABELS)],
    np.random.default_rng(0).standard_normal((N_LABELS, 4)).astype(np.float32),
)
SMALL: dict[str, dict[str, Any]] = {
    "wsabie": {"dim": 16, "epochs": 2, "replay": 10},
    "ensemble": {"n": 2},
    "linear": {"epochs": 2},
    "full-rank": {"blend": 2.0},
    "parts": {"dim": 16, "epochs": 2, "relations": [["label 0", "label 3"]], "tables": "unshared"},
    "one-vs-rest": {"rows": "auto"},
    "devise": {"epochs": 2, "vectors": WORDS},
    "conse": {"vectors": WORDS},
}
GOLDEN = Path(__file__).parents[1] / "golden" / "0.1.0"
PICTURES = ["colour", "textons", "hog", "terms,colour"]


def make_folder(name: str, folder: Path) -> None:
    """Write the folder of this name (`FOLDERS`)."""
    if name == "annotator":
        wsabie.load(GOLDEN / "annotator").save(folder)
    elif name in ("space", "space-annotator"):
        space = _space()
        if name == "space":
            space.save(folder)
        else:
            from wsabie.models.space_annotator import SpaceAnnotator

            SpaceAnnotator(space, {}, {}, {}).save(folder)
    elif name == "points":
        wsabie.Encoded([str(i) for i in range(9)], np.ones((9, 4), np.float32)).save(folder)
    elif name == "index":
        _indexed(folder)
    elif name == "checkpoint":
        model_class("wsabie")(dim=16, epochs=2, threads=1).fit(X, names(ANSWER), checkpoint=folder)
    elif name.startswith("shards"):
        in_shards(toy_rows(40, dense=name == "shards-dense"), folder)
    elif name.startswith("describer"):
        described = name.partition(" ")[2]
        options = {"n_terms": 12} if "terms" in described else {}
        options |= {"n_textons": 8} if "textons" in described else {}
        wsabie.describer(described, **options).fit(_pictures()).save(folder)
    else:
        kind, _, dense = name.partition(" ")
        rows = X.toarray() if dense else X
        more = {"validation": (rows, names(ANSWER))} if kind in ("wsabie", "linear") else {}
        model_class(kind)(**SMALL.get(kind, {})).fit(rows, names(ANSWER), **more).save(folder)


def _space() -> Any:
    pairs = [(f"a{i}", f"b{i % 3}") for i in range(12)]
    known = wsabie.Kind("thing", X[:12], [f"a{i}" for i in range(12)])
    return wsabie.Space(dim=4, epochs=1, threads=1).fit([wsabie.Relation(known, "tag", pairs)])


def _pictures() -> ItemList:
    told = json.loads((GOLDEN / "answers.json").read_text("utf-8"))
    import base64

    contents = [base64.b64decode(one) for one in told["pictures"]] * 4
    return ItemList(Path("pictures"), [Item(str(n), content, ("a",)) for n, content in enumerate(contents)])


def _indexed(folder: Path) -> None:
    from wsabie.models.indexed import index_labels

    rng = np.random.default_rng(0)
    labels = np.arange(1200)
    rows = rng.standard_normal((1200, 6)).astype(np.float32)
    model = wsabie.Wsabie(dim=8, epochs=1, threads=1).fit(rows, labels)
    model.save(folder)
    index_labels(model, kind="tree", folder=folder)


def use_folder(name: str, folder: Path) -> None:
    """Open a folder and ask it what people ask."""
    if name == "checkpoint":
        model_class("wsabie")(dim=16, epochs=2, threads=1).fit(X, names(ANSWER), checkpoint=folder, resume=True)
    elif name.startswith("shards"):
        _use_shards(folder)
    elif name.startswith("describer"):
        describer = load_describer(folder)
        describer.fingerprint()
        describer.transform(_pictures())
    elif name == "points":
        points = wsabie.Encoded.load(folder)
        wsabie.top_k(np.ones((1, 4), np.float32), points.points, 3)
        json.dumps(points.ids)
    else:
        model = wsabie.load(folder)
        if name in ("space", "space-annotator"):
            _use_space(getattr(model, "space", model))
        else:
            _use_model(model)
    if name not in ("checkpoint", "points") and not name.startswith("describer"):
        _info(folder)


def _use_space(space: Any) -> None:
    space.rank("thing", "tag", None, 2)
    space.annotate("thing", "tag", X[:2], 2)
    space.similar("tag", space.things("tag")[0], 2)
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
    if getattr(loaded, "terms", None) is not None:
        loaded.terms.fingerprint()
        loaded.rows(_pictures())
    if hasattr(model, "memory_") and model.memory_ is not None:
        model.partial_fit(rows, ["label_0"] * rows.shape[0], epochs=1)


def _use_shards(folder: Path) -> None:
    rows = wsabie.open_shards(folder)
    rows.truth()
    rows.whole()
    json.dumps(rows.identity)
    wsabie.Wsabie(dim=4, epochs=1, threads=1).fit(rows)


def _info(folder: Path) -> None:
    """As `wsabie info` prints it, twice."""
    from wsabie.faces.cli.commands import info
    from wsabie.storage.shards import is_shard_folder

    for as_json in (False, True):
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            info(folder, epochs=not is_shard_folder(folder), verify=False, json=as_json)


FOLDERS = [*KINDS, "wsabie dense", "nearest dense", "approximate-nearest dense", "annotator", "space"]
FOLDERS += ["space-annotator", "points", "index", "checkpoint", "shards", "shards-dense"]
FOLDERS += [f"describer {described}" for described in PICTURES]


def try_folder(name: str, seed: int, n: int) -> dict[str, Any]:
    """Change a folder n times and use each copy."""
    with tempfile.TemporaryDirectory() as work:
        original = Path(work) / "original"
        make_folder(name, original)
        use_folder(name, original)
        return try_mutations(original, Path(work), seed, n, lambda folder: use_folder(name, folder))


def try_mutations(original: Path, work: Path, seed: int, n: int, use: Callable[[Path], None]) -> dict[str, Any]:
    """Use each changed copy: how many were refused by one sentence, and every other error with its place."""
    refused, odd, sentences = 0, dict[str, str](), set[str]()
    for folder, change in mutate_folders(original, work, seed, n):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                use(folder)
        except WsabieError as error:
            refused += 1
            sentences.add(str(error).replace(str(work), ""))
        except Exception as error:
            frames = [f for f in traceback.extract_tb(error.__traceback__) if "/src/wsabie/" in f.filename]
            places = " < ".join(f"{Path(f.filename).name}:{f.lineno}" for f in reversed(frames[-4:]))
            odd[f"{type(error).__name__}: {error}"[:110] + f" @ {places}"] = change
    return {"tried": n, "refused": refused, "odd": odd, "sentences": sorted(sentences)}


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
    seed, count, chosen = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:] or FOLDERS
    for one in chosen:
        found = try_folder(one, seed, count)
        sentences = found.pop("sentences")
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        print(one, json.dumps(found, indent=1), f"{memory} MB so far", flush=True)
        if count <= 100:
            print(*sentences, sep="\n")
