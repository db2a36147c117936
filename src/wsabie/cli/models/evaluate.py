"""`wsabie evaluate`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from wsabie.cli.inputs.command_inputs import (
    align_rows,
    collect_rejects,
    format_names,
    get_read_options,
    is_training_data,
    load_annotator,
    make_executor,
    open_data,
    read_label_names,
    report_unknown_labels,
)
from wsabie.cli.inputs.hierarchies import match_model_siblings, print_siblings, read_hierarchies, summarize_siblings
from wsabie.cli.models.parts_evaluation import PartsOptions, make_question, show_parts
from wsabie.cli.terminal.output import TerminalProgress, format_count, print_note, show_json, show_table
from wsabie.core.errors import InputError
from wsabie.io.records import FeatureTable, Source, get_groups
from wsabie.storage.output_checks import check_output_paths

if TYPE_CHECKING:
    from wsabie.core.arrays import Int64, Matrix
    from wsabie.evaluation.bootstrap import Interval
    from wsabie.evaluation.score_evaluation import Evaluation
    from wsabie.io.alignment import AlignedTable
    from wsabie.storage.rejects import Rejects
    from wsabie.vocabulary.label_names import Vocabulary

KS = (1, 5, 10, 50)
SHOWN_METRICS = ("p@1", "p@5", "p@10", "recall@5", "recall@10", "recall@50", "MAP", "MRR", "ndcg@10", "AUC",
         "psib@1", "psib@5", "psib@10", "hp@5", "hp@10", "herr@5")  # fmt: skip


def run_evaluate(
    model: Path,
    data: Path,
    allow_overlap: bool,
    exclude: Path | None,
    threads: int | None,
    strict: bool,
    rejects_file: Path | None,
    json: bool,
    parts: PartsOptions,
    hierarchy: Sequence[Path] | None = None,
    parent_first: bool = False,
    candidates: Path | None = None,
    ray: str | None = None,
) -> None:
    """Score every row with a known label, and print the metrics with bootstrap intervals."""
    from wsabie.evaluation.bootstrap import bootstrap_all
    from wsabie.evaluation.metrics import select_informative_lengths
    from wsabie.workflows.compare.entrant_fitting import LabelSubsetModel, evaluate_model
    from wsabie.workflows.object_parts.part_evaluation import evaluate_parts

    inputs = (data, model, exclude, candidates, parts.relations, parts.among)
    check_output_paths(("rejects", rejects_file), inputs=inputs)
    annotator, progress = load_annotator(model, threads), TerminalProgress()
    executor = make_executor(threads, ray, data, model)
    vocabulary = annotator.model.vocabulary_
    label_ids = _select_label_ids(vocabulary, candidates)
    restriction = "--candidates" if candidates is not None else "--exclude" if exclude is not None else None
    part_request = make_question(parts, annotator.model, model, restriction)
    tree = read_hierarchies(hierarchy, parent_first)
    siblings = match_model_siblings(tree, hierarchy, annotator, label_ids)
    names = vocabulary.names(label_ids) if tree is not None else []
    hops, heights = (None, None) if tree is None else (tree.hops(names), tree.heights(names))
    with collect_rejects(rejects_file, strict=strict) as rejects:
        source = open_data(
            data, rejects, n_features=annotator.model.n_features_in_, **get_read_options(annotator.facts)
        )
        if not allow_overlap:
            _refuse_training_data(annotator, source, data)
        aligned = align_rows(annotator, model, source, executor, progress, rejects)
        if not allow_overlap:
            _refuse_training_data(annotator, aligned.rows, data)
            if exclude is None:  # otherwise the same rows have other labels on each side
                _refuse_training_rows(annotator, aligned.rows, data)
        _refuse_unlabelled(aligned, model, data)
        report_unknown_labels(aligned, data)
        rows, evaluated = aligned.rows, annotator.model
        if len(label_ids) < len(vocabulary):
            rows, evaluated = rows.with_labels(label_ids), LabelSubsetModel(evaluated, label_ids)
        if candidates is not None and not (rows.Y.data > 0).any():
            raise InputError(
                f"no row has a label that {candidates} names; give candidates that are right for some rows"
            )
        excluded = None if exclude is None else _read_excluded_labels(exclude, rows, data, rejects)
        ks = select_informative_lengths(KS, len(rows.label_names))
        remote = (executor, model) if executor.standing else None
        evaluation = evaluate_model(
            evaluated,
            rows,
            ks,
            "scoring",
            progress,
            exclude=excluded,
            there=remote,
            similar=siblings,
            hops=hops,
            heights=heights,
        )
        per_row = {name: evaluation.per_row[name] for name in SHOWN_METRICS if name in evaluation.per_row}
        intervals = bootstrap_all(per_row, groups=get_groups(rows, evaluation.rows))
        part_evaluation = None if part_request is None else evaluate_parts(evaluated, rows, part_request, progress)
    if json:
        sibling_facts = {} if siblings is None else {"siblings": summarize_siblings(siblings)}
        quadruplets = {} if part_evaluation is None else {"quadruplets": part_evaluation.as_dict()}
        show_json({**_serialize_evaluation(evaluation, intervals, aligned), **sibling_facts, **quadruplets})
        return
    _show_evaluation(evaluation, intervals)
    if siblings is not None:
        print_siblings(summarize_siblings(siblings))
    if part_evaluation is not None:
        show_parts(part_evaluation)


def _select_label_ids(vocabulary: "Vocabulary", candidates: Path | None) -> "Int64":
    if candidates is None:
        return vocabulary.living()
    label_ids = np.unique(vocabulary.ids(read_label_names(candidates)))
    if len(label_ids) < 2:
        raise InputError(f"{candidates} names one label, which is always right; give two or more")
    return label_ids


def _serialize_evaluation(
    evaluation: "Evaluation", intervals: "dict[str, Interval]", aligned: "AlignedTable"
) -> dict[str, Any]:
    names = aligned.unknown_labels
    return {
        **evaluation.as_dict(),
        "intervals": {name: [i.low, i.high] for name, i in intervals.items()},
        "unknown": {"labels": len(names), "pairs": aligned.unknown_pairs, "names": names},
    }


def _read_excluded_labels(exclude: Path, rows: FeatureTable, data: Path, rejects: "Rejects") -> "Matrix":
    """Read labels of the rows in other data, which are no candidates."""
    from wsabie.features.base.table_builder import build_label_table
    from wsabie.io.alignment import look_up_labels

    excluded = open_data(exclude, rejects)
    labels = look_up_labels(
        excluded if isinstance(excluded, FeatureTable) else build_label_table(excluded), rows.ids, rows.label_names
    )
    if not labels.nnz:
        raise InputError(f"no row of {data} has a label in {exclude}; give the training data of the same split")
    n_excluded = int((labels.multiply(rows.Y > 0)).nnz)
    if n_excluded:
        print_note(f"{format_count(n_excluded, 'pair')} of {data} left out: {exclude} has them too")
    return labels


def _refuse_training_data(annotator: Any, source: Source, data: Path) -> None:
    if is_training_data(source, annotator.facts):
        raise InputError(f"{data} is what the model was trained on; give other data, or add --allow-overlap")


def _refuse_training_rows(annotator: Any, rows: FeatureTable, data: Path) -> None:
    """Refuse data with mostly training rows, and report fewer: some rows may be equal by chance."""
    from wsabie.io.fingerprints import count_known_rows

    if annotator.marks is None:
        return
    n_known, n_checked = count_known_rows(rows, annotator.marks)
    checked = format_count(n_checked, "row")
    finding = f"{n_known:,} of {checked} of {data} that were looked at have id and features of training rows"
    if 2 * n_known > n_checked:
        raise InputError(f"{finding}; give other data, or add --allow-overlap")
    if n_known:
        print_note(f"{finding}; figures are too good by those")


def _refuse_unlabelled(aligned: "AlignedTable", model: Path, data: Path) -> None:
    if (aligned.rows.Y.data > 0).any():
        return
    unknown, known_names = aligned.unknown_labels, aligned.rows.label_names
    if not aligned.unknown_pairs:
        raise InputError(f"no row of {data} has a label, so nothing can be measured; give data with labels")
    raise InputError(
        f"{model} knows none of the {format_count(len(unknown), 'label')} of {data}, such as "
        f"{format_names(unknown)}; it knows "
        f"{format_names(known_names)} and the like: give data with such labels, or train on labels like these"
    )


def _show_evaluation(evaluation: "Evaluation", intervals: "dict[str, Interval]") -> None:
    lines = [
        [name, f"{i.mean:.4f}", f"{i.low:.4f} to {i.high:.4f}", _format_ceiling(evaluation.ceilings, name)]
        for name, i in intervals.items()
    ]
    k = 10 if 10 in evaluation.coverage else max(evaluation.coverage)
    lines.append([f"coverage@{k}", f"{evaluation.coverage[k]:.4f}", "", ""])
    show_table(
        f"{format_count(evaluation.n_rows, 'row')}, {format_count(evaluation.n_labels, 'label')}",
        ["metric", "value", "95 % interval", "highest possible"],
        lines,
    )
    if tied := evaluation.tied_at_cut.get(k):
        print_note(
            f"{format_count(tied, 'row')} with tied labels at the cut after {k}; ties count as in a random order"
        )


def _format_ceiling(ceilings: dict[str, float], name: str) -> str:
    return f"{ceilings[name]:.4f}" if name in ceilings else ""
