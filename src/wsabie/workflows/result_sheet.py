"""Images of a search result: an HTML page, or a PNG sheet, with a heading and a reason per group."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from io import BytesIO
from typing import Any, NamedTuple

from wsabie.core.errors import UnreadableItemError
from wsabie.io.records import ItemSource
from wsabie.search.query_labels import format_label_list
from wsabie.workflows.augmented_search import AugmentedResult
from wsabie.workflows.charts.chart_files import encode_picture, load_font
from wsabie.workflows.charts.svg_charts import INK, PAPER, SOFT
from wsabie.workflows.report.examples import render_thumbnail
from wsabie.workflows.report.html_pages import EncodedImage, render_page

_TILE, _GAP, _ACROSS, _EDGE = 96, 12, 10, 16
_TEXT, _SMALL = 15, 11


def load_thumbnails(names: Iterable[str], source: ItemSource) -> dict[str, EncodedImage]:
    """Return thumbnails of some images of a source by id; unreadable ones are missing."""
    requested, thumbnails = set(names), dict[str, EncodedImage]()
    for item in source:
        if item.id in requested:
            with suppress(UnreadableItemError):
                thumbnails[item.id] = render_thumbnail(item.content)
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
        By id, as `load_thumbnails` returns them.
    where : str
        Name of the searched data.
    files : mapping of str to str or None
        Paths of images that are files of their own, by id; others are named by their id.
    labels : mapping of str to collection of str or None
        Labels of images in the data, by id; matching ones are marked.
    """
    names = [("group-0", "matches")]
    names += [(f"group-{i}", format_label_list(group.labels)) for i, group in enumerate(answer.groups[1:], 1)]
    return render_page(
        "search.html",
        query=answer.query_labels,
        collection=where,
        sections=list(zip(names, answer.groups, strict=False)),
        pictures=pictures,
        files=files or {},
        labels=labels or {},
    )


class SheetLine(NamedTuple):
    """A row of images.

    Attributes
    ----------
    heading, reason : str
        Lines above them.
    tiles : list of (str, str)
        Id of each image, and the text below it.
    """

    heading: str
    reason: str
    tiles: list[tuple[str, str]]


def list_sheet_lines(answer: AugmentedResult) -> list[SheetLine]:
    """Return the lines of a sheet for a search result."""
    lines = []
    for group in answer.groups:
        has_several_labels = len(group.labels) > 1
        tiles = [
            (match.id, f"{match.label} {match.score:.2f}" if has_several_labels else f"{match.score:.2f}")
            for match in group.matches
        ]
        heading = answer.query_labels.query if group.score is None else format_label_list(group.labels)
        lines.append(SheetLine(heading, group.reason, tiles))
    return lines


def render_sheet(lines: Sequence[SheetLine], pictures: Mapping[str, EncodedImage], across: int = _ACROSS) -> bytes:
    """Draw a sheet of images as PNG, at most `across` in a row, as wide as these and the lines above them."""
    from PIL import Image as Pillow
    from PIL import ImageDraw

    step, text = _TILE + _GAP, _TEXT + 6
    heights = [2 * text + -(-len(line.tiles) // across) * (step + _SMALL) + _GAP for line in lines]
    width = 2 * _EDGE + across * step - _GAP
    paper = Pillow.new("RGB", (width, 2 * _EDGE + sum(heights)), PAPER)
    draw, top, right = ImageDraw.Draw(paper), _EDGE, 0
    for line, height in zip(lines, heights, strict=True):
        heading = _draw_text(draw, (_EDGE, top), line.heading, _TEXT + 2, INK, width - 2 * _EDGE)
        reason = _draw_text(draw, (_EDGE, top + text), line.reason, _SMALL + 1, SOFT, width - 2 * _EDGE)
        right = max(right, heading, reason, min(len(line.tiles), across) * step - _GAP)
        for number, (name, caption) in enumerate(line.tiles):
            x, y = _EDGE + number % across * step, top + 2 * text + number // across * (step + _SMALL)
            if name in pictures:
                small = Pillow.open(BytesIO(pictures[name].content))
                small.thumbnail((_TILE, _TILE))
                paper.paste(small, (x + (_TILE - small.width) // 2, y + (_TILE - small.height) // 2))
            _draw_text(draw, (x, y + _TILE), caption, _SMALL, SOFT, _TILE)
        top += height
    return encode_picture(paper.crop((0, 0, min(width, right + 2 * _EDGE), paper.height)), optimize=True)


def _draw_text(draw: Any, position: tuple[int, int], text: str, size: int, colour: str, room: int) -> int:
    """Draw a line of text, cut to its room, and return its width."""
    font = load_font(size)
    while text and draw.textlength(text, font=font) > room:
        text = text.rstrip("…")[:-1] + "…" if len(text) > 2 else ""
    draw.text(position, text, fill=colour, font=font)
    return int(draw.textlength(text, font=font)) + 1
