"""Finished models of `wsabie compare`: their folder, resuming, and messages about them."""

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from wsabie.cli.terminal.output import NARROW, NOTHING_KEPT, InterruptExit, format_count, print_note, resume_line
from wsabie.core.errors import InputError, WsabieError
from wsabie.storage.atomic_files import check_writable, lock_folder
from wsabie.storage.scratch_folders import refuse_unknown_files
from wsabie.workflows.train.work_folder import hold_work_folder

if TYPE_CHECKING:
    from wsabie.workflows.compare.comparison import ModelEntry, ModelOmission
    from wsabie.workflows.compare.result_store import ResultStore
    from wsabie.workflows.spaces.relation_results import RelationMethod

DEFAULT_PARENT = Path("wsabie-compare")
"""Parent of folders that the user does not name."""
_MAX_STEM = 80


@dataclass(frozen=True)
class KeepOptions:
    """Options of the command line about finished models.

    Attributes
    ----------
    folder : Path or None
        Named by the user.
    resume, restart : bool
        Go on from finished models, or remove them.
    """

    folder: Path | None = None
    resume: bool = False
    restart: bool = False


def choose_folder(options: KeepOptions, data: Path, settings: Sequence[object]) -> Path | None:
    """Choose the folder for finished models before any work; None if nothing can be kept.

    The default name contains the name of the data and a hash of all settings, so that commands do not share a folder.

    Raises
    ------
    InputError
        The folder holds finished models and neither --resume nor --anew is given, holds other files, or is in use; or
        --resume is given and only models of other settings are there.
    """
    from wsabie.workflows.compare.result_store import FILES

    if options.resume and options.restart:
        raise InputError("--resume goes on from finished models and --anew removes them; leave one of them out")
    stem = f"{re.sub(r'[^A-Za-z0-9._-]', '_', data.name)[:_MAX_STEM]}-{_short_hash(os.fsencode(data.resolve()))}"
    folder = options.folder or DEFAULT_PARENT / f"{stem}-{_short_hash(repr(settings).encode('utf-8', 'surrogatepass'))}"
    try:
        check_writable(folder, within=folder.is_dir())
    except (InputError, OSError) as error:
        if options.folder or options.resume:
            raise
        print_note(f"finished models are not kept, for {error}; --work names another folder")
        return None
    refuse_unknown_files(folder, FILES)
    with lock_folder(folder):
        pass
    has_results = folder.is_dir() and any(folder.iterdir())
    if has_results and not (options.resume or options.restart):
        raise InputError(
            f"{folder} holds finished models of a comparison that was stopped; give --resume to go on from them, or "
            "--anew to begin anew"
        )
    if options.resume and not has_results:
        _refuse_other_settings(None if options.folder else DEFAULT_PARENT, stem)
        print_note(f"there is no unfinished comparison at {folder}; this one begins at the beginning")
    return folder


@contextmanager
def open_result_store(folder: Path | None, options: KeepOptions, with_models: bool) -> Iterator["ResultStore | None"]:
    """Keep finished models in a folder until the block succeeds; report kept models otherwise."""
    from wsabie.workflows.compare.result_store import ResultStore

    if folder is None:
        yield None
        return
    store = ResultStore(folder, with_models)
    try:
        with hold_work_folder(folder, resume=options.resume):
            yield store
    except KeyboardInterrupt:
        message = f"stopped; {_store_phrase(store)}; go on with: {resume_line()}"
        raise InterruptExit(message if store.n_results else NOTHING_KEPT) from None
    except (WsabieError, MemoryError, OSError):
        if store.n_results:
            print_note(f"{_store_phrase(store)}; --resume goes on from there")
        raise
    finally:
        for place in (folder, DEFAULT_PARENT):
            with suppress(OSError):  # unless it is empty
                place.rmdir()


def report_result(result: "ModelEntry | RelationMethod | ModelOmission", relation: str = "") -> None:
    """Report the figures of a finished model."""
    from wsabie.workflows.compare.comparison import ModelEntry, ModelOmission

    title = f"{relation}, {result.title}" if relation else result.title
    if isinstance(result, ModelOmission):
        print_note(f"{title}: skipped, {result.reason}")
        return
    means = result.evaluation.means
    figures = ", ".join(f"{name} {means[name]:.3f}" for name in NARROW if name in means)
    print_note(
        f"{title}: {figures}" + (f", trained in {result.fit_seconds:.1f} s" if isinstance(result, ModelEntry) else "")
    )


def _store_phrase(store: "ResultStore") -> str:
    n = store.n_results
    return f"{format_count(n, 'finished result')} {'is' if n == 1 else 'are'} kept in {store.folder}"


def _refuse_other_settings(place: Path | None, stem: str) -> None:
    folders = [] if place is None else sorted(place.glob(f"{stem}-*"))
    if folders:
        raise InputError(
            f"{folders[0]} holds finished models of the same data with other settings, which cannot be compared; give "
            "the same command again with --resume, or leave --resume out"
        )


def _short_hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:8]
