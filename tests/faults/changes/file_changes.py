"""Changes of files of every format: values, tensors, cells of tables, lines, pages, flips and cuts.

Checksums that stand in a folder are written again where a change is to be seen by the reader behind them.
"""

import hashlib
import json
import random
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from tests.faults.changes.json_changes import VALUES, change_json_file, sign
from tests.faults.changes.tensor_changes import DTYPES, change_tensors

Change = Callable[[random.Random, bytes], tuple[bytes, str]]


def flip(chance: random.Random, content: bytes) -> tuple[bytes, str]:
    """Return other bytes in one to eight places, half of them at the beginning."""
    changed, at = bytearray(content or b"\0"), []
    for _ in range(chance.choice((1, 1, 1, 8))):
        place = chance.randrange(min(len(changed), 200) if chance.random() < 0.5 else len(changed))
        changed[place] = chance.choice((changed[place] ^ (1 << chance.randrange(8)), 0, 255, chance.randrange(256)))
        at.append(place)
    return bytes(changed), f"bytes {at}"


def cut(chance: random.Random, content: bytes) -> tuple[bytes, str]:
    """Return a beginning of the content, or more than it was."""
    if chance.random() < 0.2:
        return content + chance.randbytes(chance.choice((1, 8, 5000))), "longer"
    length = chance.choice((0, 1, 7, 8, 9, chance.randrange(len(content) + 1), max(0, len(content) - 1)))
    return content[:length], f"cut to {length}"


def replace(chance: random.Random, content: bytes) -> tuple[bytes, str]:
    """Return content that is none of this format."""
    contents = (
        b"{}",
        b"[]",
        b"null",
        b"\xff\xfe\x00",
        b"[" * 100_000,
        b"\0" * len(content),
        content[::-1],
        b'{"a":' * 3000,
    )
    number = chance.randrange(len(contents))
    return contents[number], f"other content {number}"


def change_text(chance: random.Random, content: bytes) -> tuple[bytes, str]:
    """Return lines of which one is gone, doubled, longer, or has another value behind its `=` or comma."""
    lines = content.split(b"\n")
    number = chance.randrange(len(lines))
    value = json.dumps(chance.choice(VALUES)).encode()
    head, mark, _ = lines[number].partition(b"=" if b"=" in lines[number] else b",")
    ways = (
        [],
        [lines[number]] * 2,
        [lines[number] * 5000],
        [head + mark + value],
        [value],
        [b"[" + lines[number]],
        [b"\xff\xfe"],
    )
    way = chance.randrange(len(ways))
    lines[number : number + 1] = ways[way]
    return b"\n".join(lines), f"line {number + 1}, way {way}, {value[:20]!r}"


def change_pages(chance: random.Random, content: bytes) -> tuple[bytes, str]:
    """Return an SQLite file with a page that is empty, another one, or noise; or a changed header."""
    if chance.random() < 0.3:
        place = chance.randrange(100)
        return content[:place] + chance.randbytes(1) + content[place + 1 :], f"header byte {place}"
    n = max(1, len(content) // 4096)
    page, source_page = chance.randrange(n), chance.randrange(n)
    new = chance.choice((bytes(4096), chance.randbytes(4096), content[source_page * 4096 : source_page * 4096 + 4096]))
    return content[: page * 4096] + new + content[page * 4096 + 4096 :], f"page {page}"


def change_cell(chance: random.Random, file: Path) -> str:
    """Put a value of another type into one cell, or into a column, of an SQLite file; or drop a table or column."""
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA ignore_check_constraints = 1")
        tables = [
            row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
        ]
        filled = [name for name in tables if connection.execute(f'SELECT 1 FROM "{name}" LIMIT 1').fetchone()]  # noqa: S608
        table = chance.choice(filled)
        columns = [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')]
        column = chance.choice(columns)
        simple = [candidate for candidate in VALUES if not isinstance(candidate, list | dict) and candidate != "\ud800"]
        value = chance.choice([*simple, b"\xff\xfe", "[]", '{"x": 1}', '{"x": [1e999]}', "{", '"x"'])
        if isinstance(value, int) and abs(value) >= 2**63:
            value = float(value)
        way = chance.random()
        description = f"{table}.{column} = {value!r:.40}"
        with suppress(sqlite3.Error), connection:
            if way < 0.05:
                description = f"without {table}"
                connection.execute(f'DROP TABLE "{table}"')
            elif way < 0.1:
                description = f"without {table}.{column}"
                connection.execute(f'ALTER TABLE "{table}" DROP COLUMN "{column}"')
            elif way < 0.5:
                connection.execute(f'UPDATE "{table}" SET "{column}" = ?', (value,))  # noqa: S608
            else:
                query = f'SELECT rowid FROM "{table}" ORDER BY rowid'  # noqa: S608
                number = chance.choice(connection.execute(query).fetchall())[0]
                description += f" in {number}"
                connection.execute(f'UPDATE "{table}" SET "{column}" = ? WHERE rowid = ?', (value, number))  # noqa: S608
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return description


def repair_checksums(file: Path, content: bytes) -> None:
    """Write the size and checksum of a changed file into the `config.json` or `manifest.json` that names it."""
    for index in (file.parent.parent / "config.json", file.parent / "manifest.json"):
        if index == file or not index.is_file():
            continue
        value = json.loads(index.read_bytes())
        if value.pop("sha256", None) is None:
            continue
        entries = [*value.get("shards", ()), *value.get("tensors", {}).values()]
        entries += [{"file": name} | entry for name, entry in value.get("other_files", {}).items()]
        for entry in entries:
            if Path(entry["file"]).name == file.name:
                record = value.get("other_files", {}).get(file.name, entry)
                record["sha256"] = hashlib.sha256(content).hexdigest()
                if "bytes" in record:
                    record["bytes"] = len(content)
                if "dtype" in record:
                    _repair_header(record, content)
        index.write_bytes(sign(value))


def _repair_header(entry: dict[str, Any], content: bytes) -> None:
    """Copy the type and shape of a tensor into the index of its model folder."""
    with suppress(ValueError, KeyError, TypeError, AttributeError, RecursionError):
        info = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])["tensor"]
        entry["shape"], entry["dtype"] = info["shape"], DTYPES.get(info["dtype"], entry["dtype"])


def change_file(chance: random.Random, file: Path) -> str:
    """Change a file in one way that fits its format; what was done."""
    content = file.read_bytes()
    if file.suffix == ".db" and chance.random() < 0.5:
        return change_cell(chance, file)
    changes_by_suffix: dict[str, Change] = {
        ".json": change_json_file,
        ".jsonl": change_json_file,
        ".safetensors": change_tensors,
        ".db": change_pages,
        ".toml": change_text,
        ".csv": change_text,
        "": change_text,
    }
    change = changes_by_suffix.get(file.suffix, flip)
    if chance.random() < 0.3:
        change = chance.choice((flip, cut, replace))
    new, description = change(chance, content)
    file.write_bytes(new)
    if chance.random() < 0.8 or change is change_tensors:
        repair_checksums(file, new)
    return f"{change.__name__} {file}: {description}"


def change_one_of(chance: random.Random, folder: Path, pattern: str) -> str:
    """Change one of the files that fit a pattern, half the time one that holds no tensors; what was done."""
    files = sorted(path for path in folder.glob(pattern) if path.is_file() and path.suffix != ".lock")
    small_files = [path for path in files if path.suffix != ".safetensors"]
    return change_file(chance, chance.choice(small_files if small_files and chance.random() < 0.5 else files))
