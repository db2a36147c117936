"""`wsabie info`, `neighbours`, `export` and `index`: a model folder, its labels, exports and index."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from wsabie.cli import inputs, output, shared_options
from wsabie.cli.data.shards import collect_shard_facts
from wsabie.cli.framework import JsonObject, Report, Scope, argument, command, only_for, option, refuse_options
from wsabie.cli.inputs import ONLY_LABELS, ONLY_SPACES
from wsabie.cli.knowledge_files import match_model_siblings
from wsabie.cli.output import format_count, out, print_note, show_epochs, show_table
from wsabie.cli.shared_options import DataOptions, Model, OutputOptions
from wsabie.core.errors import InputError, require
from wsabie.storage.rejects import Rejects

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wsabie.core.arrays import Matrix
    from wsabie.models.annotators import Annotator
    from wsabie.models.base.label_model import LabelModel
    from wsabie.models.entity_space.space import Space
    from wsabie.models.entity_space.space_annotator import SpaceAnnotator
    from wsabie.training.epoch_stats import EpochStats

_NO_EPOCHS = "data have no epochs"
_CASES = ("labels", "space", "shards", "file")


class InfoOptions(OutputOptions):
    """Options of `wsabie info`."""

    model: Path = argument("Model folder, a folder of shards, or a file of data.", metavar="MODEL")
    epochs: bool = option("Also the figures of every epoch.", scope=Scope(shards=_NO_EPOCHS, file=_NO_EPOCHS))
    verify: bool = option("Of shards: read all and compare their checksums.", scope=only_for(_CASES, "shards"))


@command("info birds", "info birds --epochs --json")
def info(options: InfoOptions) -> Report:
    """Show the facts of a model (sizes, parameters, data, figures) or of shards, or how a file is read."""
    from wsabie.io.shards.shard_folder import is_shard_folder

    if options.model.is_file():
        refuse_options("file", options)
        return _show_file(options.model)

    if is_shard_folder(options.model):
        refuse_options("shards", options)
        return _show_shards(options)
    refuse_options("labels", options)
    inputs.refuse_collection_folder(options.model)
    return inputs.run_by_model(options, _show_model, _show_space)


def _show_model(options: InfoOptions) -> Report:
    """Print the facts of a model."""
    from wsabie.storage.model_folder import measure_folder_bytes

    model, annotator = options.model, inputs.load_annotator(options.model)
    estimator = annotator.model
    history = getattr(estimator, "history_", [])
    modality = inputs.find_modality(annotator)
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
        facts["epochs"] = output.format_epoch_count(history, facts)
    facts |= {f"index_{name}": value for name, value in (facts.pop("index", None) or {}).items()}
    _show_facts(model, facts)
    if options.epochs:
        show_epochs(history)


def _show_space(options: InfoOptions, annotator: "SpaceAnnotator") -> Report:
    """Print the facts of a space."""
    from wsabie.storage.model_folder import measure_folder_bytes

    space = annotator.space
    extractors = {f"describe_{name}": extractor.name for name, extractor in annotator.extractors.items()}
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
        shards.verify(output.TerminalProgress())
    facts = collect_shard_facts(shards) | ({"verified": True} if options.verify else {})
    yield {"shards": options.model, **facts, "files": shards.files}
    _show_facts(options.model, facts)


def _show_file(path: Path) -> Report:
    """Print the formats that a file may have, with scores and reasons, and what is read of it."""
    from wsabie.io.data_formats import FORMATS_BY_KIND, rate_formats, read_data_head
    from wsabie.io.recognition import AmbiguousFormatError, detect_format, open_source, summarise_source

    rejects, head = Rejects(), read_data_head(path)
    try:
        kind = detect_format(path)
    except AmbiguousFormatError as error:
        kind = error.formats[0]
        print_note(f"{error.fact}; other commands take --format {' or --format '.join(error.formats)}")
    form, ratings = FORMATS_BY_KIND[kind], rate_formats(head)
    facts: JsonObject = {"kind": kind, "columns": list(head.columns)}
    facts |= {"example": form.example, "endings": form.endings, "cannot_hold": form.loses or None}
    facts["content"] = summarise_source(open_source(path, data_format=kind, rejects=rejects), kind)
    facts["skipped"] = rejects.summary() or None
    yield {"data": path, **facts, "formats": [rating._asdict() for rating in ratings]}
    rows = [[FORMATS_BY_KIND[rating.kind].title, f"{rating.score:.2f}", rating.reason] for rating in ratings]
    show_table("formats", ["", "score", "reason"], rows)
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


class ExportOptions(OutputOptions):
    """Options of `wsabie export`."""

    model: Model
    out: Path = argument("What to write: a file (onnx) or a folder (the others).", metavar="OUT")
    form: str = option(
        "onnx: one graph for ONNX Runtime; numpy: plain arrays with an example that reads them; huggingface: the model "
        "folder with a model card; half: the model folder with labels in float16.",
        flag="--as",
        metavar="FORMAT",
    )
    k: int | None = option("Of onnx: how many labels a row gets (default: 10).", flag="-k", min=1)
    int8: bool = option("Of onnx: tables of bytes, a quarter of the size.")
    license: str | None = option(
        "Of huggingface: license in the card, such as apache-2.0 (default: unknown).", metavar="ID"
    )


@command("export birds birds.onnx --as onnx", "export birds birds-card --as huggingface --license apache-2.0")
def export(options: ExportOptions) -> Report:
    """Write a model for other programs: ONNX, NumPy arrays, a Hugging Face folder, or half the bytes."""
    from wsabie.models.exporters import export_formats

    model, target, format_name = options.model, options.out, options.form
    stated = {name: value for name, value in options.pick("k", "int8", "license").items() if value}
    if model.resolve() in target.resolve().parents:
        raise InputError(f"{target} would lie in the model folder {model}; choose another path")
    if inputs.load_space(model) is not None:
        raise InputError(f"{model} is a space of several kinds of entities; export a model that gives rows labels")
    annotator = inputs.load_annotator(model)
    files = export_formats.export(annotator, target, format_name, **stated)
    sizes = {str(file): file.stat().st_size for file in files}
    includes_extractor, modality = (
        export_formats.FORMATS[format_name].includes_extractor,
        inputs.find_modality(annotator),
    )
    is_left_out = modality is not None and not includes_extractor
    if is_left_out:
        rows = f"(Annotator.rows, or wsabie features), {annotator.model.n_features_in_:,} features each"
        print_note(f"the feature extractor of {modality} is not exported: rows are those that it makes {rows}")
    n_replayed = annotator.model.facts().get("rows_replayed")
    if n_replayed and format_name == "huggingface":
        print_note(f"{format_count(n_replayed, 'training row')} that the model keeps against forgetting stayed behind")
    labels, features = annotator.model.facts()["labels"], annotator.model.n_features_in_
    counts = {"labels": labels, "features": features, "extractor_left_out": is_left_out}
    yield {"model": model, "out": target, "as": format_name, **counts, "files": sizes}
    total = sum(sizes.values()) / 1e6
    contents = f"{format_count(labels, 'label')}, {format_count(features, 'feature')}"
    summary = f"{contents}, {total:,.2f} MB in {format_count(len(files), 'file')}"
    out.print(output.escape_line(f"{target}: {export_formats.FORMATS[format_name].summary}, {summary}"))


class IndexOptions(DataOptions, shared_options.SeededThreadOptions):
    """Options of `wsabie index`."""

    model: Model
    kind: Literal["ivf", "hnsw", "int8", "tree"] = option(
        "ivf: small, made in seconds; hnsw: a graph, larger, made in minutes; int8: the exact answer, a byte a "
        "coordinate; tree: a label tree. The last two do without faiss.",
        "ivf",
    )
    recall: shared_options.RecallTarget = 0.95
    queries: Path | None = option("Data to measure on, like later queries (default: the labels).", metavar="DATA")


@command("index topics", "index topics --kind hnsw --recall 0.99 --queries rows.parquet", locks_model=True)
def index(options: IndexOptions) -> Report:
    """Make an index of a model's labels, measured against the exact search; `annotate` uses it."""
    from wsabie.models.index_files import FOLDER, index_labels, require_indexable

    model, kind, recall = options.model, options.kind, options.recall
    annotator = inputs.load_annotator(model, options.threads)
    require_indexable(annotator, kind)  # refuses before data are read
    X = None if options.queries is None else _read_queries(options, annotator, options.queries)
    index = index_labels(annotator, kind=kind, recall=recall, X=X, seed=options.seed, folder=model)
    facts = index.facts()
    yield {"model": model, "target_recall": recall, **facts, "curve": index.curve}
    rows = []
    for step in index.curve:
        effort = f"{step.effort:,}{' *' if step.effort == index.effort else ''}"
        rows.append([effort, f"{step.recall:.3f}", f"{step.milliseconds:.2f}"])
    rows.append(["exact", "1", f"{index.exact_milliseconds:.2f}"])
    efforts = {"ivf": "cells", "hnsw": "vectors in sight", "int8": "labels scored", "tree": "nodes of a level"}
    show_table(f"{model}: recall@10 of {index.queries}", [efforts[kind], "recall@10", "ms a row"], rows)
    out.print(_format_gain(facts, recall))
    if facts["milliseconds"] > 0.9 * facts["exact_milliseconds"]:
        print_note(f"the index saves no time: delete {model / FOLDER} to search exactly again")


def _read_queries(options: IndexOptions, annotator: "Annotator", queries: Path) -> "Matrix":
    """Read the rows to measure on."""
    with options.collect_rejects() as rejects:
        resources = options.resources(rejects=rejects)
        rows = inputs.read_model_rows(annotator, options.model, queries, resources, "none", options.data_format)
    require(len(rows) > 0, f"{queries} has no row to measure on; give data that the model takes")
    return rows.X


def _format_gain(facts: JsonObject, requested_recall: float) -> str:
    speedup = facts["exact_milliseconds"] / max(facts["milliseconds"], 1e-9)
    quality = f"recall@10 {facts['recall@10']:.3f} ({requested_recall:g} was asked for)"
    if facts["kind"] == "int8":
        quality = "the same answer as of an exact search"
    speed = f"1/{speedup:.1f} of" if speedup >= 1 else f"{1 / max(speedup, 1e-9):.1f} times"
    return f"{quality} in {speed} the exact time, {facts['bytes'] / 1e6:.1f} MB; annotate --exact goes without"


class NeighbourOptions(OutputOptions):
    """Options of `wsabie neighbours`."""

    model: Model
    label: str = argument("A label of the model, or an entity of a space.", metavar="LABEL")
    k: shared_options.LabelLimit = 10
    entity_kind: str | None = option("Of a space: the kind of the entity.", metavar="KIND", scope=ONLY_SPACES)
    words: bool = option("Of documents in a space: words nearest to a word.", scope=ONLY_SPACES)
    labels: Annotated[shared_options.HierarchyOptions, ONLY_LABELS]


@command("neighbours birds penguin", "neighbours my-texts mutex --words -k 5")
def neighbours(options: NeighbourOptions) -> Report:
    """Find the labels nearest to a label: synonyms, translations, near misses."""
    return inputs.run_by_model(options, _show_label_neighbours, _show_space_neighbours)


def _show_label_neighbours(options: NeighbourOptions) -> Report:
    """Print the nearest labels; with a hierarchy, mark siblings, as in Weston et al. 2010, table 4."""
    from wsabie.models.base.label_model import LabelModel
    from wsabie.vocabulary.label_similarity import classify_labels

    annotator, label = inputs.load_annotator(options.model), options.label
    # not the neighbours of rows, which nearest-neighbour models override
    neighbours = LabelModel.neighbours(annotator.model, label, options.k)
    siblings = match_model_siblings(options.labels, annotator)
    lines, columns, mark_fields = [[name, f"{cosine:.3f}"] for name, cosine in neighbours], ["label", "cosine"], {}
    if siblings is not None:
        ids = annotator.model.vocabulary_.ids
        marks = classify_labels(ids([name for name, _ in neighbours]), ids([label]), siblings)
        lines = [[*line, "" if mark == "other" else mark] for line, mark in zip(lines, marks, strict=True)]
        columns, mark_fields = [*columns, ""], {"marks": marks}
    yield {"label": label, "neighbours": _round_cosines(neighbours), **mark_fields}
    show_table(f"nearest to {label}", columns, lines)


def _show_space_neighbours(options: NeighbourOptions, annotator: "SpaceAnnotator") -> Report:
    """Print the items nearest to an item of their kind, or the words nearest to a word."""
    item, kind = options.label, options.entity_kind
    if options.words:
        query_kind = kind or next(iter(annotator.extractors), next(iter(annotator.space.kinds_)))
        kind, neighbours = "word", annotator.words_near(query_kind, item, options.k)
    else:
        kind = kind or _find_kind(annotator, item)
        neighbours = annotator.space.find_similar(kind, item, options.k)
    yield {"kind": kind, "label": item, "neighbours": _round_cosines(neighbours)}
    show_table(f"nearest to {item}", [kind, "cosine"], [[name, f"{cosine:.3f}"] for name, cosine in neighbours])


def _find_kind(annotator: "SpaceAnnotator", item: str) -> str:
    """Find the only kind that has this item."""
    from wsabie.vocabulary.label_names import format_unknown_label

    kinds = annotator.space.kinds_
    holders = [name for name, fitted_kind in kinds.items() if item in fitted_kind.vocabulary]
    require(len(holders) < 2, f"{item!r} is an entity of the kinds {', '.join(holders)}; choose one by --entity-kind")
    if not holders:
        names = [name for fitted_kind in kinds.values() for name in fitted_kind.vocabulary]
        raise InputError(format_unknown_label(item, names, "entity"))
    return holders[0]


def _round_cosines(neighbours: list[tuple[str, float]]) -> list[list[str | float]]:
    return [[name, round(cosine, 6)] for name, cosine in neighbours]
