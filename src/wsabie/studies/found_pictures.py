"""The pictures of a search's answer: an HTML page, or a PNG sheet, each group with a line above that says why."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from io import BytesIO
from typing import Any, NamedTuple

from wsabie import __version__
from wsabie.features.decode import RejectedItem
from wsabie.search.asked import listed
from wsabie.sources.records import ItemSource
from wsabie.studies.augmented_search import Answer, Found, Group
from wsabie.studies.fonts import font
from wsabie.studies.html.markup import Markup, element, label
from wsabie.studies.html.page import Section, page
from wsabie.studies.html.pictures import picture
from wsabie.studies.pictures import thumbnail
from wsabie.studies.report_input import Image

_TILE, _GAP, _ACROSS, _EDGE = 96, 12, 10, 16
_TEXT, _SMALL = 15, 11
_INK, _SOFT, _PAPER = "#1d1c1a", "#5c5952", "#ffffff"


def pictures_of(answer: Answer, source: ItemSource) -> dict[str, Image]:
    """The pictures that were found, in small, by id; those that cannot be read are missing."""
    return thumbnails((one.id for group in answer.groups for one in group.found), source)


def thumbnails(names: Iterable[str], source: ItemSource) -> dict[str, Image]:
    """Some pictures of a source, in small, by id; those that cannot be read are missing."""
    wanted, found = set(names), dict[str, Image]()
    for item in source:
        if item.id in wanted:
            try:
                found[item.id] = thumbnail(item.content)
            except RejectedItem:
                continue
    return found


def html_page(
    answer: Answer,
    pictures: Mapping[str, Image],
    where: str,
    *,
    files: Mapping[str, str] | None = None,
    labels: Mapping[str, Collection[str]] | None = None,
) -> str:
    """One file without script or network.

    Parameters
    ----------
    answer : Answer
    pictures : mapping of str to Image
        By id, as `pictures_of` gives them.
    where : str
        What was searched.
    files : mapping of str to str or None
        Where pictures lie that are files of their own, by id; others are named by their id.
    labels : mapping of str to collection of str or None
        What pictures carry in the collection, by id: it is marked.
    """
    understood, files, labels = answer.understood, files or {}, labels or {}
    header = element(
        "div",
        element("p", f"search in {where}", class_="eyebrow"),
        element("h1", label(understood.query)),
        element("p", understood.sentence, class_="lead"),
    )
    sections = []
    for number, group in enumerate(answer.groups):
        tiles = [
            _tile(one, pictures[one.id], files.get(one.id, one.id), one.label in labels.get(one.id, ()))
            for one in group.found
            if one.id in pictures
        ]
        sections.append(_section(number, group, tiles))
    key = "* a label that it carries in the collection; " if labels else ""
    return page(f"{understood.query} in {where}", header, sections, f"{key}wsabie {__version__}")


def _section(number: int, group: Group, tiles: Sequence[Markup]) -> Section:
    """The first is of the query, which the page's own heading and the line below it name already."""
    name, body = listed(group.labels), element("ul", tiles, class_="found")
    if not number:
        return Section("group-0", "found", f"{len(tiles):,} found", None, body)
    return Section(f"group-{number}", name, name, group.why, body)


def _tile(one: Found, image: Image, name: str, carried: bool) -> Markup:
    said = element("div", "*" if carried else None, label(one.label), f" {one.score:.2f}")
    shown = element("div", picture(image, f"{name}: {one.label}"), class_="tile")
    return element(
        "li", element("figure", shown, element("figcaption", said, element("div", label(name)), class_="small"))
    )


class Line(NamedTuple):
    """Pictures side by side.

    Attributes
    ----------
    heading, why : str
        Above them.
    tiles : list of (str, str)
        Id of each picture, and what is written below it.
    """

    heading: str
    why: str
    tiles: list[tuple[str, str]]


def png_sheet(answer: Answer, pictures: Mapping[str, Image]) -> bytes:
    """A sheet of all groups, ten pictures in a row, drawn with Pillow."""
    return sheet(lines_of(answer), pictures)


def lines_of(answer: Answer) -> list[Line]:
    """What a sheet shows of an answer."""
    lines = []
    for group in answer.groups:
        several = len(group.labels) > 1
        tiles = [(one.id, f"{one.label} {one.score:.2f}" if several else f"{one.score:.2f}") for one in group.found]
        heading = answer.understood.query if group.score is None else listed(group.labels)
        lines.append(Line(heading, group.why, tiles))
    return lines


def sheet(lines: Sequence[Line], pictures: Mapping[str, Image], across: int = _ACROSS) -> bytes:
    """A sheet of pictures as PNG, at most `across` of them in a row, as wide as these and the lines above them."""
    from PIL import Image as Pillow
    from PIL import ImageDraw

    step, text = _TILE + _GAP, _TEXT + 6
    heights = [2 * text + -(-len(line.tiles) // across) * (step + _SMALL) + _GAP for line in lines]
    width = 2 * _EDGE + across * step - _GAP
    paper = Pillow.new("RGB", (width, 2 * _EDGE + sum(heights)), _PAPER)
    draw, top, right = ImageDraw.Draw(paper), _EDGE, 0
    for line, height in zip(lines, heights, strict=True):
        heading = _write(draw, (_EDGE, top), line.heading, _TEXT + 2, _INK, width - 2 * _EDGE)
        why = _write(draw, (_EDGE, top + text), line.why, _SMALL + 1, _SOFT, width - 2 * _EDGE)
        right = max(right, heading, why, min(len(line.tiles), across) * step - _GAP)
        for number, (name, caption) in enumerate(line.tiles):
            x, y = _EDGE + number % across * step, top + 2 * text + number // across * (step + _SMALL)
            if name in pictures:
                _paste(paper, pictures[name], x, y)
            _write(draw, (x, y + _TILE), caption, _SMALL, _SOFT, _TILE)
        top += height
    file = BytesIO()
    paper = paper.crop((0, 0, min(width, right + 2 * _EDGE), paper.height))
    paper.save(file, "PNG", optimize=True)
    return file.getvalue()


def _paste(sheet: Any, image: Image, x: int, y: int) -> None:
    from PIL import Image as Pillow

    small = Pillow.open(BytesIO(image.content))
    small.thumbnail((_TILE, _TILE))
    sheet.paste(small, (x + (_TILE - small.width) // 2, y + (_TILE - small.height) // 2))


def _write(draw: Any, at: tuple[int, int], text: str, size: int, colour: str, room: int) -> int:
    """A line of text, cut to its room; how long it is."""
    face = font(size)
    while text and draw.textlength(text, font=face) > room:
        text = text.rstrip("…")[:-1] + "…" if len(text) > 2 else ""
    draw.text(at, text, fill=colour, font=face)
    return int(draw.textlength(text, font=face)) + 1
