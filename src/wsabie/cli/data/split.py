"""`wsabie split`."""

import shutil
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Literal

from wsabie.cli import inputs
from wsabie.cli.framework import JsonObject, Options, Report, Scope, command, option
from wsabie.cli.output import TerminalProgress, format_count, out, print_note, quote_path, show_table
from wsabie.cli.shared_options import Data, DataOptions, Seed
from wsabie.core.errors import InputError, require
from wsabie.storage.atomic_files import explain_write_errors, lock_folder
from wsabie.storage.output_checks import OutputKind
from wsabie.storage.rejects import Rejects

if TYPE_CHECKING:
    from wsabie.evaluation.splits import Split
    from wsabie.io.records import FeatureTable, ItemSubset, Source
    from wsabie.io.space_declaration import SpaceDeclaration
    from wsabie.workflows.data_splits import RelationSplit


SIDES = ("train", "valid", "test")
RELATIONS_FILE, DROPPED_FILE = "relations.tsv", "relations-dropped.jsonl"
_DRAFTS = ".split-"


_BY_ROWS = Scope(space="it is for rows; entities of a space are split by their groups, if there are any")


class RowOptions(Options):
    """Options about the side of a row."""

    by: Literal["auto", "group", "burst", "row", "label", "time", "one-label"] = option(
        "group, row, label or time (default: group if there are groups, and burst if the features show near-copies); "
        "burst: near-copies, and pictures of one moment, stay together, and groups do; "
        "one-label: every row stays in training and one of its labels is the test.",
        "auto",
    )
    min_labels: int | None = option("With one-label: rows with fewer labels keep them all (default: 2).", min=1)
    drop_near: float | None = option(
        "Leave out test and validation rows at least this similar (cosine) to a training row.", min=0, max=1
    )
    relations: Path | None = option("In place of --by: related labels, object TAB part a line, to keep on every side.")


class SplitOptions(DataOptions):
    """Options of `wsabie split`."""

    data: Data
    out: Path = option("Folder for train, valid and test.")
    valid: float | None = option("Fraction of validation rows (default: 0.1; with one-label: 0).", min=0, max=1)
    test: float | None = option("Fraction of test rows (default: 0.1; with one-label: 1).", min=0, max=1)
    rows: Annotated[RowOptions, _BY_ROWS]
    seed: Seed = 0

    @property
    def shares(self) -> tuple[float, float]:
        """Shares of validation and test rows."""
        return 0.1 if self.valid is None else self.valid, 0.1 if self.test is None else self.test

    @property
    def dropped_file(self) -> Path:
        """List of rows that are too near to others."""
        return self.out / "dropped.jsonl"


@command("split photos/ --out parts --by group", "split rows.parquet --out parts --test 0.2 --drop-near 0.95")
def split(options: SplitOptions) -> Report:
    """Split rows into train, validation and test without leaks.

    It splits declarations too, and lists dropped rows.
    """
    return inputs.run_by_data(options, _split_rows, _split_declaration)


def _split_rows(options: SplitOptions) -> Report:
    """Write train, valid and test as Parquet, and the dropped rows as JSON lines."""
    from wsabie.io.records import ItemSubset
    from wsabie.workflows import data_splits

    files, label_pairs = _check_options(options)
    if options.rows.by == "one-label":
        yield from _split_labels(options, files)
        return
    with options.collect_rejects() as rejects:
        source = options.open_data(options.data, rejects)
        rows = inputs.make_label_table(source)
        if options.rows.drop_near is not None:
            _require_rows(source, options.data, "--drop-near compares features")
        if options.rows.by == "burst":
            _require_bursts(_require_rows(source, options.data, "--by burst compares features"), options.data)
        if not inputs.is_table(source) and source.modality != "pictures":
            _require_rows(source, options.data, "split writes rows or pictures")
        relation_split = None
        if label_pairs is None:
            by, grouped = options.rows.by, rows
            if by == "burst" or (by == "auto" and rows.near_equality is not None):
                by, (grouped, n_bursts) = "auto", data_splits.group_bursts(rows)
                inputs.report_bursts(n_bursts)
            sides = data_splits.split_rows(grouped, by, *options.shares, options.seed)
        else:
            relation_split = data_splits.split_with_relations(rows, label_pairs, *options.shares, options.seed)
            sides = relation_split.sides
        n_views = int((sides.sides(len(rows)) < 0).sum())
        if n_views:
            views = format_count(n_views, "further view")
            print_note(f"{views} of validation and test pictures left out: only training has them")
        _refuse_older_files(files, [name for name in SIDES if len(getattr(sides, name))])
        left_out = None
        if options.rows.drop_near is not None:
            sides, left_out = _drop_near_rows(rows, sides, options.rows.drop_near)
            if relation_split is not None:
                relation_split = data_splits.recheck_relations(relation_split, rows, sides)
        indexes = {files[name]: getattr(sides, name) for name in SIDES if len(getattr(sides, name))}
        take_part = source.take if inputs.is_table(source) else partial(ItemSubset, source)
        _write_parts({file: take_part(index) for file, index in indexes.items()}, options.out)
        _write_dropped(options.dropped_file, left_out)
    counts = {name: len(getattr(sides, name)) for name in SIDES}
    facts = {} if relation_split is None else {"relations": _write_relations(relation_split, options.out)}
    yield {"out": options.out, **counts, "left_out": len(rows) - sum(counts.values()), **facts}
    unit = "rows" if rows is source else "pictures"
    out.print(f"{options.out}: " + ", ".join(f"{name} {n:,} {unit}" for name, n in counts.items()))
    if relation_split is not None:
        n_kept, n_dropped = len(relation_split.relations), len(relation_split.dropped)
        relations = format_count(n_kept + n_dropped, "relation")
        out.print(f"{options.out / RELATIONS_FILE}: {n_kept:,} of {relations}, which are on every side")


def _check_options(options: SplitOptions) -> tuple[dict[str, Path], list[tuple[str, str]] | None]:
    """Check that options fit each other and files can be written; return the files and related labels."""
    by, folder, relations = options.rows.by, options.out, options.rows.relations
    if by != "one-label" and options.rows.min_labels is not None:
        raise InputError("--min-labels is for --by one-label; add it, or leave --min-labels out")
    if by == "one-label" and options.rows.drop_near is not None:
        raise InputError("--by one-label leaves every row on the training side; leave --drop-near out")
    files = {name: folder / f"{name}.parquet" for name in SIDES}
    results: list[tuple[OutputKind, Path | None]] = [("parquet", file) for file in files.values()]
    if relations is not None:
        require(by == "auto", f"--relations and --by {by} both decide the sides; leave one of them out")
        results += [("pairs", folder / RELATIONS_FILE), ("rejects", folder / DROPPED_FILE)]
    options.check_outputs(*results, ("rejects", options.dropped_file), inputs=(options.data, relations))
    return files, None if relations is None else inputs.read_label_pairs(relations)


def _write_dropped(file: Path, left_out: Rejects | None) -> None:
    """Write the list of rows that are too near to others; remove that of an older split."""
    if left_out is None:
        file.unlink(missing_ok=True)
        return
    left_out.write(file)
    print_note(f"{format_count(len(left_out), 'row')} too near a row of an earlier side left out (listed in {file})")


def _split_declaration(options: SplitOptions, declaration: "SpaceDeclaration") -> Report:
    """Write lists of entities and pairs and a TOML file for each side."""
    from wsabie.workflows.spaces.declaration_split import SIDES, require_free_folder, split_declaration

    options.check_outputs(inputs=(options.data, *inputs.list_declared_files(declaration), options.out))
    require_free_folder(options.out)
    with options.collect_rejects() as rejects:
        written = split_declaration(declaration, options.out, *options.shares, options.seed, rejects)
    entities, pairs, files = written.entities, written.pairs, written.files
    yield {"out": options.out, "entities": entities, "pairs": pairs, "files": files}
    counts = {f"{name} (entities)": n for name, n in entities.items()}
    counts |= {f"{name} (pairs)": n for name, n in pairs.items()}
    show_table(str(options.out), ["", *SIDES], [[name, *(n[side] for side in SIDES)] for name, n in counts.items()])
    print_note(f"next: wsabie train {quote_path(written.files[0])} --model DIR")


def _require_bursts(rows: "FeatureTable", data: Path) -> None:
    """Refuse rows that neither features nor times join to bursts."""
    if rows.near_equality is None and not any("T" in time for time in rows.times or ()):
        fact = f"nothing in {data} tells bursts: its features show no near-copies, and no row has a time of day"
        remedy = "extract features of the pictures with --features lite0, or leave near rows out with --drop-near"
        raise InputError(f"{fact}; {remedy}")


def _require_rows(source: "Source", data: Path, reason: str) -> "FeatureTable":

    if not inputs.is_table(source):
        raise InputError(f"{reason} and {data} holds {source.modality}; {inputs.format_features_hint(source, data)}")
    return source


def _write_relations(relation_split: "RelationSplit", folder: Path) -> JsonObject:
    """Write relations with pictures on every side, as `train` reads them, and dropped ones; return facts."""
    from wsabie.io.formats.pair_list import write_id_pairs

    write_id_pairs(folder / RELATIONS_FILE, relation_split.relations)
    rejects = Rejects(most=len(relation_split.dropped))
    for (object_label, part_label), reason in relation_split.dropped:
        rejects.add(f"{object_label}, {part_label}", "relation that is not on every side", reason)
    rejects.write(folder / DROPPED_FILE)
    for pair, _, why in rejects.listed[:1]:
        count = format_count(len(rejects), "relation is", "relations are")
        print_note(f"{count} not on every side, such as {pair}: {why} (all listed in {folder / DROPPED_FILE})")
    dropped = [{"object": pair[0], "part": pair[1], "reason": reason} for pair, reason in relation_split.dropped]
    return {"file": folder / RELATIONS_FILE, "n_relations": len(relation_split.relations), "dropped": dropped}


def _split_labels(options: SplitOptions, files: dict[str, Path]) -> Report:
    """Hold one label of each row out."""
    from wsabie.io.records import count_labels
    from wsabie.workflows.data_splits import split_labels

    folder, shares = options.out, (options.valid or 0.0, 1.0 if options.test is None else options.test)
    with options.collect_rejects() as rejects:
        source = options.open_data(options.data, rejects)
        rows = _require_rows(source, options.data, "--by one-label deals out the labels of rows")
        sides = split_labels(rows, *shares, options.seed, options.rows.min_labels or 2)
        _refuse_older_files(files, list(sides))
        _write_parts({files[name]: part for name, part in sides.items()}, folder)
        _write_dropped(options.dropped_file, None)
    lost = int(((count_labels(rows) > 0) & (count_labels(sides["train"]) == 0)).sum())
    if lost:
        print_note(f"{format_count(lost, 'label')} without a training row: every row that has them lost them")
    counts = {name: len(part) for name, part in sides.items()}
    pairs = {name: int((part.Y.data > 0).sum()) for name, part in sides.items()}
    yield {"out": folder, **counts, "pairs": pairs, "labels_without_training": lost}
    out.print(f"{folder}: " + ", ".join(f"{name} {n:,} labels of {counts[name]:,} rows" for name, n in pairs.items()))


def _refuse_older_files(files: dict[str, Path], written: list[str]) -> None:
    for name, file in files.items():
        if file.exists() and name not in written:
            raise InputError(f"{file} would stay beside a split without rows for it; move it, or name another folder")


def _drop_near_rows(rows: "FeatureTable", sides: "Split", threshold: float) -> "tuple[Split, Rejects]":
    """Drop rows that are too near to a row of an earlier side; return the new split and the list of them."""
    from wsabie.evaluation.splits import drop_near

    remaining, dropped = drop_near(rows.X, sides, threshold)
    left_out, training_rows = Rejects(most=len(rows)), set(sides.train.tolist())
    for row, neighbour, similarity in zip(*dropped, strict=True):
        side = "training" if neighbour in training_rows else "validation"
        left_out.add(rows.ids[row], f"too near a {side} row", f"{rows.ids[neighbour]} {similarity:.4f}")
    return remaining, left_out


def _write_parts(parts: "Mapping[Path, FeatureTable | ItemSubset]", folder: Path) -> None:
    """Write the parts in the form of the source; all are complete before the first replaces an older file."""
    from wsabie.io.formats.parquet import write_parquet_images
    from wsabie.io.formats.parquet_rows import write_parquet_rows

    with explain_write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with explain_write_errors(folder), lock_folder(folder), TemporaryDirectory(dir=folder, prefix=_DRAFTS) as drafts:
        for leftover in folder.glob(f"{_DRAFTS}*"):  # of one that was killed
            if leftover != Path(drafts):
                shutil.rmtree(leftover, ignore_errors=True)
        for file, part in parts.items():
            draft = Path(drafts) / file.name
            if inputs.is_table(part):
                write_parquet_rows(part, draft)
            else:
                write_parquet_images(part, draft, progress=TerminalProgress())
        for file in parts:
            (Path(drafts) / file.name).replace(file)
