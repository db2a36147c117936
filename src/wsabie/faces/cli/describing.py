"""`wsabie features`."""

import time
from collections.abc import Callable
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from wsabie.base.errors import InputError
from wsabie.faces.cli.common import KINDS, executor, labels_in, listing, opened
from wsabie.faces.cli.mapping import map_facts
from wsabie.faces.cli.terminal import TerminalProgress, out, show_json
from wsabie.sources.records import Rows, Things
from wsabie.storage.outputs import refuse_unwritable

if TYPE_CHECKING:
    from wsabie.features.describer import Describer


def pictures_and_network(kind: str, paths: list[Path], describe: str | None) -> tuple[Path, str | None]:
    """Where the pictures are, and the description by a network where one is named before them."""
    if kind == "onnx" and describe is None and len(paths) == 2 and not _swapped(*paths):
        return paths[1], f"onnx:{paths[0]}"
    if kind == "onnx":
        raise InputError(
            "after onnx come the ONNX file and the pictures, in this order: "
            "wsabie features onnx MODEL.onnx SRC --out FILE"
        )
    return one_of(paths), None


def _swapped(network: Path, pictures: Path) -> bool:
    """Whether the pictures come first by mistake."""
    return network.is_dir() or (pictures.suffix.lower() == ".onnx" and network.suffix.lower() != ".onnx")


def one_of(paths: list[Path]) -> Path:
    """The one collection that is named."""
    if len(paths) > 1:
        raise InputError(f"{len(paths)} collections are named; give one, and run the command again for the others")
    return paths[0]


def features_command(
    kind: str,
    src: Path,
    out_file: Path,
    given: dict[str, Any],
    dictionary: Path | None,
    augment: int,
    threads: int | None,
    strict: bool,
    rejects_file: Path | None,
    json: bool,
    items: str | None = None,
    ray: str | None = None,
) -> None:
    """Learn or load a dictionary, describe every picture, write Parquet; `given` are the dictionary's options."""
    from wsabie.features.components import Components
    from wsabie.features.extract import extract, learn
    from wsabie.features.registry import describer

    refuse_unwritable(("rejects", rejects_file), ("parquet", out_file), inputs=(src, dictionary))
    progress, run = TerminalProgress(), executor(threads, ray, src)
    started = time.perf_counter()
    theirs = None if dictionary is None else _dictionary(dictionary)
    with listing(rejects_file, strict=strict) as rejects:
        things: Things | None = "documents" if kind == "text" and src.is_dir() else None
        labels = "auto" if dictionary is None else labels_in(src, None, things)
        source = opened(src, rejects, labels, things=things, items=items)
        if isinstance(source, Rows):
            raise InputError(f"{src} holds rows of features already; give pictures, sounds or documents")
        if kind not in ("onnx", KINDS[source.things]):
            raise InputError(
                f"{src} holds {source.things}; run: "
                f"wsabie features {KINDS[source.things]} {quote(str(src))} --out {quote(str(out_file))}"
            )
        saved = dictionary or out_file.with_name(out_file.name + ".dictionary")
        options = dict(given)
        named = options.pop("describe", None)
        if theirs is not None:
            terms = theirs
            asked = options | (describer(named).identity() if named else {})
            terms.refuse_options(asked, saved, "leave these options out, or give another --dictionary")
        else:
            wanted = describer(named, things=source.things, **options)
            wanted.viewer(augment)  # what cannot be is refused before anything is learned
            terms = _learned(wanted, saved, lambda: learn(wanted, source, run, progress, rejects))
        written = extract(source, terms, out_file, executor=run, progress=progress, rejects=rejects, augment=augment)
    seconds = time.perf_counter() - started
    if json:
        show_json(
            {
                "schema": 1,
                "out": str(out_file),
                "dictionary": str(saved),
                "rows": written,
                "skipped": len(rejects),
                **(map_facts(terms.pca) if isinstance(terms, Components) else {}),
                "seconds": round(seconds, 3),
            }
        )
        return
    out.print(f"{out_file}: {written:,} rows of {terms.n_features_:,} {_columns(terms)}; dictionary {saved}")


def _learned(wanted: "Describer", saved: Path, learn: Callable[[], "Describer"]) -> "Describer":
    """What an earlier run of the same work learned and saved there, or else learned and saved now."""
    from wsabie.features.registry import load_describer
    from wsabie.storage.folder import folder_kind, refuse_foreign

    if folder_kind(saved):
        terms = load_describer(saved)
        terms.refuse_other(wanted, saved, f"use it with --dictionary {saved}, delete it, or choose another --out")
        return terms
    refuse_foreign(saved)  # but for what a save that was stopped left
    terms = learn()
    terms.save(saved)
    return terms


def _columns(terms: "Describer") -> str:
    return "visual terms" if terms.name == "terms" else f"features ({terms.name})"


def _dictionary(path: Path) -> "Describer":
    """The dictionary that was saved there, by itself or within a model that was trained on pictures."""
    from wsabie.features.registry import load_describer
    from wsabie.models.annotator import KIND, Annotator
    from wsabie.storage.folder import folder_kind

    if not path.exists():
        raise InputError(
            f"there is no dictionary at {path}; give a folder that `wsabie features` saved beside its file or a model "
            "that was trained on pictures, or leave --dictionary out to learn one"
        )
    if folder_kind(path) != KIND:
        return load_describer(path)
    terms = Annotator.load(path).terms
    if terms is None:
        raise InputError(
            f"{path} was trained on rows of features and holds no dictionary; give the folder of the dictionary that "
            "described them"
        )
    return terms
