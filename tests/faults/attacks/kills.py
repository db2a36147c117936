"""Commands that write are killed before the n-th thing that they do to the disk; the same command again completes."""

import hashlib
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from sqlalchemy import select
from tests.faults import states
from tests.faults.attacks.attack import Case, Fault, Outcome
from tests.faults.fork_server import Result
from tests.faults.lab import Lab, count_names, faults_of, hash_files, list_drafts, refusal_of, require_success
from tests.faults.truth import assert_sound

from wsabie.collection.db import tables
from wsabie.collection.db.database import begin_read
from wsabie.collection.folder.collection import open_collection
from wsabie.core.errors import WsabieError

NAME = "kills"
TRIES = 6
"""Moments of each command in the full version."""
OPTIONS = ("--resume", "--overwrite", "--restart", "--restart")
"""What a command may name as the way to complete."""


@dataclass(frozen=True)
class Scenario:
    """A command, the state that it begins with, the paths that it may change, and how to see that they are usable."""

    build: Callable[[Lab, Path], None]
    words: str
    changes: tuple[str, ...] = ()
    look: str = ""
    call: str = ""
    pixels: bool = False
    quick: bool = False

    def run(self, lab: Lab, folder: Path, *more: str, **settings: Any) -> Result:
        """Run the command in a folder."""
        return lab.run(folder, *self.words.split(), *more, call=self.call, **settings)


_QUICK = " ".join(states.QUICK)
_STATUS = "collection status photos"
_SAVING = "tests.faults.states:train_and_save"


def _on_collection(build: Callable[[Lab, Path], None], words: str, *changes: str, **settings: Any) -> Scenario:
    group, name, *more = words.split()
    return Scenario(build, " ".join([group, name, "photos", *more]), changes, _STATUS, **settings)


SCENARIOS = (
    Scenario(states.pictures, "collection init photos --by eve", quick=True),
    _on_collection(states.collection, "collection scan --rehash --by eve"),
    _on_collection(states.collection, "collection add more --by eve"),
    _on_collection(states.collection, "collection tag 4 5 6 --accept new --reject mine --by eve", quick=True),
    _on_collection(states.collection, "collection import tags.csv --by eve"),
    _on_collection(states.trained_collection, f"collection train --from-scratch --by eve {_QUICK}"),
    _on_collection(states.trained_collection, "collection apply --all-items --by eve --threads 1"),
    _on_collection(states.collection, "collection undo 2 --by eve"),
    _on_collection(states.collection, "collection labels rename mine his --by eve"),
    _on_collection(states.collection, "collection labels merge mine yours --by eve"),
    _on_collection(states.collection, "collection labels delete mine --with-tags --by eve"),
    _on_collection(states.collection, "collection labels synonym mine meins --by eve"),
    _on_collection(states.collection_with_two_models, "collection models --use 1 --by eve"),
    _on_collection(states.collection_with_two_models, "collection models --keep 1 --by eve"),
    _on_collection(states.collection_with_many_models, "collection index"),
    _on_collection(states.trained_collection, "collection search mine --out s.png", "s.png"),
    _on_collection(states.collection, "collection export out.csv", "out.csv"),
    _on_collection(states.collection, "collection export out.jsonl", "out.jsonl"),
    _on_collection(states.collection, "collection export out.json --pictures copy", "out.json"),
    _on_collection(states.exported, "collection export out.json --overwrite", "out.json"),
    _on_collection(states.collection, "collection export out --as imagefolder", "out", quick=True),
    _on_collection(states.collection, "collection export out --as imagefolder --pictures hardlink", "out"),
    _on_collection(states.exported, "collection export out.csv --overwrite", "out.csv"),
    _on_collection(states.collection, "collection export out --as xmp", "out"),
    _on_collection(states.collection, "collection export --as xmp --beside-originals"),
    _on_collection(states.collection, "collection export --as xmp --into-originals", pixels=True, quick=True),
    _on_collection(states.trained_collection, "collection map --out map.csv", "map.csv"),
    _on_collection(states.collection, "collection backup"),
    _on_collection(states.collection, "collection backup --out b.db", "b.db"),
    _on_collection(states.backed_up, "collection restore b.db"),
    Scenario(states.rows, f"train rows.txt --model m {_QUICK}", ("m",), call=_SAVING),
    Scenario(states.model, f"train rows.txt --model m {_QUICK}", ("m",), "info m", call=_SAVING),
    Scenario(
        states.stopped,
        "train rows.txt --model m --epochs 40 --dim 8 --threads 1 --resume",
        ("m", "m.training"),
        call=_SAVING,
    ),
    Scenario(states.rows, "train rows.txt --model m --kind nearest", ("m",)),
    Scenario(states.rows, "shards rows.txt --out s --rows 40", ("s",), quick=True),
    Scenario(states.shards, f"train s --model m {_QUICK}", ("m",), call=_SAVING),
    Scenario(states.rows, "split rows.txt --out parts", ("parts",)),
    Scenario(states.shards, "split s --out parts", ("parts",)),
    Scenario(states.space, "split space.toml --out parts", ("parts",)),
    Scenario(states.rows, "features text documents.jsonl --out f.parquet", ("f.parquet",)),
    Scenario(states.pictures, "features images photos --out f.parquet --n-words 20", ("f.parquet",)),
    Scenario(states.model, "update m more.txt --step 10 --threads 1", ("m",), "info m"),
    Scenario(states.model, "edit m rename l0 zero", ("m",), "info m"),
    Scenario(states.model, "edit m merge l0 l1", ("m",), "info m"),
    Scenario(states.wide_model, "index m --kind int8 --threads 1", ("m",), "info m"),
    Scenario(states.model, "export m m.onnx --as onnx", ("m.onnx",), "info m"),
    Scenario(states.model, "export m hf --as huggingface", ("hf",), "info m"),
    Scenario(states.model, "export m np --as numpy", ("np",), "info m"),
    Scenario(states.model, "export m half --as half", ("half",), "info m"),
    Scenario(states.model, "annotate m more.txt --out a.jsonl --threads 1", ("a.jsonl",), "info m"),
    Scenario(states.model, "annotate m more.txt --out a.parquet --threads 1", ("a.parquet",), "info m"),
    Scenario(states.rows, "tune rows.txt --out t --trials 2 --set epochs=2 --set dim=8 --threads 1", ("t",)),
    Scenario(states.rows, "compare rows.txt --models wsabie,popularity --report c.html --threads 1", ("c.html",)),
    Scenario(states.rows, "vectors train text.txt --out v.vec --dim 4", ("v.vec",)),
    Scenario(states.rows, "labels match --labels labels.txt --knowledge kinds.tsv --out match.tsv", ("match.tsv",)),
    Scenario(states.rows, "pairs from-listeners plays.tsv --out pairs.tsv --min-listeners 1", ("pairs.tsv",)),
    Scenario(states.rows, "hierarchy from-text text.txt --out is-a.tsv", ("is-a.tsv",)),
    Scenario(states.rows, "token tokens eve", ("tokens",), quick=True),
    Scenario(states.rows, "demo --part documents --out d --threads 1", ("d",)),
)


def make_cases(seed: int, *, short: bool) -> list[Case]:
    """Return moments of every command: the first, the last, and some between; with `short` one of a few commands."""
    chance, tries = random.Random(seed), 1 if short else TRIES  # noqa: S311 - when to kill
    cases = []
    for scenario in [candidate for candidate in SCENARIOS if candidate.quick or not short]:
        edges = [0.0, 1.0] if tries > 1 else []
        moments = edges + [(n + chance.random()) / (tries - len(edges)) for n in range(tries - len(edges))]
        for number, moment in enumerate(moments):
            name = f"{scenario.words} at {moment:.3f}"
            cases.append(Case(name, _try_of(scenario, moment, tear=number % 2 == 1)))
    return cases


def _try_of(scenario: Scenario, moment: float, *, tear: bool) -> Callable[[Lab], Outcome]:
    return lambda lab: kill_once(lab, scenario, moment, tear=tear)


class Trial:
    """One try of a command in a folder: what was there before, and what must hold when it was disturbed."""

    def __init__(self, lab: Lab, scenario: Scenario) -> None:
        self.lab, self.scenario, self.memory = lab, scenario, 0
        name = f"reference {scenario.words} {scenario.build.__name__}"
        self.events, self.names = lab.keep(name, self._run_undisturbed)

    def _run_undisturbed(self) -> tuple[int, Counter[str]]:
        """Run the command undisturbed; return its number of events and the names of files afterwards."""
        with self.lab.copy(self.scenario.build) as folder:
            add_picture(folder)
            result = self.scenario.run(self.lab, folder)
            return require_success(result).events, count_names(folder)

    def begin(self, folder: Path) -> None:
        """Remember what is there."""
        self.folder = folder
        add_picture(folder)
        self.inputs_before, self.lines = self._inputs(), _lines(folder)

    def finish(self, moment: str) -> list[Fault]:
        """Look at what was left, give the command again, and look once more."""
        faults = self._losses(moment)
        if self.scenario.look:
            faults += self._look(moment)
        again, more, option = self._again()
        words = f"the same command again {option}".strip()
        faults += more or faults_of(again, "the same command again")
        if again.code and not again.traceback and (option or not self._is_complete(again)):
            faults.append(Fault("unusable", f"{words}: {_last(again)}"))
        return faults + self._losses("after the same command again") + self._remains()

    def _look(self, moment: str) -> list[Fault]:
        words = self.scenario.look
        result = self._measured(self.lab.run(self.folder, *words.split()))
        faults = faults_of(result, f"{words} {moment}")
        if result.code and not faults:
            faults.append(Fault("unusable", f"{words} {moment}: {_last(result)}"))
        return faults

    def _again(self) -> tuple[Result, list[Fault], str]:
        """Give the command again, and once more with an option that its message names."""
        result = self._measured(self.scenario.run(self.lab, self.folder))
        text = refusal_of(result)
        option = next((word for word in OPTIONS if word in text and word not in self.scenario.words), "")
        if not option or result.traceback:
            return result, [], ""
        again = self._measured(self.scenario.run(self.lab, self.folder, option))
        return again, faults_of(result, "the same command again"), option

    def _measured(self, result: Result) -> Result:
        self.memory = max(self.memory, result.memory)
        return result

    def _is_complete(self, again: Result) -> bool:
        """Return True if the disturbed command had ended, so that its output is there and is not replaced."""
        refused = bool(refusal_of(again)) and "--resume" not in self.scenario.words
        return refused and not self.names - count_names(self.folder)

    def _inputs(self) -> dict[str, str]:
        if not self.scenario.pixels:
            return hash_files(self.folder, without=(".wsabie", *self.scenario.changes))
        files = sorted((self.folder / "photos").glob("[0-9]*.*"))
        return {path.name: _hash_pixels(path) for path in files if path.suffix != ".xmp"}

    def _losses(self, moment: str) -> list[Fault]:
        now = self._inputs()
        faults = [
            Fault("lost", f"{name} is {'gone' if name not in now else 'changed'} {moment}")
            for name, content in self.inputs_before.items()
            if now.get(name) != content
        ]
        if self.lines:
            try:
                with open_collection(self.folder / "photos") as collection:
                    assert_sound(collection)
                if missing := self.lines - _lines(self.folder):
                    faults.append(Fault("lost", f"{len(missing)} lines of the journal are gone {moment}"))
            except (AssertionError, WsabieError) as error:
                faults.append(Fault("lost", f"the database is not sound {moment}: {str(error)[:300]}"))
        return faults

    def _remains(self) -> list[Fault]:
        """Return faults for files that remain when the command has been completed."""
        faults = [Fault("unusable", f"a draft remains: {name}") for name in list_drafts(self.folder)]
        unknown_names = [name for name in count_names(self.folder) - self.names if ".tmp" not in name]
        unknown_names = [
            name for name in unknown_names if "/tensors/" not in name
        ]  # the next save of a model removes these
        faults += [Fault("unusable", f"{name} remains, which no command names") for name in unknown_names]
        if (self.folder / "photos" / ".wsabie" / "models").exists():
            with open_collection(self.folder / "photos") as collection, begin_read(collection.engine) as connection:
                c = tables.models.c
                catalogue_folders = set(connection.execute(select(c.folder).where(~c.is_removed)).scalars())
                disk_folders = {path.name for path in collection.models.iterdir() if ".tmp" not in path.name}
                if disk_folders != catalogue_folders:
                    faults.append(
                        Fault(
                            "unusable",
                            f"models of the catalogue and of the disk differ: {disk_folders ^ catalogue_folders}",
                        )
                    )
        return faults


def add_picture(folder: Path) -> None:
    """Add a folder with one more picture beside a collection."""
    if (folder / "photos").exists():
        (folder / "more").mkdir()
        (folder / "more" / "new.webp").write_bytes((folder / "photos" / "00.webp").read_bytes() + b" ")


def kill_once(lab: Lab, scenario: Scenario, moment: float, *, tear: bool) -> Outcome:
    """Kill a command at a share of its events, and look at what is there before and after the same command again."""
    trial = Trial(lab, scenario)
    with lab.copy(scenario.build) as folder:
        trial.begin(folder)
        at = 1 + round(moment * max(0, trial.events - 1))
        killed = scenario.run(lab, folder, kill_at=at, tear=tear)
        faults = faults_of(killed, "the command") + trial.finish("after the kill")
        faults = [Fault(fault.kind, f"killed at event {at} of {trial.events}: {fault.message}") for fault in faults]
        return Outcome(tuple(faults), max(killed.memory, trial.memory))


def _hash_pixels(path: Path) -> str:
    try:
        with Image.open(path) as image:
            return hashlib.sha256(np.asarray(image.convert("RGBA")).tobytes()).hexdigest()
    except OSError as error:
        return str(error)


def _lines(folder: Path) -> set[tuple[Any, ...]]:
    """The journal: what was acknowledged before."""
    if not (folder / "photos" / ".wsabie" / "catalogue.db").exists():
        return set()
    c = tables.journal.c
    with open_collection(folder / "photos") as collection, begin_read(collection.engine) as connection:
        return {tuple(row) for row in connection.execute(select(c.id, c.by, c.action, c.summary))}


def _last(result: Result) -> str:
    return f"exit {result.code}: {' '.join(result.err.strip().splitlines()[-2:])[-300:]}"
