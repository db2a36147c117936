"""Images of a search result: an HTML page, or a PNG sheet, with a heading and a reason per group."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from io import BytesIO
from typing import Any, NamedTuple

from wsabie import __version__
from wsabie.features.images.image_decoder import UnreadableItemError
from wsabie.io.records import ItemSource
from wsabie.search.query_labels import format_label_list
from wsabie.workflows.charts.fonts import load_font
from wsabie.workflows.charts.html_markup import Markup, build_element, build_label
from wsabie.workflows.charts.html_page import PageSection, render_page
from wsabie.workflows.report.image_examples import render_thumbnail
from wsabie.workflows.report.image_section import embed_image
from wsabie.workflows.report.report_input import EncodedImage
from wsabie.workflows.search.augmented_search import AugmentedGroup, AugmentedResult, ItemMatch

_TILE, _GAP, _ACROSS, _EDGE = 96, 12, 10, 16
_TEXT, _SMALL = 15, 11
_INK, _SOFT, _PAPER = "#1d1c1a", "#5c5952", "#ffffff"


def load_result_images(answer: AugmentedResult, source: ItemSource) -> dict[str, EncodedImage]:
    """Return thumbnails of the matching images by id; unreadable ones are missing."""
    return load_thumbnails((match.id for group in answer.groups for match in group.found), source)


def load_thumbnails(names: Iterable[str], source: ItemSource) -> dict[str, EncodedImage]:
    """Return thumbnails of some images of a source by id; unreadable ones are missing."""
    requested, thumbnails = set(names), dict[str, EncodedImage]()
    for item in source:
        if item.id in requested:
            try:
                thumbnails[item.id] = render_thumbnail(item.content)
            except UnreadableItemError:
                continue
    return thumbnails


def render_result_page(
    answer: AugmentedResult,
    pictures: Mapping[str, EncodedImage],
    where: str,
    *,
    files: Mapping[str, str] | None = None,
    labels: Mapping[str, Collection[str]] | None = None,
) -> str:
    """Render a page without script or network.

    Parameters
    ----------
    answer : AugmentedResult
    pictures : mapping of str to EncodedImage
        By id, as `load_result_images` returns them.
    where : str
        Name of the searched collection.
    files : mapping of str to str or None
        Paths of images that are files of their own, by id; others are named by their id.
    labels : mapping of str to collection of str or None
        Labels of images in the collection, by id; matching ones are marked.
    """
    understood, files, labels = answer.understood, files or {}, labels or {}
    header = build_element(
        "div",
        build_element("p", f"search in {where}", class_="eyebrow"),
        build_element("h1", build_label(understood.query)),
        build_element("p", understood.sentence, class_="lead"),
    )
    sections = []
    for number, group in enumerate(answer.groups):
        tiles = [
            _render_tile(
                match, pictures[match.id], files.get(match.id, match.id), match.label in labels.get(match.id, ())
            )
            for match in group.found
            if match.id in pictures
        ]
        sections.append(_render_section(number, group, tiles))
    legend = "* a label that it carries in the collection; " if labels else ""
    return render_page(f"{understood.query} in {where}", header, sections, f"{legend}wsabie {__version__}")


def _render_section(number: int, group: AugmentedGroup, tiles: Sequence[Markup]) -> PageSection:
    """Render a group; the page's heading names the first group, that of the query, already."""
    name, body = format_label_list(group.labels), build_element("ul", tiles, class_="found")
    if not number:
        return PageSection("group-0", "found", f"{len(tiles):,} found", None, body)
    return PageSection(f"group-{number}", name, name, group.why, body)


def _render_tile(match: ItemMatch, image: EncodedImage, name: str, is_own_label: bool) -> Markup:
    caption = build_element("div", "*" if is_own_label else None, build_label(match.label), f" {match.score:.2f}")
    picture = build_element("div", embed_image(image, f"{name}: {match.label}"), class_="tile")
    return build_element(
        "li",
        build_element(
            "figure",
            picture,
            build_element("figcaption", caption, build_element("div", build_label(name)), class_="small"),
        ),
    )


class SheetLine(NamedTuple):
    """A row of images.

    Attributes
    ----------
    heading, why : str
        Lines above them.
    tiles : list of (str, str)
        Id of each image, and the text below it.
    """

    heading: str
    why: str
    tiles: list[tuple[str, str]]


def render_result_sheet(answer: AugmentedResult, pictures: Mapping[str, EncodedImage]) -> bytes:
    """Draw a sheet of all groups, ten images in a row, with Pillow."""
    return render_sheet(list_sheet_lines(answer), pictures)


def list_sheet_lines(answer: AugmentedResult) -> list[SheetLine]:
    """Return the lines of a sheet for a search result."""
    lines = []
    for group in answer.groups:
        has_several_labels = len(group.labels) > 1
        tiles = [
            (match.id, f"{match.label} {match.score:.2f}" if has_several_labels else f"{match.score:.2f}")
            for match in group.found
        ]
        heading = answer.understood.query if group.score is None else format_label_list(group.labels)
        lines.append(SheetLine(heading, group.why, tiles))
    return lines


def render_sheet(lines: Sequence[SheetLine], pictures: Mapping[str, EncodedImage], across: int = _ACROSS) -> bytes:
    """Draw a sheet of images as PNG, at most `across` in a row, as wide as these and the lines above them."""
    from PIL import Image as Pillow
    from PIL import ImageDraw

    step, text = _TILE + _GAP, _TEXT + 6
    heights = [2 * text + -(-len(line.tiles) // across) * (step + _SMALL) + _GAP for line in lines]
    width = 2 * _EDGE + across * step - _GAP
    paper = Pillow.new("RGB", (width, 2 * _EDGE + sum(heights)), _PAPER)
    draw, top, right = ImageDraw.Draw(paper), _EDGE, 0
    for line, height in zip(lines, heights, strict=True):
        heading = _draw_text(draw, (_EDGE, top), line.heading, _TEXT + 2, _INK, width - 2 * _EDGE)
        why = _draw_text(draw, (_EDGE, top + text), line.why, _SMALL + 1, _SOFT, width - 2 * _EDGE)
        right = max(right, heading, why, min(len(line.tiles), across) * step - _GAP)
        for number, (name, caption) in enumerate(line.tiles):
            x, y = _EDGE + number % across * step, top + 2 * text + number // across * (step + _SMALL)
            if name in pictures:
                _paste_thumbnail(paper, pictures[name], x, y)
            _draw_text(draw, (x, y + _TILE), caption, _SMALL, _SOFT, _TILE)
        top += height
    file = BytesIO()
    paper = paper.crop((0, 0, min(width, right + 2 * _EDGE), paper.height))
    paper.save(file, "PNG", optimize=True)
    return file.getvalue()


def _paste_thumbnail(sheet: Any, image: EncodedImage, x: int, y: int) -> None:
    from PIL import Image as Pillow

    small = Pillow.open(BytesIO(image.content))
    small.thumbnail((_TILE, _TILE))
    sheet.paste(small, (x + (_TILE - small.width) // 2, y + (_TILE - small.height) // 2))


def _draw_text(draw: Any, position: tuple[int, int], text: str, size: int, colour: str, room: int) -> int:
    """Draw a line of text, cut to its room, and return its width."""
    font = load_font(size)
    while text and draw.textlength(text, font=font) > room:
        text = text.rstrip("…")[:-1] + "…" if len(text) > 2 else ""
    draw.text(position, text, fill=colour, font=font)
    return int(draw.textlength(text, font=font)) + 1
