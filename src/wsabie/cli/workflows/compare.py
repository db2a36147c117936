"""`wsabie compare`."""

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wsabie.cli.inputs.command_inputs import (
    collect_rejects,
    find_width,
    make_executor,
    open_data,
    refuse_without_effect,
    report_unknown_labels,
)
from wsabie.cli.inputs.hierarchies import match_data_siblings, print_siblings, read_hierarchies, summarize_siblings
from wsabie.cli.terminal.output import NARROW, TerminalProgress, out, print_note, show_json, show_table
from wsabie.cli.workflows.comparison_results import KeepOptions, choose_folder, open_result_store, report_result
from wsabie.core.errors import InputError
from wsabie.core.progress import Progress
from wsabie.evaluation.splits import Split
from wsabie.io.alignment import AlignedTable, align_table
from wsabie.io.records import FeatureTable, Source
from wsabie.storage.output_checks import check_output_paths
from wsabie.storage.rejects import Rejects
from wsabie.vocabulary.label_similarity import SiblingSimilarity
from wsabie.workflows.collection_splits import split_collection

if TYPE_CHECKING:
    from wsabie.workflows.compare.comparison import Comparison

N_NEIGHBOURHOODS = 12


def run_compare(
    data: Path,
    models: str,
    by: str,
    test: Path | None,
    allow_overlap: bool,
    min_rows: int,
    hierarchy: Sequence[Path] | None,
    parent_first: bool,
    pictures: dict[str, Any],
    threads: int | None,
    seed: int,
    report: Path | None,
    strict: bool,
    rejects_file: Path | None,
    json: bool,
    items: str | None = None,
    keep: KeepOptions = KeepOptions(),  # noqa: B008 - frozen
) -> None:
    """Split the data (or take --test), fit every model on the same rows, and print one table."""
    from wsabie.workflows.compare.entrants import build_entrants

    progress = TerminalProgress()
    names = [name.strip() for name in models.split(",") if name.strip()]
    check_output_paths(("html", report), ("rejects", rejects_file), inputs=(data, test))
    entrants = build_entrants(names, seed=seed, threads=threads)
    settings = names, by, test, allow_overlap, min_rows, hierarchy, parent_first, pictures, seed, items
    folder = choose_folder(keep, data, settings)
    siblings = match_data_siblings(read_hierarchies(hierarchy, parent_first), hierarchy, data)
    with collect_rejects(rejects_file, strict=strict) as rejects:
        source = open_data(data, rejects, items=items)
        refuse_without_effect(source, data, pictures)
        test_source = (
            None if test is None else open_data(test, rejects, n_features=find_width(source), default_items=items)
        )
        plan = _SplitPlan(by, 0.1 if test is None else 0.0, seed)
        train, valid, held_out, terms = _extract_sides(source, test_source, plan, pictures, threads, progress, rejects)
        with open_result_store(folder, keep, with_models=report is not None) as store:
            comparison = _compare_with_interrupt(
                json, train, valid, held_out.rows, entrants, min_rows=min_rows, seed=seed,
                allow_overlap=allow_overlap, unknown_pairs=held_out.unknown_pairs, similar=siblings, store=store,
                on_result=report_result, progress=progress,
            )  # fmt: skip
            if report is not None:
                _write_report(report, comparison, data, source if test_source is None else test_source, terms)
            _show_comparison(comparison, json)
            sys.stdout.flush()  # a full disk or a reader that left must find finished models kept


def _compare_with_interrupt(json: bool, *sides: Any, **options: Any) -> "Comparison":
    """Compare models; at Ctrl-C, show the comparison of the finished ones."""
    from wsabie.workflows.compare.comparison_run import ComparisonInterrupt, compare_models

    try:
        return compare_models(*sides, **options)
    except ComparisonInterrupt as interrupt:
        if interrupt.comparison.entries or interrupt.comparison.skipped:
            _show_comparison(interrupt.comparison, json)
        raise


def _show_comparison(comparison: "Comparison", json: bool) -> None:
    alike = comparison.task.similar if isinstance(comparison.task.similar, SiblingSimilarity) else None
    if json:
        siblings = {} if alike is None else {"siblings": summarize_siblings(alike)}
        show_json({**comparison.as_dict(), **siblings})
        return
    facts = comparison.task.facts
    table = comparison.table(NARROW)
    show_table(f"{facts.test_rows:,} test rows, {facts.labels:,} labels", table.headers, table.rows)
    for skipped in comparison.skipped:
        out.print(f"{skipped.title}: {skipped.reason}")
    if alike is not None:
        print_siblings(summarize_siblings(alike))


@dataclass(frozen=True)
class _SplitPlan:
    """Split of rows into training, validation and test."""

    by: str
    test: float
    seed: int

    def __call__(self, rows: FeatureTable) -> Split:
        return split_collection(rows, self.by, 0.1, self.test, self.seed)


def _extract_sides(
    data: Source,
    test: Source | None,
    plan: _SplitPlan,
    pictures: dict[str, Any],
    threads: int | None,
    progress: Progress,
    rejects: Rejects,
) -> tuple[FeatureTable, FeatureTable, AlignedTable, Any]:
    """Extract training, validation and test rows with the same columns; also return the extractor."""
    if isinstance(data, FeatureTable):
        if test is not None and not isinstance(test, FeatureTable):
            raise InputError(
                f"the training data are rows of features and the test data {test.things}; give the same kind"
            )
        rows, sides, extractor = data, plan(data), None
    else:
        from wsabie.features.extractor_registry import create_extractor
        from wsabie.workflows.report.image_examples import extract_split

        executor = make_executor(threads)
        extractor = create_extractor(pictures.pop("describe", None), things=data.things, **pictures, seed=plan.seed)
        rows, sides = extract_split(data, extractor, plan, executor=executor, progress=progress, rejects=rejects)
        if test is not None and not isinstance(test, FeatureTable):
            test = extractor.transform(test, executor=executor, progress=progress, rejects=rejects)
    test_rows = rows.take(sides.test) if test is None else test
    held_out = align_table(test_rows, rows.label_names, rows.feature_names, rows.X.shape[1], rows.dictionary)
    report_unknown_labels(held_out, "the test data")
    return rows.take(sides.train), rows.take(sides.valid), held_out, extractor


def _write_report(file: Path, comparison: "Comparison", data: Path, test_source: Source, extractor: Any) -> None:
    from wsabie.workflows.report.example_selection import SPREAD, add_model_facts, list_frequent_labels
    from wsabie.workflows.report.html_report import write_report
    from wsabie.workflows.report.image_examples import build_image_examples
    from wsabie.workflows.report.report_input import DataFacts, ReportInput

    examples = []
    modality = "rows" if isinstance(test_source, FeatureTable) else test_source.things
    if comparison.main and not isinstance(test_source, FeatureTable) and modality == "pictures":
        examples = build_image_examples(
            comparison.main, comparison.task.test, test_source, extractor, similar=comparison.task.similar
        )
    report_input = ReportInput(
        f"Comparison on {data.name}",
        comparison,
        things=modality,
        data=DataFacts(name=data.name, source=str(data)),
        examples=examples,
        examples_note=SPREAD,
        neighbours_note="These are the labels with the most training data.",
        command=shlex.join(["wsabie", *sys.argv[1:]]),
        created=date.today().isoformat(),
    )
    write_report(
        file,
        add_model_facts(report_input, list_frequent_labels(comparison.task, N_NEIGHBOURHOODS), comparison.task.similar),
    )
    print_note(f"report: {file}")
