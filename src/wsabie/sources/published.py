"""Collections of several files, as they were published: known by the names of these, for few contents would tell."""

from pathlib import Path

from wsabie.base.errors import InputError
from wsabie.sources.citations import is_citations, read_citations
from wsabie.sources.coco import coco_file, read_coco
from wsabie.sources.iapr import is_iapr, read_iapr
from wsabie.sources.lear import is_lear, read_lear, sides_of
from wsabie.sources.magnatagatune import is_magnatagatune, read_magnatagatune
from wsabie.sources.nus_wide import is_nus_wide, read_nus_wide
from wsabie.sources.records import ItemList, Rows
from wsabie.sources.spoken_digits import is_spoken_digits, read_spoken_digits
from wsabie.sources.text import shown
from wsabie.sources.voc import is_voc, read_voc
from wsabie.storage.rejects import Rejects

OF_REGIONS = {"coco": read_coco, "voc": read_voc}
"""Layouts of regions of pictures, or of the pictures."""
OF_SEVERAL_KINDS = {"magnatagatune": read_magnatagatune, "spoken-digits": read_spoken_digits, **OF_REGIONS}
"""Layouts with labels of several kinds, or items, and a published split."""
PUBLISHED = ("nus-wide", "lear", "iapr", "citations", *OF_SEVERAL_KINDS)


def published_kind(path: Path) -> str | None:
    """The layout of a file or folder: one of `PUBLISHED`; None for any other.

    Raises
    ------
    InputError
        A folder that holds both sides of a split.
    """
    if path.is_dir() and (sides := sides_of(path)):
        raise InputError(f"{shown(path)} holds the sides of a split; give one of its lists, such as {shown(sides[-1])}")
    if path.is_dir() and is_iapr(path):
        return "iapr"
    if path.is_dir() and is_magnatagatune(path):
        return "magnatagatune"
    if path.is_dir() and is_spoken_digits(path):
        return "spoken-digits"
    if path.is_dir() and is_voc(path):
        return "voc"
    if coco_file(path) is not None:
        return "coco"
    if is_nus_wide(path):
        return "nus-wide"
    if path.is_file() and is_citations(path):
        return "citations"
    return "lear" if path.is_file() and is_lear(path) else None


def read_published(
    path: Path, kind: str, rejects: Rejects, *, label_kind: str | None = None, split: str | None = None
) -> Rows | ItemList:
    """Read a collection of one of these layouts; the kind of label and the side of a split where there are several."""
    if kind in OF_SEVERAL_KINDS:
        return OF_SEVERAL_KINDS[kind](path, kind=label_kind, split=split, rejects=rejects)
    if kind == "citations":
        return read_citations(path, rejects=rejects)
    if kind == "iapr":
        return read_iapr(path, rejects=rejects)
    return read_nus_wide(path, rejects=rejects) if kind == "nus-wide" else read_lear(path, rejects=rejects)
