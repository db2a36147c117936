"""Results that outlive a stopped run: every trial and every final run is a line of a JSONL file, written at once."""

import json
import os
from pathlib import Path
from typing import Any


class Ledger:
    """Lines of JSON with a key each; a later line with the same key replaces an earlier one.

    Parameters
    ----------
    file : path
        Made when the first line is written. A last line that was cut off by a kill is ignored.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self.lines: dict[str, dict[str, Any]] = {}
        for text in file.read_text().splitlines() if file.exists() else []:
            try:
                line = json.loads(text)
            except json.JSONDecodeError:
                continue
            self.lines[key_of(line)] = line

    def get(self, **request: Any) -> dict[str, Any] | None:
        """The line with this key, if its work was done."""
        return self.lines.get(key_of(request))

    def add(self, line: dict[str, Any]) -> dict[str, Any]:
        """Append and flush to disk."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with self.file.open("a") as out:
            if out.tell() and not self.file.read_bytes().endswith(b"\n"):
                out.write("\n")
            out.write(json.dumps(line) + "\n")
            out.flush()
            os.fsync(out.fileno())
        self.lines[key_of(line)] = line
        return line

    def forget(self, task: str, system: str) -> None:
        """Drop all lines of a system on a task, so that its work is done again."""
        removed_keys = {key_of(line) for line in self.of(task, system)}
        self.lines = {key: line for key, line in self.lines.items() if key not in removed_keys}
        if removed_keys:
            draft = self.file.with_suffix(".tmp")
            draft.write_text("".join(json.dumps(line) + "\n" for line in self.lines.values()))
            draft.replace(self.file)

    def of(self, task: str, system: str) -> list[dict[str, Any]]:
        """All lines of a system on a task."""
        return [line for line in self.lines.values() if (line["task"], line["system"]) == (task, system)]


def key_of(line: dict[str, Any]) -> str:
    """Return the key of a piece of work: its settings without its results."""
    key_names = ("task", "system", "kind", "trial", "params", "epochs", "repeat", "threads")
    return json.dumps({name: line.get(name) for name in key_names}, sort_keys=True)
