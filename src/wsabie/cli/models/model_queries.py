"""Commands that query a finished model: annotate, neighbours, info."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from wsabie.cli.inputs.command_inputs import (
    align_rows,
    collect_rejects,
    get_read_options,
    load_annotator,
    load_thresholds,
    make_executor,
    open_data,
    read_label_names,
    report_unknown_features,
)
from wsabie.cli.inputs.hierarchies import SHOWN_MARKS, match_model_siblings, read_hierarchies
from wsabie.cli.terminal.epoch_tables import format_epoch_count, show_epochs
from wsabie.cli.terminal.output import TerminalProgress, escape_line, print_note, show_json, show_table
from wsabie.core.errors import InputError
from wsabie.io.records import FeatureTable, Item, ItemList, Source
from wsabie.io.region_nesting import FixedRegionSource
from wsabie.io.regions import OUTSIDE
from wsabie.io.source_concatenation import ConcatenatedSource
from wsabie.models.annotators.thresholds import Least, rank_above
from wsabie.models.base.label_model import LabelModel
from wsabie.storage.output_checks import check_output_paths
from wsabie.storage.rejects import Rejects
from wsabie.vocabulary.label_similarity import LabelMatch, SiblingSimilarity, classify_labels


def run_annotate(
    model: Path,
    inputs: list[Path],
    k: int,
    explain: Path | None,
    label: str | None,
    threads: int | None,
    strict: bool,
    rejects_file: Path | None,
    json: bool,
    hierarchy: Sequence[Path] | None = None,
    parent_first: bool = False,
    texts: Sequence[str] = (),
    regions: Sequence[str] = (),
    candidates: Path | None = None,
    exact: bool = False,
    min_precision: float | None = None,
    ray: str | None = None,
) -> None:
    """Rank labels for every input; with a hierarchy, mark true labels and their siblings."""
    _check_annotate_options(model, inputs, explain, label, rejects_file, texts, regions)
    annotator, progress = load_annotator(model, threads), TerminalProgress()
    if label is not None:
        annotator.model.vocabulary_.ids([label])  # refuses an unknown label before any work
    search_options: dict[str, Any] = {} if candidates is None else {"candidates": read_label_names(candidates)}
    annotator.model.vocabulary_.ids(search_options.get("candidates", ()))  # likewise
    if candidates is not None and not search_options["candidates"]:
        raise InputError(f"{candidates} names no label; give one a line")
    if exact and "index" in annotator.model.facts():  # other kinds of model have no other search
        search_options["exact"] = True
    thresholds = load_thresholds(model, annotator, min_precision)
    siblings = match_model_siblings(read_hierarchies(hierarchy, parent_first), hierarchy, annotator)
    executor = make_executor(threads, ray, *inputs)
    results: list[dict[str, Any]] = []
    n_drawn = n_unknown = 0
    with collect_rejects(rejects_file, strict=strict) as rejects:
        has_labels, is_single = siblings is not None, len(inputs) == 1
        sources = open_inputs(inputs, rejects, annotator, has_labels=has_labels, is_single=is_single)
        sources = [(prefix, _select_regions(source, regions)) for prefix, source in sources] if regions else sources
        for prefix, bare in [*sources, *_make_text_sources(texts)]:
            source = (
                bare if isinstance(bare, FeatureTable) or not prefix else ConcatenatedSource([bare], [prefix])
            )  # rejects name the input too
            aligned = align_rows(annotator, model, source, executor, progress, rejects)
            rows, n_unknown = aligned.rows, n_unknown + aligned.unknown_features
            report_unknown_features(aligned, "the data")
            if len(rows):
                rankings = _rank_labels(annotator.model, rows.X, k, thresholds, search_options)
                row_results = [
                    {"id": prefix + i if source is bare else i, "labels": [[name, round(s, 6)] for name, s in top]}
                    | ({} if thresholds is None else {"no_tag_fits": not top})
                    for i, top in zip(rows.ids, rankings, strict=True)
                ]
                if siblings is not None:
                    _add_marks(row_results, rows, siblings)
                results += row_results
            if explain is not None:
                n_drawn = _draw_explanations(annotator, source, explain, label, n_drawn)
    if not results:
        _refuse_outside_regions(rejects)
        raise InputError(
            "nothing could be annotated; give pictures, sounds, documents or rows in a format that `wsabie train` reads"
        )
    if json:
        counts = {"skipped": len(rejects), "unknown_features": n_unknown}
        show_json({"schema": 1, "model": str(model), "results": results, **counts})
        return
    _show_rankings(results)
    if siblings is not None:
        print_note("* a true label, ~ a sibling of one")


def _check_annotate_options(
    model: Path,
    inputs: Sequence[Path],
    explain: Path | None,
    label: str | None,
    rejects_file: Path | None,
    texts: Sequence[str],
    regions: Sequence[str],
) -> None:
    if label is not None and explain is None:
        raise InputError("--label chooses what --explain draws; add --explain FOLDER, or leave --label out")
    if regions and texts:
        raise InputError("--region asks about places in pictures, and --text has none; leave one of the two out")
    if explain is not None and explain.is_file():
        raise InputError(f"cannot draw into {explain}: it is a file; give the name of a folder for the heat maps")
    first = None if explain is None else explain / "0000.png"
    check_output_paths(("rejects", rejects_file), ("picture", first), inputs=(*inputs, model))
    if explain is not None and explain.resolve() in {path.resolve().parent for path in inputs if path.is_file()}:
        raise InputError(f"heat maps in {explain} would lie among your pictures; name another folder")


def _show_rankings(results: Sequence[dict[str, Any]]) -> None:
    for result in results:
        signs = [SHOWN_MARKS[mark] for mark in result.get("marks", ["other"] * len(result["labels"]))]
        signed_labels = zip(signs, result["labels"], strict=True)
        labels = (
            "  ".join(f"{sign}{escape_line(name)} {score:.2f}" for sign, (name, score) in signed_labels)
            or "(no tag fits)"
        )
        sys.stdout.write(f"{escape_line(result['id'])}\t{labels}\n")  # as it is: `out` would turn the tab into blanks


def _rank_labels(
    model: Any, X: Any, k: int, thresholds: Least | None, options: dict[str, Any]
) -> list[list[tuple[str, float]]]:
    """Rank labels of rows with scores, best first; with thresholds, rows may get none."""
    if thresholds is None:
        return model.annotate(X, k, **options)  # type: ignore[no-any-return]
    names, (labels, scores, _) = list(model.vocabulary_), rank_above(model, X, k, thresholds, **options)
    rows = zip(labels.tolist(), scores.tolist(), strict=True)
    return [[(names[label_id], score) for label_id, score in zip(*row, strict=True) if label_id >= 0] for row in rows]


def _select_regions(source: Source, regions: Sequence[str]) -> FixedRegionSource:
    if isinstance(source, FeatureTable) or source.things != "pictures":
        content = "rows of features" if isinstance(source, FeatureTable) else source.things
        raise InputError(f"--region asks about places in pictures, and this input is {content}; leave --region out")
    return FixedRegionSource.asked(source, regions)


def _refuse_outside_regions(rejects: Rejects) -> None:
    """Raise InputError if the requested regions lie outside of all pictures."""
    for where, reason, detail in rejects.listed:
        if reason == OUTSIDE:
            raise InputError(f"{escape_line(where)} lies outside: {detail}; give a region in it")


def _add_marks(results: list[dict[str, Any]], rows: FeatureTable, siblings: SiblingSimilarity) -> None:
    """Mark each annotation as true, sibling or other, as in Weston et al. 2010, table 9."""
    label_ids = {name: label_id for label_id, name in enumerate(rows.label_names)}
    Y = rows.Y.tocsr()
    for row, result in enumerate(results):
        row_slice = slice(Y.indptr[row], Y.indptr[row + 1])
        true = Y.indices[row_slice][Y.data[row_slice] > 0]
        result["marks"] = classify_labels([label_ids[name] for name, _ in result["labels"]], true, siblings)


def _make_text_sources(texts: Sequence[str]) -> list[tuple[str, Source]]:
    """Make a source of documents from texts, which are their own ids."""
    items = [Item(text, text.encode(), ()) for text in texts]
    return [("", ItemList(Path("--text"), items, "documents"))] if items else []


def open_inputs(
    inputs: Sequence[Path], rejects: Rejects, annotator: Any, *, has_labels: bool, is_single: bool
) -> list[tuple[str, Source]]:
    """Open all inputs, each with a prefix for its ids; single files of one modality make one source.

    The prefix is the path of the input, or empty for a single input. Labels are read only if `has_labels`.
    """
    labels_from = "auto" if has_labels else "none"
    n_features, modality = annotator.model.n_features_in_, annotator.terms and annotator.terms.things
    read_options = get_read_options(annotator.facts)
    opened_ones = [
        (path, open_data(path, rejects, labels_from, n_features, modality, **read_options)) for path in inputs
    ]
    if is_single:
        return [("", source) for _, source in opened_ones]
    singles: list[ItemList] = []
    sources: list[tuple[str, Source]] = []
    for path, source in opened_ones:
        if isinstance(source, ItemList) and source.path.is_file():
            singles.append(replace(source, items=[item._replace(id=str(path)) for item in source]))
        else:
            sources.append((f"{path}/", source))
    for kind in ("documents", "sounds", "pictures"):
        group = [source for source in singles if source.things == kind]
        if group:
            sources.insert(0, ("", replace(group[0], items=[item for single in group for item in single])))
    return sources


def _draw_explanations(annotator: Any, source: Source, folder: Path, label: str | None, number: int) -> int:
    """Draw a heat map for each picture, as PNG numbered from `number`; return the next number."""
    from wsabie.features.images.image_decoder import UnreadableItemError
    from wsabie.models.explanations.score_contributions import explain_picture

    if isinstance(source, FeatureTable) or annotator.terms is None:
        raise InputError("--explain draws on pictures; this input is rows of features")
    if source.things != "pictures":
        raise InputError(f"--explain draws on pictures; {source.path} holds {source.things}")
    for picture in source:
        try:
            explanation = explain_picture(annotator, picture.content, label)
        except UnreadableItemError:
            continue  # the list of rejects has it already
        file = folder / f"{number:04d}-{Path(picture.id).stem[:60]}-{_file_name(explanation.label)}.png"
        explanation.save(file)
        print_note(f"{file}: {explanation.label} {explanation.score:.2f}")
        number += 1
    return number


def _file_name(label: str) -> str:
    return "".join(c if c.isalnum() else "-" for c in label)[:40]


def run_neighbours(
    model: Path, label: str, k: int, json: bool, hierarchy: Sequence[Path] | None = None, parent_first: bool = False
) -> None:
    """Print the nearest labels; with a hierarchy, mark siblings, as in Weston et al. 2010, table 4."""
    annotator = load_annotator(model)
    neighbours = LabelModel.neighbours(
        annotator.model, label, k
    )  # not those of rows, which nearest-neighbour models override
    siblings = match_model_siblings(read_hierarchies(hierarchy, parent_first), hierarchy, annotator)
    marks: list[LabelMatch] = []
    if siblings is not None:
        ids = annotator.model.vocabulary_.ids
        marks = classify_labels(ids([name for name, _ in neighbours]), ids([label]), siblings)
    if json:
        mark_fields = {} if siblings is None else {"marks": marks}
        entries = [[name, round(cosine, 6)] for name, cosine in neighbours]
        show_json({"schema": 1, "label": label, "neighbours": entries, **mark_fields})
        return
    lines = [[name, f"{cosine:.3f}"] for name, cosine in neighbours]
    if siblings is not None:
        lines = [[*line, "" if mark == "other" else mark] for line, mark in zip(lines, marks, strict=True)]
    show_table(f"nearest to {label}", ["label", "cosine", *([""] if marks else [])], lines)


def run_info(model: Path, epochs: bool, json: bool) -> None:
    """Print the facts of a model."""
    from wsabie.storage.model_folder import measure_folder_bytes

    annotator = load_annotator(model)
    estimator = annotator.model
    history = getattr(estimator, "history_", [])
    facts: dict[str, Any] = {
        **estimator.facts(),
        "pictures": annotator.terms is not None and annotator.terms.things == "pictures",
        "sounds": annotator.terms is not None and annotator.terms.things == "sounds",
        "documents": annotator.terms is not None and annotator.terms.things == "documents",
        "bytes": measure_folder_bytes(model),
        **annotator.description(),
        **annotator.facts,
    }
    if json:
        details: dict[str, Any] = {
            "parameters": estimator.to_parts().config["parameters"],
            "settings": getattr(estimator, "settings_", {}),
        }
        if getattr(estimator, "stream_", ()):
            details["stream"] = [report.as_dict() for report in estimator.stream_]
        if epochs:
            details["history"] = [stats.as_dict() for stats in history]
        show_json({"schema": 1, "model": str(model), "kind": estimator.kind, **facts, **details})
        return
    facts.pop("members", None)  # a list, for --json
    facts |= {name: _shorten(facts[name]) for name in ("updates", "last_arrival") if name in facts}
    if {"models", "blend"} & facts.keys():
        facts["epochs"] = format_epoch_count(history, facts)
    facts |= {f"index_{name}": value for name, value in (facts.pop("index", None) or {}).items()}
    show_table(str(model), ["", ""], [[name.replace("_", " "), _format_value(value)] for name, value in facts.items()])
    if epochs:
        show_epochs(history)


def _shorten(value: Any) -> Any:
    """Shorten a list to its length, and a batch report to its main figures."""
    if isinstance(value, list):
        return len(value)
    return {name: value[name] for name in ("rows", "map", "ece", "drift", "advice") if value.get(name)}


def _format_value(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name.replace('_', ' ')} {_format_value(inner)}" for name, inner in value.items())
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "-"}[value]
    return f"{value:,}" if isinstance(value, int) else f"{value:.4f}" if isinstance(value, float) else str(value)
