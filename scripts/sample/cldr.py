"""Names and keywords of emoji in many languages, read from the Unicode CLDR annotation files."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sample.text import keywords

FOLDERS = ("annotations", "annotationsDerived")
TEXT_TYPE = "tts"  # the short name that is read aloud; the other annotations are keywords


@dataclass
class Annotation:
    """CLDR annotation of an emoji sequence: its labels, each with the languages that use it."""

    title: str = ""
    labels: dict[str, list[str]] = field(default_factory=dict)

    def add(self, label: str, language: str) -> None:
        """Note that `language` uses `label`; one string in two languages stays one label."""
        languages = self.labels.setdefault(label, [])
        if language not in languages:
            languages.append(language)


def read_annotations(root: Path, languages: Sequence[str]) -> dict[str, Annotation]:
    """All annotated sequences (without U+FE0F, as CLDR writes them), labels in the order of `languages`."""
    annotations: dict[str, Annotation] = {}
    for language in languages:
        for sequence, is_name, text in _entries(root, language):
            annotation = annotations.setdefault(sequence, Annotation())
            if is_name and language == languages[0]:
                annotation.title = text
            for label in keywords(text, language):
                annotation.add(label, language)
    return annotations


def _entries(root: Path, language: str) -> Iterator[tuple[str, bool, str]]:
    """(sequence, whether it is the short name, text); the short name of a sequence comes first."""
    entries: dict[str, list[tuple[bool, str]]] = {}
    for folder in FOLDERS:
        for element in ET.parse(root / folder / f"{language}.xml").iter("annotation"):  # noqa: S314 (own files)
            entry = (element.get("type") == TEXT_TYPE, element.text or "")
            entries.setdefault(element.get("cp", ""), []).append(entry)
    for sequence in sorted(entries):
        for is_name, text in sorted(entries[sequence], key=lambda entry: not entry[0]):
            yield sequence, is_name, text


def cldr_version(root: Path) -> str:
    """The version that the files declare about themselves, "unknown" where they do not."""
    dtd = root / "dtd" / "ldml.dtd"
    text = dtd.read_text("utf-8") if dtd.is_file() else ""
    match = re.search(r'cldrVersion\s+CDATA\s+#FIXED\s+"([^"]+)"', text)
    return match[1] if match else "unknown"


def read_categories(root: Path) -> dict[str, str]:
    """Category ("Food & Drink/food-fruit") by character, as far as `properties/labels.txt` knows it."""
    categories: dict[str, str] = {}
    for line in (root / "properties" / "labels.txt").read_text("utf-8").splitlines():
        if line.startswith("#") or line.count(";") != 2:
            continue
        characters, upper, lower = (part.strip() for part in line.split(";"))
        for sequence in members(characters):
            categories.setdefault(sequence, f"{upper}/{lower}")
    return categories


def members(unicode_set: str) -> list[str]:
    """The strings of a simple UnicodeSet: characters, ranges, and {strings}; U+FE0F is dropped.

    Examples
    --------
    >>> members("[ac-e{xy}]")
    ['a', 'c', 'd', 'e', 'xy']
    """
    characters: list[str] = []
    inner = unicode_set.strip().strip("[]").replace("\ufe0f", "")
    for match in re.finditer(r"\{([^}]+)\}|(.)-(.)|(.)", inner):
        string, first, last, single = match.groups()
        characters += [chr(c) for c in range(ord(first), ord(last) + 1)] if first else [string or single]
    return [member for member in characters if not member.isspace()]
