"""Keys by which rows in shards are sorted: hashes of their ids, and with a seed the order of all rows."""

import hashlib

import numpy as np

from wsabie.base.arrays import UInt64
from wsabie.features.augment import original_ids
from wsabie.sources.streamed import About
from wsabie.storage.columns import Columns, texts, words_of


def keyed(columns: Columns, about: About, seed: int) -> Columns:
    """With the key of each row, and where there are groups 16 bits of theirs."""
    start = _mixed(np.array([seed], np.uint64))[0]
    numbers, lists = dict(columns.numbers), dict(columns.lists)
    if "id" in numbers:
        numbers["key"] = _mixed(numbers["id"] ^ start)
        ids = list(map(str, numbers["id"].tolist())) if "group" in lists else []
    else:
        ids = words_of(lists["id"])
        numbers["key"] = _hashes(ids, f"{seed} row")
    if about.augment and "group" not in lists and "id" in lists:
        lists["group"] = texts(original_ids(ids, about.augment))
    if "group" in lists:
        groups = [group or f"row {one}" for group, one in zip(words_of(lists["group"]), ids, strict=True)]
        numbers["fold"] = (_hashes(groups, f"{seed} group") >> np.uint64(48)).astype(np.uint16)
    return Columns(numbers, lists)


def _mixed(numbers: UInt64) -> UInt64:
    """A one-to-one map of 64 bits that leaves no pattern (splitmix64; Steele, Lea and Flood 2014)."""
    z = numbers + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: UInt64 = z ^ (z >> np.uint64(31))
    return mixed


def _hashes(words: list[str], salt: str) -> UInt64:
    begun = hashlib.blake2b(salt.encode(), digest_size=8)
    out = bytearray()
    for word in words:
        one = begun.copy()
        one.update(word.encode("utf-8", "surrogatepass"))
        out += one.digest()
    return np.frombuffer(bytes(out), "<u8").astype(np.uint64)
