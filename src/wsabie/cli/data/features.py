"""`wsabie features`."""

import time
from collections.abc import Callable
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from wsabie.cli.data.kernel_pca import summarize_map
from wsabie.cli.inputs.command_inputs import KINDS, choose_label_source, collect_rejects, make_executor, open_data
from wsabie.cli.terminal.output import TerminalProgress, out, show_json
from wsabie.core.errors import InputError
from wsabie.io.records import FeatureTable, ModalityName
from wsabie.storage.output_checks import check_output_paths

if TYPE_CHECKING:
    from wsabie.features.base.feature_extractor import FeatureExtractor


def split_network_path(kind: str, paths: list[Path], describe: str | None) -> tuple[Path, str | None]:
    """Split the paths after `onnx` into the pictures and a feature extractor with the network."""
    if kind == "onnx" and describe is None and len(paths) == 2 and not _are_swapped(*paths):
        return paths[1], f"onnx:{paths[0]}"
    if kind == "onnx":
        raise InputError(
            "after onnx come the ONNX file and the pictures, in this order: "
            "wsabie features onnx MODEL.onnx SRC --out FILE"
        )
    return require_one_path(paths), None


def _are_swapped(network: Path, pictures: Path) -> bool:
    """Return True if the pictures come first by mistake."""
    return network.is_dir() or (pictures.suffix.lower() == ".onnx" and network.suffix.lower() != ".onnx")


def require_one_path(paths: list[Path]) -> Path:
    """Return the only path; refuse several."""
    if len(paths) > 1:
        raise InputError(f"{len(paths)} collections are named; give one, and run the command again for the others")
    return paths[0]


def run_features(
    kind: str,
    src: Path,
    out_file: Path,
    extractor_options: dict[str, Any],
    dictionary: Path | None,
    augment: int,
    threads: int | None,
    strict: bool,
    rejects_file: Path | None,
    json: bool,
    items: str | None = None,
    ray: str | None = None,
) -> None:
    """Fit or load a feature extractor, extract the features of all items, and write Parquet."""
    from wsabie.features.base.extraction import extract_to_file, fit_extractor
    from wsabie.features.composite_extractors import KernelPcaExtractor
    from wsabie.features.extractor_registry import create_extractor

    check_output_paths(("rejects", rejects_file), ("parquet", out_file), inputs=(src, dictionary))
    progress, executor = TerminalProgress(), make_executor(threads, ray, src)
    start = time.perf_counter()
    saved_extractor = None if dictionary is None else _load_dictionary(dictionary)
    with collect_rejects(rejects_file, strict=strict) as rejects:
        modality: ModalityName | None = "documents" if kind == "text" and src.is_dir() else None
        labels = "auto" if dictionary is None else choose_label_source(src, None, modality)
        source = open_data(src, rejects, labels, modality=modality, items=items)
        if isinstance(source, FeatureTable):
            raise InputError(f"{src} holds rows of features already; give pictures, sounds or documents")
        if kind not in ("onnx", KINDS[source.things]):
            raise InputError(
                f"{src} holds {source.things}; run: "
                f"wsabie features {KINDS[source.things]} {quote(str(src))} --out {quote(str(out_file))}"
            )
        dictionary_folder = dictionary or out_file.with_name(out_file.name + ".dictionary")
        options = dict(extractor_options)
        extractor_names = options.pop("describe", None)
        if saved_extractor is not None:
            extractor = saved_extractor
            requested = options | (create_extractor(extractor_names).identity() if extractor_names else {})
            extractor.refuse_options(
                requested, dictionary_folder, "leave these options out, or give another --dictionary"
            )
        else:
            untrained = create_extractor(extractor_names, things=source.things, **options)
            untrained.viewer(augment)  # refuses impossible options before any work
            extractor = _load_or_learn(
                untrained, dictionary_folder, lambda: fit_extractor(untrained, source, executor, progress, rejects)
            )
        written = extract_to_file(
            source, extractor, out_file, executor=executor, progress=progress, rejects=rejects, augment=augment
        )
    seconds = time.perf_counter() - start
    if json:
        show_json(
            {
                "schema": 1,
                "out": str(out_file),
                "dictionary": str(dictionary_folder),
                "rows": written,
                "skipped": len(rejects),
                **(summarize_map(extractor.pca) if isinstance(extractor, KernelPcaExtractor) else {}),
                "seconds": round(seconds, 3),
            }
        )
        return
    out.print(
        f"{out_file}: {written:,} rows of {extractor.n_features_:,} {_format_columns(extractor)}; dictionary "
        f"{dictionary_folder}"
    )


def _load_or_learn(
    untrained: "FeatureExtractor", folder: Path, learn: Callable[[], "FeatureExtractor"]
) -> "FeatureExtractor":
    """Load the extractor of an earlier run with the same options, or fit and save a new one."""
    from wsabie.features.extractor_registry import load_extractor
    from wsabie.storage.model_folder import read_folder_kind, refuse_foreign_files

    if read_folder_kind(folder):
        extractor = load_extractor(folder)
        extractor.refuse_other(
            untrained, folder, f"use it with --dictionary {folder}, delete it, or choose another --out"
        )
        return extractor
    refuse_foreign_files(folder)  # leftovers of a stopped save are allowed
    extractor = learn()
    extractor.save(folder)
    return extractor


def _format_columns(extractor: "FeatureExtractor") -> str:
    return "visual terms" if extractor.name == "terms" else f"features ({extractor.name})"


def _load_dictionary(path: Path) -> "FeatureExtractor":
    """Load a saved dictionary, by itself or from a model that was trained on pictures."""
    from wsabie.features.extractor_registry import load_extractor
    from wsabie.models.annotators.annotator import KIND, Annotator
    from wsabie.storage.model_folder import read_folder_kind

    if not path.exists():
        raise InputError(
            f"there is no dictionary at {path}; give a folder that `wsabie features` saved beside its file or a model "
            "that was trained on pictures, or leave --dictionary out to learn one"
        )
    if read_folder_kind(path) != KIND:
        return load_extractor(path)
    extractor = Annotator.load(path).terms
    if extractor is None:
        raise InputError(
            f"{path} was trained on rows of features and holds no dictionary; give the folder of the dictionary that "
            "described them"
        )
    return extractor
