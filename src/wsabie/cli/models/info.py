"""`wsabie info`."""

from pathlib import Path
from typing import TYPE_CHECKING

from wsabie.cli.framework import JsonObject, Report, Scope, argument, command, only_for, option, refuse_options
from wsabie.cli.inputs import find_modality, load_annotator, refuse_collection_folder, run_by_model
from wsabie.cli.output import TerminalProgress, format_epoch_count, print_note, show_epochs, show_table
from wsabie.cli.shared_options import OutputOptions
from wsabie.core.errors import InputError
from wsabie.storage.rejects import Rejects

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wsabie.models.base.label_model import LabelModel
    from wsabie.models.entity_space.space import Space
    from wsabie.models.entity_space.space_annotator import SpaceAnnotator
    from wsabie.training.epoch_stats import EpochStats

_NO_EPOCHS = "data have no epochs"
_SCORE_COLUMNS = ("", "score", "reason")
_CASES = ("labels", "space", "shards", "file")


class InfoOptions(OutputOptions):
    """Options of `wsabie info`."""

    model: Path = argument("Model folder, a folder of shards, or a file of data.", metavar="MODEL")
    epochs: bool = option("Also the figures of every epoch.", scope=Scope(shards=_NO_EPOCHS, file=_NO_EPOCHS))
    verify: bool = option("Of shards: read all and compare their checksums.", scope=only_for(_CASES, "shards"))


@command("info birds", "info birds --epochs --json")
def info(options: InfoOptions) -> Report:
    """Show the facts of a model or shards, or how a file is read.

    Facts are sizes, parameters, data and figures.
    """
    from wsabie.io.shards.shard_folder import is_shard_folder

    if options.model.is_file():
        refuse_options("file", options)
        return _show_file(options)

    if is_shard_folder(options.model):
        refuse_options("shards", options)
        return _show_shards(options)
    refuse_options("labels", options)
    refuse_collection_folder(options.model)
    return run_by_model(options, _show_model, _show_space)


def _show_model(options: InfoOptions) -> Report:
    """Print the facts of a model."""
    from wsabie.storage.model_folder import measure_folder_bytes

    model, annotator = options.model, load_annotator(options.model)
    estimator = annotator.model
    history = getattr(estimator, "history_", [])
    modality = find_modality(annotator)
    facts: JsonObject = {
        **estimator.facts(),
        **{name: modality == name for name in ("pictures", "sounds", "documents")},
        "bytes": measure_folder_bytes(model),
        **annotator.extraction_facts(),
        **annotator.facts,
    }
    reports = [report.as_dict() for report in getattr(estimator, "batch_reports_", ())]
    details = _list_details(estimator) | ({"stream": reports} if reports else {})
    yield _make_document(options, {"kind": estimator.kind, **facts, **details}, history)
    facts.pop("members", None)  # a list, for --json
    facts |= {name: _shorten(facts[name]) for name in ("updates", "last_batch") if name in facts}
    if {"models", "blend"} & facts.keys():
        facts["epochs"] = format_epoch_count(history, facts)
    facts |= {f"index_{name}": value for name, value in (facts.pop("index", None) or {}).items()}
    _show_facts(model, facts)
    if options.epochs:
        show_epochs(history)


def _show_space(options: InfoOptions, annotator: "SpaceAnnotator") -> Report:
    """Print the facts of a space."""
    from wsabie.storage.model_folder import measure_folder_bytes

    space = annotator.space
    extractors = {f"extractor_{name}": extractor.name for name, extractor in annotator.extractors.items()}
    n_bytes = measure_folder_bytes(options.model)
    facts: JsonObject = {**space.facts(), "bytes": n_bytes, **extractors, **annotator.facts}
    yield _make_document(options, facts | _list_details(space), space.history_)
    shown_names = [name for name in facts if name not in ("fingerprints", "pair_fingerprints")]
    _show_facts(options.model, {name: facts[name] for name in shown_names})
    if options.epochs:
        show_epochs(space.history_)


def _show_shards(options: InfoOptions) -> Report:
    """Print the contents of shards."""
    from wsabie.io.shards.shard_folder import open_shard_folder

    shards = open_shard_folder(options.model)
    if options.verify:
        shards.verify(TerminalProgress())
    facts = shards.summarise() | ({"verified": True} if options.verify else {})
    yield {"shards": options.model, **facts, "files": shards.files}
    _show_facts(options.model, facts)


def _show_file(options: InfoOptions) -> Report:
    """Print the possible formats of a file with scores and reasons, and its content or the refusal."""
    from wsabie.io.data_sources import open_source, summarise_source
    from wsabie.io.format_detection import (
        FORMATS,
        FORMATS_BY_KIND,
        AmbiguousFormatError,
        Rating,
        detect_format,
        rate_formats,
        read_data_head,
    )

    path, rejects = options.model, Rejects()
    head = read_data_head(path)
    ratings = rate_formats(head) or [Rating(form.kind, *form.rate(head)) for form in FORMATS]
    scores = {"columns": list(head.columns), "formats": [rating._asdict() for rating in ratings]}
    rows = [[FORMATS_BY_KIND[rating.kind].title, f"{rating.score:.2f}", rating.reason] for rating in ratings]
    try:
        try:
            kind = detect_format(path)
        except AmbiguousFormatError as error:
            kind = error.formats[0]
            print_note(f"{error.fact}; other commands take --format {' or --format '.join(error.formats)}")
        content = summarise_source(open_source(path, data_format=kind, rejects=rejects), kind)
    except InputError as error:
        if not options.show_json({"data": path, **scores, "refused": str(error)}):
            show_table("formats", _SCORE_COLUMNS, rows)
        raise
    form = FORMATS_BY_KIND[kind]
    facts: JsonObject = {"kind": kind, "columns": scores["columns"], "example": form.example, "endings": form.endings}
    facts |= {"cannot_hold": form.loses or None, "content": content, "skipped": rejects.summary() or None}
    yield {"data": path, **facts, **scores}
    show_table("formats", _SCORE_COLUMNS, rows)
    _show_facts(path, {name: value for name, value in facts.items() if value})


def _list_details(model: "LabelModel | Space") -> JsonObject:
    return {"parameters": model.to_state().config["parameters"], "settings": getattr(model, "settings_", {})}


def _make_document(options: InfoOptions, facts: JsonObject, history: "Sequence[EpochStats]") -> JsonObject:
    epochs = {"history": [stats.as_dict() for stats in history]} if options.epochs else {}
    return {"model": options.model, **facts, **epochs}


def _show_facts(folder: Path, facts: JsonObject) -> None:
    lines = [[name.replace("_", " "), _format_value(value)] for name, value in facts.items()]
    show_table(str(folder), ["", ""], lines)


def _shorten(value: JsonObject | list[object]) -> object:
    """Shorten a list to its length, and a batch report to its main figures."""
    if isinstance(value, list):
        return len(value)
    return {name: value[name] for name in ("rows", "map", "ece", "drift", "advice") if value.get(name)}


def _format_value(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name.replace('_', ' ')} {_format_value(inner)}" for name, inner in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "-"}[value]
    return f"{value:,}" if isinstance(value, int) else f"{value:.4f}" if isinstance(value, float) else str(value)
