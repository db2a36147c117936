"""`wsabie features kpca`."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wsabie.cli.inputs.command_inputs import (
    collect_rejects,
    format_features_hint,
    make_executor,
    open_data,
    report_unknown_features,
)
from wsabie.cli.terminal.output import TerminalProgress, format_count, out, print_note, show_json
from wsabie.core.arrays import Float32, Matrix
from wsabie.core.errors import InputError
from wsabie.core.executors import Executor, SerialExecutor
from wsabie.io.records import FeatureTable
from wsabie.storage.model_folder import read_folder_kind, refuse_foreign_files
from wsabie.storage.output_checks import check_output_paths
from wsabie.storage.rejects import Rejects

if TYPE_CHECKING:
    from wsabie.features.kernel_pca import KernelPca

DIM = 1024  # as in Mesnil et al. 2014


def run_kernel_pca(
    src: Path,
    out_file: Path,
    map_options: dict[str, Any],
    map_folder: Path | None,
    threads: int | None,
    strict: bool,
    rejects_file: Path | None,
    json: bool,
    ray: str | None = None,
) -> None:
    """Learn or load a kernel PCA, and write every row as its components."""
    from wsabie.io.alignment import align_table

    folder = map_folder or out_file.with_name(out_file.name + ".map")
    check_output_paths(("rejects", rejects_file), ("parquet", out_file), inputs=(src, folder))
    progress, start = TerminalProgress(), time.perf_counter()
    executor = SerialExecutor() if ray is None else make_executor(1, ray)
    existing = _load_map(folder, map_folder, map_options) if map_folder or read_folder_kind(folder) else None
    if existing is None:
        refuse_foreign_files(folder)  # leftovers of a stopped save are allowed
    with collect_rejects(rejects_file, strict=strict) as rejects:
        rows = _read_rows(src, rejects, None if existing is None else existing.n_features_in_)
        pca = existing or _learn_map(rows, map_options, threads, progress)
        aligned = align_table(rows, None, pca.feature_names, pca.n_features_in_, pca.dictionary)
        report_unknown_features(aligned, src)
        _write_components(aligned.rows, pca, out_file, threads if ray is None else 1, executor, progress)
    if existing is None:
        pca.save(folder)
    _report(pca, out_file, folder, rows, rejects, time.perf_counter() - start, is_new=existing is None, json=json)


def _load_map(folder: Path, map_folder: Path | None, map_options: dict[str, Any]) -> "KernelPca":
    """Load an existing map; refuse one that was made with other options."""
    from wsabie.features.kernel_pca import KernelPca

    if not folder.exists():
        raise InputError(
            f"there is no map at {folder}; give a folder that `wsabie features kpca` saved beside its file, or leave "
            "--map out to learn one"
        )
    pca = KernelPca.load(folder)
    if map_folder:
        pca.refuse_other(map_options, folder, "leave these options out, or give another --map")
    else:
        pca.refuse_other(map_options, folder, f"use it with --map {folder}, delete it, or choose another --out")
        print_note(f"using the map that is there: {folder}")
    return pca


def _read_rows(src: Path, rejects: Rejects, n_features: int | None) -> FeatureTable:
    rows = open_data(src, rejects, n_features=n_features)
    if not isinstance(rows, FeatureTable):
        raise InputError(
            f"{src} holds {rows.things} and kpca takes rows of features; {format_features_hint(rows, src)}"
        )
    return rows


def _learn_map(
    rows: FeatureTable, map_options: dict[str, Any], threads: int | None, progress: TerminalProgress
) -> "KernelPca":
    """Learn a map from the rows, and report the memory that it takes."""
    from wsabie.features.kernel_pca import KernelPca

    max_components = map_options.get("n_landmarks", len(rows))
    pca = KernelPca(**{"n_components": min(DIM, len(rows), max_components), **map_options})
    landmarks, n_bytes = pca.landmarks_for(len(rows)), pca.bytes_to_fit(len(rows))
    print_note(f"learning from {format_count(landmarks, 'landmark')} takes about {n_bytes / 1e6:,.0f} MB")
    return pca.fit_rows(rows, threads=threads, progress=progress)


def _write_components(
    rows: FeatureTable,
    pca: "KernelPca",
    out_file: Path,
    threads: int | None,
    executor: Executor,
    progress: TerminalProgress,
) -> None:
    from wsabie.features.kernel_pca import KernelPca
    from wsabie.io.formats.parquet.feature_rows import DenseTransform, write_parquet_rows

    rows = replace(rows, counts=False, feature_names=None, dictionary=pca.fingerprint())
    with progress.stage("mapping rows", len(rows), "rows") as stage:

        def apply(blocks: Iterable[Matrix]) -> Iterator[Float32]:
            for points in executor.map_with(partial(KernelPca.transform, threads=threads), pca, blocks):
                stage.advance(len(points))
                yield points

        write_parquet_rows(rows, out_file, through=DenseTransform(pca.n_components_, apply))


def _report(
    pca: "KernelPca",
    out_file: Path,
    folder: Path,
    rows: FeatureTable,
    rejects: Rejects,
    seconds: float,
    *,
    is_new: bool,
    json: bool,
) -> None:
    """Report the written rows, and the quality of the map on the rows that it was learnt from."""
    n_requested = pca.n_components
    if json:
        show_json(
            {
                "schema": 1,
                "out": str(out_file),
                "map": str(folder),
                "rows": len(rows),
                "skipped": len(rejects),
                **summarize_map(pca),
                "seconds": round(seconds, 3),
            }
        )
        return
    if is_new and pca.n_components_ < n_requested:
        print_note(f"the rows span {pca.n_components_:,} dimensions, fewer than the {n_requested:,} asked for")
    out.print(
        f"{out_file}: {len(rows):,} rows of {pca.n_components_:,} components from "
        f"{format_count(pca.n_landmarks_, 'landmark')}; map {folder}"
    )
    out.print(f"{'' if is_new else 'the map, when it was learnt, '}{pca.report_.told()}")


def summarize_map(pca: "KernelPca") -> dict[str, Any]:
    """Summarize a map for JSON."""
    report = pca.report_
    return {
        "components": pca.n_components_,
        "landmarks": pca.n_landmarks_,
        "kernel_error": report.whole.error,
        "explained": report.whole.explained,
        "landmarks_error": report.landmarks.error,
        "landmarks_explained": report.landmarks.explained,
        "judged_rows": report.rows,
        "held_out": report.held_out,
        "bytes": pca.n_bytes,
    }
