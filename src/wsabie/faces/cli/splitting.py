"""`wsabie split`."""

from pathlib import Path

import numpy as np

from wsabie.base.errors import InputError
from wsabie.evaluation.splits import Split, split
from wsabie.faces.cli.common import opened, settle
from wsabie.faces.cli.terminal import note, out, show_json
from wsabie.features.augment import original_ids
from wsabie.sources.records import Rows
from wsabie.storage.rejects import Rejects

SIDES = ("train", "valid", "test")


def choose(by: str, rows: Rows) -> str:
    """What to split by: "auto" is "group" where the rows have groups, else "row"."""
    if by == "auto":
        return "group" if rows.groups is not None else "row"
    if by not in ("row", "group", "label", "time"):
        raise InputError(f"--by is {by!r}; choose group, row, label or time")
    return by


def split_rows(rows: Rows, by: str, valid: float, test: float, seed: int) -> Split:
    """Row numbers of the three sides.

    Views of one picture stay together, whatever the split is by, and only its centred view is judged.
    """
    chosen = choose(by, rows)
    originals = original_ids(rows.ids)
    augmented = originals != rows.ids
    groups = rows.groups
    if augmented and (groups is None or chosen != "group"):
        chosen, groups = ("group" if chosen == "row" else chosen), list(originals)
    found = split(
        len(rows),
        by=chosen,  # type: ignore[arg-type]
        valid=valid,
        test=test,
        ids=rows.ids,
        groups=groups,
        times=rows.times if chosen == "time" else None,
        Y=rows.Y if chosen == "label" else None,
        seed=seed,
    )
    if not augmented:
        return found
    centred = np.array([name == original for name, original in zip(rows.ids, originals, strict=True)])
    return Split(found.train, found.valid[centred[found.valid]], found.test[centred[found.test]])


def split_command(
    data: Path,
    folder: Path,
    valid: float,
    test: float,
    by: str,
    drop_near: float | None,
    seed: int,
    strict: bool,
    rejects_file: Path | None,
    json: bool,
) -> None:
    """Write train, valid and test as Parquet, and what was left out as JSON lines."""
    from wsabie.evaluation.near import drop_near as drop
    from wsabie.sources.parquet_rows import write_rows

    rejects = Rejects(strict=strict)
    rows = opened(data, rejects)
    if not isinstance(rows, Rows):
        raise InputError(
            f"{data} holds pictures; describe them first: wsabie features images {data} --out FILE.parquet"
        )
    sides = split_rows(rows, by, valid, test, seed)
    (folder / "dropped.jsonl").unlink(missing_ok=True)
    if drop_near is not None:
        sides, dropped = drop(rows.X, sides, drop_near)
        left_out = Rejects()
        for row, neighbour, similarity in zip(*dropped, strict=True):
            left_out.add(rows.ids[row], "too near a training row", f"{rows.ids[neighbour]} {similarity:.4f}")
        left_out.write(folder / "dropped.jsonl")
        note(f"{len(left_out):,} rows were too near a training row (listed in {folder / 'dropped.jsonl'})")
    counts = {}
    for name in SIDES:
        side = rows.take(getattr(sides, name))
        counts[name] = len(side)
        file = folder / f"{name}.parquet"
        if len(side):
            write_rows(side, file)
        else:
            file.unlink(missing_ok=True)  # an earlier split's rows may be on another side now
    settle(rejects, rejects_file)
    if json:
        show_json({"schema": 1, "out": str(folder), **counts})
        return
    out.print(f"{folder}: " + ", ".join(f"{name} {n:,} rows" for name, n in counts.items()), markup=False)
