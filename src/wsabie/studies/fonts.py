"""The font of what is drawn with Pillow."""

from typing import Any


def font(size: float) -> Any:
    """DejaVu has more alphabets than the font that Pillow brings, where it is installed."""
    from PIL import ImageFont

    try:
        return ImageFont.truetype("DejaVuSans.ttf", size)
    except OSError:
        return ImageFont.load_default(size)
