"""Names that no file can have, or hardly any program can show, for every argument of every command.

`find_failures(folder)` tries all of them in this process; `benchmarks/faults.py` and a test call it.
"""

import contextlib
import os
import shutil
import signal
import socket
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import Any, get_type_hints
from unittest.mock import patch

from tests.emoji_files import write_emoji
from typer.main import get_command

from wsabie.cli.main import app, run

NAMES: dict[str, str] = {
    "empty": "",
    "long": "x" * 256,
    "long text": "é" * 130 + ".tsv",
    "deep": "d/" * 2100 + "x",
    "no UTF-8": "\udcff\udcfe-\udce4",
    "newline": "a\nb\r\x1b[31m",
    "NUL": "a\0b",
    "below a file": "rows.txt/x",
    "link to itself": "loop",
}
"""Each kind of bad name."""
COPIES = ("no UTF-8", "newline")
"""Names that a real file can have: inputs are copied to them."""

LINES: dict[str, str] = {
    "train": "{rows} --model {new}/m --epochs 1 --dim 4 --threads 1",
    "evaluate": "{model} {rows} --allow-overlap",
    "update": "{copy} {rows} --without-replay --epochs 1",
    "edit": "{copy} rename 0 zero",
    "annotate": "{model} {rows}",
    "neighbours": "{model} 0",
    "search": "{photos_model} fox --in {photos}",
    "index": "{copy}",
    "parts": "{photos_model} {photos}/001.webp",
    "compare": "{rows} --models popularity",
    "tune": "{rows} --out {new}/t --trials 1 --set dim=4 --set epochs=1 --threads 1",
    "encoders": "list",
    "features": "images {photos} --out {new}/f.parquet --features colour --threads 1",
    "shards": "{rows} --out {new}/s",
    "split": "{rows} --out {new}/s",
    "demo": "--part documents --out {new}/d --threads 1",
    "info": "{model}",
    "export": "{model} {new}/e --as numpy",
    "hierarchy": "from-text {text} --out {new}/h.tsv",
    "pairs": "from-listeners {listeners} --out {new}/p.tsv",
    "labels": "about fox --knowledge {isa}",
    "vectors": "info {vectors}",
    "serve": "{model} --port {port}",
    "token": "{new}/tokens eve",
    "collection init": "{folder}",
    "collection add": "{collection} {photos}",
    "collection scan": "{collection}",
    "collection status": "{collection}",
    "collection history": "{collection}",
    "collection undo": "{collection} 1",
    "collection train": "{collection} --features colour --epochs 1 --dim 4 --threads 1",
    "collection apply": "{collection}",
    "collection models": "{collection}",
    "collection index": "{collection}",
    "collection search": "{collection} fox",
    "collection map": "{collection} --out {new}/map.csv",
    "collection export": "{collection} {new}/tags.csv",
    "collection import": "{collection} {tags}",
    "collection labels": "{collection} list",
    "collection tag": "{collection} 1 --accept sky",
    "collection annotations": "{collection}",
    "collection backup": "{collection}",
    "collection restore": "{collection}",
}
"""A command line of each command that works; `{new}` is an empty folder of its own."""
GOOD: dict[str, str] = {
    "--valid": "{rows}", "--test": "{rows}", "--hierarchy": "{isa}", "--knowledge": "{isa}", "--vectors": "{vectors}",
    "--init-model": "{model}", "--config": "{config}", "--labels": "{names}", "--candidates": "{names}",
    "--exclude": "{rows}", "--remember": "{rows}", "--queries": "{rows}", "--extractor": "{photos_model}",
    "--table": "{table}", "--candidate-pairs": "{isa}", "--relations": "{isa}", "--part": "{photos}/001.webp",
    "--related-model": "{rows}", "--tokens": "{tokens}", "--tracks": "{text}",
}  # fmt: skip
"""Good files for options, which are copied to odd names."""
MINUTES = 2


@dataclass(frozen=True)
class Attempt:
    """A command line with one bad name in it.

    Attributes
    ----------
    command, parameter, name : str
        What is tried: the command, its argument or option, the kind of name ("copy: ..." where the file exists).
    line : list of str
        Words behind the command, with `{places}`.
    bad : int
        Which of them is bad.
    """

    command: str
    parameter: str
    name: str
    line: list[str]
    bad: int


@dataclass(frozen=True)
class Failure:
    """Answer to an attempt that is neither a result nor one sentence."""

    attempt: Attempt
    code: int
    text: str


def list_commands(group: Any = None, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the name and the object of every command of the program."""
    for name, command in (group or get_command(app)).commands.items():
        if hasattr(command, "commands"):
            yield from list_commands(command, f"{prefix}{name} ")
        else:
            yield prefix + name, command


def list_attempts() -> Iterator[Attempt]:
    """Yield every command with every bad name in place of each argument and option that takes text."""
    for command, content in list_commands():
        line, hints = LINES[command].split(), get_type_hints(content.callback)
        position = 0
        for parameter in content.params:
            is_option = parameter.param_type_name == "option"
            if not is_option:
                position += 1
            hint = str(hints.get(parameter.name))
            if not ("Path" in hint or "str" in hint):
                continue
            words, bad = _place_value(line, parameter, position - 1)
            for name in NAMES:
                yield Attempt(command, parameter.name, name, words, bad)
            if words[bad].startswith("{"):
                for name in COPIES:
                    yield Attempt(command, parameter.name, f"copy: {name}", words, bad)


def _place_value(line: Sequence[str], parameter: Any, position: int) -> tuple[list[str], int]:
    """The line with a value for a parameter, and its place."""
    words = list(line)
    if parameter.param_type_name != "option":
        if position < len(words) and not words[position].startswith("--"):
            return words, position
        words.insert(position, "x")
        return words, position
    flag = parameter.opts[-1]
    if flag not in words:
        words += [flag, GOOD.get(flag, "x")]
    return words, words.index(flag) + 1


class Workbench:
    """A folder with small data, models and a collection, and a port that is taken."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.places = {
            name: str(folder / name) for name in ("rows.txt", "model", "photos", "photos_model", "collection")
        }
        self.places["rows"] = self.places.pop("rows.txt")
        self._write_files()
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        self._socket.listen()
        self.places["port"] = str(self._socket.getsockname()[1])
        self._number = 0

    def _write_files(self) -> None:
        lines = ["60 9 3", *(f"{i % 3} {3 * (i % 3) + i % 2}:1 {3 * (i % 3) + 2}:{1 + i % 5}" for i in range(60))]
        texts = {
            "rows.txt": "\n".join(lines) + "\n",
            "isa.tsv": "fox\tmammal\nmammal\tanimal\n0\tnumber\n1\tnumber\n",
            "names.txt": "0\n1\n",
            "table.tsv": "label\tid\nfox\tfox\n",
            "vectors.txt": "2 2\nfox 1 0\ndog 0 1\n",
            "text.txt": "A fox is a mammal. " * 40,
            "listeners.tsv": "".join(f"u{i % 5}\ts{i % 3}\t1\n" for i in range(30)),
            "tags.csv": "path,label,state\n001.webp,sky,accepted\n",
            "config.toml": "dim = 4\n",
        }
        for name, text in texts.items():
            (self.folder / name).write_text(text)
            self.places[name.partition(".")[0]] = str(self.folder / name)
        for name in ("photos", "collection"):
            (self.folder / name).mkdir()
            write_emoji(self.folder / name, 40, 3)
        (self.folder / "loop").symlink_to("loop")
        self.places["tokens"] = str(self.folder / "tokens.json")
        small = ["--dim", "4", "--epochs", "1", "--threads", "1"]
        for line in (
            ["train", self.places["rows"], "--model", self.places["model"], *small],
            ["train", self.places["photos"], "--model", self.places["photos_model"], "--features", "colour", *small],
            ["token", self.places["tokens"], "eve"],
            ["collection", "init", self.places["collection"], "--by", "eve"],
            ["collection", "train", self.places["collection"], "--features", "colour", "--by", "eve", *small],
        ):
            code, text = call(line, self.folder / "log")
            if code:
                raise RuntimeError(f"{line}: {text}")

    def close(self) -> None:
        """Free the port."""
        self._socket.close()

    def carry_out(self, attempt: Attempt) -> Failure | None:
        """Carry out one attempt; None if it was answered as it should be."""
        self._number += 1
        new = self.folder / f"new{self._number}"
        (new / "folder").mkdir(parents=True)
        (new / "rows.txt").write_text("file")
        (new / "loop").symlink_to("loop")
        places = {**self.places, "new": str(new), "folder": str(new / "folder")}
        if "{copy}" in attempt.line:
            places["copy"] = str(shutil.copytree(self.places["model"], new / "copy"))
        words = [word.format_map(places) for word in attempt.line]
        words[attempt.bad] = self._bad_value(attempt, words[attempt.bad], new)
        try:
            code, text = call([*attempt.command.split(), *words], self.folder / "log", new)
        finally:
            shutil.rmtree(new, ignore_errors=True)
        return None if is_right(code, text) else Failure(attempt, code, text)

    def _bad_value(self, attempt: Attempt, good: str, new: Path) -> str:
        """The name, beside where the good one is, or in the new folder; a copy of what is good has its ending."""
        kind, _, name = attempt.name.rpartition(": ")
        if not kind:
            return NAMES[name] if name == "empty" else f"{new}/{NAMES[name]}"
        path = Path(good)
        target = new / f"{NAMES[name]}{path.suffix}"
        if path.is_dir():
            shutil.copytree(path, target)
        elif path.exists():
            shutil.copy(path, target)
        return str(target)


def is_right(code: int, text: str) -> bool:
    """Return True if an answer is a result or one sentence."""
    if "Traceback" in text or code not in (0, 1, 2):
        return False
    sentences = [line for line in text.splitlines() if line.startswith(("wsabie: ", "Error: "))]
    return code == 0 or len(sentences) == 1 or "Invalid value" in text or "Usage:" in text


def call(words: Sequence[str], log: Path, folder: Path | None = None) -> tuple[int, str]:
    """Carry out a command line in this process, in a folder; its exit code and all that it printed."""
    old_folder, argv, streams = None if folder is None else Path.cwd(), sys.argv, (sys.stdout, sys.stderr)
    code = 0
    with log.open("wb") as file:
        sys.stdout = TextIOWrapper(file, encoding="utf-8", write_through=True)
        sys.stderr = TextIOWrapper(file, encoding="utf-8", errors="backslashreplace", write_through=True)
        sys.argv = ["wsabie", *words]
        try:
            if folder is not None:
                os.chdir(folder)
            with _limited():
                run()
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
        except BaseException:
            code = 70
            sys.stderr.write(traceback.format_exc())
        finally:
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(ValueError):
                    stream.detach()
            if old_folder is not None:
                os.chdir(old_folder)
            sys.argv, (sys.stdout, sys.stderr) = argv, streams
    return code, log.read_text(encoding="utf-8", errors="replace")


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    """End what waits for ever."""

    def end(*_: object) -> None:
        raise TimeoutError

    old_handler = signal.signal(signal.SIGALRM, end)
    signal.alarm(60 * MINUTES)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, old_handler)


def find_failures(
    folder: Path, every: int = 1, without: Mapping[str, Any] | Sequence[str] = ()
) -> tuple[int, list[Failure]]:
    """Carry out attempts in an empty folder.

    Parameters
    ----------
    folder : Path
    every : int
        Take one attempt of so many, another kind of name for each parameter.
    without : collection of str
        Commands to leave out.

    Returns
    -------
    int, list of Failure
        Attempts that were made, and those that were not answered by a result or one sentence.
    """
    bench, failures, number = Workbench(folder), [], 0
    try:
        for attempt in [candidate for candidate in list_attempts() if candidate.command not in without][::every]:
            number += 1
            with patch.dict(os.environ):  # a command changes those of its process
                failure = bench.carry_out(attempt)
            failures += [] if failure is None else [failure]
    finally:
        bench.close()
    return number, failures
