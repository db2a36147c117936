"""Inputs of commands: data, models and spaces, and notes on what a model does not know."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar

import typer

from wsabie.cli.framework import JsonObject, Scope, Settings, refuse_options
from wsabie.cli.output import TerminalProgress, format_count, is_at_terminal, print_note, quote_path
from wsabie.core.errors import InputError, require
from wsabie.io.regions import RegionCrop
from wsabie.storage.rejects import Rejects

if TYPE_CHECKING:
    from typing_extensions import TypeIs

    from wsabie.io.alignment import AlignedTable
    from wsabie.io.records import FeatureTable, ItemSource, ModalityName, Source
    from wsabie.io.shards.sharded_table import ShardedFeatureTable
    from wsabie.io.space_declaration import SpaceDeclaration
    from wsabie.models.annotators import Annotator, ThresholdFunction
    from wsabie.models.entity_space.space_annotator import SpaceAnnotator

KINDS: "dict[ModalityName, str]" = {"pictures": "images", "sounds": "audio", "documents": "text"}
"""Kinds of `wsabie features` by modality."""
Run = TypeVar("Run")
"""Run of a command: a report, or None."""
IN_TABLES = Scope(space="a space has its settings in the tables of its TOML file")
ONLY_LABELS = Scope(space="it is for models of labels, and not for spaces")
ONLY_SPACES = Scope(labels="it is for spaces, which a TOML file declares")


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
    from wsabie.io.data_sources import open_source, summarise_source
    from wsabie.io.formats.region_items import add_full_images

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
    from wsabie.io import format_detection

    try:
        return format_detection.choose_format(path, data_format, plain_text=plain_text, modality=modality)
    except format_detection.AmbiguousFormatError as error:
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
    from wsabie.features.base.item_features import build_label_table

    return source if is_table(source) else build_label_table(source)


def name_content(source: "Source") -> str:
    """Name what a source holds."""
    return "rows of features" if is_table(source) else source.modality


def has_regions(source: "Source") -> "TypeGuard[ItemSource]":
    """Return True if items are regions of pictures."""
    return not is_table(source) and any(isinstance(item.content, RegionCrop) for item in source)


def _choose_label_column(path: Path, data_format: str, items: str | None, default_items: str | None) -> str | None:
    from wsabie.io.format_detection import REGION_FORMATS

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


def open_model_data(
    annotator: "Annotator", path: Path, rejects: Rejects, labels_from: str = "auto", data_format: str | None = None
) -> "Source":
    """Open data that a model takes; marked pictures are read as those of its training."""
    n_features, modality = annotator.model.n_features_in_, find_modality(annotator)
    reading = get_read_options(annotator.facts) | {"data_format": data_format}
    return open_data(path, rejects, labels_from, n_features, modality, **reading)


def find_modality(annotator: "Annotator") -> "ModalityName | None":
    """Return the modality of a model; None for rows of features."""
    return None if annotator.extractor is None else annotator.extractor.modality


def get_read_options(facts: JsonObject) -> Settings:
    """Return options of `open_data` that read marked pictures as the training data of a model."""
    return {"default_items": facts.get("items"), "image_label": facts.get("image_label")}


def report_bursts(n_bursts: int) -> None:
    """Report the number of bursts that a hold-out kept together, if there are any."""
    if n_bursts:
        bursts = format_count(n_bursts, "burst")
        print_note(f"{bursts} of near-copies, or of pictures of one moment: each is held out as a whole or not at all")


def is_training_data(source: "Source", facts: JsonObject) -> bool:
    """Return True if a model with these facts was trained on this source."""
    from wsabie.io.fingerprints import compute_fingerprint_or_none

    fingerprints = {facts.get("fingerprint"), facts.get("source_fingerprint")} - {None}
    return bool(fingerprints) and compute_fingerprint_or_none(source) in fingerprints


def count_training_rows(annotator: "Annotator", rows: "FeatureTable", data: Path) -> tuple[int, int, str]:
    """Return how many rows are training rows, how many were comparable, and both in words."""
    from wsabie.io.fingerprints import count_known_rows

    n_known, n_checked = (0, 0) if annotator.row_hashes is None else count_known_rows(rows, annotator.row_hashes)
    return n_known, n_checked, f"{n_known:,} of {format_count(n_checked, 'row')} of {data} that were looked at"


def align_rows(annotator: "Annotator", model: Path, source: "Source", **resources: Any) -> "AlignedTable":
    """Convert a source to rows with the features and labels of the model; the options are those of `rows`."""
    refuse_misfit(annotator, model, source)
    return annotator.rows(source, **resources)


def refuse_misfit(annotator: "Annotator", model: Path, source: "Source") -> None:
    """Refuse a source that does not fit a model; the sentence names the command that makes it fit."""
    from wsabie.io.alignment import KPCA_FINGERPRINT_PREFIX

    if is_table(source):
        is_extracted = bool(annotator.extractor_fingerprint) and source.extractor_fingerprint
        if annotator.extractor is not None and is_extracted and is_extracted != annotator.extractor_fingerprint:
            modality, reason = annotator.extractor.modality, "the features come from another extractor"
            command = f"wsabie features {KINDS[modality]} FOLDER --extractor {model} --out FILE"
            raise InputError(f"{reason} than the training data; give the {modality}, or extract them again: {command}")
    elif annotator.extractor is None:
        remedy = "give rows"
        if annotator.extractor_fingerprint:
            hint = format_features_hint(source, source.path)
            remedy = f"{hint} --extractor FOLDER, with the folder of the extractor of the training data"
            if annotator.extractor_fingerprint.startswith(KPCA_FINGERPRINT_PREFIX):
                remedy += ", and map them: wsabie features kpca FILE.parquet --map FOLDER --out MAPPED.parquet"
        raise InputError(f"{model} was trained on rows of features and {source.path} holds {source.modality}; {remedy}")
    elif source.modality != (modality := annotator.extractor.modality):
        raise InputError(f"{model} is a model of {modality} and {source.path} holds {source.modality}; give {modality}")


def read_model_rows(
    options: Any, annotator: "Annotator", data: Path, resources: Settings, labels_from: str = "auto"
) -> "FeatureTable":
    """Read data that a model takes as rows, and report unknown features; `resources` are those of `rows`."""
    source = open_model_data(annotator, data, resources["rejects"], labels_from, options.data_format)
    aligned = align_rows(annotator, options.model, source, **resources)
    report_unknown_features(aligned, data)
    return aligned.rows


def load_annotator(path: Path, threads: int | None = None) -> "Annotator":
    """Load the annotator of a model folder; wrap a bare estimator."""
    from wsabie.models.annotators import Annotator
    from wsabie.models.loader import load

    model = load(path)
    annotator = model if isinstance(model, Annotator) else Annotator(model)
    annotator.model.threads = threads
    return annotator


def load_thresholds(path: Path, annotator: "Annotator", min_precision: float | None) -> "ThresholdFunction | None":
    """Load the probabilities from which labels reach `min_precision`; None if all labels are wanted."""
    from wsabie.collection.registry import thresholds

    return None if min_precision is None else thresholds.read_thresholds(path, annotator, min_precision)


def refuse_collection_folder(folder: Path) -> None:
    """Refuse a collection, or a folder of items, in place of a model."""
    from wsabie.io.file_discovery import find_files

    if (folder / ".wsabie" / "collection.json").is_file():
        raise InputError(f"{folder} is a collection and no model; run: wsabie collection status {quote_path(folder)}")
    if not folder.is_dir() or (folder / "config.json").exists():
        return
    modality, files, _ = find_files(folder, Rejects(most=0))
    if files:
        command = f"wsabie collection init {quote_path(folder)}"
        raise InputError(f"{folder} is a folder of {modality.name} and not yet a collection; run: {command}")


def report_unknown_labels(aligned: "AlignedTable", data: object) -> None:
    """Report labels of the data that the model does not know."""
    names = aligned.unknown_labels
    if names:
        summary = f"{format_count(len(names), 'label')} of {data} ({format_count(aligned.unknown_pairs, 'pair')})"
        verb = "is" if len(names) == 1 else "are"
        print_note(f"{summary} {verb} unknown to the model, such as {format_names(names)}")
    report_unknown_features(aligned, data)


def report_unknown_features(aligned: "AlignedTable", data: object) -> None:
    """Report values of features that the model does not know; refuse data without any known feature."""
    X = aligned.rows.X
    if aligned.unknown_features and not (X.nnz if hasattr(X, "nnz") else X.any()):
        fact = f"{data} has none of the model's {X.shape[1]:,} features"
        raise InputError(f"{fact}; give data made in the same way as the training data")
    if aligned.unknown_features:
        values = format_count(aligned.unknown_features, "value")
        print_note(f"{values} of {data} left out: the model does not know their features (words, ids or columns)")


def read_label_file(labels: Path) -> list[str]:
    """Read the distinct labels of a model folder, or of the lines of a file up to a tab."""
    from wsabie.io.parsers.text_files import iterate_content_lines

    if labels.is_dir():
        vocabulary = load_annotator(labels).model.vocabulary_
        return list(vocabulary.names(vocabulary.active_ids()))
    lines = (line.decode("utf-8", "replace").partition("\t")[0] for _, line in iterate_content_lines(labels, 1 << 20))
    names = list(dict.fromkeys(line for line in lines if line.strip()))
    require(bool(names), f"{labels} names no label; write one a line")
    return names


def open_inputs(
    inputs: Sequence[Path],
    rejects: Rejects,
    annotator: "Annotator",
    *,
    has_labels: bool,
    is_single: bool,
    data_format: str | None = None,
) -> "list[tuple[str, Source]]":
    """Open all inputs, each with a prefix for its ids; single files of one modality make one source.

    The prefix is the path of the input, or empty for a single input. Labels are read only if `has_labels`.
    """

    from wsabie.io.records import ItemList

    labels_from = "auto" if has_labels else "none"
    opened_ones = [(path, open_model_data(annotator, path, rejects, labels_from, data_format)) for path in inputs]
    if is_single:
        return [("", source) for _, source in opened_ones]
    singles: list[ItemList] = []
    sources: list[tuple[str, Source]] = []
    for path, source in opened_ones:
        if isinstance(source, ItemList) and source.path.is_file():
            singles.append(replace(source, items=[item._replace(id=str(path)) for item in source]))
        else:
            sources.append((f"{path}/", source))
    for modality in ("documents", "sounds", "pictures"):
        group = [source for source in singles if source.modality == modality]
        if group:
            sources.insert(0, ("", replace(group[0], items=[item for single in group for item in single])))
    return sources


def is_declaration(path: Path) -> bool:
    """Return True if DATA is a declaration of kinds and relations."""
    from wsabie.io.space_declaration import ENDING

    return path.suffix.lower() == ENDING


def read_test_declaration(path: Path, refusal: str) -> "SpaceDeclaration":
    """Read a declaration of test data; any other file is refused by a sentence that names an example."""
    from wsabie.io.space_declaration import ENDING, read_declaration

    require(is_declaration(path), f"{refusal}, with the test data, that ends with {ENDING}")
    return read_declaration(path)


def run_by_data(options: Any, on_rows: Callable[[Any], Run], on_space: "Callable[[Any, SpaceDeclaration], Run]") -> Run:
    """Run a command on rows or items, or on a declaration of a space; refuse options of the other."""
    from wsabie.io.space_declaration import read_declaration

    if is_declaration(options.data):
        refuse_options("space", options)
        return on_space(options, read_declaration(options.data))
    refuse_options("labels", options)
    return on_rows(options)


def run_by_model(options: Any, on_model: Callable[[Any], Run], on_space: "Callable[[Any, SpaceAnnotator], Run]") -> Run:
    """Run a command on a model of labels, or on a space; refuse options of the other."""
    from wsabie.storage.model_folder import require_model_folder

    space = load_space(options.model, getattr(options, "threads", None))
    if space is not None:
        refuse_options("space", options)
        return on_space(options, space)
    try:
        refuse_options("labels", options)
    except InputError:
        require_model_folder(options.model)  # a folder without a model is the greater fault
        raise
    return on_model(options)


def load_space(path: Path, threads: int | None = None) -> "SpaceAnnotator | None":
    """Load the space of a model folder; None if it holds another kind of model."""
    from wsabie.models.entity_space.space import Space
    from wsabie.models.entity_space.space_annotator import SpaceAnnotator
    from wsabie.storage.model_folder import read_folder_kind

    kind = read_folder_kind(path)
    if kind not in (SpaceAnnotator.kind, Space.kind):
        return None
    annotator = SpaceAnnotator.load(path) if kind == SpaceAnnotator.kind else SpaceAnnotator(Space.load(path))
    annotator.space.threads = threads
    return annotator


def list_declared_files(*declarations: "SpaceDeclaration | None") -> list[Path | None]:
    """List the input files of declarations."""
    files: list[Path | None] = []
    for declaration in filter(None, declarations):
        files += [kind.data for kind in declaration.kinds.values()]
        files += [relation.pairs for relation in declaration.relations]
    return files
