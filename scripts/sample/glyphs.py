"""The colour bitmaps of an emoji font, found by character sequence."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

_LIGATURES = 4  # GSUB lookup type
_EXTENSION = 7


@dataclass(frozen=True)
class EmojiFont:
    """An opened CBDT font: characters to glyph names, ligatures of glyph names, glyph names to PNG files."""

    version: str
    characters: dict[int, str]
    ligatures: dict[tuple[str, ...], str]
    bitmaps: dict[str, Any]

    def glyph(self, sequence: str) -> str | None:
        """The glyph that shows the whole sequence as one picture; None when the font has none."""
        names = tuple(self.characters.get(ord(character), "") for character in sequence)
        name = names[0] if len(names) == 1 else self.ligatures.get(names, "")
        return name if name in self.bitmaps else None

    def png(self, glyph: str) -> bytes:
        """The encoded bitmap of a glyph."""
        return bytes(self.bitmaps[glyph].imageData)


def open_font(path: Path) -> EmojiFont:
    """Read a font with CBDT bitmaps and `ccmp` ligatures (Noto Color Emoji)."""
    from fontTools.ttLib import TTFont

    font = TTFont(path)
    version = str(font["name"].getDebugName(5))
    strikes = font["CBDT"].strikeData
    return EmojiFont(version, dict(font.getBestCmap()), _read_ligatures(font), dict(strikes[0]))


def _read_ligatures(font: Any) -> dict[tuple[str, ...], str]:
    glyphs_by_sequence: dict[tuple[str, ...], str] = {}
    for lookup in font["GSUB"].table.LookupList.Lookup:
        for table in lookup.SubTable:
            inner = table.ExtSubTable if lookup.LookupType == _EXTENSION else table
            if getattr(inner, "LookupType", None) != _LIGATURES:
                continue
            for first, ligatures in inner.ligatures.items():
                for ligature in ligatures:
                    glyphs_by_sequence.setdefault((first, *ligature.Component), ligature.LigGlyph)
    return glyphs_by_sequence
