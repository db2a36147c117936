"""References in messages to parameters and next steps: Python's words in backquotes.

Below the command line and the service, a message names a parameter as `` `seed` `` or `` `tags="xmp"` ``. It names the
next command as a call, such as `` `collection.scan("photos")` ``. The command line shows flags and commands in their
place, and the service its pages. A keyword of Python ends in "_": `` `collection.import_("table.csv")` ``.
"""

import ast
import re
from shlex import quote

REFERENCE = re.compile(r"`([a-z_]+(?:\.[a-z_]+)*)((?:=|\()[^`]*)?`")


def format_references(message: str) -> str:
    """Show references as flags and commands; other words in backquotes stay.

    Examples
    --------
    >>> format_references("leave `tags='xmp'` or `min_rows` out; run: `collection.scan('my photos', strict=True)`")
    "leave --tags xmp or --min-rows out; run: wsabie collection scan 'my photos' --strict"
    >>> format_references("give a folder that `shards()` wrote")
    'give a folder that `wsabie shards` wrote'
    """
    return REFERENCE.sub(_format_reference, message)


def _format_reference(reference: re.Match[str]) -> str:
    name, rest = reference[1], reference[2] or "=True"
    is_call = rest.startswith("(")
    try:
        call = ast.parse(f"{name}{rest}" if is_call else f"_({name}{rest})", mode="eval").body
    except SyntaxError:  # words that a user wrote
        return reference[0]
    if not isinstance(call, ast.Call):
        return reference[0]
    words = ["wsabie", *_hyphenate(name).split("."), *map(_format_value, call.args)] if is_call else []
    for keyword in call.keywords:
        words += [f"--{_hyphenate(keyword.arg or '')}", _format_value(keyword.value)]
    text = " ".join(filter(None, words))
    return f"`{text}`" if is_call and not reference.string.endswith(": ", 0, reference.start()) else text


def _hyphenate(name: str) -> str:
    return name.removesuffix("_").replace("_", "-")


def _format_value(value: ast.expr) -> str:
    """Quote a constant for a shell; True is a flag without a value, and a name is for a user to fill in."""
    if isinstance(value, ast.Constant):
        return "" if value.value is True else quote(str(value.value))
    return ast.unparse(value)
