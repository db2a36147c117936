"""Server, worker, trainer, scanner and a command are killed under load, and nothing that was acknowledged is lost.

`make soak` kills 50 times; as a test among others it kills a few times. `WSABIE_SOAK_SEED` draws other moments.
"""

import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

from tests.faults.clients import LABELS, Client, JobClient
from tests.faults.conftest import Made, emoji
from tests.faults.editor import EDITOR, STEPS, line_of
from tests.faults.service import PATIENCE, Service, kill
from tests.faults.truth import assert_no_drafts, assert_sound, count, leftovers, lines_of, states

from wsabie.catalogue import jobs, tables
from wsabie.catalogue.collection import Collection, open_collection
from wsabie.catalogue.shelf import open_model
from wsabie.catalogue.tagging import tag
from wsabie.faces.serve.tokens import new_token

KILLS = int(os.environ.get("WSABIE_SOAK_KILLS", "3"))
SEED = int(os.environ.get("WSABIE_SOAK_SEED", "0"))
NAMES = ("eve", "adam", "lilith")
VICTIMS = ("job", "server", "editor", "worker", "all")


class Editing:
    """The editor's process, and what it said was done."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.acknowledged, self.kills = folder, list[tuple[int, int]](), 0
        self.start()

    def start(self) -> None:
        first = self.acknowledged[-1][0] + 2 if self.acknowledged else 0
        command = [sys.executable, "-m", "tests.faults.editor", str(self.folder), str(first + 2 * self.kills)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            number, step = line.split()
            self.acknowledged.append((int(number), int(step)))

    def kill(self) -> None:
        self.process.kill()
        self.reader.join()
        self.process.wait()
        self.kills += 1


class Soak:
    """All who take part, and the kills."""

    def __init__(self, folder: Path, place: Path) -> None:
        self.folder, self.chance = folder, random.Random(SEED)  # noqa: S311 - when to kill
        tokens = {name: new_token(place / "tokens", name, "write") for name in (*NAMES, "jobs")}
        with open_collection(folder) as collection:
            tag(collection, [1], accept=LABELS, by="god")
        begun = time.monotonic()
        self.service = Service(folder, place / "log", "--tokens", str(place / "tokens"))
        self.pace = max(
            1.0, (time.monotonic() - begun) / 4 if KILLS >= 10 else 0.0
        )  # of this machine, as busy as it is
        self.clients = [
            Client(self.service.address, tokens[name], random.Random(f"{SEED} {name}"), range(2 + i, 120, 3), folder / "000.webp")  # noqa: E501, S311
            for i, name in enumerate(NAMES)
        ]  # fmt: skip
        new = [row["image"] for row in emoji(600, 40)]
        self.jobs = JobClient(self.service.address, tokens["jobs"], self.chance, folder, new)  # type: ignore[arg-type]
        self.editing = Editing(folder)
        self.killed: Counter[str] = Counter()

    def run(self, kills: int) -> None:
        for one in (*self.clients, self.jobs):
            one.start()
        for number in range(kills):
            self.kill(VICTIMS[number % len(VICTIMS)] if kills < 10 else self.chance.choice(VICTIMS))
            self.service.wait()
            assert [one.wrong for one in (*self.clients, self.jobs)] == [[]] * 4
        time.sleep(1)
        for one in (*self.clients, self.jobs):
            one.finish()
        self.editing.kill()

    def kill(self, victim: str) -> None:
        time.sleep(self.pace * self.chance.uniform(0.1, 1.5))
        if victim == "job":
            until = time.monotonic() + PATIENCE
            while not self.service.jobs() and time.monotonic() < until:
                time.sleep(0.05)
            time.sleep(self.pace * self.chance.uniform(0.0, 3.0))  # it scans, learns, or writes down
            killed = [kill(pid) for pid in self.service.jobs()]
            victim += "" if any(killed) else ", too late"
        elif victim == "worker":
            kill(self.chance.choice(self.service.workers()))
        elif victim == "editor":
            self.editing.kill()
            self.editing.start()
        else:
            if victim == "all":
                self.service.kill_all()
            kill(self.service.process.pid)
            self.service.start_again()
        self.killed[victim] += 1

    def judge(self, collection: Collection) -> None:
        """Everything that was acknowledged is there, once, and nothing else."""
        assert [one.wrong for one in (*self.clients, self.jobs)] == [[]] * 4
        expected = {pair: state for one in self.clients for pair, state in one.states.items() if state is not None}
        found = states(collection, LABELS)
        assert {pair: state for pair, state in found.items() if pair[0] != 1} == expected
        for one, name in zip(self.clients, NAMES, strict=True):
            assert lines_of(collection, name).total() == one.lines
        self.judge_editor(collection)
        self.judge_jobs(collection)
        assert_sound(collection)

    def judge_editor(self, collection: Collection) -> None:
        lines = lines_of(collection, EDITOR)
        assert max(lines.values()) == 1
        acknowledged = {line_of(*step) for step in self.editing.acknowledged}
        assert len(acknowledged) == len(self.editing.acknowledged) > STEPS
        assert acknowledged <= set(lines)
        assert len(lines) - len(acknowledged) <= self.editing.kills  # one was done each time, and not yet told

    def judge_jobs(self, collection: Collection) -> None:
        there = {job.id: job for job in jobs.listed(collection, 10_000)}
        assert {number: there[number].state for number in self.jobs.asked} == self.jobs.asked
        for job in there.values():
            assert job.state in jobs.FINAL
            assert (job.error is None) == (job.state == "done")


def test_kills_lose_nothing(made: Made, tmp_path: Path, database: str | None) -> None:
    begun = time.monotonic()
    folder = made()
    soak = Soak(folder, tmp_path)
    try:
        soak.run(KILLS)
        assert soak.jobs.one("train", {"full": True, "epochs": 3})  # it can be asked for again
        info = soak.jobs.ask_until("GET", "/info").json()
        soak.service.end()
    finally:
        soak.service.kill_all()
        if soak.editing.process.poll() is None:
            soak.editing.kill()
    with open_collection(folder) as collection:
        soak.judge(collection)
        assert_no_drafts(collection)
        assert info["model"] == str(open_model(collection).number)
        there = [path for path in folder.iterdir() if path.suffix in (".webp", ".png")]
        assert count(collection, tables.items, tables.items.c.state == "present") == len(there)
    assert leftovers(folder) == []
    assert "Traceback" not in (log := (tmp_path / "log").read_text()), log
    asked = sum((one.counts for one in soak.clients), Counter[str]())
    kind = "SQLite" if database is None else "PostgreSQL"
    print(
        f"\n{kind}: {KILLS} kills ({dict(soak.killed)}) in {time.monotonic() - begun:.0f} s; {dict(asked)}, "
        f"{sum(one.lines for one in soak.clients):,} changes, {len(soak.editing.acknowledged):,} edits, "
        f"jobs {dict(Counter(soak.jobs.asked.values()))}"
    )
