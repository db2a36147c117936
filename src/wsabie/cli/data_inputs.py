"""Data that commands read: opening them, their labels and regions, and hints for messages."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard

import typer

from wsabie.cli.framework import Settings
from wsabie.cli.output import TerminalProgress, format_count, is_at_terminal, print_note, quote_path
from wsabie.cli.space_dispatch import is_declaration
from wsabie.core.errors import InputError, require
from wsabie.io.regions import RegionCrop
from wsabie.storage.rejects import Rejects

if TYPE_CHECKING:
    from typing_extensions import TypeIs

    from wsabie.io.records import FeatureTable, ItemSource, ModalityName, Source
    from wsabie.io.shards.sharded_table import ShardedFeatureTable

KINDS: "dict[ModalityName, str]" = {"pictures": "images", "sounds": "audio", "documents": "text"}
"""Kinds of `wsabie features` by modality."""


def open_data(
    path: Path,
    rejects: Rejects,
    labels_from: str = "auto",
    n_features: int | None = None,
    modality: "ModalityName | None" = None,
    items: str | None = None,
    default_items: str | None = None,
    image_label: str | None = None,
    *,
    data_format: str | None = None,
    with_note: bool = True,
) -> "Source":
    """Open the source at a path; refuse an empty one, and print a sentence on any other.

    `n_features` is the width of rows that do not state theirs, and `modality` the expected modality, if known. In
    pictures with marked regions, `items` (or else `default_items`) chooses the items, and the whole pictures become
    items too if `image_label` gives them a label.
    """
    from wsabie.io.formats.region_items import add_full_images
    from wsabie.io.recognition import open_source, summarise_source

    if is_declaration(path):
        raise InputError(f"{path} declares a space, for train, evaluate, compare, split and tune; give data here")
    settings: Settings = {"n_features": n_features, "modality": modality, "progress": TerminalProgress()}
    settings["data_format"] = data_format = choose_format(path, data_format, labels_from == "none", modality)
    label_column = _choose_label_column(path, data_format, items, default_items)
    source = open_source(path, labels_from=labels_from, label_column=label_column, rejects=rejects, **settings)
    if not len(source):
        reasons = f": {rejects.summary()}" if len(rejects) else ""
        raise InputError(f"{path} holds nothing to use{reasons}; look at the list that --rejects FILE writes")
    if with_note:
        print_note(f"{path}: {summarise_source(source, data_format)}")
    return source if image_label is None or not has_regions(source) else add_full_images(source, image_label)


def choose_format(
    path: Path, data_format: str | None, plain_text: bool = False, modality: "ModalityName | None" = None
) -> str:
    """Return the requested format, or the one that fits best; where two do, ask or refuse."""
    from wsabie.io import recognition

    try:
        return recognition.choose_format(path, data_format, plain_text=plain_text, modality=modality)
    except recognition.AmbiguousFormatError as error:
        remedy = f"add {' or '.join(f'--format {name}' for name in error.formats)}"
        answer = typer.prompt(f"{error.fact}; read it as", error.formats[0], err=True) if is_at_terminal() else ""
        if answer not in error.formats:
            raise InputError(f"{error.fact}; {remedy}") from None
        return answer


def choose_label_source(path: Path, n_features: int | None, modality: "ModalityName | None") -> str:
    """Choose the source of labels for data to search: items in a folder and single files need no label."""

    from wsabie.io.modalities import detect_modality

    if path.is_dir() or detect_modality(path.name):
        try:
            open_data(path, Rejects(), "auto", n_features, modality, with_note=False)
        except InputError:
            return "none"
    return "auto"


def is_table(source: "Source | ShardedFeatureTable") -> "TypeIs[FeatureTable]":
    """Return True if a source holds rows of features, and not items."""
    from wsabie.io.records import FeatureTable

    return isinstance(source, FeatureTable)


def make_label_table(source: "Source") -> "FeatureTable":
    """Return a table of the ids, labels and groups of a source."""
    from wsabie.features.base.table_builder import build_label_table

    return source if is_table(source) else build_label_table(source)


def name_content(source: "Source") -> str:
    """Name what a source holds."""
    return "rows of features" if is_table(source) else source.modality


def has_regions(source: "Source") -> "TypeGuard[ItemSource]":
    """Return True if items are regions of pictures."""
    return not is_table(source) and any(isinstance(item.content, RegionCrop) for item in source)


def _choose_label_column(path: Path, data_format: str, items: str | None, default_items: str | None) -> str | None:
    from wsabie.io.data_formats import REGION_FORMATS

    if data_format in REGION_FORMATS:
        return items or default_items
    require(not items, f"--items is for COCO and Pascal VOC, and {path} is neither; leave --items out")
    return None


def find_width(source: "Source") -> int | None:
    """Return the number of features of rows; None for other items."""
    return source.X.shape[1] if is_table(source) else None


def format_features_hint(source: "ItemSource", path: Path) -> str:
    """Return the end of an error message: the command that extracts rows of features."""
    return f"extract features first: wsabie features {KINDS[source.modality]} {quote_path(path)} --out FILE.parquet"


def read_label_pairs(file: Path) -> list[tuple[str, str]]:
    """Read pairs of labels from a list, and report malformed lines."""
    from wsabie.io.formats.pair_list import read_id_pairs

    rejects = Rejects()
    pairs = list(read_id_pairs(file, rejects=rejects))
    if rejects.listed:
        position, reason, detail = rejects.listed[0]
        print_note(f"{format_count(len(rejects), 'line')} of {file} left out: {position} for {reason} ({detail})")
    return pairs


def format_names(names: Sequence[str]) -> str:
    """Format the first few names."""
    return ", ".join(f"'{name}'" for name in names[:3])
