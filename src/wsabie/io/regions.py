"""Regions of pictures: a box, or outlines inside it, and crops.

Coordinates are those of the upright picture, from its upper left corner: x to the right, y down, a pixel's
left edge at its number. A region states the size of the picture they refer to (its frame): a copy of the
picture in another size is cut at the same position.
"""

from array import array
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, TypeAlias

from wsabie.core.errors import InputError, require

MIN_SIDE = 8
"""Shortest side of a region in pixels; a smaller one holds no block of any feature."""
OUTSIDE = "region outside the picture"
_MAX_NUMBERS = 2000  # of a region in a request


class Box(NamedTuple):
    """Edges of a box."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def width(self) -> float:
        return self.right - self.left

    @property
    def height(self) -> float:
        return self.bottom - self.top

    @property
    def area(self) -> float:
        """Return the area; 0 for an empty box."""
        return max(self.width, 0.0) * max(self.height, 0.0)

    def intersect(self, box: "Box") -> "Box":
        """Return the intersection with another box; its area is 0 if they do not overlap.

        Examples
        --------
        >>> Box(-5, 2, 30, 9).intersect(Box(0, 0, 20, 20))
        Box(left=0, top=2, right=20, bottom=9)
        """
        (a, b, c, d), (e, f, g, h) = self, box
        return Box(max(a, e), max(b, f), min(c, g), min(d, h))

    def scale(self, x_factor: float, y_factor: float) -> "Box":
        return Box(self.left * x_factor, self.top * y_factor, self.right * x_factor, self.bottom * y_factor)


Frame: TypeAlias = tuple[float, float] | None
"""Width and height that coordinates refer to; None: those of the picture."""


class Region(NamedTuple):
    """Part of a picture.

    Attributes
    ----------
    box : Box
    outlines : tuple of array of float
        Polygons x1, y1, x2, y2 ...; what lies in none of them is painted over. Empty: all of the box.
    frame : (float, float) or None
        Width and height of the picture that the coordinates are of; (100, 100) for per cent, None: of the picture
        itself, whatever its size.
    """

    box: Box
    outlines: "tuple[array[float], ...]" = ()
    frame: Frame = None

    def to_list(self) -> list[object]:
        """Return all fields, JSON-able."""
        return [*self.box, [outline.tolist() for outline in self.outlines], self.frame]


class RegionCrop(NamedTuple):
    """Region of an encoded picture, as the content of an item.

    Attributes
    ----------
    picture : Path or bytes
    region : Region
    container_id : str or None
        The id of the region that this one is a part of, where the annotations say so.
    """

    picture: Path | bytes
    region: Region
    container_id: str | None = None


ItemContent: TypeAlias = Path | bytes | RegionCrop
"""A file, encoded bytes, or a region of either."""


def compute_bounding_box(outlines: "Sequence[array[float]]") -> Box:
    """Return the box around polygons.

    Examples
    --------
    >>> compute_bounding_box([array("f", [1, 5, 4, 2, 2, 2]), array("f", [0, 3, 1, 3, 1, 4])])
    Box(left=0.0, top=2.0, right=4.0, bottom=5.0)
    """
    xs = [x for outline in outlines for x in outline[::2]]
    ys = [y for outline in outlines for y in outline[1::2]]
    return Box(min(xs), min(ys), max(xs), max(ys))


def parse_region(text: str) -> Region:
    """Parse a region: X,Y,W,H, or a polygon X1,Y1,X2,Y2,X3,Y3 and more; in pixels, or all in per cent.

    Several polygons are separated by semicolons.

    Raises
    ------
    InputError
        Other numbers, per cent beside pixels, or nothing inside.

    Examples
    --------
    >>> parse_region("10,20,30,40").box
    Box(left=10.0, top=20.0, right=40.0, bottom=60.0)
    >>> parse_region("50%,0%,50%,100%").frame
    (100.0, 100.0)
    >>> len(parse_region("0,0,10,0,5,8").outlines[0])
    6
    """
    require(len(text) <= 20 * _MAX_NUMBERS, f"a region has {len(text):,} characters; give it fewer corners")
    parts = [[word.strip() for word in part.split(",")] for part in text.split(";")]
    shares = {word.endswith("%") for words in parts for word in words}
    numbers = [[_parse_number(word.removesuffix("%")) for word in words] for words in parts]
    coordinates = [[number for number in part if number is not None] for part in numbers]
    least, n = (4 if len(coordinates) == 1 else 6), sum(map(len, coordinates))
    fault = "is not a list of numbers" if coordinates != numbers else f"has {n:,} numbers"
    is_odd = any(len(polygon) < least or len(polygon) % 2 for polygon in coordinates)
    if coordinates != numbers or is_odd or n > _MAX_NUMBERS:
        raise InputError(
            f"region {text[:60]!r} {fault}; give X,Y,W,H in pixels, or in per cent as 10%,20%,30%,40%, "
            "or the corners of a polygon, X1,Y1,X2,Y2,X3,Y3 and more"
        )
    require(len(shares) <= 1, f"region {text[:60]!r} mixes per cent and pixels; give one of them throughout")
    frame = (100.0, 100.0) if shares == {True} else None
    if len(coordinates[0]) == 4:
        x, y, w, h = coordinates[0]
        region = Region(Box(x, y, x + w, y + h), (), frame)
    else:
        outlines = tuple(array("f", polygon) for polygon in coordinates)
        region = Region(compute_bounding_box(outlines), outlines, frame)
    require(region.box.area != 0, f"region {text[:60]!r} has no area; give a width and a height above 0")
    return region


def format_region(region: Region) -> str:
    """Return the text that `parse_region` reads as this region, to the ten-thousandth.

    Frames in pixels are left out.

    Raises
    ------
    InputError
        More numbers than a region can have.

    Examples
    --------
    >>> [format_region(parse_region(text)) for text in ("10, 20,30.50,40", "50%,0%,50%,100%")]
    ['10,20,30.5,40', '50%,0%,50%,100%']
    """
    box, sign = region.box, "%" if region.frame == (100.0, 100.0) else ""
    parts = region.outlines or ((box.left, box.top, box.width, box.height),)
    if sum(map(len, parts)) > _MAX_NUMBERS:
        raise InputError(f"a region has more than {_MAX_NUMBERS:,} numbers; give it fewer corners")
    return ";".join(",".join(_format_number(number) + sign for number in part) for part in parts)


def _format_number(number: float) -> str:
    text = f"{number:.4f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _parse_number(word: str) -> float | None:
    with suppress(ValueError):
        if abs(number := float(word)) < 1e6:  # neither NaN nor infinity
            return number
    return None
