"""`wsabie annotate`."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from wsabie.cli import inputs
from wsabie.cli import shared_options as shared
from wsabie.cli.framework import Options, Report, Scope, Settings, argument, command, option, refuse_options
from wsabie.cli.inputs import ONLY_LABELS, ONLY_SPACES, run_by_model
from wsabie.cli.knowledge_files import SHOWN_MARKS, match_model_siblings
from wsabie.cli.output import escape_line, format_count, out, print_note, print_row
from wsabie.core.errors import InputError, require
from wsabie.core.json_conversion import JsonObject
from wsabie.io.regions import OUTSIDE
from wsabie.storage.rejects import Rejects

if TYPE_CHECKING:
    from wsabie.core.arrays import Matrix
    from wsabie.io.formats.region_items import FixedRegionSource
    from wsabie.io.records import FeatureTable, ItemList, ModalityName, Source
    from wsabie.models.annotators import Annotator
    from wsabie.models.entity_space.space_annotator import SpaceAnnotator
    from wsabie.vocabulary.label_similarity import SiblingSimilarity


_NO_FILE = Scope(file="--out writes labels alone, of any number of rows")
_SHOWN_LABELS = Scope(ONLY_LABELS, **_NO_FILE)


class ExplanationOptions(Options, panel="Heat maps"):
    """Options of heat maps."""

    explain: Path | None = option("Folder for heat maps: where in the picture the best label is seen.")
    label: str | None = option("Explain this label instead of the best one.")


class AnnotateOptions(shared.DataOptions, shared.ModelClusterOptions):
    """Options of `wsabie annotate`."""

    model: shared.Model
    inputs: list[Path] | None = argument("Pictures, folders or other data; of a space also names.", metavar="INPUTS")
    k: shared.LabelLimit = 10
    out: Path | None = option("Write labels to this file (.jsonl, .tsv, .parquet), of any size.", scope=ONLY_LABELS)
    text: list[str] | None = option("Text to annotate, for models of documents.", metavar="TEXT", scope=_NO_FILE)
    region: list[str] | None = option(
        "Labels for a region of the pictures, in pixels or as 10%,20%,30%,40%; or a polygon X1,Y1,X2,Y2 ...",
        metavar="X,Y,W,H",
        scope=_SHOWN_LABELS,
    )
    candidates: Annotated[shared.Candidates, ONLY_LABELS] = None
    min_precision: float | None = option(
        "For a model of a collection: only labels that are right this often on held-out items, such as 0.9.",
        min=0,
        max=1,
        scope=ONLY_LABELS,
    )
    relation: str | None = option(
        "Of a space: which relation answers, or two kinds as query:target (default: its first).", scope=ONLY_SPACES
    )
    exact: bool = option("Search without the index that `wsabie index` made.")
    explanation: Annotated[ExplanationOptions, _SHOWN_LABELS]
    labels: Annotated[shared.HierarchyOptions, _SHOWN_LABELS]


@command("annotate birds new-photos/ -k 5", "annotate birds rows.parquet --out labels.tsv")
def annotate(options: AnnotateOptions) -> Report:
    """Give new pictures or rows their best labels.

    With a space, rank items of another kind.
    """
    return run_by_model(options, _annotate, _annotate_by_space)


def _annotate(options: AnnotateOptions) -> Report:
    """Rank labels for every input, or write them to a file."""
    if not options.inputs and not options.text:
        raise InputError("nothing to annotate; give pictures, folders, or data in any source format")
    if options.out is not None:
        refuse_options("file", options)
        yield from annotate_to_file(options, options.out)
        return
    _check_options(options)
    annotator = inputs.load_annotator(options.model, options.threads)
    if options.explanation.label is not None:
        annotator.model.vocabulary_.ids([options.explanation.label])  # refuses an unknown label before any work
    siblings = match_model_siblings(options.labels, annotator)
    with options.collect_rejects() as rejects:
        results, n_unknown = _rank_inputs(options, annotator, siblings, rejects)
    if not results:
        for where, reason, detail in rejects.listed:
            if reason == OUTSIDE:
                raise InputError(f"{escape_line(where)} lies outside: {detail}; give a region in it")
        formats = "pictures, sounds, documents or rows in a format that `wsabie train` reads"
        raise InputError(f"nothing could be annotated; give {formats}")
    yield {"model": options.model, "results": results, "skipped": len(rejects), "unknown_features": n_unknown}
    _show_rankings(results)
    if siblings is not None:
        print_note("* a true label, ~ a sibling of one")


def _rank_inputs(
    options: AnnotateOptions, annotator: "Annotator", siblings: "SiblingSimilarity | None", rejects: Rejects
) -> tuple[list[JsonObject], int]:
    """Rank labels for every input, with marks of true labels and siblings; count unknown features."""
    from wsabie.io.records import ConcatenatedSource, Item, ItemList
    from wsabie.models.base.label_model import name_best
    from wsabie.workflows.batch_inference import LabelRanking

    candidates, vocabulary = _read_candidates(options, annotator), annotator.model.vocabulary_
    thresholds = inputs.load_thresholds(options.model, annotator, options.min_precision)
    k = min(options.k, len(vocabulary))
    ranking = LabelRanking(annotator.model, None, k, candidates, thresholds, options.exact)
    paths, regions, explanation = options.inputs or [], options.region or (), options.explanation
    resources = options.resources(*paths, rejects=rejects)
    results: list[JsonObject] = []
    n_drawn = n_unknown = 0
    reading: Settings = {"has_labels": siblings is not None, "is_single": len(paths) == 1}
    sources = inputs.open_inputs(paths, rejects, annotator, data_format=options.data_format, **reading)
    sources = [(prefix, _select_regions(source, regions)) for prefix, source in sources] if regions else sources
    if texts := [Item(text, text.encode(), ()) for text in options.text or ()]:  # texts are their own ids
        sources = [*sources, ("", ItemList(Path("--text"), texts, "documents"))]
    for prefix, bare in sources:
        source = bare
        if prefix and not inputs.is_table(bare):
            source = ConcatenatedSource(bare, [bare], [prefix])  # rejects name the input too
        aligned = inputs.align_rows(annotator, options.model, source, **resources)
        rows, n_unknown = aligned.rows, n_unknown + aligned.unknown_features
        inputs.report_unknown_features(aligned, "the data")
        if (ranked := ranking.rank(rows.X)) is not None:
            row_results = [
                {"id": prefix + i if source is bare else i, "labels": [[name, round(s, 6)] for name, s in top]}
                | ({} if thresholds is None else {"no_tag_fits": not top})
                for i, top in zip(rows.ids, name_best(vocabulary, *ranked), strict=True)
            ]
            if siblings is not None:
                _add_marks(row_results, rows, annotator, siblings)
            results += row_results
        if explanation.explain is not None:
            n_drawn = _draw_explanations(annotator, source, explanation.explain, explanation.label, n_drawn)
    return results, n_unknown


def _read_candidates(options: AnnotateOptions, annotator: "Annotator") -> list[str] | None:
    """Read the candidate labels; refuse unknown ones before any work."""
    names = None if options.candidates is None else inputs.read_label_file(options.candidates)
    annotator.model.vocabulary_.ids(names or ())
    return names


def _check_options(options: AnnotateOptions) -> None:
    """Check before any work that options fit each other, and that files can be written."""
    explain, label, paths = options.explanation.explain, options.explanation.label, options.inputs or []
    if label is not None and explain is None:
        raise InputError("--label chooses what --explain draws; add --explain FOLDER, or leave --label out")
    if options.region and options.text:
        raise InputError("--region is for pictures, and --text has none; leave one of the two out")
    if explain is not None and explain.is_file():
        raise InputError(f"cannot draw into {explain}: it is a file; give the name of a folder for the heat maps")
    first = None if explain is None else explain / "0000.png"
    options.check_outputs(("picture", first), inputs=(*paths, options.model))
    if explain is not None and explain.resolve() in {path.resolve().parent for path in paths if path.is_file()}:
        raise InputError(f"heat maps in {explain} would lie among your pictures; name another folder")


def _show_rankings(results: Sequence[JsonObject]) -> None:
    for result in results:
        signs = [SHOWN_MARKS[mark] for mark in result.get("marks", ["other"] * len(result["labels"]))]
        signed_labels = zip(signs, result["labels"], strict=True)
        labels = "  ".join(f"{sign}{name} {score:.2f}" for sign, (name, score) in signed_labels)
        print_row(result["id"], labels or "(no tag fits)")


def _select_regions(source: "Source", regions: Sequence[str]) -> "FixedRegionSource":
    from wsabie.io.formats.region_items import FixedRegionSource

    if inputs.is_table(source) or source.modality != "pictures":
        content = inputs.name_content(source)
        raise InputError(f"--region is for pictures, and this input is {content}; leave --region out")
    return FixedRegionSource.from_texts(source, regions)


def _add_marks(
    results: list[JsonObject], rows: "FeatureTable", annotator: "Annotator", siblings: "SiblingSimilarity"
) -> None:
    """Mark each annotation as true, sibling or other, as in Weston et al. 2010, table 9."""

    from wsabie.workflows.report.report_input import list_true_labels, mark_suggestions

    for row, result in enumerate(results):
        names, true = [name for name, _ in result["labels"]], list_true_labels(rows, row)
        result["marks"] = mark_suggestions(annotator.model.vocabulary_, names, true, siblings)


def _draw_explanations(annotator: "Annotator", source: "Source", folder: Path, label: str | None, number: int) -> int:
    """Draw a heat map for each picture, as PNG numbered from `number`; return the next number."""
    from wsabie.core.errors import UnreadableItemError
    from wsabie.models.explanations import explain_picture

    if inputs.is_table(source) or annotator.extractor is None:
        raise InputError("--explain draws on pictures; this input is rows of features")
    require(source.modality == "pictures", f"--explain draws on pictures; {source.path} holds {source.modality}")
    for picture in source:
        try:
            explanation = explain_picture(annotator, picture.content, label)
        except UnreadableItemError:
            continue  # the list of rejects has it already
        label_name = "".join(c if c.isalnum() else "-" for c in explanation.label)[:40]
        file = folder / f"{number:04d}-{Path(picture.id).stem[:60]}-{label_name}.png"
        explanation.save(file)
        print_note(f"{file}: {explanation.label} {explanation.score:.2f}")
        number += 1
    return number


def _annotate_by_space(options: AnnotateOptions, annotator: "SpaceAnnotator") -> Report:
    """Rank items of a relation's second kind for new data or known items of its first kind."""

    model, k, paths, texts = options.model, options.k, options.inputs or (), options.text or ()
    query, target = _resolve_relation(annotator, options.relation)
    query_kind, extractor = annotator.space.find_entities(query), annotator.extractors.get(query)
    modality = None if extractor is None else extractor.modality
    options.check_outputs(inputs=(*paths, model))
    results: list[JsonObject] = []

    def add(ids: Sequence[str], items: "Matrix") -> None:
        rankings = annotator.space.annotate(query, target, items, k)
        results.extend(
            {"id": item_id, target: [[name, round(score, 6)] for name, score in ranking]}
            for item_id, ranking in zip(ids, rankings, strict=True)
        )

    with options.collect_rejects() as rejects:
        for path in paths:
            if query_kind.n_features and path.exists():
                source = options.open_data(path, rejects, "none", query_kind.n_features, modality)
                aligned = annotator.rows(query, source, **options.resources(rejects=rejects))
                inputs.report_unknown_features(aligned, path)
                add(aligned.rows.ids, aligned.rows.X)
            else:
                add([str(path)], query_kind.ids([str(path)]))
        for text in texts:
            add([text], annotator.text(query, text))
    require(bool(paths or texts), f"no entity is named; name entities of the kind {query!r}, or data of them")
    require(bool(results), f"none of these can be used; give entities of the kind {query!r}")
    yield {"model": model, "query": query, "target": target, "results": results}
    for result in results:
        print_row(result["id"], "  ".join(f"{name} {score:.2f}" for name, score in result[target]))


def _resolve_relation(annotator: "SpaceAnnotator", relation: str | None) -> tuple[str, str]:
    """Return the kinds of a relation: the first relation, one by name, or two kinds as "query:target"."""
    relations = {name: (query, target) for name, query, target in annotator.space.relations_}
    if relation is None:
        return next(iter(relations.values()))
    if relation in relations:
        return relations[relation]
    query, colon, target = relation.partition(":")
    if not colon:
        names = ", ".join(relations)
        raise InputError(f"there is no relation {relation!r}; choose of {names}, or two kinds as query:target")
    annotator.space.find_entities(query)
    annotator.space.find_entities(target)
    return query, target


def annotate_to_file(options: AnnotateOptions, file: Path) -> Report:
    """Write the best labels of all inputs to a file."""
    from wsabie.workflows import batch_inference

    batch_inference.detect_output_format(file)  # refuses an unknown ending before any work
    model, paths = options.model, options.inputs or []
    options.check_outputs(("annotations", file), inputs=(*paths, model))
    annotator = inputs.load_annotator(model, options.threads)
    modality = inputs.find_modality(annotator)
    for path in paths:  # refuses an unknown format before work on the others
        inputs.choose_format(path, options.data_format, True, modality)
    candidates = _read_candidates(options, annotator)
    thresholds = inputs.load_thresholds(model, annotator, options.min_precision)
    with options.collect_rejects() as rejects:
        blocks = _iterate_blocks(annotator, options, modality, rejects)
        settings = options.pick("exact") | {"candidates": candidates, "least": thresholds, "folder": model}
        resources = options.resources(model, *paths, rejects=rejects)
        result = batch_inference.annotate_to_file(file, annotator, blocks, options.k, **settings, **resources)
    untagged = {} if thresholds is None else {"no_tag_fits": result.untagged}
    counts = {"rows": result.rows, "skipped": len(rejects), "unknown_features": result.unknown_features}
    yield {"model": model, "out": file, **counts, **untagged}
    untagged_note = "" if thresholds is None else f", {result.untagged:,} of which no tag fits"
    out.print(f"{file}: the best labels of {format_count(result.rows, 'row')}{untagged_note}")
    if result.unknown_features:
        print_note(f"{format_count(result.unknown_features, 'value')} left out: the model does not know their features")


def _iterate_blocks(
    annotator: "Annotator", options: AnnotateOptions, modality: "ModalityName | None", rejects: "Rejects"
) -> "Iterator[FeatureTable | ItemList]":
    """Iterate over blocks of all inputs; ids of several inputs begin with their path."""
    from wsabie.io.data_sources import open_unlabelled_rows
    from wsabie.workflows.batch_inference import iterate_item_blocks

    model, paths, data_format = options.model, options.inputs or [], options.data_format
    item_inputs, is_single = [], len(paths) == 1
    for path in paths:
        blocks = open_unlabelled_rows(path, rejects, annotator.model.n_features_in_, modality, data_format)
        if blocks is None:
            item_inputs.append(path)
            continue
        for rows in blocks:
            inputs.refuse_misfit(annotator, model, rows)
            yield _prefix_ids("" if is_single else f"{path}/", rows)
    reading: Settings = {"has_labels": False, "is_single": is_single, "data_format": data_format}
    for prefix, source in inputs.open_inputs(item_inputs, rejects, annotator, **reading):
        inputs.refuse_misfit(annotator, model, source)
        for block in [source] if inputs.is_table(source) else iterate_item_blocks(source):
            yield _prefix_ids(prefix, block)


def _prefix_ids(prefix: str, block: "FeatureTable | ItemList") -> "FeatureTable | ItemList":
    """Put a prefix before the ids of a block."""

    if inputs.is_table(block):
        return replace(block, ids=[prefix + row_id for row_id in block.ids])
    return replace(block, items=[item._replace(id=prefix + item.id) for item in block])
