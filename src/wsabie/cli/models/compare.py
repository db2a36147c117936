"""`wsabie compare`."""

import hashlib
import os
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from wsabie.cli import inputs, output
from wsabie.cli import shared_options as shared
from wsabie.cli.framework import Options, Settings, command, option
from wsabie.cli.inputs import IN_TABLES, ONLY_SPACES, list_declared_files, read_test_declaration, run_by_data
from wsabie.cli.knowledge_files import match_data_siblings, print_siblings, summarize_siblings
from wsabie.core.errors import InputError, WsabieError, require
from wsabie.storage.atomic_files import check_writable, lock_folder
from wsabie.storage.output_checks import refuse_unknown_files
from wsabie.storage.rejects import Rejects
from wsabie.workflows.compare.entrants import NAMES, USUAL, build_entrants
from wsabie.workflows.work_folder import hold_work_folder

if TYPE_CHECKING:
    from wsabie.features.base.feature_extractor import FeatureExtractor
    from wsabie.io.alignment import AlignedTable
    from wsabie.io.records import FeatureTable, Source
    from wsabie.io.space_declaration import SpaceDeclaration
    from wsabie.workflows.compare.comparison_table import Comparison, ModelEntry, ModelOmission, TextTable
    from wsabie.workflows.compare.result_store import ResultStore
    from wsabie.workflows.spaces.relation_methods import RelationFigures, RelationMethod, SpaceComparison


DEFAULT_PARENT = Path("wsabie-compare")
"""Parent of folders that the user does not name."""
_MAX_STEM = 80
N_NEIGHBOURHOODS = 12


class KeepOptions(Options, panel="Resuming"):
    """Options about finished models of a comparison that was stopped."""

    work: Path | None = option("Folder that keeps finished models until all are (default: one in wsabie-compare).")
    resume: bool = option("Keep the models that a stopped run finished, and train the others.")
    restart: bool = option("Delete the work of a stopped run, and start over.")


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
        output.print_note(f"finished models are not kept, for {error}; --work names another folder")
        return None
    refuse_unknown_files(folder, FILES)
    with lock_folder(folder):
        pass
    has_results = folder.is_dir() and any(folder.iterdir())
    fact = f"{folder} holds finished models of a comparison that was stopped"
    require(not has_results or keep.resume or keep.restart, f"{fact}; give --resume to go on from them, or --restart")
    if keep.resume and not has_results:
        _refuse_other_settings(None if keep.work else DEFAULT_PARENT, stem)
        output.print_note(f"there is no unfinished comparison at {folder}; this run starts from the beginning")
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
        raise output.InterruptExit(_describe_store(store)) from None
    except (WsabieError, MemoryError, OSError):
        if store.n_results:
            output.print_note(f"{_describe_store(store)}; --resume goes on from there")
        raise
    finally:
        for path in (folder, DEFAULT_PARENT):
            with suppress(OSError):  # unless it is empty
                path.rmdir()


def report_result(result: "ModelEntry | RelationMethod | ModelOmission", relation: str = "") -> None:
    """Report the figures of a finished model."""
    from wsabie.workflows.compare.comparison_table import ModelEntry, ModelOmission

    title = f"{relation}, {result.title}" if relation else result.title
    if isinstance(result, ModelOmission):
        output.print_note(f"{title}: skipped, {result.reason}")
        return
    means = result.evaluation.means
    figures = ", ".join(f"{name} {means[name]:.3f}" for name in output.NARROW if name in means)
    training = f", trained in {result.fit_seconds:.1f} s" if isinstance(result, ModelEntry) else ""
    output.print_note(f"{title}: {figures}{training}")


def _describe_store(store: "ResultStore") -> str:
    n = store.n_results
    results = output.format_count(n, "finished result is", "finished results are")
    return f"{results} kept in {store.folder}" if n else ""


def _refuse_other_settings(parent: Path | None, stem: str) -> None:
    folders = [] if parent is None else sorted(parent.glob(f"{stem}-*"))
    if folders:
        models = f"{folders[0]} holds finished models of the same data with other settings, which cannot be compared"
        raise InputError(f"{models}; give the same command again with --resume, or leave --resume out")


def _short_hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:8]


class CompareOptions(shared.DataOptions, shared.RunOptions):
    """Options of `wsabie compare`."""

    data: shared.Data
    models: str = option(f"Comma-separated: {', '.join(NAMES)}.", ",".join(USUAL))
    by: Literal["auto", "group", "row", "label", "time"] = option(
        "How to split: group, row, label or time (default: group if there are groups).", "auto", scope=IN_TABLES
    )
    test: Path | None = option("Test data; otherwise a tenth is split off.")
    allow_overlap: shared.AllowOverlap = False
    min_rows: Annotated[shared.MinRows, IN_TABLES] = 1
    report: Path | None = option("Write an HTML report here.", scope=IN_TABLES)
    hold_out: float | None = option(
        "Of a TOML file: share that is held out, half to choose the epoch, half to judge (default: 0.2); with --test "
        "all to choose the epoch (default: 0.1).",
        min=0.01,
        max=0.9,
        scope=ONLY_SPACES,
    )
    out: Path | None = option("Of a TOML file: folder for the table, figures and about.md.", scope=ONLY_SPACES)
    items: Annotated[shared.Items, IN_TABLES] = None
    features: Annotated[shared.FeatureOptions, IN_TABLES]
    labels: Annotated[shared.HierarchyOptions, IN_TABLES]
    keep: KeepOptions

    @property
    def names(self) -> list[str]:
        """Names of the models."""
        return [name.strip() for name in self.models.split(",") if name.strip()]


@command(
    "compare photos/ --report comparison.html", "compare rows.parquet --models wsabie,nearest,one-vs-rest --by group"
)
def compare(options: CompareOptions) -> None:
    """Compare models and baselines on the same split.

    Time and memory stand beside the figures; a TOML file is compared by relation.
    """
    run_by_data(options, _compare_rows, _compare_relations)


def _compare_rows(options: CompareOptions) -> None:
    """Split the data (or take --test), fit every model on the same rows, and print one table."""
    from wsabie.workflows.compare.comparison import compare_models
    from wsabie.workflows.compare.comparison_table import ComparisonInterrupt
    from wsabie.workflows.compare.comparison_task import build_comparison_task

    data, test, report, items, seed = options.data, options.test, options.report, options.items, options.seed or 0
    options.check_outputs(("html", report), inputs=(data, test))
    entrants = build_entrants(options.names, seed=seed, threads=options.threads)
    similar, pictures = tuple(options.labels.pick("hierarchy", "parent_first").values()), options.features.settings()
    settings = options.names, options.by, test, options.allow_overlap, options.min_rows, similar, pictures, seed, items
    folder = choose_folder(options.keep, data, settings)
    siblings = match_data_siblings(options.labels, data)
    with options.collect_rejects() as rejects:
        source = options.open_data(data, rejects, items=items)
        options.features.refuse_rows(source, data)
        test_source, width = None, inputs.find_width(source)
        if test is not None:
            test_source = options.open_data(test, rejects, n_features=width, default_items=items)
        train, valid, test_table, extractor = _extract_sides(options, source, test_source, rejects)
        with open_result_store(folder, options.keep, with_models=report is not None) as store:
            limits = options.pick("min_rows", "allow_overlap") | {"unknown_pairs": test_table.unknown_pairs}
            task = build_comparison_task(train, valid, test_table.rows, similar=siblings, **limits)
            run: Settings = {"store": store, "on_result": report_result, "progress": output.TerminalProgress()}
            try:
                comparison = compare_models(task, entrants, seed=seed, **run)
            except ComparisonInterrupt as interrupt:
                if interrupt.finished.entries or interrupt.finished.skipped:
                    _show_comparison(options, interrupt.finished)
                raise
            if report is not None:
                _write_report(report, comparison, data, source if test_source is None else test_source, extractor)
            _show_comparison(options, comparison)
            sys.stdout.flush()  # a full disk or a reader that left must find finished models kept


def _show_comparison(options: CompareOptions, comparison: "Comparison") -> None:
    from wsabie.vocabulary.label_similarity import SiblingSimilarity

    alike = comparison.task.similar if isinstance(comparison.task.similar, SiblingSimilarity) else None
    siblings = {} if alike is None else {"siblings": summarize_siblings(alike)}
    if options.show_json({**comparison.as_dict(), **siblings}):
        return
    facts = comparison.task.facts
    title = f"{facts.test_rows:,} test rows, {facts.labels:,} labels"
    _show_models(title, comparison.table(output.NARROW), comparison.skipped)
    if alike is not None:
        print_siblings(summarize_siblings(alike))


def _show_models(title: str, table: "TextTable", skipped: "Sequence[ModelOmission]") -> None:
    output.show_table(title, table.headers, table.rows)
    for omission in skipped:
        output.out.print(f"{omission.title}: {omission.reason}")


def _extract_sides(
    options: CompareOptions, data: "Source", test: "Source | None", rejects: Rejects
) -> "tuple[FeatureTable, FeatureTable, AlignedTable, FeatureExtractor | None]":
    """Extract training, validation and test rows with the same columns; also return the extractor."""

    from wsabie.io.alignment import align_table
    from wsabie.workflows.data_splits import group_bursts, split_rows

    seed, n_bursts = options.seed or 0, 0
    choose_sides = partial(split_rows, by=options.by, valid=0.1, test=0.1 if test is None else 0.0, seed=seed)
    if inputs.is_table(data):
        if test is not None and not inputs.is_table(test):
            modality = f"the training data are rows of features and the test data {test.modality}"
            raise InputError(f"{modality}; give the same kind")
        rows, grouped, extractor = data, data, None
        if options.by == "auto" and rows.near_equality is not None:
            grouped, n_bursts = group_bursts(rows)
        sides = choose_sides(grouped)
    else:
        from wsabie.features.extractor_registry import create_extractor
        from wsabie.workflows.report.report_input import extract_split, extract_split_by_burst

        resources, settings = options.resources(rejects=rejects), options.features.settings()
        names = settings.pop("features", None)
        extractor = create_extractor(names, source=data, **settings, seed=seed)
        if options.by == "auto" and data.modality == "pictures":
            rows, sides, n_bursts = extract_split_by_burst(data, extractor, choose_sides, **resources)
        else:
            rows, sides = extract_split(data, extractor, choose_sides, **resources)
        if test is not None and not inputs.is_table(test):
            test = extractor.transform(test, **resources)
    inputs.report_bursts(n_bursts)
    test_rows = rows.take(sides.test) if test is None else test
    columns = rows.feature_names, rows.X.shape[1], rows.extractor_fingerprint
    test_table = align_table(test_rows, rows.label_names, *columns)
    inputs.report_unknown_labels(test_table, "the test data")
    return rows.take(sides.train), rows.take(sides.valid), test_table, extractor


def _write_report(
    file: Path, comparison: "Comparison", data: Path, test_source: "Source", extractor: "FeatureExtractor | None"
) -> None:
    from wsabie.workflows.report import report_input
    from wsabie.workflows.report.html_report import write_report

    examples, task = [], comparison.task
    modality = "rows" if inputs.is_table(test_source) else test_source.modality
    if comparison.main and extractor is not None and not inputs.is_table(test_source) and modality == "pictures":
        test_data = task.test, test_source
        examples = report_input.build_image_examples(comparison.main, *test_data, extractor, similar=task.similar)
    report = report_input.ReportInput(
        f"Comparison on {data.name}",
        comparison,
        modality=modality,
        data={"Collection": data.name, "Source": str(data)},
        examples=examples,
        examples_note=report_input.SPREAD,
        neighbours_note="These are the labels with the most training data.",
        command=shlex.join(["wsabie", *sys.argv[1:]]),
        created=date.today().isoformat(),
    )
    labels = report_input.list_frequent_labels(task, N_NEIGHBOURHOODS)
    write_report(file, report_input.add_model_facts(report, labels, task.similar))
    output.print_note(f"report: {file}")


def _compare_relations(options: CompareOptions, declaration: "SpaceDeclaration") -> None:
    """Split the pairs, compare models, print a table for each relation, and write the folder of results."""
    from wsabie.models.entity_space.space import Space
    from wsabie.workflows.compare.comparison_table import ComparisonInterrupt, require_writable_folder
    from wsabie.workflows.spaces.method_comparison import POPULARITY, ComparisonOptions, compare_declaration
    from wsabie.workflows.spaces.relation_methods import MADE_BY
    from wsabie.workflows.spaces.space_training import apply_parameters

    data, test, folder, run = options.data, options.test, options.out, options.run_settings()
    refusal = f"{test} is not a declaration; give a file such as {data}"
    test_declaration = None if test is None else read_test_declaration(test, refusal)
    hold_out = options.hold_out or (0.2 if test_declaration is None else 0.1)
    space = apply_parameters(Space(), declaration, run)
    space.check_parameters()
    entrants = build_entrants(options.names, seed=space.seed, threads=space.threads)
    classifiers = [entrant for entrant in entrants if entrant.name not in (POPULARITY, "wsabie")]
    options.check_outputs(inputs=(data, test, *list_declared_files(declaration, test_declaration), folder))
    if folder is not None:
        require_writable_folder(folder, MADE_BY)
    settings = options.names, test, options.allow_overlap, hold_out, sorted(run.items())
    work_folder = choose_folder(options.keep, data, settings)
    with options.collect_rejects() as rejects, open_result_store(work_folder, options.keep, with_models=False) as store:
        try:
            work = shared.make_work_context(rejects, space.threads)
            parameters: Settings = {**options.pick("allow_overlap"), "store": store}
            parameters["on_result"] = lambda relation, result: report_result(result, relation)
            methods = ComparisonOptions(POPULARITY in options.names, classifiers, space.seed, **parameters)
            comparison = compare_declaration(declaration, space, hold_out, methods, test_declaration, work)
        except ComparisonInterrupt as interrupt:
            figures = {relation.name: relation.as_dict() for relation in interrupt.finished}
            if not options.json:
                _show_relations(interrupt.finished)
            elif figures:
                options.show_json({"relations": figures})
            raise
        _show_space_comparison(options, comparison)
        sys.stdout.flush()  # a full disk or a reader that left must find finished models kept


def _show_relations(relations: "list[RelationFigures]") -> None:
    for relation in relations:
        _show_models(relation.title, relation.table(), relation.skipped)


def _show_space_comparison(options: CompareOptions, comparison: "SpaceComparison") -> None:
    from wsabie.workflows.compare.comparison_table import write_results

    files: list[Path] = []
    if options.out is not None:
        page = comparison.page(shlex.join(["wsabie", *sys.argv[1:]]))
        files = write_results(options.out, comparison.table(), comparison.charts(), page)
    if options.show_json({**comparison.as_dict(), "files": files}):
        return
    _show_relations(comparison.relations)
    if files:
        output.out.print(f"written: {', '.join(str(file) for file in files)}")
