"""Commands that use a finished model: annotate, neighbours, info."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from wsabie.base.errors import InputError
from wsabie.faces.cli.common import (
    aligned_rows,
    executor,
    label_names,
    least_of,
    listing,
    loaded,
    opened,
    read_as,
    tell_unknown_features,
)
from wsabie.faces.cli.epochs import epochs_run, show_epochs
from wsabie.faces.cli.hierarchies import SHOWN_MARKS, kinds_in, siblings_by
from wsabie.faces.cli.terminal import TerminalProgress, note, one_line, show_json, show_table
from wsabie.labels.similar import Mark, SharedParents, marks
from wsabie.models.base import LabelModel
from wsabie.models.sure import Least, rank_sure
from wsabie.sources.joined import Joined
from wsabie.sources.records import Item, ItemList, Rows, Source
from wsabie.sources.region_parts import RegionsOf
from wsabie.sources.regions import OUTSIDE
from wsabie.storage.outputs import refuse_unwritable
from wsabie.storage.rejects import Rejects


def annotate_command(
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
    """Rank labels for every input, one line each; with a hierarchy, true labels and their siblings are marked."""
    if label is not None and explain is None:
        raise InputError("--label chooses what --explain draws; add --explain FOLDER, or leave --label out")
    if regions and texts:
        raise InputError("--region asks about places in pictures, and --text has none; leave one of the two out")
    if explain is not None and explain.is_file():
        raise InputError(f"cannot draw into {explain}: it is a file; give the name of a folder for the heat maps")
    first = None if explain is None else explain / "0000.png"
    refuse_unwritable(("rejects", rejects_file), ("picture", first), inputs=(*inputs, model))
    if explain is not None and explain.resolve() in {path.resolve().parent for path in inputs if path.is_file()}:
        raise InputError(f"heat maps in {explain} would lie among your pictures; name another folder")
    annotator, progress = loaded(model, threads), TerminalProgress()
    if label is not None:
        annotator.model.vocabulary_.ids([label])  # refuses an unknown label before any work
    among: dict[str, Any] = {} if candidates is None else {"candidates": label_names(candidates)}
    annotator.model.vocabulary_.ids(among.get("candidates", ()))  # as well
    if candidates is not None and not among["candidates"]:
        raise InputError(f"{candidates} names no label; give one a line")
    if exact and "index" in annotator.model.facts():  # other kinds of model know no other search
        among["exact"] = True
    least = least_of(model, annotator, min_precision)
    similar = siblings_by(kinds_in(hierarchy, parent_first), hierarchy, annotator)
    run = executor(threads, ray, *inputs)
    results: list[dict[str, Any]] = []
    drawn = unknown = 0
    with listing(rejects_file, strict=strict) as rejects:
        known, alone = similar is not None, len(inputs) == 1
        sources = sources_of(inputs, rejects, annotator, known=known, alone=alone)
        sources = [(place, _regions_of(source, regions)) for place, source in sources] if regions else sources
        for place, bare in [*sources, *_texts(texts)]:
            source = bare if isinstance(bare, Rows) or not place else Joined([bare], [place])  # rejects say it too
            aligned = aligned_rows(annotator, model, source, run, progress, rejects)
            rows, unknown = aligned.rows, unknown + aligned.unknown_features
            tell_unknown_features(aligned, "the data")
            if len(rows):
                ranked = _ranked(annotator.model, rows.X, k, least, among)
                found = [
                    {"id": place + i if source is bare else i, "labels": [[name, round(s, 6)] for name, s in top]}
                    | ({} if least is None else {"no_tag_fits": not top})
                    for i, top in zip(rows.ids, ranked, strict=True)
                ]
                if similar is not None:
                    _mark(found, rows, similar)
                results += found
            if explain is not None:
                drawn = _explain(annotator, source, explain, label, drawn)
    if not results:
        _refuse_outside(rejects)
        raise InputError(
            "nothing could be annotated; give pictures, sounds, documents or rows in a format that `wsabie train` reads"
        )
    if json:
        counts = {"skipped": len(rejects), "unknown_features": unknown}
        show_json({"schema": 1, "model": str(model), "results": results, **counts})
        return
    for result in results:
        signs = [SHOWN_MARKS[mark] for mark in result.get("marks", ["other"] * len(result["labels"]))]
        shown = zip(signs, result["labels"], strict=True)
        labels = "  ".join(f"{sign}{one_line(name)} {score:.2f}" for sign, (name, score) in shown) or "(no tag fits)"
        sys.stdout.write(f"{one_line(result['id'])}\t{labels}\n")  # as it is: `out` would turn the tab into blanks
    if similar is not None:
        note("* a true label, ~ a sibling of one")


def _ranked(model: Any, X: Any, k: int, least: Least | None, among: dict[str, Any]) -> list[list[tuple[str, float]]]:
    """Labels of rows with their scores, best first; where they have to be sure enough, perhaps none."""
    if least is None:
        return model.annotate(X, k, **among)  # type: ignore[no-any-return]
    names, (labels, scores, _) = list(model.vocabulary_), rank_sure(model, X, k, least, **among)
    rows = zip(labels.tolist(), scores.tolist(), strict=True)
    return [[(names[y], s) for y, s in zip(*row, strict=True) if y >= 0] for row in rows]


def _regions_of(source: Source, regions: Sequence[str]) -> RegionsOf:
    if isinstance(source, Rows) or source.things != "pictures":
        held = "rows of features" if isinstance(source, Rows) else source.things
        raise InputError(f"--region asks about places in pictures, and this input is {held}; leave --region out")
    return RegionsOf.asked(source, regions)


def _refuse_outside(rejects: Rejects) -> None:
    """Where nothing is left because of the regions that were asked for, say so."""
    for where, reason, detail in rejects.listed:
        if reason == OUTSIDE:
            raise InputError(f"{one_line(where)} lies outside: {detail}; give a region in it")


def _mark(results: list[dict[str, Any]], rows: Rows, similar: SharedParents) -> None:
    """Add what each annotation is to its row: a true label, a sibling of one, or another ([W] Table 9)."""
    number = {name: y for y, name in enumerate(rows.label_names)}
    Y = rows.Y.tocsr()
    for row, result in enumerate(results):
        at = slice(Y.indptr[row], Y.indptr[row + 1])
        true = Y.indices[at][Y.data[at] > 0]
        result["marks"] = marks([number[name] for name, _ in result["labels"]], true, similar)


def _texts(texts: Sequence[str]) -> list[tuple[str, Source]]:
    """Texts as a source of documents, which they are the ids of."""
    items = [Item(text, text.encode(), ()) for text in texts]
    return [("", ItemList(Path("--text"), items, "documents"))] if items else []


def sources_of(
    inputs: Sequence[Path], rejects: Rejects, annotator: Any, *, known: bool, alone: bool
) -> list[tuple[str, Source]]:
    """Every input opened; pictures (sounds, documents) that were named one by one make one source.

    Before it stands what tells its ids from those of the other inputs, where it is not `alone`: where they come from,
    as it was given. Labels are read where they are `known`.
    """
    labels_from = "auto" if known else "none"
    n_features, things = annotator.model.n_features_in_, annotator.terms and annotator.terms.things
    marked = read_as(annotator.facts)
    opened_ones = [(path, opened(path, rejects, labels_from, n_features, things, **marked)) for path in inputs]
    if alone:
        return [("", source) for _, source in opened_ones]
    singles: list[ItemList] = []
    others: list[tuple[str, Source]] = []
    for path, source in opened_ones:
        if isinstance(source, ItemList) and source.path.is_file():
            singles.append(replace(source, items=[item._replace(id=str(path)) for item in source]))
        else:
            others.append((f"{path}/", source))
    for kind in ("documents", "sounds", "pictures"):
        same = [source for source in singles if source.things == kind]
        if same:
            others.insert(0, ("", replace(same[0], items=[item for one in same for item in one])))
    return others


def _explain(annotator: Any, source: Source, folder: Path, label: str | None, number: int) -> int:
    """Heat maps of where a label is seen, one PNG per picture, numbered from `number`; returns the next number."""
    from wsabie.features.decode import RejectedItem
    from wsabie.models.explain import explain_picture

    if isinstance(source, Rows) or annotator.terms is None:
        raise InputError("--explain draws on pictures; this input is rows of features")
    if source.things != "pictures":
        raise InputError(f"--explain draws on pictures; {source.path} holds {source.things}")
    for picture in source:
        try:
            explained = explain_picture(annotator, picture.content, label)
        except RejectedItem:
            continue  # it is on the list already
        file = folder / f"{number:04d}-{Path(picture.id).stem[:60]}-{_file_name(explained.label)}.png"
        explained.save(file)
        note(f"{file}: {explained.label} {explained.score:.2f}")
        number += 1
    return number


def _file_name(label: str) -> str:
    return "".join(c if c.isalnum() else "-" for c in label)[:40]


def neighbours_command(
    model: Path, label: str, k: int, json: bool, hierarchy: Sequence[Path] | None = None, parent_first: bool = False
) -> None:
    """Print the labels nearest to a label; with a hierarchy, its siblings are marked ([W] Table 4)."""
    annotator = loaded(model)
    near = LabelModel.neighbours(annotator.model, label, k)  # not those of rows, which neighbours too may have
    similar = siblings_by(kinds_in(hierarchy, parent_first), hierarchy, annotator)
    found: list[Mark] = []
    if similar is not None:
        ids = annotator.model.vocabulary_.ids
        found = marks(ids([name for name, _ in near]), ids([label]), similar)
    if json:
        marked = {} if similar is None else {"marks": found}
        listed = [[name, round(cosine, 6)] for name, cosine in near]
        show_json({"schema": 1, "label": label, "neighbours": listed, **marked})
        return
    lines = [[name, f"{cosine:.3f}"] for name, cosine in near]
    if similar is not None:
        lines = [[*line, "" if mark == "other" else mark] for line, mark in zip(lines, found, strict=True)]
    show_table(f"nearest to {label}", ["label", "cosine", *([""] if found else [])], lines)


def info_command(model: Path, epochs: bool, json: bool) -> None:
    """Print what a model is."""
    from wsabie.storage.folder import folder_bytes

    annotator = loaded(model)
    estimator = annotator.model
    history = getattr(estimator, "history_", [])
    facts: dict[str, Any] = {
        **estimator.facts(),
        "pictures": annotator.terms is not None and annotator.terms.things == "pictures",
        "sounds": annotator.terms is not None and annotator.terms.things == "sounds",
        "documents": annotator.terms is not None and annotator.terms.things == "documents",
        "bytes": folder_bytes(model),
        **annotator.description(),
        **annotator.facts,
    }
    if json:
        more: dict[str, Any] = {
            "parameters": estimator.to_parts().config["parameters"],
            "settings": getattr(estimator, "settings_", {}),
        }
        if getattr(estimator, "stream_", ()):
            more["stream"] = [one.as_dict() for one in estimator.stream_]
        if epochs:
            more["history"] = [stats.as_dict() for stats in history]
        show_json({"schema": 1, "model": str(model), "kind": estimator.kind, **facts, **more})
        return
    facts.pop("members", None)  # a list, for --json
    facts |= {name: _brief(facts[name]) for name in ("updates", "last_arrival") if name in facts}
    if {"models", "blend"} & facts.keys():
        facts["epochs"] = epochs_run(history, facts)
    facts |= {f"index_{name}": value for name, value in (facts.pop("index", None) or {}).items()}
    show_table(str(model), ["", ""], [[name.replace("_", " "), _shown(value)] for name, value in facts.items()])
    if epochs:
        show_epochs(history)


def _brief(value: Any) -> Any:
    """Of a list how many, of an arrival what matters most."""
    if isinstance(value, list):
        return len(value)
    return {name: value[name] for name in ("rows", "map", "ece", "drift", "advice") if value.get(name)}


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name.replace('_', ' ')} {_shown(inner)}" for name, inner in value.items())
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "-"}[value]
    return f"{value:,}" if isinstance(value, int) else f"{value:.4f}" if isinstance(value, float) else str(value)
