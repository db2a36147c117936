"""The pictures of a search's answer: an HTML page, or a PNG sheet, each group with a line above that says why."""

from collections.abc import Mapping
from io import BytesIO
from typing import Any

from wsabie import __version__
from wsabie.features.decode import RejectedItem
from wsabie.search.asked import listed
from wsabie.sources.records import ItemSource
from wsabie.studies.augmented_search import Answer, Found, Group
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
    wanted = {one.id for group in answer.groups for one in group.found}
    found: dict[str, Image] = {}
    for item in source:
        if item.id in wanted:
            try:
                found[item.id] = thumbnail(item.content)
            except RejectedItem:
                continue
    return found


def html_page(answer: Answer, pictures: Mapping[str, Image], where: str) -> str:
    """One file without script or network."""
    understood = answer.understood
    header = element(
        "div",
        element("p", f"search in {where}", class_="eyebrow"),
        element("h1", label(understood.query)),
        element("p", understood.sentence, class_="lead"),
    )
    sections = [_section(number, group, pictures) for number, group in enumerate(answer.groups)]
    return page(f"{understood.query} in {where}", header, sections, f"wsabie {__version__}")


def _section(number: int, group: Group, pictures: Mapping[str, Image]) -> Section:
    name, several = listed(group.labels), len(group.labels) > 1
    tiles = [_tile(one, pictures[one.id], several) for one in group.found if one.id in pictures]
    body = element("ul", tiles, class_="found")
    return Section(f"group-{number}", name, name, group.why if number else None, body)


def _tile(one: Found, image: Image, several: bool) -> Markup:
    caption = element("figcaption", label(one.label) if several else None, f" {one.score:.2f}", class_="small")
    shown = element("div", picture(image, f"{one.id}: {one.label}"), class_="tile")
    return element("li", element("figure", shown, caption), title=one.id)


def png_sheet(answer: Answer, pictures: Mapping[str, Image]) -> bytes:
    """A sheet of all groups, ten pictures in a row, drawn with Pillow."""
    from PIL import Image as Pillow
    from PIL import ImageDraw

    step, line = _TILE + _GAP, _TEXT + 6
    heights = [2 * line + -(-len(group.found) // _ACROSS) * (step + _SMALL) + _GAP for group in answer.groups]
    width = 2 * _EDGE + _ACROSS * step - _GAP
    sheet = Pillow.new("RGB", (width, 2 * _EDGE + sum(heights)), _PAPER)
    draw, top = ImageDraw.Draw(sheet), _EDGE
    for group, height in zip(answer.groups, heights, strict=True):
        own = group.score is None
        heading = answer.understood.query if own else listed(group.labels)
        _write(draw, (_EDGE, top), heading, _TEXT + 2, _INK, width - 2 * _EDGE)
        _write(draw, (_EDGE, top + line), group.why, _SMALL + 1, _SOFT, width - 2 * _EDGE)
        for number, one in enumerate(group.found):
            x, y = _EDGE + number % _ACROSS * step, top + 2 * line + number // _ACROSS * (step + _SMALL)
            if one.id in pictures:
                _paste(sheet, pictures[one.id], x, y)
            caption = f"{one.label} {one.score:.2f}" if len(group.labels) > 1 else f"{one.score:.2f}"
            _write(draw, (x, y + _TILE), caption, _SMALL, _SOFT, _TILE)
        top += height
    file = BytesIO()
    sheet.save(file, "PNG", optimize=True)
    return file.getvalue()


def _paste(sheet: Any, image: Image, x: int, y: int) -> None:
    from PIL import Image as Pillow

    small = Pillow.open(BytesIO(image.content))
    small.thumbnail((_TILE, _TILE))
    sheet.paste(small, (x + (_TILE - small.width) // 2, y + (_TILE - small.height) // 2))


def _write(draw: Any, at: tuple[int, int], text: str, size: int, colour: str, room: int) -> None:
    """A line of text, cut to its room."""
    face = font(size)
    while text and draw.textlength(text, font=face) > room:
        text = text.rstrip("…")[:-1] + "…" if len(text) > 2 else ""
    draw.text(at, text, fill=colour, font=face)


def font(size: int) -> Any:
    """DejaVu has more alphabets than the font that Pillow brings, where it is installed."""
    from PIL import ImageFont

    try:
        return ImageFont.truetype("DejaVuSans.ttf", size)
    except OSError:
        return ImageFont.load_default(size)
