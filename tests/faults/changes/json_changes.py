"""Changes of JSON documents and lines: other types, signs and sizes; a checksum that stands first fits again."""

import hashlib
import json
import random
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
    "1",
    "é" * 300,
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
    {"": None},
    [1, "a"],
    [[1, 2], [3]],
    {"kind": "wsabie"},
    [0] * 1000,
    "<f8",
    "tensors/../x",
    "2026-13-45",
    0.1,
)


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value[:6]) if isinstance(value, list) else ()
    return [path, *(place for key, item in inner for place in _places(item, (*path, key)))]


def change_json(chance: random.Random, value: Any) -> tuple[Any, str]:
    """Return a JSON value with one value in it replaced, left out, doubled, negated or put inside another."""
    place = chance.choice(_places(value)[1:] or [()])
    if not place:
        return chance.choice(VALUES), "all of it"
    value = json.loads(json.dumps(value))
    parent = value
    for key in place[:-1]:
        parent = parent[key]
    key, old_value = place[-1], parent[place[-1]]
    numbers = isinstance(old_value, int | float) and not isinstance(old_value, bool)
    lists = isinstance(old_value, list)
    ways: dict[str, Any] = {
        "value": chance.choice(VALUES),
        "inside": [old_value],
        "text": str(old_value),
        "twice": [old_value, old_value],
        "sign": -old_value - 1 if numbers else VALUES[chance.randrange(5)],
        "size": old_value * 1000 + 7 if numbers else str(old_value) * 50,
        "near": old_value + chance.choice((-1, 1))
        if numbers
        else [*old_value, chance.choice(VALUES)]
        if lists
        else "é",
        "half": old_value / 2
        if numbers
        else old_value[: len(old_value) // 2]
        if lists or isinstance(old_value, str)
        else None,
    }
    way = chance.choice([*ways, "value", "gone", "name"])
    if way in ("gone", "name"):
        del parent[key]
        if way == "name" and isinstance(parent, dict):
            parent[f"{key}x"] = old_value
    else:
        parent[key] = ways[way]
    return value, f"{'.'.join(map(str, place))}: {way} {repr(parent[key])[:60] if way in ways else ''}"


def change_json_file(chance: random.Random, content: bytes) -> tuple[bytes, str]:
    """Return a JSON document, or JSON lines, with one other value; a checksum in the first line fits again."""
    lines = content.decode().strip().split("\n")
    try:
        value, head, tail = json.loads(content), "", ""
    except ValueError:
        number = chance.randrange(len(lines))
        value = json.loads(lines[number])
        head, tail = (
            "".join(f"{line}\n" for line in lines[:number]),
            "".join(f"\n{line}" for line in lines[number + 1 :]),
        )
    digest = value.pop("sha256", None) if isinstance(value, dict) else None
    value, description = change_json(chance, value)
    if digest is not None:
        return sign(value), description
    return f"{head}{json.dumps(value)}{tail}".encode(), description


def sign(value: Any) -> bytes:
    """Return a document that begins with its checksum."""
    body = json.dumps(value, indent=1).encode()[1:] if value else b"\n}"
    return f'{{\n "sha256": "{hashlib.sha256(body).hexdigest()}",'.encode() + body
