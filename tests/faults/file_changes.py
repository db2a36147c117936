"""Changes of files: values of JSON and tables of another type, sign or size, headers of tensors, flips, cuts, pages.

Checksums that stand in a folder are written anew where a change is to be seen by the reader behind them.
"""

import hashlib
import json
import random
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1,
    2,
    3.5,
    -0.5,
    1e308,
    float("nan"),
    float("inf"),
    2**31,
    2**53,
    2**63,
    2**64,
    10**40,
    -(2**63),
    "",
    "x",
    "../../etc/passwd",
    "a\0b",
    "\ud800",
    "9" * 400,
    [],
    [[]],
    [None],
    ["x"] * 3,
    {},
    {"x": 1},
    {"kind": "wsabie"},
    [0] * 1000,
    "<f8",
    "tensors/../x",
    "2026-13-45",
    0.1,
)
Change = Callable[[random.Random, bytes], tuple[bytes, str]]


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value[:6]) if isinstance(value, list) else ()
    return [path, *(place for key, one in inner for place in _places(one, (*path, key)))]


def change_json(chance: random.Random, value: Any) -> tuple[Any, str]:
    """Return a JSON value with one value in it replaced, left out, doubled, negated or put inside another."""
    place = chance.choice(_places(value)[1:] or [()])
    if not place:
        return chance.choice(VALUES), "all of it"
    value = json.loads(json.dumps(value))
    parent = value
    for key in place[:-1]:
        parent = parent[key]
    key, before = place[-1], parent[place[-1]]
    numbers = isinstance(before, int | float) and not isinstance(before, bool)
    ways: dict[str, Any] = {
        "value": chance.choice(VALUES),
        "inside": [before],
        "text": str(before),
        "twice": [before, before],
        "sign": -before - 1 if numbers else VALUES[chance.randrange(5)],
        "size": before * 1000 + 7 if numbers else str(before) * 50,
    }
    way = chance.choice([*ways, "value", "gone", "name"])
    if way in ("gone", "name"):
        del parent[key]
        if way == "name" and isinstance(parent, dict):
            parent[f"{key}x"] = before
    else:
        parent[key] = ways[way]
    return value, f"{'.'.join(map(str, place))}: {way} {repr(parent[key])[:60] if way in ways else ''}"


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
    others = (
        b"{}",
        b"[]",
        b"null",
        b"\xff\xfe\x00",
        b"[" * 100_000,
        b"\0" * len(content),
        content[::-1],
        b'{"a":' * 3000,
    )
    number = chance.randrange(len(others))
    return others[number], f"other content {number}"


def change_tensors(chance: random.Random, content: bytes) -> tuple[bytes, str]:
    """Return a safetensors file with another header, or other numbers."""
    length = int.from_bytes(content[:8], "little")
    if not 0 < length <= len(content) - 8:
        return flip(chance, content)
    data = content[8 + length :]
    if chance.random() < 0.5 and data:
        changed = bytearray(data)
        start = chance.randrange(len(changed)) // 8 * 8
        pattern = chance.choice(
            (b"\xff" * 8, b"\0" * 8, b"\x00\x00\xc0\x7f" * 2, b"\xff\xff\xff\x7f" * 2, b"\x00\x00\x80\xff" * 2)
        )
        n = chance.choice((1, 1, len(changed) // 8))
        changed[start : start + 8 * n] = (pattern * n)[: len(changed) - start]
        return content[: 8 + length] + bytes(changed), f"numbers from {start}: {n} times {pattern[:4].hex()}"
    header, what = change_json(chance, json.loads(content[8 : 8 + length]))
    text = json.dumps(header).encode()
    size = chance.choice((len(text), len(text), len(text), 2**63, 0, len(text) + 1))
    return size.to_bytes(8, "little") + text + data, f"header {what}, length {size}"


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
    page, other = chance.randrange(n), chance.randrange(n)
    new = chance.choice((bytes(4096), chance.randbytes(4096), content[other * 4096 : other * 4096 + 4096]))
    return content[: page * 4096] + new + content[page * 4096 + 4096 :], f"page {page}"


def change_cell(chance: random.Random, file: Path) -> str:
    """Put a value of another type into one cell, or into a column, of an SQLite file; or drop a table or column."""
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA ignore_check_constraints = 1")
        tables = [
            row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
        ]
        filled = [one for one in tables if connection.execute(f'SELECT 1 FROM "{one}" LIMIT 1').fetchone()]  # noqa: S608
        table = chance.choice(filled)
        columns = [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')]
        column = chance.choice(columns)
        simple = [one for one in VALUES if not isinstance(one, list | dict) and one != "\ud800"]
        value = chance.choice([*simple, b"\xff\xfe", "[]", '{"x": 1}', '{"x": [1e999]}', "{", '"x"'])
        if isinstance(value, int) and abs(value) >= 2**63:
            value = float(value)
        way = chance.random()
        what = f"{table}.{column} = {value!r:.40}"
        with suppress(sqlite3.Error), connection:
            if way < 0.05:
                what = f"without {table}"
                connection.execute(f'DROP TABLE "{table}"')
            elif way < 0.1:
                what = f"without {table}.{column}"
                connection.execute(f'ALTER TABLE "{table}" DROP COLUMN "{column}"')
            elif way < 0.5:
                connection.execute(f'UPDATE "{table}" SET "{column}" = ?', (value,))  # noqa: S608
            else:
                query = f'SELECT rowid FROM "{table}" ORDER BY rowid'  # noqa: S608
                number = chance.choice(connection.execute(query).fetchall())[0]
                what += f" in {number}"
                connection.execute(f'UPDATE "{table}" SET "{column}" = ? WHERE rowid = ?', (value, number))  # noqa: S608
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return what


def change_json_file(chance: random.Random, content: bytes) -> tuple[bytes, str]:
    """Return a JSON document, or JSON lines, with one other value; a checksum in the first line fits again."""
    lines = content.decode().strip().split("\n")
    try:
        value, before, after = json.loads(content), "", ""
    except ValueError:
        number = chance.randrange(len(lines))
        value = json.loads(lines[number])
        before, after = (
            "".join(f"{line}\n" for line in lines[:number]),
            "".join(f"\n{line}" for line in lines[number + 1 :]),
        )
    digest = value.pop("sha256", None) if isinstance(value, dict) else None
    value, what = change_json(chance, value)
    if digest is not None:
        return sign(value), what
    return f"{before}{json.dumps(value)}{after}".encode(), what


def sign(value: Any) -> bytes:
    """Return a document that begins with its checksum."""
    body = json.dumps(value, indent=1).encode()[1:] if value else b"\n}"
    return f'{{\n "sha256": "{hashlib.sha256(body).hexdigest()}",'.encode() + body


def repair_checksums(file: Path, content: bytes) -> None:
    """Write the size and checksum of a changed file into the `config.json` or `manifest.json` that names it."""
    for index in (file.parent.parent / "config.json", file.parent / "manifest.json"):
        if index == file or not index.is_file():
            continue
        value = json.loads(index.read_bytes())
        if value.pop("sha256", None) is None:
            continue
        entries = [*value.get("shards", ()), *value.get("tensors", {}).values()]
        entries += [{"file": name} | entry for name, entry in value.get("beside", {}).items()]
        for entry in entries:
            if Path(entry["file"]).name == file.name:
                own = value.get("beside", {}).get(file.name, entry)
                own["sha256"] = hashlib.sha256(content).hexdigest()
                if "bytes" in own:
                    own["bytes"] = len(content)
                if "dtype" in own:
                    _repair_header(own, content)
        index.write_bytes(sign(value))


def _repair_header(entry: dict[str, Any], content: bytes) -> None:
    """What a model folder says of a tensor once more."""
    names = {
        "F32": "<f4",
        "F64": "<f8",
        "F16": "<f2",
        "I64": "<i8",
        "I32": "<i4",
        "I8": "|i1",
        "U8": "|u1",
        "BOOL": "|b1",
    }
    with suppress(ValueError, KeyError, TypeError, AttributeError, RecursionError):
        info = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])["tensor"]
        entry["shape"], entry["dtype"] = info["shape"], names.get(info["dtype"], entry["dtype"])


def change_file(chance: random.Random, file: Path) -> str:
    """Change a file in one way that fits its format; what was done."""
    content = file.read_bytes()
    if file.suffix == ".db" and chance.random() < 0.5:
        return change_cell(chance, file)
    own: dict[str, Change] = {
        ".json": change_json_file,
        ".jsonl": change_json_file,
        ".safetensors": change_tensors,
        ".db": change_pages,
        ".toml": change_text,
        ".csv": change_text,
        "": change_text,
    }
    change = own.get(file.suffix, flip)
    if chance.random() < 0.3:
        change = chance.choice((flip, cut, replace))
    new, what = change(chance, content)
    file.write_bytes(new)
    if chance.random() < 0.8 or change is change_tensors:
        repair_checksums(file, new)
    return f"{change.__name__} {file}: {what}"
