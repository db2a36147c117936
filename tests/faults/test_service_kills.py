"""Server, worker, trainer, scanner and a command are killed under load, and nothing that was acknowledged is lost.

`make soak` kills 50 times: server, trainer and scanner ten times each, these two while they work. As a test among
others it kills each of them once, and the command. `WSABIE_SOAK_SEED` draws other moments.
"""

import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

from tests.faults.clients import LABELS, STAYING, Client, JobClient, pictures
from tests.faults.conftest import PICTURES, MakeCollection
from tests.faults.editor import EDITOR, STEPS, line_of
from tests.faults.service import PATIENCE, Service, kill
from tests.faults.truth import assert_no_drafts, assert_sound, count, leftovers, lines_of, states

from wsabie.collection.annotations.decisions import tag_items
from wsabie.collection.db import tables
from wsabie.collection.folder.collection import Collection, open_collection
from wsabie.collection.jobs import queue
from wsabie.collection.jobs.queue import Job
from wsabie.collection.registry.model_registry import load_model
from wsabie.server.tokens import create_token

NAMES = ("eve", "adam", "lilith")
KILLS = int(os.environ.get("WSABIE_SOAK_KILLS", "3"))
SEED = int(os.environ.get("WSABIE_SOAK_SEED", "0"))
TURNS = ("trainer", "scanner", "server", "editor", "trainer", "scanner", "server", "worker", "all", "looker")
"""Who is killed in ten kills, in an order that is drawn."""
FULL = len(TURNS) <= KILLS
PAUSE = 0.0 if FULL else 0.05  # between the steps of a client: other tests run beside this one
IDLE_PAUSE = 0.0 if FULL else 0.5  # the same while a job's process starts, which nobody kills
WORK = {"train": 1.5, "scan": 0.3, "apply": 0.7}
"""Seconds that jobs work for, about, once they have read in their programs."""
KIND = {"trainer": "train", "scanner": "scan", "looker": "apply"}


class Editing:
    """The editor's process, and what it said was done."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.acknowledged, self.kills = folder, list[tuple[int, int]](), 0
        self.start()

    def start(self) -> None:
        first = self.acknowledged[-1][0] + 2 if self.acknowledged else 0
        command = [sys.executable, "-m", "tests.faults.editor", str(self.folder), str(first + 2 * self.kills)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.reader = threading.Thread(target=self._collect_steps)
        self.reader.start()

    def _collect_steps(self) -> None:
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
        tokens = {name: create_token(place / "tokens", name, "write") for name in (*NAMES, "jobs")}
        with open_collection(folder) as collection:
            tag_items(collection, [1], accept=LABELS, by="god")
        start = time.monotonic()
        self.service = Service(folder, place / "log", "--tokens", str(place / "tokens"))
        self.pace = max(1.0, (time.monotonic() - start) / 4 if FULL else 0.0)  # of this machine, as busy as it is
        self.clients = [
            Client(
                self.service.address,
                tokens[name],
                random.Random(f"{SEED} {name}"),  # noqa: S311
                range(2 + i, PICTURES, 3),
                folder / "000.webp",
                pause=PAUSE,
            )
            for i, name in enumerate(NAMES)
        ]
        moving = [f"{number:03d}.webp" for number in range(STAYING, PICTURES)]
        self.jobs = JobClient(self.service.address, tokens["jobs"], self.chance, folder, moving)
        self.editing = Editing(folder)
        self.collection = open_collection(folder)  # to see what jobs are at
        self.killed: Counter[str] = Counter()
        self.killed_jobs: dict[int, Job] = {}  # as they were then
        self.lost_jobs = set[int]()  # jobs that nobody does, though their rows may say so for a while

    def run(self, kills: int) -> None:
        victims = [TURNS[number % len(TURNS)] for number in range(kills)]
        self.chance.shuffle(victims)
        self.jobs.next_kind = next((KIND[victim] for victim in victims if victim in KIND), None)
        for client in (*self.clients, self.jobs):
            client.start()
        for victim in victims:
            self.kill(victim)
            self.service.wait()
            assert [client.wrong for client in (*self.clients, self.jobs)] == [[]] * 4
        time.sleep(1)
        for client in (*self.clients, self.jobs):
            client.finish()
        self.editing.kill()

    def kill(self, victim: str) -> None:
        if victim not in KIND:
            time.sleep(self.pace * self.chance.uniform(0.1, 1.5))
        if victim in KIND:
            self.kill_job(KIND[victim])
        elif victim == "worker":
            kill(self.chance.choice(self.service.workers()))
        elif victim == "editor":
            self.editing.kill()
            self.editing.start()
        else:
            if victim == "all":
                self.service.kill_all()
                self.lost_jobs |= {job.id for job in queue.list_jobs(self.collection, 3) if job.state == "running"}
            kill(self.service.process.pid)
            self.service.start_again()
        self.killed[victim] += 1

    def kill_job(self, kind: str) -> None:
        """At a random moment of its work; one that was done by then is let go, and the next one is waited for."""
        self.jobs.next_kind = kind
        until = time.monotonic() + 4 * PATIENCE
        while time.monotonic() < until:
            job = self.at_work(kind)
            self.set_pause(IDLE_PAUSE if job is None else PAUSE)
            if job is None:
                time.sleep(0.01)
                continue
            time.sleep(self.chance.uniform(0, WORK[kind]))
            at = queue.read_job(self.collection, job.id)
            for pid in self.service.jobs():
                kill(pid)
            if queue.read_job(self.collection, job.id).state not in ("done", "waiting"):
                self.killed_jobs[job.id] = at
                self.lost_jobs.add(job.id)
                self.jobs.next_kind = None
                return
        raise AssertionError(f"no {kind} was seen at work")

    def set_pause(self, seconds: float) -> None:
        """Between the steps of each client."""
        for client in self.clients:
            client.pause = seconds

    def at_work(self, kind: str) -> Job | None:
        """The job that a process does now, if it is of this kind and has come to its first stage."""
        current = next((job for job in queue.list_jobs(self.collection, 3) if job.state == "running"), None)
        if current is None or current.kind != kind or current.id in self.lost_jobs or not self.service.jobs():
            return None
        return current if current.progress else None

    def judge(self, collection: Collection) -> None:
        """Everything that was acknowledged is there, once, and nothing else."""
        assert [client.wrong for client in (*self.clients, self.jobs)] == [[]] * 4
        expected = {
            pair: state for client in self.clients for pair, state in client.states.items() if state is not None
        }
        actual = states(collection, LABELS)
        assert {pair: state for pair, state in actual.items() if pair[0] != 1} == expected
        for client, name in zip(self.clients, NAMES, strict=True):
            assert lines_of(collection, name).total() == client.lines
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
        jobs_by_id = {job.id: job for job in queue.list_jobs(collection, 10_000)}
        assert {job_id: jobs_by_id[job_id].state for job_id in self.jobs.end_states} == self.jobs.end_states
        for job in jobs_by_id.values():
            assert job.state in queue.FINAL
            assert (job.error is None) == (job.state == "done")
        for job_id, was in self.killed_jobs.items():
            assert (jobs_by_id[job_id].kind, jobs_by_id[job_id].state) == (was.kind, "failed"), jobs_by_id[job_id]


def test_kills_lose_nothing(make_collection: MakeCollection, tmp_path: Path) -> None:
    start = time.monotonic()
    folder = make_collection()
    soak = Soak(folder, tmp_path)
    try:
        soak.run(KILLS)
        info = soak.jobs.ask_until("GET", "/info").json()
        soak.service.end()
    finally:
        soak.collection.close()
        soak.service.kill_all()
        if soak.editing.process.poll() is None:
            soak.editing.kill()
    with open_collection(folder) as collection:
        soak.judge(collection)
        assert_no_drafts(collection)
        assert info["model"] == str(load_model(collection).id)
        assert count(collection, tables.items, tables.items.c.state == "present") == sum(1 for _ in pictures(folder))
    assert leftovers(folder) == []
    assert "Traceback" not in (log := (tmp_path / "log").read_text()), log
    for victim in ("server", "trainer", "scanner"):
        assert soak.killed[victim] >= KILLS // len(TURNS) * TURNS.count(victim)
        assert soak.killed[victim] >= 1 or KILLS < 3
    request_counts = sum((client.counts for client in soak.clients), Counter[str]())
    stages = Counter(f"{job.kind}: {job.progress['stage']}" for job in soak.killed_jobs.values())
    kind = soak.collection.engine.dialect.name
    print(
        f"\n{kind}: {KILLS} kills ({dict(soak.killed)}; jobs at {dict(stages)}) in {time.monotonic() - start:.0f} s; "
        f"{dict(request_counts)}, {sum(client.lines for client in soak.clients):,} changes, "
        f"{len(soak.editing.acknowledged):,} edits, "
        f"jobs {dict(Counter(soak.jobs.end_states.values()))}"
    )
