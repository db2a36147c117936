"""Clients that work with a service while it is killed, and know exactly what was acknowledged."""

import itertools
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

import httpx2 as httpx
from PIL import Image
from tests.faults.service import PATIENCE

LABELS = tuple(f"soak {letter}" for letter in "abcdef")
JOBS: dict[str, dict[str, Any]] = {
    "scan": {"rehash": True},
    "train": {"full": True, "epochs": 3},
    "apply": {"again": True},
}
NEW = 4
"""Pictures that come before each scan."""
STAYING = 60
"""Items, the first ones, whose files stay where they are."""
State: TypeAlias = Literal["accepted", "rejected"] | None
Pair: TypeAlias = tuple[int, str]
Effects: TypeAlias = dict[Pair, tuple[State, State]]


class Asker(threading.Thread):
    """Asks until it is told to stop; `wrong` holds what should not have been answered."""

    def __init__(self, address: str, token: str, chance: random.Random) -> None:
        super().__init__(daemon=True)
        headers = {"authorization": f"Bearer {token}"}
        self.http = httpx.Client(base_url=f"{address}/api/v1", headers=headers, timeout=PATIENCE)
        self.chance, self.ended, self.counts = chance, threading.Event(), Counter[str]()
        self.wrong: list[str] = []

    def run(self) -> None:
        try:
            while not self.ended.is_set():
                self.step()
        except Exception as error:  # whatever it is, the soak must hear of it
            self.wrong.append(repr(error))

    def step(self) -> None:
        raise NotImplementedError

    def finish(self) -> None:
        """No more than what is under way."""
        self.ended.set()
        self.join(10 * PATIENCE)
        assert not self.is_alive()

    def ask(self, method: str, path: str, **request_options: Any) -> httpx.Response | None:
        """The answer; None: nobody can know whether it was done."""
        try:
            answer = self.http.request(method, path, **request_options)
        except httpx.TransportError:
            self.counts["not answered"] += 1
            time.sleep(0.3)  # a commit that was on its way arrives
            return None
        if answer.status_code in (503, 504, 507):
            self.counts["refused for now"] += 1
            assert answer.headers["content-type"] == "application/problem+json"
            time.sleep(0.3)
            return None
        self.counts["answered"] += 1
        return answer

    def ask_until(self, method: str, path: str, **request_options: Any) -> httpx.Response:
        """Repeat a request that changes nothing until it is answered."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            answer = self.ask(method, path, **request_options)
            if answer is not None:
                return answer
        raise AssertionError(f"{path} was not answered for {PATIENCE:g} seconds")

    def check(self, right: bool, message: str) -> None:
        if not right:
            self.wrong.append(message)


class Client(Asker):
    """Decides about items that nobody else decides about, undoes, and sends pictures."""

    def __init__(
        self, address: str, token: str, chance: random.Random, items: Sequence[int], picture: Path, pause: float = 0.0
    ) -> None:
        super().__init__(address, token, chance)
        self.pause = pause  # seconds after each step
        self.items, self.picture = list(items), picture.read_bytes()
        self.states: dict[Pair, State] = {}
        self.entries: dict[int, Effects] = {}
        self.lines = 0  # of the journal

    def step(self) -> None:
        draw = self.chance.random()
        if draw < 0.6 or not self.entries:
            self.decide()
        elif draw < 0.85:
            self.undo(self.chance.choice(list(self.entries)[-6:]))
        elif draw < 0.95:
            answer = self.ask("POST", "/search/picture", files={"file": self.picture}, params={"k": 3})
            if answer is not None:
                self.check(len(answer.json().get("items", ())) == 3, answer.text)
        else:
            item = self.chance.choice([item for item in self.items if item <= STAYING])
            answer = self.ask("GET", f"/items/{item}/thumbnail")
            self.check(answer is None or answer.content[8:12] == b"WEBP", "a thumbnail is none")
        time.sleep(self.pause)

    def decide(self) -> None:
        pairs = {(self.chance.choice(self.items), self.chance.choice(LABELS)) for _ in range(self.chance.randint(1, 4))}
        new_states: dict[Pair, State] = {pair: self.chance.choice(("accepted", "rejected", None)) for pair in pairs}
        effects = {
            pair: (old_state, new_state)
            for pair, new_state in new_states.items()
            if (old_state := self.states.get(pair)) != new_state
        }
        body = [{"item": item, "label": label, "state": state} for (item, label), state in new_states.items()]
        answer = self.ask("POST", "/decisions", json={"decisions": body})
        if answer is None:
            self.look_at(effects)
            return
        reply = answer.json()
        expected = Counter(_kind(*change) for change in effects.values())
        right = answer.status_code == 200 and all(
            reply[name] == expected[name] for name in ("added", "changed", "removed")
        )
        self.check(right and (reply["entry"] is None) == (not effects), f"{answer.status_code} {reply} of {effects}")
        if right and effects:
            self.record_entry(effects, reply["entry"])

    def undo(self, entry: int) -> None:
        effects = {pair: (self.states.get(pair), old_state) for pair, (old_state, _) in self.entries[entry].items()}
        answer = self.ask("POST", "/undo", json={"entry": entry})
        if answer is None:
            self.look_at(effects)
        elif answer.status_code == 200:
            lines = self.ask_until("GET", "/journal", params={"k": 500}).json()["entries"]
            self.record_entry(effects, next((line["undone_by"] for line in lines if line["id"] == entry), None))
            self.counts["undone"] += 1
        else:  # undone already, or built upon
            self.check(answer.status_code == 422 and "undo" in answer.text, answer.text)

    def look_at(self, effects: Effects) -> None:
        """Check that a change without an answer was made as a whole or not at all."""
        changed_effects = {pair: change for pair, change in effects.items() if change[0] != change[1]}
        if not changed_effects:
            return
        states: dict[Pair, State] = {}
        for item in {item for item, _ in changed_effects}:
            item_details = self.ask_until("GET", f"/items/{item}").json()
            states |= {(item, annotation["label"]): annotation["state"] for annotation in item_details["annotations"]}
        is_applied = {states.get(pair) == new_state for pair, (_, new_state) in changed_effects.items()}
        is_unchanged = {states.get(pair) == old_state for pair, (old_state, _) in changed_effects.items()}
        self.check(
            is_applied == {True} or is_unchanged == {True}, f"half of it was done: {changed_effects}, found {states}"
        )
        if is_applied == {True}:
            self.record_entry(changed_effects, None)

    def record_entry(self, effects: Effects, entry: int | None) -> None:
        self.states |= {pair: new_state for pair, (_, new_state) in effects.items()}
        self.lines += 1
        if entry is not None:
            self.check(entry not in self.entries, f"entry {entry} was given twice")
            self.entries[entry] = effects


class JobClient(Asker):
    """Asks for scans, trainings and looks in turn, and again for those that were killed.

    Before a scan some pictures come and one moves. `next_kind`: the kind of job to ask for next, out of turn.
    """

    def __init__(self, address: str, token: str, chance: random.Random, folder: Path, moving: Sequence[str]) -> None:
        super().__init__(address, token, chance)
        self.folder, self.moving = folder, list(moving)
        self.files = sum(1 for _ in pictures(folder))
        self.turns = itertools.cycle(JOBS)
        self.next_kind: str | None = None
        self.end_states: dict[int, str] = {}  # how each ended

    def step(self) -> None:
        kind = self.next_kind or next(self.turns)
        if kind == "scan":
            self.change_files()
        while not self.run_job(kind, JOBS[kind]):
            pass
        if kind == "scan":
            total = self.ask_until("GET", "/items", params={"k": 1}).json()["total"]
            self.check(total == self.files, f"a scan was done: {total} items of {self.files} files")

    def change_files(self) -> None:
        """Add and move pictures, so that the next scan takes a while."""
        for _ in range(NEW):
            picture = Image.effect_noise((800, 800), 80).convert("RGB")
            picture.save(self.folder / f"new {self.files}.jpg")
            self.files += 1
        if self.moving:
            name = self.moving.pop()
            (self.folder / name).rename(self.folder / f"moved {name}")

    def run_job(self, kind: str, options: dict[str, Any]) -> bool:
        """Ask for a job and wait for its end; whether it was done."""
        job = self.ask_until("POST", "/jobs", json={"kind": kind, "options": options}).json()
        until = time.monotonic() + 10 * PATIENCE  # whoever would start it is killed again and again
        while job["state"] in ("waiting", "running"):
            assert time.monotonic() < until, f"a job does not end: {job}"
            time.sleep(0.2)
            job = self.ask_until("GET", f"/jobs/{job['id']}").json()
        self.end_states[job["id"]] = job["state"]
        if job["state"] == "failed" and "start it again" not in job["error"] and "was killed" not in job["error"]:
            self.wrong.append(str(job))
        return str(job["state"]) == "done"


def pictures(folder: Path) -> Iterator[Path]:
    """The files that a scan finds."""
    return (path for path in folder.iterdir() if path.suffix in (".webp", ".jpg"))


def _kind(old_state: State, new_state: State) -> str:
    return "added" if old_state is None else "removed" if new_state is None else "changed"
