"""`wsabie evaluate`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from wsabie.base.errors import InputError
from wsabie.faces.cli.common import (
    aligned_rows,
    executor,
    label_names,
    listing,
    loaded,
    opened,
    quoted,
    read_as,
    tell_unknown,
    trained_on,
)
from wsabie.faces.cli.evaluating_parts import PartsAsked, question_of, show_parts
from wsabie.faces.cli.hierarchies import kinds_in, sibling_facts, siblings_by, tell_siblings
from wsabie.faces.cli.terminal import TerminalProgress, note, plural, show_json, show_table
from wsabie.sources.records import Rows, Source, groups_of
from wsabie.storage.outputs import refuse_unwritable

if TYPE_CHECKING:
    from wsabie.base.arrays import Matrix
    from wsabie.evaluation.bootstrap import Interval
    from wsabie.evaluation.evaluate import Evaluation
    from wsabie.sources.align import Aligned
    from wsabie.storage.rejects import Rejects

KS = (1, 5, 10, 50)
SHOWN = ("p@1", "p@5", "p@10", "recall@5", "recall@10", "recall@50", "MAP", "MRR", "ndcg@10", "AUC",
         "psib@1", "psib@5", "psib@10", "hp@5", "hp@10", "herr@5")  # fmt: skip


def evaluate_command(
    model: Path,
    data: Path,
    allow_overlap: bool,
    exclude: Path | None,
    threads: int | None,
    strict: bool,
    rejects_file: Path | None,
    json: bool,
    parts: PartsAsked,
    hierarchy: Sequence[Path] | None = None,
    parent_first: bool = False,
    candidates: Path | None = None,
    ray: str | None = None,
) -> None:
    """Score every row that carries a known label and print the metrics with bootstrap intervals."""
    from wsabie.evaluation.bootstrap import bootstrap_all
    from wsabie.evaluation.metrics import telling
    from wsabie.studies.fitting import Among, evaluated
    from wsabie.studies.judged_parts import judge_parts

    read = (data, model, exclude, candidates, parts.relations, parts.among)
    refuse_unwritable(("rejects", rejects_file), inputs=read)
    annotator, progress = loaded(model, threads), TerminalProgress()
    run = executor(threads, ray, data, model)
    vocabulary = annotator.model.vocabulary_
    among = vocabulary.living()
    if candidates is not None:
        among = np.unique(vocabulary.ids(label_names(candidates)))
        if len(among) < 2:
            raise InputError(f"{candidates} names one label, which is always right; give two or more")
    fewer = "--candidates" if candidates is not None else "--exclude" if exclude is not None else None
    question = question_of(parts, annotator.model, model, fewer)
    kinds = kinds_in(hierarchy, parent_first)
    similar = siblings_by(kinds, hierarchy, annotator, among)
    near: dict[str, Any] = {"similar": similar}
    if kinds is not None:
        near |= {"hops": kinds.hops(vocabulary.names(among)), "heights": kinds.heights(vocabulary.names(among))}
    with listing(rejects_file, strict=strict) as rejects:
        source = opened(data, rejects, n_features=annotator.model.n_features_in_, **read_as(annotator.facts))
        if not allow_overlap:
            _refuse_training_data(annotator, source, data)
        aligned = aligned_rows(annotator, model, source, run, progress, rejects)
        if not allow_overlap:
            _refuse_training_data(annotator, aligned.rows, data)
            if exclude is None:  # else rows are on both sides, and labels are not
                _refuse_training_rows(annotator, aligned.rows, data)
        _refuse_unlabelled(aligned, model, data)
        tell_unknown(aligned, data)
        rows, judged = aligned.rows, annotator.model
        if len(among) < len(vocabulary):
            rows, judged = rows.with_labels(among), Among(judged, among)
        if candidates is not None and not (rows.Y.data > 0).any():
            raise InputError(
                f"no row has a label that {candidates} names; give candidates that are right for some rows"
            )
        known = None if exclude is None else _known_labels(exclude, rows, data, rejects)
        ks = telling(KS, len(rows.label_names))
        elsewhere = (run, model) if run.standing else None
        found = evaluated(judged, rows, ks, "scoring", progress, exclude=known, there=elsewhere, **near)
        measured = {name: found.per_row[name] for name in SHOWN if name in found.per_row}
        intervals = bootstrap_all(measured, groups=groups_of(rows, found.rows))
        of_parts = None if question is None else judge_parts(judged, rows, question, progress)
    if json:
        bounds = {name: [i.low, i.high] for name, i in intervals.items()}
        names = aligned.unknown_labels
        unknown = {"labels": len(names), "pairs": aligned.unknown_pairs, "names": names}
        siblings = {} if similar is None else {"siblings": sibling_facts(similar)}
        quadruplets = {} if of_parts is None else {"quadruplets": of_parts.as_dict()}
        show_json({**found.as_dict(), "intervals": bounds, "unknown": unknown, **siblings, **quadruplets})
        return
    _show(found, intervals)
    if similar is not None:
        tell_siblings(sibling_facts(similar))
    if of_parts is not None:
        show_parts(of_parts)


def _known_labels(exclude: Path, rows: Rows, data: Path, rejects: "Rejects") -> "Matrix":
    """The labels that the rows have in other data, which are no candidates."""
    from wsabie.features.collect import outline
    from wsabie.sources.align import labels_by_id

    other = opened(exclude, rejects)
    known = labels_by_id(other if isinstance(other, Rows) else outline(other), rows.ids, rows.label_names)
    if not known.nnz:
        raise InputError(f"no row of {data} has a label in {exclude}; give the training data of the same split")
    both = int((known.multiply(rows.Y > 0)).nnz)
    if both:
        note(f"{plural(both, 'pair')} of {data} left out: {exclude} has them too")
    return known


def _refuse_training_data(annotator: Any, source: Source, data: Path) -> None:
    if trained_on(source, annotator.facts):
        raise InputError(f"{data} is what the model was trained on; give other data, or add --allow-overlap")


def _refuse_training_rows(annotator: Any, rows: Rows, data: Path) -> None:
    """Refuse data of which most rows were trained on, and tell of fewer: a few may be alike by chance."""
    from wsabie.sources.fingerprint import known_again

    if annotator.marks is None:
        return
    known, looked_at = known_again(rows, annotator.marks)
    told = (
        f"{known:,} of {plural(looked_at, 'row')} of {data} that were looked at have id and features of training rows"
    )
    if 2 * known > looked_at:
        raise InputError(f"{told}; give other data, or add --allow-overlap")
    if known:
        note(f"{told}; figures are too good by those")


def _refuse_unlabelled(aligned: "Aligned", model: Path, data: Path) -> None:
    if (aligned.rows.Y.data > 0).any():
        return
    unknown, known = aligned.unknown_labels, aligned.rows.label_names
    if not aligned.unknown_pairs:
        raise InputError(f"no row of {data} has a label, so nothing can be measured; give data with labels")
    raise InputError(
        f"{model} knows none of the {plural(len(unknown), 'label')} of {data}, such as {quoted(unknown)}; it knows "
        f"{quoted(known)} and the like: give data with such labels, or train on labels like these"
    )


def _show(found: "Evaluation", intervals: "dict[str, Interval]") -> None:
    lines = [
        [name, f"{i.mean:.4f}", f"{i.low:.4f} to {i.high:.4f}", _ceiling(found.ceilings, name)]
        for name, i in intervals.items()
    ]
    k = 10 if 10 in found.coverage else max(found.coverage)
    lines.append([f"coverage@{k}", f"{found.coverage[k]:.4f}", "", ""])
    show_table(
        f"{plural(found.n_rows, 'row')}, {plural(found.n_labels, 'label')}",
        ["metric", "value", "95 % interval", "highest possible"],
        lines,
    )
    if tied := found.tied_at_cut.get(k):
        note(f"{plural(tied, 'row')} with tied labels at the cut after {k}; ties count as in a random order")


def _ceiling(ceilings: dict[str, float], name: str) -> str:
    return f"{ceilings[name]:.4f}" if name in ceilings else ""
