"""`wsabie features kpca`."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wsabie.base.arrays import Float32, Matrix
from wsabie.base.errors import InputError
from wsabie.base.executor import Executor, Serial
from wsabie.faces.cli.common import describe_first, executor, listing, opened, tell_unknown_features
from wsabie.faces.cli.terminal import TerminalProgress, note, out, plural, show_json
from wsabie.sources.records import Rows
from wsabie.storage.folder import folder_kind, refuse_foreign
from wsabie.storage.outputs import refuse_unwritable
from wsabie.storage.rejects import Rejects

if TYPE_CHECKING:
    from wsabie.features.kernel_pca import KernelPca

DIM = 1024  # as in [P]


def kpca_command(
    src: Path,
    out_file: Path,
    given: dict[str, Any],
    map_folder: Path | None,
    threads: int | None,
    strict: bool,
    rejects_file: Path | None,
    json: bool,
    ray: str | None = None,
) -> None:
    """Learn or load a map, write every row as its components; `given` are the map's options."""
    from wsabie.sources.align import align

    saved = map_folder or out_file.with_name(out_file.name + ".map")
    refuse_unwritable(("rejects", rejects_file), ("parquet", out_file), inputs=(src, saved))
    progress, started = TerminalProgress(), time.perf_counter()
    run = Serial() if ray is None else executor(1, ray)
    there = _loaded(saved, map_folder, given) if map_folder or folder_kind(saved) else None
    if there is None:
        refuse_foreign(saved)  # but for what a save that was stopped left
    with listing(rejects_file, strict=strict) as rejects:
        rows = _rows(src, rejects, None if there is None else there.n_features_in_)
        found = there or _learnt(rows, given, threads, progress)
        aligned = align(rows, None, found.feature_names, found.n_features_in_, found.dictionary)
        tell_unknown_features(aligned, src)
        _write(aligned.rows, found, out_file, threads if ray is None else 1, run, progress)
    if there is None:
        found.save(saved)
    _tell(found, out_file, saved, rows, rejects, time.perf_counter() - started, learnt=there is None, json=json)


def _loaded(saved: Path, named: Path | None, given: dict[str, Any]) -> "KernelPca":
    """The map that is there, if it was made with the options given."""
    from wsabie.features.kernel_pca import KernelPca

    if not saved.exists():
        raise InputError(
            f"there is no map at {saved}; give a folder that `wsabie features kpca` saved beside its file, or leave "
            "--map out to learn one"
        )
    found = KernelPca.load(saved)
    if named:
        found.refuse_other(given, saved, "leave these options out, or give another --map")
    else:
        found.refuse_other(given, saved, f"use it with --map {saved}, delete it, or choose another --out")
        note(f"using the map that is there: {saved}")
    return found


def _rows(src: Path, rejects: Rejects, n_features: int | None) -> Rows:
    rows = opened(src, rejects, n_features=n_features)
    if not isinstance(rows, Rows):
        raise InputError(f"{src} holds {rows.things} and kpca takes rows of features; {describe_first(rows, src)}")
    return rows


def _learnt(rows: Rows, given: dict[str, Any], threads: int | None, progress: TerminalProgress) -> "KernelPca":
    """A map learnt from the rows, after telling how much memory that takes."""
    from wsabie.features.kernel_pca import KernelPca

    most = given.get("n_landmarks", len(rows))
    wanted = KernelPca(**{"n_components": min(DIM, len(rows), most), **given})
    landmarks, n_bytes = wanted.landmarks_for(len(rows)), wanted.bytes_to_fit(len(rows))
    note(f"learning from {plural(landmarks, 'landmark')} takes about {n_bytes / 1e6:,.0f} MB")
    return wanted.fit_rows(rows, threads=threads, progress=progress)


def _write(
    rows: Rows, found: "KernelPca", out_file: Path, threads: int | None, run: Executor, progress: TerminalProgress
) -> None:
    from wsabie.features.kernel_pca import KernelPca
    from wsabie.sources.parquet_rows import DenseMap, write_rows

    rows = replace(rows, counts=False, feature_names=None, dictionary=found.fingerprint())
    with progress.stage("mapping rows", len(rows), "rows") as stage:

        def apply(blocks: Iterable[Matrix]) -> Iterator[Float32]:
            for points in run.map_with(partial(KernelPca.transform, threads=threads), found, blocks):
                stage.advance(len(points))
                yield points

        write_rows(rows, out_file, through=DenseMap(found.n_components_, apply))


def _tell(
    found: "KernelPca",
    out_file: Path,
    saved: Path,
    rows: Rows,
    rejects: Rejects,
    seconds: float,
    *,
    learnt: bool,
    json: bool,
) -> None:
    """What was written, and how good the map was on the rows that it was learnt from."""
    asked = found.n_components
    if json:
        show_json(
            {
                "schema": 1,
                "out": str(out_file),
                "map": str(saved),
                "rows": len(rows),
                "skipped": len(rejects),
                **map_facts(found),
                "seconds": round(seconds, 3),
            }
        )
        return
    if learnt and found.n_components_ < asked:
        note(f"the rows span {found.n_components_:,} dimensions, fewer than the {asked:,} asked for")
    out.print(
        f"{out_file}: {len(rows):,} rows of {found.n_components_:,} components from "
        f"{plural(found.n_landmarks_, 'landmark')}; map {saved}"
    )
    out.print(f"{'' if learnt else 'the map, when it was learnt, '}{found.report_.told()}")


def map_facts(found: "KernelPca") -> dict[str, Any]:
    """What JSON says of a map."""
    report = found.report_
    return {
        "components": found.n_components_,
        "landmarks": found.n_landmarks_,
        "kernel_error": report.whole.error,
        "explained": report.whole.explained,
        "landmarks_error": report.landmarks.error,
        "landmarks_explained": report.landmarks.explained,
        "judged_rows": report.rows,
        "held_out": report.held_out,
        "bytes": found.n_bytes,
    }
