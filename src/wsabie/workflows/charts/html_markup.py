"""HTML that is safe from injection: an element escapes all content that is not `Markup`."""

import re
from collections.abc import Iterable, Iterator
from html import escape
from typing import Any, TypeAlias

_VOID = frozenset({"br", "hr", "img", "meta", "link", "input", "wbr"})
_FORBIDDEN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]*\Z")


class Markup(str):
    """A string that is HTML already."""

    __slots__ = ()


Child: TypeAlias = Any
"""Text, a number, `Markup`, None (nothing), or an iterable of these."""


def escape_text(value: object) -> Markup:
    """Escape a value as HTML text; characters that HTML forbids become U+FFFD.

    Examples
    --------
    >>> escape_text("<script>&\\x00")
    '&lt;script&gt;&amp;�'
    """
    return Markup(escape(_FORBIDDEN.sub("\ufffd", str(value)), quote=True))


def build_element(tag: str, *children: Child, **attributes: Any) -> Markup:
    """Build an element.

    Parameters
    ----------
    tag : str
    *children
        Text is escaped, `Markup` is taken as it is, None is nothing, iterables are taken apart.
    **attributes
        A trailing underscore is dropped and others become hyphens (`class_`, `aria_label`). None and False leave
        the attribute out, True gives it no value.

    Raises
    ------
    ValueError
        A tag or attribute that is no plain name: these never come from data.

    Examples
    --------
    >>> build_element("p", "a < b", build_element("br"), class_="note", hidden=True, id=None)
    '<p class="note" hidden>a &lt; b<br></p>'
    """
    opening = "".join([_check_name(tag), *(_format_attribute(name, value) for name, value in attributes.items())])
    if tag in _VOID:
        return Markup(f"<{opening}>")
    return Markup(f"<{opening}>{join_markup(children)}</{tag}>")


def join_markup(*children: Child) -> Markup:
    """Join children side by side.

    Examples
    --------
    >>> join_markup("1 < 2", None, [build_element("b", 3)])
    '1 &lt; 2<b>3</b>'
    """
    return Markup("".join(_flatten(children)))


def build_label(name: str, **attributes: Any) -> Markup:
    """Build a name from the data, with its own text direction.

    Examples
    --------
    >>> build_label("dog")
    '<bdi dir="auto">dog</bdi>'
    """
    return build_element("bdi", name, dir="auto", **attributes)


def _flatten(children: Iterable[Child]) -> Iterator[str]:
    for child in children:
        if child is None:
            continue
        if isinstance(child, Markup):
            yield child
        elif isinstance(child, str) or not isinstance(child, Iterable):
            yield escape_text(child)
        else:
            yield from _flatten(child)


def _format_attribute(name: str, value: Any) -> str:
    if value is None or value is False:
        return ""
    name = _check_name(name.rstrip("_").replace("_", "-"))
    return f" {name}" if value is True else f' {name}="{escape_text(value)}"'


def _check_name(name: str) -> str:
    if not _NAME.match(name):
        raise ValueError(f"{name!r} is no name of a tag or attribute")
    return name


SIBLING = build_element("span", "≈", class_="sign", aria_hidden="true")
"""Stands before a label that is a sibling of the right one; the letters lean too, so that it needs no colour."""
