"""Labels as people write them become labels as the sample keeps them."""

import unicodedata
from collections.abc import Iterable

_INHERITED = "↑↑↑"  # CLDR: "as in the parent language"
_DOTTED = str.maketrans({"İ": "i", "I": "ı"})  # Turkish: lower() alone would make "ısı" of neither


def clean_label(text: str, language: str = "en") -> str:
    """Normalise to NFC, collapse white space, and make lower case by the rules of `language`.

    Lower case, not casefold, which makes "strasse" of "straße" and spoils the ends of Greek words.

    Examples
    --------
    >>> clean_label("  Guide   Dog "), clean_label("IRMAK", "tr")
    ('guide dog', 'ırmak')
    """
    text = " ".join(unicodedata.normalize("NFC", text).split())
    if language == "tr":
        text = text.translate(_DOTTED)
    return unicodedata.normalize("NFC", text.lower())


def keywords(text: str, language: str = "en") -> list[str]:
    """The labels of one CLDR annotation: parts between bars, cleaned, first come first, without empty ones.

    Examples
    --------
    >>> keywords("dog | Dog | face | ")
    ['dog', 'face']
    """
    cleaned = (clean_label(part, language) for part in text.split("|"))
    return unique(label for label in cleaned if label and label != _INHERITED)


def unique(labels: Iterable[str]) -> list[str]:
    """Without repeats, in order of first appearance."""
    return list(dict.fromkeys(labels))
