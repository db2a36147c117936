"""Registry of published collections that consist of several files, detected by the names of these."""

from pathlib import Path

from wsabie.core.errors import InputError
from wsabie.io.datasets.iapr import is_iapr, read_iapr
from wsabie.io.datasets.lear import find_split_lists, is_lear, read_lear
from wsabie.io.datasets.magnatagatune import is_magnatagatune, read_magnatagatune
from wsabie.io.datasets.nus_wide import is_nus_wide, read_nus_wide
from wsabie.io.datasets.spoken_digits import is_spoken_digits, read_spoken_digits
from wsabie.io.formats.citation_graph import is_citation_graph, read_citation_graph
from wsabie.io.formats.coco import find_coco_file, read_coco
from wsabie.io.formats.pascal_voc import is_voc, read_voc
from wsabie.io.parsers.text_files import format_path
from wsabie.io.records import FeatureTable, ItemList
from wsabie.storage.rejects import Rejects

OF_REGIONS = {"coco": read_coco, "voc": read_voc}
"""Layouts of regions of pictures, or of the pictures."""
OF_SEVERAL_KINDS = {"magnatagatune": read_magnatagatune, "spoken-digits": read_spoken_digits, **OF_REGIONS}
"""Layouts with labels of several kinds, or items, and a published split."""
PUBLISHED = ("nus-wide", "lear", "iapr", "citations", *OF_SEVERAL_KINDS)


def detect_published_layout(path: Path) -> str | None:
    """Return the layout of a file or folder: one of `PUBLISHED`; None for any other.

    Raises
    ------
    InputError
        A folder that holds both sides of a split.
    """
    if path.is_dir() and (sides := find_split_lists(path)):
        raise InputError(
            f"{format_path(path)} holds the sides of a split; give one of its lists, such as {format_path(sides[-1])}"
        )
    if path.is_dir() and is_iapr(path):
        return "iapr"
    if path.is_dir() and is_magnatagatune(path):
        return "magnatagatune"
    if path.is_dir() and is_spoken_digits(path):
        return "spoken-digits"
    if path.is_dir() and is_voc(path):
        return "voc"
    if find_coco_file(path) is not None:
        return "coco"
    if is_nus_wide(path):
        return "nus-wide"
    if path.is_file() and is_citation_graph(path):
        return "citations"
    return "lear" if path.is_file() and is_lear(path) else None


def read_published(
    path: Path, kind: str, rejects: Rejects, *, label_kind: str | None = None, split: str | None = None
) -> FeatureTable | ItemList:
    """Read a collection of one of these layouts; `label_kind` and `split` apply where it has several."""
    if kind in OF_SEVERAL_KINDS:
        return OF_SEVERAL_KINDS[kind](path, kind=label_kind, split=split, rejects=rejects)
    if kind == "citations":
        return read_citation_graph(path, rejects=rejects)
    if kind == "iapr":
        return read_iapr(path, rejects=rejects)
    return read_nus_wide(path, rejects=rejects) if kind == "nus-wide" else read_lear(path, rejects=rejects)
