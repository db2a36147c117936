"""SVG files become small pictures: drawn large by librsvg, cut to what is drawn, scaled down on white."""

import subprocess
from pathlib import Path

from PIL import Image

from sample.pictures import flattened, shrunk

COMMAND = "rsvg-convert"
_LARGE = 512  # pixels of the longer side before cutting: small drawings lie in the corner of large pages
_MARGIN = 0.03  # of the longer side, left around what is drawn
_SECONDS = 60.0
_FAINT = 8  # distance from white (of 255) that counts as drawn


class RasterError(Exception):
    """A drawing that gave no picture; the message is a short reason to count by."""


def rasterise(file: Path, side: int) -> Image.Image:
    """The drawing on white, cut to what is drawn, longer side at most `side` pixels (RGB).

    Raises
    ------
    RasterError
        librsvg refuses the file, takes too long, or draws nothing.
    """
    page = flattened(_draw(file))
    box = drawn_box(page)
    if box is None:
        raise RasterError("nothing to see on white")
    return shrunk(framed(page, box), side)


def drawn_box(picture: Image.Image) -> tuple[int, int, int, int] | None:
    """The smallest box that holds everything that is not white; None when all is white."""
    return picture.point(lambda value: 255 * (value < 255 - _FAINT)).getbbox()


def framed(picture: Image.Image, box: tuple[int, int, int, int]) -> Image.Image:
    """Return the content of the box with a small white margin around it."""
    left, top, right, bottom = box
    margin = max(round(_MARGIN * max(right - left, bottom - top)), 1)
    frame = Image.new("RGB", (right - left + 2 * margin, bottom - top + 2 * margin), "white")
    frame.paste(picture.crop(box), (margin, margin))
    return frame


def _draw(file: Path) -> bytes:
    size = ["--width", str(_LARGE), "--height", str(_LARGE), "--keep-aspect-ratio"]
    command = [COMMAND, "--unlimited", *size, str(file)]
    try:
        process = subprocess.run(command, capture_output=True, timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired as error:
        raise RasterError(f"not drawn within {_SECONDS:.0f} seconds") from error
    if process.returncode or not process.stdout:
        raise RasterError("librsvg cannot draw it")
    return process.stdout


def rasteriser_version() -> str:
    """Return the name and version of the program that draws."""
    return subprocess.run([COMMAND, "--version"], capture_output=True, text=True, check=True).stdout.strip()
