"""The font of Pillow drawings."""

from typing import Any


def load_font(size: float) -> Any:
    """Load DejaVu where it is installed, which has more alphabets than Pillow's own font."""
    from PIL import ImageFont

    try:
        return ImageFont.truetype("DejaVuSans.ttf", size)
    except OSError:
        return ImageFont.load_default(size)
