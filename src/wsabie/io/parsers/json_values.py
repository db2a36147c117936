"""JSON from untrusted files: values that nest too deeply are refused before they are built."""

import json
import re
from typing import Any

import numpy as np

from wsabie.core.input_limits import make_limit_error, read_limits

_decode = json.JSONDecoder().decode  # as `json.loads`, which looks for options each time
_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_STEPS = np.zeros(256, np.int8)
_STEPS[[ord("["), ord("{")]], _STEPS[[ord("]"), ord("}")]] = 1, -1


def parse_json_value(text: str, most_depth: int | None = None) -> Any:
    """Parse JSON.

    Parameters
    ----------
    text : str
    most_depth : int or None
        `InputLimits.depth`, where many texts are parsed: to look it up takes as long as to parse a short one.

    Raises
    ------
    ValueError
        It is malformed, has a number of thousands of digits, or (an InputError) nests deeper than `InputLimits.depth`.

    Examples
    --------
    >>> parse_json_value('{"a": [1]}')
    {'a': [1]}
    """
    nested = text.rfind("{") > 0 or text.rfind("[") != text.find("[")  # few lines are, and to count takes longer
    if nested and text.count("[") + text.count("{") > (most_depth or 0):
        check_json_depth(text)
    return _decode(text)


def check_json_depth(text: str) -> None:
    """Refuse text whose brackets, those in strings aside, nest deeper than `InputLimits.depth`.

    Raises
    ------
    InputError
    """
    most = read_limits().depth
    if text.count("[") + text.count("{") <= most:
        return
    brackets = np.frombuffer(_STRING.sub("", text).encode("utf-8", "replace"), np.uint8)
    depth = int(np.cumsum(_STEPS[brackets], dtype=np.int32).max(initial=0))
    if depth > most:
        raise make_limit_error("depth", f"the JSON nests {depth:,} values", depth)
