"""The emoji part: pictures of Noto Color Emoji, labels of the Unicode CLDR in many languages."""

from collections.abc import Sequence
from pathlib import Path

from PIL import Image

from sample.cldr import Annotation, cldr_version, read_annotations, read_categories
from sample.concepts import concept, hexadecimal
from sample.glyphs import EmojiFont, open_font
from sample.pictures import described, flattened, shrunk, webp
from sample.progress import track
from sample.similar import alike_pairs, merge_groups
from sample.tables import Row
from wsabie.storage.rejects import Rejects

LANGUAGES = (
    "en", "de", "fr", "es", "it", "pt", "nl", "sv", "da", "fi", "pl", "cs", "hu", "ro", "tr", "ru", "uk",
    "el", "he", "ar", "hi", "id", "ja", "ko", "zh",
)  # fmt: skip
SIDE = 96  # pixels of the longer side
QUALITY = 50
SAME = 0.995  # cosine of thumbnails from which two emoji are one picture (flags of one design)
SOURCE = "Debian packages fonts-noto-color-emoji and unicode-cldr-core"
LICENCE = (
    "pictures: Noto Color Emoji, Copyright 2022 Google Inc., SIL Open Font License 1.1 "
    "(https://openfontlicense.org); labels: Unicode CLDR, Copyright 1991-2022 Unicode, Inc., Unicode License "
    "(https://www.unicode.org/license.txt); full texts: LICENSES.txt beside this file"
)


def build_emoji(font_path: Path, cldr: Path, rejects: Rejects) -> tuple[list[Row], dict[str, str]]:
    """Rows in order of code points, and what the Parquet file says about itself."""
    font = open_font(font_path)
    categories = read_categories(cldr)
    annotations = read_annotations(cldr, LANGUAGES)
    rows: list[Row] = []
    pictures: list[Image.Image] = []
    for sequence, glyph in track(list_glyphs(font, annotations, rejects), "emoji"):
        picture = shrunk(flattened(font.png(glyph)), SIDE)
        pictures.append(picture)
        rows.append(_row(sequence, annotations[sequence], webp(picture, QUALITY), categories))
    _join_same_pictures(rows, pictures)
    return rows, _metadata(f"{SOURCE}; font {font.version}; CLDR {cldr_version(cldr)}")


def list_glyphs(font: EmojiFont, annotations: dict[str, Annotation], rejects: Rejects) -> list[tuple[str, str]]:
    """(sequence, glyph) of everything that has a picture and a label."""
    glyphs = []
    for sequence in sorted(annotations):
        glyph = font.glyph(sequence)
        if glyph is None:
            rejects.add(_id(sequence), "annotated, but the font has no picture of it")
        elif not annotations[sequence].labels:
            rejects.add(_id(sequence), "no labels")
        else:
            glyphs.append((sequence, glyph))
    return glyphs


def _row(sequence: str, annotation: Annotation, image: bytes, categories: dict[str, str]) -> Row:
    return Row(
        id=_id(sequence),
        image=image,
        labels=list(annotation.labels),
        group=f"emoji-{hexadecimal(concept(sequence))}",
        part="emoji",
        title=annotation.title,
        category=category_of(sequence, categories),
        languages=list(annotation.labels.values()),
    )


def _id(sequence: str) -> str:
    return f"emoji-{hexadecimal(tuple(map(ord, sequence)))}"


def category_of(sequence: str, categories: dict[str, str]) -> str:
    """The category of a sequence, else of its base, else of its first character, else "other"."""
    base = "".join(map(chr, concept(sequence)))
    candidates = (categories[key] for key in (sequence, base, sequence[0], base[0]) if key in categories)
    return next(candidates, "other")


def _join_same_pictures(rows: Sequence[Row], pictures: Sequence[Image.Image]) -> None:
    pairs, _ = alike_pairs(pictures, SAME)
    merged = merge_groups([row.group for row in rows], pairs)
    for row, group in zip(rows, merged, strict=True):
        row.group = group


def _metadata(source: str) -> dict[str, str]:
    return {
        "title": "wsabie sample collection: emoji",
        "licence": LICENCE,
        "source": source,
        "languages": " ".join(LANGUAGES),
        "pictures": described(SIDE, QUALITY),
        "version": "1",
    }
