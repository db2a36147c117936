"""`wsabie compare`."""

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wsabie.base.errors import InputError
from wsabie.base.progress import Progress
from wsabie.evaluation.splits import Split
from wsabie.faces.cli.common import executor, listing, opened, refuse_without_effect, tell_unknown, width_of
from wsabie.faces.cli.finished_results import KeepOptions, choose_folder, result_store, tell_result
from wsabie.faces.cli.hierarchies import kinds_in, sibling_facts, siblings_in, tell_siblings
from wsabie.faces.cli.terminal import NARROW, TerminalProgress, note, out, show_json, show_table
from wsabie.labels.similar import SharedParents
from wsabie.sources.align import Aligned, align
from wsabie.sources.records import Rows, Source
from wsabie.storage.outputs import refuse_unwritable
from wsabie.storage.rejects import Rejects
from wsabie.studies.splitting import split_rows

if TYPE_CHECKING:
    from wsabie.studies.comparison import Comparison

N_NEIGHBOURHOODS = 12


def compare_command(
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
    """Split (or take --test), fit every model on the same rows, print one table."""
    from wsabie.studies.entrants import entrants

    progress = TerminalProgress()
    names = [name.strip() for name in models.split(",") if name.strip()]
    refuse_unwritable(("html", report), ("rejects", rejects_file), inputs=(data, test))
    taking_part = entrants(names, seed=seed, threads=threads)
    settings = names, by, test, allow_overlap, min_rows, hierarchy, parent_first, pictures, seed, items
    folder = choose_folder(keep, data, settings)
    similar = siblings_in(kinds_in(hierarchy, parent_first), hierarchy, data)
    with listing(rejects_file, strict=strict) as rejects:
        source = opened(data, rejects, items=items)
        refuse_without_effect(source, data, pictures)
        tested = None if test is None else opened(test, rejects, n_features=width_of(source), usual=items)
        plan = _Plan(by, 0.1 if test is None else 0.0, seed)
        train, valid, held_out, terms = _sides(source, tested, plan, pictures, threads, progress, rejects)
        with result_store(folder, keep, with_models=report is not None) as store:
            found = _compared(
                json, train, valid, held_out.rows, taking_part, min_rows=min_rows, seed=seed,
                allow_overlap=allow_overlap, unknown_pairs=held_out.unknown_pairs, similar=similar, store=store,
                on_result=tell_result, progress=progress,
            )  # fmt: skip
            if report is not None:
                _write_report(report, found, data, source if tested is None else tested, terms)
            _tell(found, json)
            sys.stdout.flush()  # a full disk or a reader that left must find finished models kept


def _compared(json: bool, *sides: Any, **options: Any) -> "Comparison":
    """Compare; at Ctrl-C, show the comparison of the models that are finished."""
    from wsabie.studies.compare import StoppedComparison, compare

    try:
        return compare(*sides, **options)
    except StoppedComparison as stop:
        if stop.comparison.entries or stop.comparison.skipped:
            _tell(stop.comparison, json)
        raise


def _tell(found: "Comparison", json: bool) -> None:
    alike = found.task.similar if isinstance(found.task.similar, SharedParents) else None
    if json:
        siblings = {} if alike is None else {"siblings": sibling_facts(alike)}
        show_json({**found.as_dict(), **siblings})
        return
    facts = found.task.facts
    table = found.table(NARROW)
    show_table(f"{facts.test_rows:,} test rows, {facts.labels:,} labels", table.headers, table.rows)
    for skipped in found.skipped:
        out.print(f"{skipped.title}: {skipped.reason}")
    if alike is not None:
        tell_siblings(sibling_facts(alike))


@dataclass(frozen=True)
class _Plan:
    """How rows are dealt out."""

    by: str
    test: float
    seed: int

    def __call__(self, rows: Rows) -> Split:
        return split_rows(rows, self.by, 0.1, self.test, self.seed)


def _sides(
    data: Source,
    test: Source | None,
    plan: _Plan,
    pictures: dict[str, Any],
    threads: int | None,
    progress: Progress,
    rejects: Rejects,
) -> tuple[Rows, Rows, Aligned, Any]:
    """Training, validation and test rows, all with the same columns, and the dictionary that was learnt."""
    if isinstance(data, Rows):
        if test is not None and not isinstance(test, Rows):
            raise InputError(
                f"the training data are rows of features and the test data {test.things}; give the same kind"
            )
        rows, sides, terms = data, plan(data), None
    else:
        from wsabie.features.registry import describer
        from wsabie.studies.pictures import describe_split

        run = executor(threads)
        terms = describer(pictures.pop("describe", None), things=data.things, **pictures, seed=plan.seed)
        rows, sides = describe_split(data, terms, plan, executor=run, progress=progress, rejects=rejects)
        if test is not None and not isinstance(test, Rows):
            test = terms.transform(test, executor=run, progress=progress, rejects=rejects)
    tested = rows.take(sides.test) if test is None else test
    held_out = align(tested, rows.label_names, rows.feature_names, rows.X.shape[1], rows.dictionary)
    tell_unknown(held_out, "the test data")
    return rows.take(sides.train), rows.take(sides.valid), held_out, terms


def _write_report(file: Path, found: "Comparison", data: Path, tested: Source, terms: Any) -> None:
    from wsabie.studies.gather import SPREAD, frequent_labels, with_model
    from wsabie.studies.pictures import picture_examples
    from wsabie.studies.report import write_report
    from wsabie.studies.report_input import DataFacts, ReportInput

    shown = []
    things = "rows" if isinstance(tested, Rows) else tested.things
    if found.main and not isinstance(tested, Rows) and things == "pictures":
        shown = picture_examples(found.main, found.task.test, tested, terms, similar=found.task.similar)
    given = ReportInput(
        f"Comparison on {data.name}",
        found,
        things=things,
        data=DataFacts(name=data.name, source=str(data)),
        examples=shown,
        examples_note=SPREAD,
        neighbours_note="These are the labels with the most training data.",
        command=shlex.join(["wsabie", *sys.argv[1:]]),
        created=date.today().isoformat(),
    )
    write_report(file, with_model(given, frequent_labels(found.task, N_NEIGHBOURHOODS), found.task.similar))
    note(f"report: {file}")
