"""Pictures on white, at most so large, as lossy WebP."""

import io

from PIL import Image, features


def flattened(content: bytes) -> Image.Image:
    """Decode and lay transparency over white (RGB)."""
    with Image.open(io.BytesIO(content)) as opened:
        picture = opened.convert("RGBA")
    ground = Image.new("RGBA", picture.size, "white")
    ground.alpha_composite(picture)
    return ground.convert("RGB")


def shrunk(picture: Image.Image, side: int) -> Image.Image:
    """A copy whose longer side is at most `side` pixels."""
    small = picture.copy()
    small.thumbnail((side, side), Image.Resampling.LANCZOS)
    return small


def webp(picture: Image.Image, quality: int) -> bytes:
    """Encode as lossy WebP with the slowest, smallest method."""
    out = io.BytesIO()
    picture.save(out, "WEBP", quality=quality, method=6)
    return out.getvalue()


def described(side: int, quality: int) -> str:
    """Return a description of how the pictures were made, for the metadata of the file."""
    return f"WebP, longer side {side} px, quality {quality}, on white; libwebp {features.version('webp')}"
