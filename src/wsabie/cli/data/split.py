"""`wsabie split`."""

import shutil
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from wsabie.cli.inputs.command_inputs import collect_rejects, format_features_hint, open_data, read_label_pairs
from wsabie.cli.terminal.output import TerminalProgress, format_count, out, print_note, show_json
from wsabie.core.errors import InputError
from wsabie.evaluation.splits import Split
from wsabie.features.base.table_builder import build_label_table
from wsabie.io.records import FeatureTable, ItemSubset, Source, count_labels
from wsabie.storage.atomic_files import explain_write_errors, lock_folder
from wsabie.storage.output_checks import OutputKind, check_output_paths
from wsabie.storage.rejects import Rejects
from wsabie.workflows.collection_splits import (
    RelationSplit,
    recheck_relations,
    split_collection,
    split_labels,
    split_with_relations,
)

SIDES = ("train", "valid", "test")
RELATIONS_FILE, DROPPED_FILE = "relations.tsv", "relations-dropped.jsonl"
_DRAFTS = ".split-"


def run_split(
    data: Path,
    folder: Path,
    valid: float | None,
    test: float | None,
    by: str,
    least: int | None,
    drop_near: float | None,
    seed: int,
    strict: bool,
    rejects_file: Path | None,
    json: bool,
    relations: Path | None = None,
) -> None:
    """Write train, valid and test as Parquet, and the dropped rows as JSON lines."""
    if by != "one-label" and least is not None:
        raise InputError("--least says how many labels a row needs to lose one, so it needs --by one-label")
    if by == "one-label" and drop_near is not None:
        raise InputError("--by one-label leaves every row on the training side; leave --drop-near out")
    files, dropped_file = {name: folder / f"{name}.parquet" for name in SIDES}, folder / "dropped.jsonl"
    results: list[tuple[OutputKind, Path | None]] = [("parquet", file) for file in files.values()]
    if relations is not None:
        if by != "auto":
            raise InputError(f"--relations says what decides the sides, and so does --by {by}; leave one of them out")
        results += [("pairs", folder / RELATIONS_FILE), ("rejects", folder / DROPPED_FILE)]
    check_output_paths(("rejects", rejects_file), ("rejects", dropped_file), *results, inputs=(data, relations))
    label_pairs = None if relations is None else read_label_pairs(relations)
    with collect_rejects(rejects_file, strict=strict) as rejects:
        source = open_data(data, rejects)
        if by == "one-label":
            _split_labels(source, data, files, folder, (valid or 0.0, test, least, seed), dropped_file, json)
            return
        valid, test = (0.1 if share is None else share for share in (valid, test))
        rows = source if isinstance(source, FeatureTable) else build_label_table(source)
        _refuse_unsplittable(source, data, drop_near)
        relation_split = None if label_pairs is None else split_with_relations(rows, label_pairs, valid, test, seed)
        sides = split_collection(rows, by, valid, test, seed) if relation_split is None else relation_split.sides
        n_views = int((sides.sides(len(rows)) < 0).sum())
        if n_views:
            print_note(
                f"{format_count(n_views, 'further view')} of validation and test pictures left out: only training "
                "has them"
            )
        _refuse_older_files(files, [name for name in SIDES if len(getattr(sides, name))])
        left_out = None
        if drop_near is not None:
            sides, left_out = _drop_near_rows(rows, sides, drop_near)
            relation_split = None if relation_split is None else recheck_relations(relation_split, rows, sides)
        indexes = {files[name]: getattr(sides, name) for name in SIDES if len(getattr(sides, name))}
        take_part = source.take if isinstance(source, FeatureTable) else partial(ItemSubset, source)
        _write_parts({file: take_part(index) for file, index in indexes.items()}, folder)
        if left_out is None:
            dropped_file.unlink(missing_ok=True)
        else:
            left_out.write(dropped_file)
            print_note(
                f"{format_count(len(left_out), 'row')} too near a row of an earlier side left out (listed in "
                f"{dropped_file})"
            )
    counts = {name: len(getattr(sides, name)) for name in SIDES}
    if relation_split is not None:
        _write_relations(relation_split, folder)
    if json:
        relation_facts = {} if relation_split is None else {"relations": _serialize_relations(relation_split, folder)}
        show_json(
            {"schema": 1, "out": str(folder), **counts, "left_out": len(rows) - sum(counts.values()), **relation_facts}
        )
        return
    unit = "rows" if rows is source else "pictures"
    out.print(f"{folder}: " + ", ".join(f"{name} {n:,} {unit}" for name, n in counts.items()))
    if relation_split is not None:
        n = len(relation_split.kept) + len(relation_split.dropped)
        out.print(
            f"{folder / RELATIONS_FILE}: {len(relation_split.kept):,} of {format_count(n, 'relation')}, which are "
            "on every side"
        )


def _refuse_unsplittable(source: Source, data: Path, drop_near: float | None) -> None:
    if isinstance(source, FeatureTable):
        return
    if drop_near is not None:
        raise InputError(
            f"--drop-near compares features and {data} holds {source.things}; {format_features_hint(source, data)}"
        )
    if source.things != "pictures":
        raise InputError(
            f"split writes rows or pictures and {data} holds {source.things}; {format_features_hint(source, data)}"
        )


def _write_relations(relation_split: RelationSplit, folder: Path) -> None:
    """Write the relations with pictures on every side, as `train` reads them, and the dropped ones."""
    from wsabie.io.formats.pair_list import write_id_pairs

    write_id_pairs(folder / RELATIONS_FILE, relation_split.kept)
    rejects = Rejects(most=len(relation_split.dropped))
    for (object_label, part_label), reason in relation_split.dropped:
        rejects.add(f"{object_label}, {part_label}", "relation that is not on every side", reason)
    rejects.write(folder / DROPPED_FILE)
    for pair, _, why in rejects.listed[:1]:
        count = format_count(len(rejects), "relation is", "relations are")
        print_note(f"{count} not on every side, such as {pair}: {why} (all listed in {folder / DROPPED_FILE})")


def _serialize_relations(relation_split: RelationSplit, folder: Path) -> dict[str, Any]:
    dropped = [{"object": pair[0], "part": pair[1], "reason": reason} for pair, reason in relation_split.dropped]
    return {"file": str(folder / RELATIONS_FILE), "kept": len(relation_split.kept), "dropped": dropped}


def _split_labels(
    source: Source,
    data: Path,
    files: dict[str, Path],
    folder: Path,
    settings: tuple[float, float | None, int | None, int],
    dropped_file: Path,
    json: bool,
) -> None:
    """Hold one label of each row out."""
    valid, test, least, seed = settings
    if not isinstance(source, FeatureTable):
        raise InputError(
            f"--by one-label deals out the labels of rows and {data} holds {source.things}; "
            f"{format_features_hint(source, data)}"
        )
    sides = split_labels(source, valid, 1.0 if test is None else test, seed, 2 if least is None else least)
    _refuse_older_files(files, list(sides))
    _write_parts({files[name]: part for name, part in sides.items()}, folder)
    dropped_file.unlink(missing_ok=True)
    lost = int(((count_labels(source) > 0) & (count_labels(sides["train"]) == 0)).sum())
    if lost:
        print_note(f"{format_count(lost, 'label')} without a training row: every row that has them lost them")
    counts = {name: len(part) for name, part in sides.items()}
    pairs = {name: int((part.Y.data > 0).sum()) for name, part in sides.items()}
    if json:
        show_json({"schema": 1, "out": str(folder), **counts, "pairs": pairs, "labels_without_training": lost})
        return
    out.print(f"{folder}: " + ", ".join(f"{name} {n:,} labels of {counts[name]:,} rows" for name, n in pairs.items()))


def _refuse_older_files(files: dict[str, Path], written: list[str]) -> None:
    for name, file in files.items():
        if file.exists() and name not in written:
            raise InputError(f"{file} would stay beside a split that has no such rows; move it, or name another folder")


def _drop_near_rows(rows: FeatureTable, sides: Split, threshold: float) -> tuple[Split, Rejects]:
    """Drop rows that are too near to a row of an earlier side; return the new split and the list of them."""
    from wsabie.evaluation.near_duplicates import drop_near

    remaining, dropped = drop_near(rows.X, sides, threshold)
    left_out, training_rows = Rejects(most=len(rows)), set(sides.train.tolist())
    for row, neighbour, similarity in zip(*dropped, strict=True):
        side = "training" if neighbour in training_rows else "validation"
        left_out.add(rows.ids[row], f"too near a {side} row", f"{rows.ids[neighbour]} {similarity:.4f}")
    return remaining, left_out


def _write_parts(parts: Mapping[Path, FeatureTable | ItemSubset], folder: Path) -> None:
    """Write the parts in the form of the source; all are complete before the first replaces an older file."""
    from wsabie.io.formats.parquet.feature_rows import write_parquet_rows
    from wsabie.io.formats.parquet_images import write_parquet_images

    with explain_write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with explain_write_errors(folder), lock_folder(folder), TemporaryDirectory(dir=folder, prefix=_DRAFTS) as drafts:
        for leftover in folder.glob(f"{_DRAFTS}*"):  # of one that was killed
            if leftover != Path(drafts):
                shutil.rmtree(leftover, ignore_errors=True)
        for file, part in parts.items():
            draft = Path(drafts) / file.name
            if isinstance(part, FeatureTable):
                write_parquet_rows(part, draft)
            else:
                write_parquet_images(part, draft, progress=TerminalProgress())
        for file in parts:
            (Path(drafts) / file.name).replace(file)
