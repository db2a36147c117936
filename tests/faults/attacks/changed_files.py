"""Files of every format of ours are changed; each is refused in a sentence, or used, by the commands that read it."""

import json
import random
import shutil
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.faults import states
from tests.faults.attacks.attack import Case, Fault, Outcome
from tests.faults.changes.file_changes import change_one_of
from tests.faults.folders import FOLDERS, use_written_folder, write_folder
from tests.faults.lab import Lab, faults_of, require_success

NAME = "changed-files"
BATCH, SHORT_BATCH = 25, 6
"""Changes that one child tries."""
SHORT = ("model", "shards", "tokens")
"""Formats of the short version."""
N_READERS = 2
"""Readers of a changed file, which are drawn."""
MEMORY = 4 << 30


@dataclass(frozen=True)
class Format:
    """Files of one kind: where they are, what reads them, and how many batches of changes are tried."""

    name: str
    build: Callable[[Lab, Path], None]
    place: str
    pattern: str
    readers: tuple[str, ...]
    batches: int = 5


def _folder(name: str) -> Format:
    def build(lab: Lab, folder: Path) -> None:
        require_success(lab.call(folder, write_folder, name))

    build.__name__ = f"folder {name}"
    return Format(build.__name__, build, "m", "**/*.*", ("python use_written_folder m",), 3)


_MODEL = ("info m --json", "annotate m more.txt --threads 1 --json", "python open_service m")
_WORDS = tuple(line.replace("more.txt", "documents.jsonl") for line in _MODEL)
_COLLECTION = (
    "collection status photos --json",
    "collection status photos --check",
    "collection annotations photos",
    "collection labels photos",
    "collection history photos",
    "collection models photos",
    "collection search photos mine",
    "collection tag photos 4 --accept new --by eve",
    "collection undo photos --by eve",
    "collection scan photos --by eve",
    "collection apply photos --all-items --by eve --threads 1",
    "collection export photos out.csv --overwrite",
    "python open_collection_service photos",
)
FORMATS = (
    Format("model", states.model, "m", "**/*.*", _MODEL, 10),
    Format("linear ranker", states.linear_model, "m", "**/*.*", _MODEL),
    Format("neighbours", states.neighbours, "m", "**/*.*", _MODEL),
    Format("ensemble", states.ensemble, "m", "**/*.*", _MODEL),
    Format("classifiers", states.classifiers, "m", "**/*.*", _MODEL),
    Format("model of documents", states.documents_model, "m", "**/*.*", _WORDS),
    Format(
        "model of pictures", states.picture_model, "m", "**/*.*", (_MODEL[0], "annotate m photos --json", _MODEL[2])
    ),
    Format(
        "space",
        states.space,
        "m",
        "**/*.*",
        ("info m --json", "neighbours m l2 --json", "annotate m l2 --json", _MODEL[2]),
    ),
    Format(
        "declaration",
        states.space,
        ".",
        "space.toml",
        ("train space.toml --model n --epochs 2 --dim 8 --threads 1", "split space.toml --out sides"),
        6,
    ),
    Format("index of labels", states.indexed, "m", "index/**/*.*", _MODEL),
    Format("shards", states.shards, "s", "*.*", ("info s --verify --json", "python read_shards s"), 20),
    Format(
        "checkpoint",
        states.stopped,
        "m.training",
        "**/*.*",
        ("train rows.txt --model m --epochs 40 --dim 8 --threads 1 --resume",),
    ),
    Format(
        "trials",
        states.tuned,
        "t",
        "trials.*",
        ("tune rows.txt --out t --trials 2 --set epochs=2 --set dim=8 --threads 1",),
        4,
    ),
    Format("comparison", states.compared, "w", "**/*.*", (f"{states.COMPARE} --resume",), 6),
    Format("settings", states.settings, ".", "c.toml", ("train rows.txt --model m --config c.toml --threads 1",), 8),
    Format("database", states.trained_collection, "photos/.wsabie", "catalogue.db", _COLLECTION, 25),
    Format(
        "collection.json",
        states.trained_collection,
        "photos/.wsabie",
        "collection.json",
        _COLLECTION[:1] + _COLLECTION[7:8],
        6,
    ),
    Format(
        "files of a collection",
        states.trained_collection,
        "photos/.wsabie",
        "[mf]*/**/*.*",
        (*_COLLECTION[5:7], "collection apply photos --all-items --by eve --threads 1", _COLLECTION[-1]),
    ),
    Format("features", states.results, ".", "f.parquet*", ("info f.parquet", "split f.parquet --out parts"), 6),
    Format("word vectors", states.results, ".", "v.vec*", ("vectors info v.vec", "vectors near v.vec toad"), 6),
    Format("tokens", states.token_file, ".", "tokens", ("python read_token_file tokens", "token tokens lilith"), 4),
    *map(_folder, FOLDERS),
)


def make_cases(seed: int, *, short: bool) -> list[Case]:
    """Return batches of changes of each format; with `short` one small batch of a few formats."""
    return [
        Case(
            f"{file_format.name}, batch {number}",
            _batch_of(file_format, seed * 10_000 + number, SHORT_BATCH if short else BATCH),
        )
        for file_format in FORMATS
        if file_format.name in SHORT or not short
        for number in range(1 if short else file_format.batches)
    ]


def _batch_of(file_format: Format, seed: int, size: int) -> Callable[[Lab], Outcome]:
    return lambda lab: try_batch(lab, file_format, seed, size)


def try_batch(lab: Lab, file_format: Format, seed: int, size: int) -> Outcome:
    """Try changes in one child; if it is brought down, the others in a new one."""
    faults, memory, first = [], 0, 0
    with lab.copy(file_format.build) as folder:
        while first < size:
            words = (file_format.name, str(seed), str(first), str(size))
            result = lab.call(folder, try_changes, *words, memory=MEMORY, seconds=600.0)
            memory = max(memory, result.memory)
            report = json.loads((folder / "report.json").read_text())
            faults += [Fault("traceback", text) for text in report["faults"]]
            if report["next"] == first:
                raise AssertionError(f"{file_format.name}: exit {result.code} {result.err[-2000:]}")
            first = report["next"]
            faults += [Fault(fault.kind, report["change"]) for fault in faults_of(result, f"{report['change']}")]
            if result.code == 0 and first < size:
                raise AssertionError(result.err[-2000:])
    return Outcome(tuple(faults), memory, size)


def try_changes(name: str, seed: str, first: str, last: str) -> None:
    """Change files one after the other in this process, and let everything read them that does."""
    file_format = next(file_format for file_format in FORMATS if file_format.name == name)
    saved, faults = Path("saved"), list[str]()
    if not saved.exists():
        shutil.copytree(file_format.place, saved, ignore=shutil.ignore_patterns("saved"))
    for number in range(int(first), int(last)):
        _restore(saved, Path(file_format.place))
        chance = random.Random(f"{seed} {name} {number}")  # noqa: S311
        change = f"{name} {number}: {change_one_of(chance, Path(file_format.place), file_format.pattern)}"
        for line in chance.sample(file_format.readers, min(N_READERS, len(file_format.readers))):
            _report(faults, number + 1, f"{line}: {change}")
            try:
                _carry_out(line.split())
            except Exception:
                faults.append(f"{line}: {change}: {traceback.format_exc().strip().splitlines()[-1][:200]}")
    _report(faults, int(last), "")


def _report(faults: list[str], following: int, change: str) -> None:
    Path("report.json").write_text(json.dumps({"faults": faults, "next": following, "change": change}))


def _restore(saved: Path, place: Path) -> None:
    """Put everything back as it was."""
    if place == Path():
        for file in saved.iterdir():
            if file.is_file() and file.name != "report.json":
                shutil.copy2(file, place / file.name)
    else:
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(saved, place)


def _carry_out(words: list[str]) -> None:
    """Run a command in this process; a refusal is as good as a result."""
    from wsabie.cli.main import run
    from wsabie.core.errors import WsabieError

    if words[0] == "python":
        try:
            READERS[words[1]](Path(words[2]))
        except WsabieError:
            return
        return
    sys.argv = ["wsabie", *words]
    try:
        run()
    except SystemExit as stop:
        if stop.code not in (None, 0, 1, 2):
            raise AssertionError(f"exit {stop.code}") from stop


def open_service(path: Path) -> None:
    """Open a model as the service does, and show what it would of it."""
    from wsabie.server.model_holder import FolderModelHolder

    version = FolderModelHolder(path).get_version()
    assert version.names


def open_collection_service(path: Path) -> None:
    """Open a collection and its model as the service does, and ask for what its pages ask for."""
    from starlette.testclient import TestClient

    from wsabie.collection.folder.collection import open_collection
    from wsabie.server.app import make_app
    from wsabie.server.limits.request_limits import ServiceLimits
    from wsabie.server.model_holder import CollectionModelHolder
    from wsabie.server.service_context import ServiceContext

    with open_collection(path) as collection:
        context = ServiceContext(ServiceLimits(), None, CollectionModelHolder(collection), collection)
        with TestClient(make_app(context), raise_server_exceptions=False, base_url="http://localhost") as client:
            for place in ("info", "items?k=5", "items/1", "labels", "history", "jobs", "models"):
                answer = client.get(f"/api/v1/{place}")
                assert answer.status_code != 500, f"GET {place}: {answer.status_code} {answer.text[:200]}"


def read_shards(path: Path) -> None:
    """Read all rows of shards."""
    from wsabie.io.shards.sharded_table import open_shards

    open_shards(path).load()


def read_token_file(path: Path) -> None:
    """Read tokens as the service does."""
    from wsabie.server.tokens import read_tokens

    read_tokens(path)


READERS: dict[str, Callable[[Path], None]] = {
    function.__name__: function
    for function in (open_service, open_collection_service, read_shards, read_token_file, use_written_folder)
}
