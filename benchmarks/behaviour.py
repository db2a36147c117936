"""Behaviour that renames must keep: `python -m benchmarks.behaviour record FILE`, then `compare FILE`.

Records the bits of models that are trained with fixed seeds, the JSON of every command on small data, the OpenAPI
document of both services, and the speed of search and training against the product of BLAS and the machine's ceiling.
`compare` lists what differs and what is slower, and ends with 1 if anything is.
"""

import argparse
import hashlib
import json
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from tests.faults.attacks.bad_names import LINES, Workbench, call, list_commands

import wsabie
from benchmarks import topk, training_rate, visterm_task
from wsabie.core.json_conversion import to_json_value

SIMILARITIES = ("dot", "euclidean", "cosine")
_CLOCK = re.compile(
    "second|_ms|rate|_at$|^at$|made|created|date|started|ended|bytes|hash|machine|version|speed|^token$"
)
"""Keys whose values differ from run to run."""
RENAMED_KEYS: dict[str, list[str]] = json.loads(Path(__file__).with_name("renamed_keys.json").read_text())
"""Keys of JSON before the first release, and their names since."""
_STAMP = re.compile(r"\d{8}T\d{6}\.\d{6}Z|\d{8}-\d{6}-[0-9a-f]{6}")
_N, _WIDTH, _LABELS = 300, 40, 12
MIN_SPEED = 0.95
"""Least share of an earlier ratio of speed."""


def main() -> int:
    """Record or compare; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.behaviour", description=__doc__)
    parser.add_argument("action", choices=("record", "compare"))
    parser.add_argument("file", type=Path)
    options = parser.parse_args()
    now = json.loads(json.dumps(record()))
    if options.action == "record":
        options.file.write_text(json.dumps(now, indent=1, sort_keys=True) + "\n")
        return 0
    earlier = json.loads(options.file.read_text())
    slower = list(compare_speed(earlier.pop("speed", {}), now.pop("speed")))
    differences = [*compare(earlier, now), *slower]
    print("\n".join(differences) or "nothing differs")
    return int(bool(differences))


def record() -> dict[str, Any]:
    """Return all that is compared, JSON-able."""
    return {
        "models": dict(record_models()),
        "commands": dict(record_commands()),
        "api": record_api(),
        "speed": record_speed(),
    }


def record_models() -> Iterator[tuple[str, str]]:
    """Yield the name of each kind of model and a checksum of what it computes."""
    rng = np.random.default_rng(0)
    dense = rng.random((_N, _WIDTH)).astype(np.float32) * (rng.random((_N, _WIDTH)) < 0.2)
    labels = sp.csr_matrix((rng.random((_N, _LABELS)) < 0.15).astype(np.int8))
    for form, rows in (("sparse", sp.csr_matrix(dense)), ("dense", dense)):
        for similarity in SIMILARITIES:
            for loss in ("warp", "auc"):
                model = wsabie.Wsabie(dim=8, epochs=3, threads=1, seed=3, similarity=similarity, loss=loss)
                yield f"{form} {similarity} {loss}", _bits_of(model.fit(rows, labels), rows)
    rows = sp.csr_matrix(dense)
    for name in ("LinearRanker", "NearestNeighbours", "OneVsRest", "Popularity", "Softmax", "FullRank"):
        kind = getattr(wsabie, name, None)
        if kind is not None:
            parameters = {"epochs": 3, "threads": 1, "seed": 3, "blend": 0.5}
            model = kind(**{key: value for key, value in parameters.items() if key in kind().get_params()})
            yield name, _bits_of(model.fit(rows, labels), rows)
    pairs = [(f"{i}", f"{j}") for i in range(_LABELS) for j in range(i)]
    parts = wsabie.ObjectParts(pairs, dim=8, epochs=3, threads=1, seed=3)
    yield "parts", _bits_of(parts.fit(rows, labels, label_names=[f"{i}" for i in range(_LABELS)]), rows)
    space = wsabie.Space(dim=8, epochs=3, threads=1, seed=3).fit([wsabie.Relation("one", "other", pairs)])
    yield "space", _digest(np.concatenate([np.ravel(part) for part in space.rank("one", "other", None, 3)]))


def _bits_of(model: Any, rows: Any) -> str:
    arrays = [model.scores(rows), *model.rank(rows, 5)]
    if isinstance(model, wsabie.Wsabie):
        arrays += [model.transform(rows), model.label_vectors]
    return _digest(*arrays)


def _digest(*arrays: Any) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]


def record_commands() -> Iterator[tuple[str, Any]]:
    """Yield the words of each command that prints JSON, and its document without times, sizes and places."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        bench = Workbench(folder)
        try:
            for command, content in list_commands():
                if "--json" in {option for flag in content.params for option in flag.opts} and command != "serve":
                    new = folder / f"new {command}"
                    new.mkdir()
                    (new / "folder").mkdir()
                    copy = shutil.copytree(bench.places["model"], new / "copy")
                    places = {**bench.places, "new": str(new), "folder": str(new / "folder"), "copy": str(copy)}
                    words = [word.format_map(places) for word in LINES[command].split()]
                    code, text = call([*command.split(), *words, "--json"], folder / "log", new)
                    yield command, {"code": code, "documents": _documents(text, place)}
        finally:
            bench.close()


def _documents(text: str, place: str) -> list[Any]:
    lines = [line for line in _STAMP.sub("STAMP", text.replace(place, "")).splitlines() if line.startswith(("{", "["))]
    return [_without_times(json.loads(line)) for line in lines]


def _without_times(value: Any) -> Any:
    """The same with the types alone of what differs from run to run."""
    if isinstance(value, Mapping):
        return {
            key: type(content).__name__
            if _CLOCK.search(key) and not isinstance(content, dict | list)
            else _without_times(content)
            for key, content in value.items()
        }
    if isinstance(value, list):
        return [_without_times(content) for content in value]
    return f"{value:.6g}" if isinstance(value, float) else to_json_value(value)


def record_api() -> dict[str, Any]:
    """Return the OpenAPI documents of a collection's service and of a model's."""
    from wsabie.collection.folder.collection import create_collection, open_collection
    from wsabie.server.limits.request_limits import ServiceLimits
    from wsabie.server.model_holder import CollectionModelHolder, FolderModelHolder
    from wsabie.server.service_context import ServiceContext

    with tempfile.TemporaryDirectory() as place:
        create_collection(Path(place)).close()
        with open_collection(Path(place)) as collection:
            of_collection = ServiceContext(ServiceLimits(), None, CollectionModelHolder(collection), collection)
            model = wsabie.Wsabie(dim=2, epochs=1).fit(np.eye(2, dtype=np.float32), ["0", "1"])
            wsabie.Annotator(model).save(Path(place, "model"))
            of_model = ServiceContext(ServiceLimits(), None, FolderModelHolder(Path(place, "model")))
            return {"collection": _document_of(of_collection), "model": _document_of(of_model)}


def _document_of(context: Any) -> Any:
    from starlette.testclient import TestClient

    from wsabie.server.app import make_app

    with TestClient(make_app(context), base_url="http://localhost") as client:
        return client.get("/openapi.json").json()


def record_speed() -> dict[str, float]:
    """Return rates relative to a peer or a ceiling of the same minute, so that machines and load hardly matter."""
    rng = np.random.default_rng(0)
    table, queries = (rng.normal(size=(n, topk.DIM)).astype(np.float32) for n in (topk.N_LABELS, topk.ROWS))
    search, task = topk.measure(table, queries, threads=1), visterm_task.load("tiny")
    return {
        "search of many rows / product": search["product_ms"] / search["search_ms"],
        "search of one row / product": search["one_product_us"] / search["one_search_us"],
        **training_rate.measure(task.X, task.y)["ratios"],
    }


def compare_speed(earlier: Mapping[str, float], now: Mapping[str, float]) -> Iterator[str]:
    """Yield a line for each ratio below `MIN_SPEED` of the earlier one."""
    for name, ratio in earlier.items():
        if now[name] < MIN_SPEED * ratio:
            yield f"/speed/{name}: {now[name]:.3f} is below {MIN_SPEED} of {ratio:.3f}"


def compare(earlier: Any, now: Any, place: str = "") -> Iterator[str]:
    """Yield a line for each difference but for keys that `renamed_keys.json` lists."""
    if isinstance(earlier, dict) and isinstance(now, dict):
        pairs = {key: _find_key(key, earlier, now) for key in earlier}
        for key, new_key in sorted(pairs.items()):
            if new_key is None:
                yield f"{place}/{key}: is gone"
            else:
                yield from compare(earlier[key], now[new_key], f"{place}/{key}")
        yield from (f"{place}/{key}: is new" for key in sorted(now.keys() - set(pairs.values())))
    elif isinstance(earlier, list) and isinstance(now, list) and len(earlier) == len(now):
        for number, (old, new) in enumerate(zip(earlier, now, strict=True)):
            yield from compare(old, new, f"{place}/{number}")
    elif earlier != now and not (isinstance(earlier, str) and now in RENAMED_KEYS.get(earlier, ())):
        yield f"{place}: {json.dumps(earlier)[:200]} is now {json.dumps(now)[:200]}"


def _find_key(key: str, earlier: dict[str, Any], now: dict[str, Any]) -> str | None:
    if key in now:
        return key
    return next((new for new in RENAMED_KEYS.get(key, ()) if new in now and new not in earlier), None)


if __name__ == "__main__":
    sys.exit(main())
