"""`wsabie features`: features of items, or dense ones of rows by kernel PCA."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from wsabie.cli import inputs, shared_options
from wsabie.cli.framework import Options, Report, Scope, Settings, argument, command, option, refuse_options
from wsabie.cli.output import TerminalProgress, format_bytes, format_count, out, print_note, quote_path
from wsabie.cli.shared_options import ClusterRunOptions, DataOptions, ExtractionOptions, Items, Landmarks
from wsabie.core.errors import InputError, MissingLabelsError, require
from wsabie.core.execution import Executor, Progress
from wsabie.core.json_conversion import JsonObject
from wsabie.storage.rejects import Rejects

if TYPE_CHECKING:
    from wsabie.core.arrays import Float32, Matrix
    from wsabie.features.base.feature_extractor import FeatureExtractor
    from wsabie.features.kernel_pca import KernelPca
    from wsabie.io.records import FeatureTable, ItemSource, ModalityName

DIM = 1024  # as in Mesnil et al. 2014
_NOT_FOR_ROWS = Scope(kpca="it is for pictures, sounds or documents, and kpca takes rows of features")
_ONLY_KPCA = Scope(items="it is for kpca")


class ExtractorOptions(ExtractionOptions):
    """Options of feature extractors that only this command has."""

    landmarks: Annotated[Landmarks, Scope(kpca="")] = None
    balance: Literal["length", "mass"] | None = option(
        "What is equal for features side by side: length, or mass for kernels (default: length; mass with "
        "--components)."
    )
    weighting: Literal["counts", "tfidf"] | None = option("counts or tfidf (default: counts).")
    min_count: int | None = option("text: leave out words that are found less often (default: 2).", min=1)
    hashing: bool = option("text: no vocabulary, --n-words columns of hashed words.")


class KpcaOptions(Options, panel="Kernel PCA of rows (kpca)"):
    """Options of kernel PCA of rows."""

    dim: int | None = option("Components of kpca (default: 1,024, fewer for few rows).", min=1)
    map_folder: Path | None = option("Use this saved map; otherwise one is learned and saved beside OUT.", flag="--map")


class FeaturesOptions(DataOptions, ClusterRunOptions):
    """Options of `wsabie features`."""

    kind: Literal["images", "audio", "text", "onnx", "kpca"] = argument(
        "images, audio, text, onnx, or kpca: few dense features from many sparse ones.", metavar="KIND"
    )
    src: list[Path] = argument(
        "Pictures, sounds or documents; after onnx, first the ONNX file; for kpca, rows of features.", metavar="SRC"
    )
    out: Path = option("Parquet file to write; it is a source for every other command.")
    extractor: Path | None = option(
        "Saved feature extractor, or a model with one (default: learn one, saved beside OUT).", scope=_NOT_FOR_ROWS
    )
    items: Annotated[Items, _NOT_FOR_ROWS] = None
    features: Annotated[ExtractorOptions, _NOT_FOR_ROWS]
    kpca: Annotated[KpcaOptions, _ONLY_KPCA]


@command(
    "features images photos/ --out photos.parquet --features colour,hog",
    "features kpca rows.parquet --out dense.parquet --dim 200",
)
def features(options: FeaturesOptions) -> Report:
    """Extract features of pictures, sounds or documents as rows.

    The same command resumes a stopped run.

    Or, with kpca, bring sparse rows to few dense dimensions by kernel PCA with the histogram intersection kernel.
    """
    refuse_options("kpca" if options.kind == "kpca" else "items", options)
    if options.kind == "kpca":
        return _write_map_rows(options, _require_one_path(options.src))
    return _extract_features(options)


def _extract_features(options: FeaturesOptions) -> Report:
    """Fit or load a feature extractor, extract the features of all items, and write Parquet."""
    from wsabie.features.base.extraction import extract_to_file
    from wsabie.features.extractor_registry import create_extractor
    from wsabie.features.extractors.composite_extractors import KernelPcaExtractor

    src, names = _split_network_path(options)
    out_file, extractor_path, augment = options.out, options.extractor, options.features.augment or 0
    options.check_outputs(("parquet", out_file), inputs=(src, extractor_path))
    resources, start = options.resources(src), time.perf_counter()
    saved_extractor = None if extractor_path is None else _load_extractor(extractor_path)
    extractor_folder = extractor_path or out_file.with_name(out_file.name + ".extractor")
    with options.collect_rejects() as rejects:
        resources["rejects"] = rejects
        source = _open_items(options, src, rejects)
        if saved_extractor is None:
            extractor = _make_extractor(options, names, source, extractor_folder, resources)
        else:
            extractor = saved_extractor
            requested = _collect_settings(options) | (create_extractor(names).identity() if names else {})
            refusal = "leave these options out, or give another --extractor"
            extractor.refuse_other_options(requested, extractor_folder, refusal)
        written = extract_to_file(source, extractor, out_file, **resources, augment=augment)
    facts = {"out": out_file, "extractor": extractor_folder, "rows": written, "skipped": len(rejects)}
    facts |= summarize_map(extractor.pca) if isinstance(extractor, KernelPcaExtractor) else {}
    yield {**facts, "seconds": round(time.perf_counter() - start, 3)}
    columns = "visual words" if extractor.name == "visual-words" else f"features ({extractor.name})"
    out.print(f"{out_file}: {written:,} rows of {extractor.n_features_:,} {columns}; extractor {extractor_folder}")


def _split_network_path(options: FeaturesOptions) -> tuple[Path, str | None]:
    """Split the paths after `onnx` into the pictures and a feature extractor with the network."""
    if options.kind != "onnx":
        return _require_one_path(options.src), options.features.features
    if options.features.features is None and len(options.src) == 2:
        network, pictures = options.src
        if not network.is_dir() and (network.suffix.lower() == ".onnx" or pictures.suffix.lower() != ".onnx"):
            return pictures, f"onnx:{network}"
    example = "wsabie features onnx MODEL.onnx SRC --out FILE"
    raise InputError(f"after onnx come the ONNX file and the pictures, in this order: {example}")


def _require_one_path(paths: list[Path]) -> Path:
    """Return the only path; refuse several."""
    require(len(paths) == 1, f"{len(paths)} paths are given; give one, and run the command again for the others")
    return paths[0]


def _collect_settings(options: FeaturesOptions) -> Settings:
    """Collect the stated parameters of the extractor, without names and augmentation."""
    settings = options.features.settings() | {"seed": options.seed}
    ignored = ("features", "augment")
    return {name: value for name, value in settings.items() if name not in ignored and value is not None}


def _open_items(options: FeaturesOptions, src: Path, rejects: "Rejects") -> "ItemSource":
    """Open the pictures, sounds or documents; refuse rows of features and other kinds of items."""

    modality: ModalityName | None = "documents" if options.kind == "text" and src.is_dir() else None
    labels = "auto" if options.extractor is None else inputs.choose_label_source(src, None, modality)
    open_data = partial(options.open_data, src, modality=modality, items=options.items)
    try:
        source = open_data(rejects, labels)
    except InputError:
        if not _lacks_labels(open_data):
            raise
        rejects.clear()
        source = open_data(rejects, "none")
        print_note(f"{src} has no labels, so its rows have none")
    if inputs.is_table(source):
        raise InputError(f"{src} holds rows of features already; give pictures, sounds or documents")
    kind = inputs.KINDS[source.modality]
    remedy = f"wsabie features {kind} {quote_path(src)} --out {quote_path(options.out)}"
    require(options.kind in ("onnx", kind), f"{src} holds {source.modality}; run: {remedy}")
    return source


def _lacks_labels(open_data: Callable[[Rejects], object]) -> bool:
    """Return True if data cannot be opened for the sole reason that no item has a label."""
    try:
        open_data(Rejects())
    except InputError as error:
        return isinstance(error, MissingLabelsError)
    return False


def _make_extractor(
    options: FeaturesOptions, names: str | None, source: "ItemSource", folder: Path, resources: Settings
) -> "FeatureExtractor":
    """Load the extractor of an earlier run with the same options, or fit and save a new one."""
    from wsabie.features.base.extraction import fit_extractor
    from wsabie.features.extractor_registry import create_extractor, load_extractor
    from wsabie.storage.model_folder import read_folder_kind, refuse_foreign_files

    untrained = create_extractor(names, source=source, **_collect_settings(options))
    untrained.refuse_views(options.features.augment or 0)  # refuses impossible options before any work
    if read_folder_kind(folder):
        extractor = load_extractor(folder)
        refusal = f"use it with --extractor {folder}, delete it, or choose another --out"
        extractor.refuse_other_settings(untrained, folder, refusal)
        return extractor
    refuse_foreign_files(folder)  # leftovers of a stopped save are allowed
    extractor = fit_extractor(untrained, source, **resources)
    extractor.save(folder)
    return extractor


def _load_extractor(path: Path) -> "FeatureExtractor":
    """Load a saved feature extractor, by itself or from a model that was trained on pictures."""
    from wsabie.features.extractor_registry import load_extractor
    from wsabie.models.annotators import KIND, Annotator
    from wsabie.storage.model_folder import read_folder_kind

    remedy = "give a folder that `wsabie features` saved beside its file or a model that was trained on pictures"
    require(path.exists(), f"there is no feature extractor at {path}; {remedy}, or leave --extractor out to learn one")
    if read_folder_kind(path) != KIND:
        return load_extractor(path)
    extractor = Annotator.load(path).extractor
    if extractor is None:
        fact = f"{path} was trained on rows of features and holds no feature extractor"
        raise InputError(f"{fact}; give the folder of the extractor that they come from")
    return extractor


def _write_map_rows(options: FeaturesOptions, src: Path) -> Report:
    """Learn or load a kernel PCA, and write every row as its components."""
    from wsabie.io.alignment import align_table
    from wsabie.storage.model_folder import read_folder_kind, refuse_foreign_files

    out_file, map_folder = options.out, options.kpca.map_folder
    folder = map_folder or out_file.with_name(out_file.name + ".map")
    stated = {"n_components": options.kpca.dim, "n_landmarks": options.features.landmarks, "seed": options.seed}
    settings = {name: value for name, value in stated.items() if value is not None}
    options.check_outputs(("parquet", out_file), inputs=(src, folder))
    progress, start = TerminalProgress(), time.perf_counter()
    executor = shared_options.make_executor(1, options.ray)
    existing = _load_map(folder, map_folder, settings) if map_folder or read_folder_kind(folder) else None
    if existing is None:
        refuse_foreign_files(folder)  # leftovers of a stopped save are allowed
    with options.collect_rejects() as rejects:
        width = None if existing is None else existing.n_features_in_
        rows = options.open_data(src, rejects, n_features=width)
        if not inputs.is_table(rows):
            hint = inputs.format_features_hint(rows, src)
            raise InputError(f"{src} holds {rows.modality} and kpca takes rows of features; {hint}")
        pca = existing or _learn_map(rows, settings, options.threads, progress)
        aligned = align_table(rows, None, pca.feature_names, pca.n_features_in_, pca.extractor_fingerprint)
        inputs.report_unknown_features(aligned, src)
        n_threads = options.threads if options.ray is None else 1
        _write_components(aligned.rows, pca, out_file, n_threads, executor, progress)
    if existing is None:
        pca.save(folder)
    facts = {"out": out_file, "map": folder, "rows": len(rows), "skipped": len(rejects), **summarize_map(pca)}
    yield {**facts, "seconds": round(time.perf_counter() - start, 3)}
    is_new = existing is None
    if is_new and pca.n_components_ < pca.n_components:
        print_note(f"the rows span {pca.n_components_:,} dimensions, fewer than the {pca.n_components:,} asked for")
    landmarks = format_count(pca.n_landmarks_, "landmark")
    out.print(f"{out_file}: {len(rows):,} rows of {pca.n_components_:,} components from {landmarks}; map {folder}")
    out.print(f"{'' if is_new else 'the map, when it was learned, '}{pca.report_.format_summary()}")


def _load_map(folder: Path, map_folder: Path | None, map_options: Settings) -> "KernelPca":
    """Load an existing map; refuse one that was made with other options."""
    from wsabie.features.kernel_pca import KernelPca

    remedy = "give a folder that `wsabie features kpca` saved beside its file, or leave --map out to learn one"
    require(folder.exists(), f"there is no map at {folder}; {remedy}")
    pca = KernelPca.load(folder)
    if map_folder:
        pca.refuse_other_options(map_options, folder, "leave these options out, or give another --map")
    else:
        pca.refuse_other_options(map_options, folder, f"use it with --map {folder}, delete it, or choose another --out")
        print_note(f"using the existing map: {folder}")
    return pca


def _learn_map(rows: "FeatureTable", map_options: Settings, threads: int | None, progress: Progress) -> "KernelPca":
    """Learn a map from the rows, and report the memory that it takes."""
    from wsabie.features.kernel_pca import KernelPca

    max_components = map_options.get("n_landmarks", len(rows))
    pca = KernelPca(**{"n_components": min(DIM, len(rows), max_components), **map_options})
    landmarks, n_bytes = pca.count_landmarks(len(rows)), pca.estimate_fit_bytes(len(rows))
    print_note(f"learning from {format_count(landmarks, 'landmark')} takes about {format_bytes(n_bytes)}")
    return pca.fit_rows(rows, threads=threads, progress=progress)


def _write_components(
    rows: "FeatureTable", pca: "KernelPca", file: Path, threads: int | None, executor: Executor, progress: Progress
) -> None:
    from wsabie.features.kernel_pca import KernelPca
    from wsabie.io.formats.parquet_rows import DenseTransform, write_parquet_rows

    rows = replace(rows, counts=False, feature_names=None, near_equality=None, extractor_fingerprint=pca.fingerprint())
    with progress.stage("mapping rows", len(rows), "rows") as stage:

        def apply(blocks: "Iterable[Matrix]") -> "Iterator[Float32]":
            for points in executor.map_with(partial(KernelPca.transform, threads=threads), pca, blocks):
                stage.advance(len(points))
                yield points

        write_parquet_rows(rows, file, through=DenseTransform(pca.n_components_, apply))


def summarize_map(pca: "KernelPca") -> JsonObject:
    """Summarize a map for JSON."""
    report = pca.report_
    return {
        "components": pca.n_components_,
        "landmarks": pca.n_landmarks_,
        "kernel_error": report.components.error,
        "explained": report.components.explained,
        "landmarks_error": report.landmarks.error,
        "landmarks_explained": report.landmarks.explained,
        "evaluated_rows": report.rows,
        "holdout": report.has_holdout,
        "bytes": pca.n_bytes,
    }
