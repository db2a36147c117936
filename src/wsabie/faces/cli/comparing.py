"""`wsabie compare`."""

from pathlib import Path
from typing import Any

from wsabie.base.errors import InputError
from wsabie.base.progress import Progress
from wsabie.faces.cli.common import executor, opened, settle, tell_unknown
from wsabie.faces.cli.splitting import split_rows
from wsabie.faces.cli.terminal import NARROW, TerminalProgress, note, out, show_json, show_table
from wsabie.sources.records import Rows, Source
from wsabie.storage.rejects import Rejects
from wsabie.training.stats import EpochStats


def compare_command(
    data: Path,
    models: str,
    by: str,
    test: Path | None,
    allow_overlap: bool,
    pictures: dict[str, Any],
    threads: int | None,
    seed: int,
    report: Path | None,
    strict: bool,
    rejects_file: Path | None,
    json: bool,
) -> None:
    """Split (or take --test), fit every model on the same rows, print one table."""
    from wsabie.studies.compare import compare
    from wsabie.studies.entrants import entrants

    rejects, progress = Rejects(strict=strict), TerminalProgress()
    names = [name.strip() for name in models.split(",") if name.strip()]
    taking_part = entrants(names, seed=seed, threads=threads)
    rows, tested = _rows(
        opened(data, rejects),
        None if test is None else opened(test, rejects),
        pictures,
        threads,
        seed,
        progress,
        rejects,
    )
    train, valid, tested = _sides(rows, tested, by, seed)
    found = compare(train, valid, tested, taking_part, seed=seed, allow_overlap=allow_overlap, progress=progress)
    settle(rejects, rejects_file)
    if report is not None:
        from wsabie.studies.report import write_report
        from wsabie.studies.report_input import DataFacts, ReportInput

        history: list[EpochStats] = next(
            (entry.model.history_ for entry in found.entries if entry.name == "wsabie"), []
        )
        given = ReportInput(
            f"Comparison on {data.name}", found, data=DataFacts(name=data.name, source=str(data)), history=history
        )
        write_report(report, given)
        note(f"report: {report}")
    if json:
        show_json(found.as_dict())
        return
    table = found.table(NARROW)
    facts = found.task.facts
    show_table(f"{facts.test_rows:,} test rows, {facts.labels:,} labels", table.headers, table.rows)
    for skipped in found.skipped:
        out.print(f"{skipped.title}: {skipped.reason}", markup=False)


def _rows(
    data: Source,
    test: Source | None,
    pictures: dict[str, Any],
    threads: int | None,
    seed: int,
    progress: Progress,
    rejects: Rejects,
) -> tuple[Rows, Rows | None]:
    """Both sources as rows with the same columns; pictures are described by one dictionary, learned from `data`."""
    if isinstance(data, Rows):
        if test is not None and not isinstance(test, Rows):
            raise InputError("the training data are rows of features and the test data pictures; give the same kind")
        return data, None if test is None else _aligned(test, data)
    from wsabie.features.visual_terms import VisualTerms

    run = executor(threads)
    terms = VisualTerms(**pictures, seed=seed).fit(data, executor=run, progress=progress)
    rows = terms.transform(data, executor=run, progress=progress, rejects=rejects)
    if test is None:
        return rows, None
    tested = test if isinstance(test, Rows) else terms.transform(test, executor=run, progress=progress, rejects=rejects)
    return rows, _aligned(tested, rows)


def _aligned(test: Rows, train: Rows) -> Rows:
    """Test rows with the labels and features of the training rows."""
    from wsabie.sources.align import align

    aligned = align(test, train.label_names, train.feature_names, train.X.shape[1])
    tell_unknown(aligned, "the test data")
    return aligned.rows


def _sides(rows: Rows, test: Rows | None, by: str, seed: int) -> tuple[Rows, Rows, Rows]:
    """Training, validation and test rows."""
    if test is None:
        sides = split_rows(rows, by, 0.1, 0.1, seed)
        return rows.take(sides.train), rows.take(sides.valid), rows.take(sides.test)
    sides = split_rows(rows, by, 0.1, 0.0, seed)
    return rows.take(sides.train), rows.take(sides.valid), test
