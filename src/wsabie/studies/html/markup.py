"""HTML that cannot be injected into: whatever is not `Markup` is escaped when it becomes part of an element."""

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


def text(value: object) -> Markup:
    """A value as HTML text: escaped, and without characters that HTML forbids (they become U+FFFD).

    Examples
    --------
    >>> text("<script>&\\x00")
    '&lt;script&gt;&amp;�'
    """
    return Markup(escape(_FORBIDDEN.sub("\ufffd", str(value)), quote=True))


def element(tag: str, *children: Child, **attributes: Any) -> Markup:
    """One element.

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
    >>> element("p", "a < b", element("br"), class_="note", hidden=True, id=None)
    '<p class="note" hidden>a &lt; b<br></p>'
    """
    opening = "".join([_name(tag), *(_attribute(name, value) for name, value in attributes.items())])
    if tag in _VOID:
        return Markup(f"<{opening}>")
    return Markup(f"<{opening}>{join(children)}</{tag}>")


def join(*children: Child) -> Markup:
    """Children side by side.

    Examples
    --------
    >>> join("1 < 2", None, [element("b", 3)])
    '1 &lt; 2<b>3</b>'
    """
    return Markup("".join(_flat(children)))


def label(name: str, **attributes: Any) -> Markup:
    """A name from the data: in its own direction, kept apart from the text around it.

    Examples
    --------
    >>> label("dog")
    '<bdi dir="auto">dog</bdi>'
    """
    return element("bdi", name, dir="auto", **attributes)


def _flat(children: Iterable[Child]) -> Iterator[str]:
    for child in children:
        if child is None:
            continue
        if isinstance(child, Markup):
            yield child
        elif isinstance(child, str) or not isinstance(child, Iterable):
            yield text(child)
        else:
            yield from _flat(child)


def _attribute(name: str, value: Any) -> str:
    if value is None or value is False:
        return ""
    name = _name(name.rstrip("_").replace("_", "-"))
    return f" {name}" if value is True else f' {name}="{text(value)}"'


def _name(name: str) -> str:
    if not _NAME.match(name):
        raise ValueError(f"{name!r} is no name of a tag or attribute")
    return name


SIBLING = element("span", "≈", class_="sign", aria_hidden="true")
"""Stands before a label that is a sibling of the right one; the letters lean too, so that it needs no colour."""
