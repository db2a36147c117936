"""`wsabie split`."""

import shutil
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from wsabie.base.errors import InputError
from wsabie.evaluation.splits import Split
from wsabie.faces.cli.common import couples_in, describe_first, listing, opened
from wsabie.faces.cli.terminal import TerminalProgress, note, out, plural, show_json
from wsabie.features.collect import outline
from wsabie.sources.records import ItemPart, Rows, Source, label_counts
from wsabie.storage.atomic import explained, held
from wsabie.storage.outputs import Kind, refuse_unwritable
from wsabie.storage.rejects import Rejects
from wsabie.studies.splitting import RelatedSplit, split_labels, split_related, split_rows, still_related

SIDES = ("train", "valid", "test")
KEPT, DROPPED = "relations.tsv", "relations-dropped.jsonl"
_DRAFTS = ".split-"


def split_command(
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
    """Write train, valid and test as Parquet, and what was left out as JSON lines."""
    if by != "one-label" and least is not None:
        raise InputError("--least says how many labels a row needs to lose one, so it needs --by one-label")
    if by == "one-label" and drop_near is not None:
        raise InputError("--by one-label leaves every row on the training side; leave --drop-near out")
    files, near = {name: folder / f"{name}.parquet" for name in SIDES}, folder / "dropped.jsonl"
    results: list[tuple[Kind, Path | None]] = [("parquet", file) for file in files.values()]
    if relations is not None:
        if by != "auto":
            raise InputError(f"--relations says what decides the sides, and so does --by {by}; leave one of them out")
        results += [("pairs", folder / KEPT), ("rejects", folder / DROPPED)]
    refuse_unwritable(("rejects", rejects_file), ("rejects", near), *results, inputs=(data, relations))
    couples = None if relations is None else couples_in(relations)
    with listing(rejects_file, strict=strict) as rejects:
        source = opened(data, rejects)
        if by == "one-label":
            _split_labels(source, data, files, folder, (valid or 0.0, test, least, seed), near, json)
            return
        valid, test = (0.1 if share is None else share for share in (valid, test))
        rows = source if isinstance(source, Rows) else outline(source)
        if drop_near is not None and not isinstance(source, Rows):
            raise InputError(
                f"--drop-near compares features and {data} holds {source.things}; {describe_first(source, data)}"
            )
        if not isinstance(source, Rows) and source.things != "pictures":
            raise InputError(
                f"split writes rows or pictures and {data} holds {source.things}; {describe_first(source, data)}"
            )
        related = None if couples is None else split_related(rows, couples, valid, test, seed)
        sides = split_rows(rows, by, valid, test, seed) if related is None else related.sides
        n_views = int((sides.sides(len(rows)) < 0).sum())
        if n_views:
            note(f"{plural(n_views, 'further view')} of validation and test pictures left out: only training has them")
        _refuse_older(files, [name for name in SIDES if len(getattr(sides, name))])
        left_out = None
        if drop_near is not None:
            sides, left_out = _without_near(rows, sides, drop_near)
            related = None if related is None else still_related(related, rows, sides)
        kept = {files[name]: getattr(sides, name) for name in SIDES if len(getattr(sides, name))}
        part = source.take if isinstance(source, Rows) else partial(ItemPart, source)
        _write({file: part(index) for file, index in kept.items()}, folder)
        if left_out is None:
            near.unlink(missing_ok=True)
        else:
            left_out.write(near)
            note(f"{plural(len(left_out), 'row')} too near a row of an earlier side left out (listed in {near})")
    counts = {name: len(getattr(sides, name)) for name in SIDES}
    if related is not None:
        _write_relations(related, folder)
    if json:
        more = {} if related is None else {"relations": _told(related, folder)}
        show_json({"schema": 1, "out": str(folder), **counts, "left_out": len(rows) - sum(counts.values()), **more})
        return
    things = "rows" if rows is source else "pictures"
    out.print(f"{folder}: " + ", ".join(f"{name} {n:,} {things}" for name, n in counts.items()))
    if related is not None:
        n = len(related.kept) + len(related.dropped)
        out.print(f"{folder / KEPT}: {len(related.kept):,} of {plural(n, 'relation')}, which are on every side")


def _write_relations(related: RelatedSplit, folder: Path) -> None:
    """The relations that are on every side, as `train` takes them, and why the others are not."""
    from wsabie.sources.pairs import write_pairs

    write_pairs(folder / KEPT, related.kept)
    others = Rejects(most=len(related.dropped))
    for (one, other), reason in related.dropped:
        others.add(f"{one}, {other}", "relation that is not on every side", reason)
    others.write(folder / DROPPED)
    for where, _, why in others.listed[:1]:
        told = plural(len(others), "relation is", "relations are")
        note(f"{told} not on every side, such as {where}: {why} (all listed in {folder / DROPPED})")


def _told(related: RelatedSplit, folder: Path) -> dict[str, Any]:
    dropped = [{"object": one, "part": other, "reason": reason} for (one, other), reason in related.dropped]
    return {"file": str(folder / KEPT), "kept": len(related.kept), "dropped": dropped}


def _split_labels(
    source: Source,
    data: Path,
    files: dict[str, Path],
    folder: Path,
    asked: tuple[float, float | None, int | None, int],
    near: Path,
    json: bool,
) -> None:
    """Leave one label of each row out."""
    valid, test, least, seed = asked
    if not isinstance(source, Rows):
        raise InputError(
            f"--by one-label deals out the labels of rows and {data} holds {source.things}; "
            f"{describe_first(source, data)}"
        )
    sides = split_labels(source, valid, 1.0 if test is None else test, seed, 2 if least is None else least)
    _refuse_older(files, list(sides))
    _write({files[name]: part for name, part in sides.items()}, folder)
    near.unlink(missing_ok=True)
    lost = int(((label_counts(source) > 0) & (label_counts(sides["train"]) == 0)).sum())
    if lost:
        note(f"{plural(lost, 'label')} without a training row: every row that has them lost them")
    counts = {name: len(part) for name, part in sides.items()}
    pairs = {name: int((part.Y.data > 0).sum()) for name, part in sides.items()}
    if json:
        show_json({"schema": 1, "out": str(folder), **counts, "pairs": pairs, "labels_without_training": lost})
        return
    out.print(f"{folder}: " + ", ".join(f"{name} {n:,} labels of {counts[name]:,} rows" for name, n in pairs.items()))


def _refuse_older(files: dict[str, Path], written: list[str]) -> None:
    for name, file in files.items():
        if file.exists() and name not in written:
            raise InputError(f"{file} would stay beside a split that has no such rows; move it, or name another folder")


def _without_near(rows: Rows, sides: Split, threshold: float) -> tuple[Split, Rejects]:
    """The split without the rows that are too near to one of an earlier side, and the list of those."""
    from wsabie.evaluation.near import drop_near

    kept, dropped = drop_near(rows.X, sides, threshold)
    left_out, learnt = Rejects(most=len(rows)), set(sides.train.tolist())
    for row, neighbour, similarity in zip(*dropped, strict=True):
        side = "training" if neighbour in learnt else "validation"
        left_out.add(rows.ids[row], f"too near a {side} row", f"{rows.ids[neighbour]} {similarity:.4f}")
    return kept, left_out


def _write(parts: Mapping[Path, Rows | ItemPart], folder: Path) -> None:
    """The sides, in the form of the whole; all are written before the first takes the place of an older one."""
    from wsabie.sources.parquet_pictures import write_pictures
    from wsabie.sources.parquet_rows import write_rows

    with explained(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with explained(folder), held(folder), TemporaryDirectory(dir=folder, prefix=_DRAFTS) as drafts:
        for left in folder.glob(f"{_DRAFTS}*"):  # of one that was killed
            if left != Path(drafts):
                shutil.rmtree(left, ignore_errors=True)
        for file, part in parts.items():
            draft = Path(drafts) / file.name
            if isinstance(part, Rows):
                write_rows(part, draft)
            else:
                write_pictures(part, draft, progress=TerminalProgress())
        for file in parts:
            (Path(drafts) / file.name).replace(file)
