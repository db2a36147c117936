"""`wsabie compare`."""

import hashlib
import os
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from wsabie.cli.command import NotFor, command, options
from wsabie.cli.hierarchies import match_data_siblings, print_siblings, summarize_siblings
from wsabie.cli.inputs import find_width, make_executor, open_data, refuse_without_effect, report_unknown_labels
from wsabie.cli.options import (
    AllowOverlap,
    By,
    Data,
    FeatureOptions,
    HierarchyOptions,
    Items,
    MinRows,
    RejectOptions,
    RunOptions,
)
from wsabie.cli.output import (
    NARROW,
    NOTHING_KEPT,
    InterruptExit,
    TerminalProgress,
    format_count,
    out,
    print_note,
    resume_line,
    show_json,
    show_table,
)
from wsabie.cli.target import IN_TABLES, is_declaration, list_declared_files, run_by_data
from wsabie.core.errors import InputError, WsabieError
from wsabie.storage.atomic_files import check_writable, lock_folder
from wsabie.storage.output_checks import check_output_paths, refuse_unknown_files
from wsabie.storage.rejects import Rejects
from wsabie.workflows.compare.entrants import NAMES, USUAL
from wsabie.workflows.work_folder import hold_work_folder

if TYPE_CHECKING:
    from wsabie.evaluation.splits import Split
    from wsabie.io.alignment import AlignedTable
    from wsabie.io.records import FeatureTable, Source
    from wsabie.io.space_declaration import SpaceDeclaration
    from wsabie.models.entity_space.space import Space
    from wsabie.workflows.compare.comparison import Comparison, ModelEntry, ModelOmission
    from wsabie.workflows.compare.result_store import ResultStore
    from wsabie.workflows.spaces.relation_results import RelationFigures, RelationMethod, SpaceComparison


DEFAULT_PARENT = Path("wsabie-compare")
"""Parent of folders that the user does not name."""
_MAX_STEM = 80


@options
class KeepOptions:
    """Options about finished models of a comparison that was stopped."""

    panel: ClassVar = "Resuming"

    work: Annotated[
        Path | None,
        typer.Option(help="Folder that keeps finished models until all are (default: one in wsabie-compare)."),
    ] = None
    resume: Annotated[bool, typer.Option(help="Go on from the models that a stopped run finished.")] = False
    restart: Annotated[bool, typer.Option(help="Remove what a stopped run has kept, and begin at the beginning.")] = (
        False
    )


def choose_folder(keep: KeepOptions, data: Path, settings: Sequence[object]) -> Path | None:
    """Choose the folder for finished models before any work; None if nothing can be kept.

    The default name contains the name of the data and a hash of all settings, so that commands do not share a folder.

    Raises
    ------
    InputError
        The folder holds finished models and neither --resume nor --restart is given, holds other files, or is in use;
        or --resume is given and only models of other settings are there.
    """
    from wsabie.workflows.compare.result_store import FILES

    if keep.resume and keep.restart:
        raise InputError("--resume goes on from finished models and --restart removes them; leave one of them out")
    stem = f"{re.sub(r'[^A-Za-z0-9._-]', '_', data.name)[:_MAX_STEM]}-{_short_hash(os.fsencode(data.resolve()))}"
    folder = keep.work or DEFAULT_PARENT / f"{stem}-{_short_hash(repr(settings).encode('utf-8', 'surrogatepass'))}"
    try:
        check_writable(folder, within=folder.is_dir())
    except (InputError, OSError) as error:
        if keep.work or keep.resume:
            raise
        print_note(f"finished models are not kept, for {error}; --work names another folder")
        return None
    refuse_unknown_files(folder, FILES)
    with lock_folder(folder):
        pass
    has_results = folder.is_dir() and any(folder.iterdir())
    if has_results and not (keep.resume or keep.restart):
        raise InputError(
            f"{folder} holds finished models of a comparison that was stopped; give --resume to go on from them, or "
            "--restart"
        )
    if keep.resume and not has_results:
        _refuse_other_settings(None if keep.work else DEFAULT_PARENT, stem)
        print_note(f"there is no unfinished comparison at {folder}; this one begins at the beginning")
    return folder


@contextmanager
def open_result_store(folder: Path | None, keep: KeepOptions, with_models: bool) -> Iterator["ResultStore | None"]:
    """Keep finished models in a folder until the block succeeds; report kept models otherwise."""
    from wsabie.workflows.compare.result_store import ResultStore

    if folder is None:
        yield None
        return
    store = ResultStore(folder, with_models)
    try:
        with hold_work_folder(folder, resume=keep.resume):
            yield store
    except KeyboardInterrupt:
        message = f"stopped; {_store_phrase(store)}; go on with: {resume_line()}"
        raise InterruptExit(message if store.n_results else NOTHING_KEPT) from None
    except (WsabieError, MemoryError, OSError):
        if store.n_results:
            print_note(f"{_store_phrase(store)}; --resume goes on from there")
        raise
    finally:
        for place in (folder, DEFAULT_PARENT):
            with suppress(OSError):  # unless it is empty
                place.rmdir()


def report_result(result: "ModelEntry | RelationMethod | ModelOmission", relation: str = "") -> None:
    """Report the figures of a finished model."""
    from wsabie.workflows.compare.comparison import ModelEntry, ModelOmission

    title = f"{relation}, {result.title}" if relation else result.title
    if isinstance(result, ModelOmission):
        print_note(f"{title}: skipped, {result.reason}")
        return
    means = result.evaluation.means
    figures = ", ".join(f"{name} {means[name]:.3f}" for name in NARROW if name in means)
    print_note(
        f"{title}: {figures}" + (f", trained in {result.fit_seconds:.1f} s" if isinstance(result, ModelEntry) else "")
    )


def _store_phrase(store: "ResultStore") -> str:
    n = store.n_results
    return f"{format_count(n, 'finished result')} {'is' if n == 1 else 'are'} kept in {store.folder}"


def _refuse_other_settings(place: Path | None, stem: str) -> None:
    folders = [] if place is None else sorted(place.glob(f"{stem}-*"))
    if folders:
        raise InputError(
            f"{folders[0]} holds finished models of the same data with other settings, which cannot be compared; give "
            "the same command again with --resume, or leave --resume out"
        )


def _short_hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:8]


N_NEIGHBOURHOODS = 12
_OF_DECLARATIONS = NotFor(labels="how the things of a TOML file are compared")


@options
class CompareOptions:
    """Options of `wsabie compare`."""

    data: Data
    models: Annotated[str, typer.Option(help=f"Comma-separated: {', '.join(NAMES)}.")] = ",".join(USUAL)
    by: Annotated[
        By,
        typer.Option(help="How to split: group, row, label or time (default: group if there are groups)."),
        IN_TABLES,
    ] = "auto"
    test: Annotated[Path | None, typer.Option(help="Test data; otherwise a tenth is split off.")] = None
    allow_overlap: AllowOverlap = False
    min_rows: Annotated[MinRows, IN_TABLES] = 1
    report: Annotated[Path | None, typer.Option(help="Write an HTML report here."), IN_TABLES] = None
    hold_out: Annotated[
        float | None,
        typer.Option(
            min=0.01,
            max=0.9,
            help="Of a TOML file: share that is held out, half to choose the epoch, half to judge (default: 0.2); with "
            "--test all to choose the epoch (default: 0.1).",
        ),
        _OF_DECLARATIONS,
    ] = None
    out: Annotated[
        Path | None,
        typer.Option(help="Of a TOML file: folder for table.csv, figure.svg, figure.png and about.md."),
        _OF_DECLARATIONS,
    ] = None
    items: Annotated[Items, IN_TABLES] = None
    features: Annotated[FeatureOptions, IN_TABLES] = FeatureOptions()
    labels: Annotated[HierarchyOptions, IN_TABLES] = HierarchyOptions()
    keep: KeepOptions = KeepOptions()
    machine: RunOptions = RunOptions()
    output: RejectOptions = RejectOptions()

    @property
    def names(self) -> list[str]:
        """Names of the models."""
        return [name.strip() for name in self.models.split(",") if name.strip()]


@command(
    "compare photos/ --report comparison.html", "compare rows.parquet --models wsabie,nearest,one-vs-rest --by group"
)
def compare(options: CompareOptions) -> None:
    """Compare models and baselines on the same split, with time and memory; for a TOML file, by relation."""
    run_by_data(options, _compare_rows, _compare_relations)


def _compare_rows(options: CompareOptions) -> None:
    """Split the data (or take --test), fit every model on the same rows, and print one table."""
    from wsabie.workflows.compare.entrants import build_entrants

    data, test, report, items, seed = options.data, options.test, options.report, options.items, _get_seed(options)
    check_output_paths(("html", report), ("rejects", options.output.rejects), inputs=(data, test))
    entrants = build_entrants(options.names, seed=seed, threads=options.machine.threads)
    pictures, tree = options.features.settings(), options.labels
    similar = tree.hierarchy, tree.parent_first
    settings = options.names, options.by, test, options.allow_overlap, options.min_rows, similar, pictures, seed, items
    folder = choose_folder(options.keep, data, settings)
    siblings = match_data_siblings(tree.read(), tree.hierarchy, data)
    with options.output.collect() as rejects:
        source = open_data(data, rejects, items=items)
        refuse_without_effect(source, data, pictures)
        test_source = (
            None if test is None else open_data(test, rejects, n_features=find_width(source), default_items=items)
        )
        train, valid, held_out, extractor = _extract_sides(options, source, test_source, rejects)
        with open_result_store(folder, options.keep, with_models=report is not None) as store:
            comparison = _compare_with_interrupt(
                options.output.json, train, valid, held_out.rows, entrants, min_rows=options.min_rows, seed=seed,
                allow_overlap=options.allow_overlap, unknown_pairs=held_out.unknown_pairs, similar=siblings,
                store=store, on_result=report_result, progress=TerminalProgress(),
            )  # fmt: skip
            if report is not None:
                _write_report(report, comparison, data, source if test_source is None else test_source, extractor)
            _show_comparison(comparison, options.output.json)
            sys.stdout.flush()  # a full disk or a reader that left must find finished models kept


def _get_seed(options: CompareOptions) -> int:
    return options.machine.seed or 0


def _compare_with_interrupt(json: bool, *sides: Any, **options: Any) -> "Comparison":
    """Compare models; at Ctrl-C, show the comparison of the finished ones."""
    from wsabie.workflows.compare.comparison import ComparisonInterrupt
    from wsabie.workflows.compare.comparison_run import compare_models

    try:
        return compare_models(*sides, **options)
    except ComparisonInterrupt as interrupt:
        if interrupt.finished.entries or interrupt.finished.skipped:
            _show_comparison(interrupt.finished, json)
        raise


def _show_comparison(comparison: "Comparison", json: bool) -> None:
    from wsabie.vocabulary.label_similarity import SiblingSimilarity

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

    def __call__(self, rows: "FeatureTable") -> "Split":
        from wsabie.workflows.collection_splits import split_collection

        return split_collection(rows, self.by, 0.1, self.test, self.seed)


def _extract_sides(
    options: CompareOptions, data: "Source", test: "Source | None", rejects: Rejects
) -> "tuple[FeatureTable, FeatureTable, AlignedTable, Any]":
    """Extract training, validation and test rows with the same columns; also return the extractor."""

    from wsabie.io.alignment import align_table
    from wsabie.io.records import FeatureTable

    progress, plan = TerminalProgress(), _SplitPlan(options.by, 0.1 if test is None else 0.0, _get_seed(options))
    if isinstance(data, FeatureTable):
        if test is not None and not isinstance(test, FeatureTable):
            raise InputError(
                f"the training data are rows of features and the test data {test.modality}; give the same kind"
            )
        rows, sides, extractor = data, plan(data), None
    else:
        from wsabie.features.extractor_registry import create_extractor
        from wsabie.workflows.report.examples import extract_split

        executor = options.machine.make_executor()
        settings = options.features.settings()
        names = settings.pop("features", None)
        extractor = create_extractor(names, modality=data.modality, **settings, seed=plan.seed)
        rows, sides = extract_split(data, extractor, plan, executor=executor, progress=progress, rejects=rejects)
        if test is not None and not isinstance(test, FeatureTable):
            test = extractor.transform(test, executor=executor, progress=progress, rejects=rejects)
    test_rows = rows.take(sides.test) if test is None else test
    held_out = align_table(test_rows, rows.label_names, rows.feature_names, rows.X.shape[1], rows.dictionary)
    report_unknown_labels(held_out, "the test data")
    return rows.take(sides.train), rows.take(sides.valid), held_out, extractor


def _write_report(file: Path, comparison: "Comparison", data: Path, test_source: "Source", extractor: Any) -> None:
    from wsabie.io.records import FeatureTable
    from wsabie.workflows.report.examples import SPREAD, add_model_facts, build_image_examples, list_frequent_labels
    from wsabie.workflows.report.html_report import write_report
    from wsabie.workflows.report.report_input import DataFacts, ReportInput

    examples = []
    modality = "rows" if isinstance(test_source, FeatureTable) else test_source.modality
    if comparison.main and not isinstance(test_source, FeatureTable) and modality == "pictures":
        examples = build_image_examples(
            comparison.main, comparison.task.test, test_source, extractor, similar=comparison.task.similar
        )
    report_input = ReportInput(
        f"Comparison on {data.name}",
        comparison,
        modality=modality,
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


def _compare_relations(options: CompareOptions) -> None:
    """Split the pairs, compare models, print a table for each relation, and write the folder of results."""
    from wsabie.io.space_declaration import read_declaration
    from wsabie.models.entity_space.space import Space
    from wsabie.workflows.compare.comparison import ComparisonInterrupt, require_writable_folder
    from wsabie.workflows.spaces.method_comparison import compare_declaration
    from wsabie.workflows.spaces.relation_results import MADE_BY
    from wsabie.workflows.spaces.space_training import apply_parameters

    data, test, folder, run, json = (
        options.data, options.test, options.out, options.machine.settings(), options.output.json
    )  # fmt: skip
    declaration = read_declaration(data)
    test_declaration = None if test is None else _read_test_declaration(test, data)
    hold_out = options.hold_out or (0.2 if test_declaration is None else 0.1)
    space = apply_parameters(Space(), declaration, run)
    space.check_parameters()
    comparison_options = _make_comparison_options(options, space)
    inputs = data, test, *list_declared_files(declaration, test_declaration), folder
    check_output_paths(("rejects", options.output.rejects), inputs=inputs)
    if folder is not None:
        require_writable_folder(folder, MADE_BY)
    settings = options.names, test, options.allow_overlap, hold_out, sorted(run.items())
    work_folder = choose_folder(options.keep, data, settings)
    with options.output.collect() as rejects, open_result_store(work_folder, options.keep, with_models=False) as store:
        try:
            comparison = compare_declaration(
                declaration, space, hold_out, comparison_options, test_declaration, store=store,
                on_result=lambda relation, result: report_result(result, relation),
                executor=make_executor(space.threads), progress=TerminalProgress(), rejects=rejects,
            )  # fmt: skip
        except ComparisonInterrupt as interrupt:
            _show_partial_comparison(interrupt.finished, json)
            raise
        _show_space_comparison(comparison, folder, json)
        sys.stdout.flush()  # a full disk or a reader that left must find finished models kept


def _read_test_declaration(test: Path, data: Path) -> "SpaceDeclaration":
    from wsabie.io.space_declaration import ENDING, read_declaration

    if not is_declaration(test):
        raise InputError(
            f"{test} is no declaration; give a file such as {data}, with the test data, that ends with {ENDING}"
        )
    return read_declaration(test)


def _make_comparison_options(options: CompareOptions, space: "Space") -> Any:
    from wsabie.workflows.compare.entrants import build_entrants
    from wsabie.workflows.spaces.method_comparison import POPULARITY, ComparisonOptions

    entrants = build_entrants(options.names, seed=space.seed, threads=space.threads)
    classifiers = [entrant for entrant in entrants if entrant.name not in (POPULARITY, "wsabie")]
    has_popularity = POPULARITY in options.names
    return ComparisonOptions(has_popularity, classifiers, space.seed, allow_overlap=options.allow_overlap)


def _show_partial_comparison(relations: "list[RelationFigures]", json: bool) -> None:
    """Show the finished part of an interrupted comparison."""

    from wsabie.core.json_conversion import to_json_value

    if json and relations:
        show_json(
            to_json_value({"schema": 1, "relations": {relation.name: relation.as_dict() for relation in relations}})
        )
    elif not json:
        _show_relations(relations)


def _show_relations(relations: "list[RelationFigures]") -> None:
    for relation in relations:
        table = relation.table()
        show_table(relation.title, table.headers, table.rows)
        for skipped in relation.skipped:
            out.print(f"{skipped.title}: {skipped.reason}")


def _show_space_comparison(comparison: "SpaceComparison", folder: Path | None, json: bool) -> None:
    from wsabie.workflows.compare.comparison import write_results

    files = []
    if folder is not None:
        page = comparison.page(shlex.join(["wsabie", *sys.argv[1:]]))
        files = write_results(folder, comparison.table(), comparison.charts(), page)
    if json:
        show_json({**comparison.as_dict(), "files": [str(file) for file in files]})
        return
    _show_relations(comparison.relations)
    if files:
        out.print(f"written: {', '.join(str(file) for file in files)}")
