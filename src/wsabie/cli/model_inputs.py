"""Models that commands load, data that fit them, and notes on what a model does not know."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wsabie.cli.data_inputs import KINDS, format_features_hint, format_names, is_table, open_data
from wsabie.cli.framework import JsonObject, Settings
from wsabie.cli.output import format_count, print_note, quote_path
from wsabie.core.errors import InputError, require
from wsabie.storage.rejects import Rejects

if TYPE_CHECKING:
    from wsabie.io.alignment import AlignedTable
    from wsabie.io.records import FeatureTable, ModalityName, Source
    from wsabie.models.annotators import Annotator, ThresholdFunction


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
            remedy = (
                f"{format_features_hint(source, source.path)} --extractor FOLDER, "
                "with the folder of the extractor of the training data"
            )
            if annotator.extractor_fingerprint.startswith(KPCA_FINGERPRINT_PREFIX):
                remedy += ", and map them: wsabie features kpca FILE.parquet --map FOLDER --out MAPPED.parquet"
        raise InputError(f"{model} was trained on rows of features and {source.path} holds {source.modality}; {remedy}")
    elif source.modality != (modality := annotator.extractor.modality):
        raise InputError(f"{model} is a model of {modality} and {source.path} holds {source.modality}; give {modality}")


def read_model_rows(
    annotator: "Annotator",
    model: Path,
    data: Path,
    resources: Settings,
    labels_from: str = "auto",
    data_format: str | None = None,
) -> "FeatureTable":
    """Read data that a model takes as rows, and report unknown features; `resources` are those of `rows`."""
    source = open_model_data(annotator, data, resources["rejects"], labels_from, data_format)
    aligned = align_rows(annotator, model, source, **resources)
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
    from wsabie.io.file_matching import find_files

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
