"""Finished models of `wsabie compare`: where they are kept, who may go on from them, what is said of them."""

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from wsabie.base.errors import InputError, WsabieError
from wsabie.faces.cli.terminal import NARROW, NOTHING_KEPT, Stopped, note, plural, resume_line
from wsabie.storage.atomic import held, try_writing
from wsabie.storage.scratch import refuse_strangers
from wsabie.studies.unfinished import unfinished

if TYPE_CHECKING:
    from wsabie.studies.comparison import Entry, Skipped
    from wsabie.studies.relation_comparison import Method
    from wsabie.studies.result_store import ResultStore

PLACE = Path("wsabie-compare")
"""Where the folders lie that nobody names."""
_LONGEST = 80


@dataclass(frozen=True)
class KeepOptions:
    """Options of the command line about finished models.

    Attributes
    ----------
    folder : Path or None
        Named by the user.
    resume, anew : bool
        Go on from finished models, or remove them.
    """

    folder: Path | None = None
    resume: bool = False
    anew: bool = False


def choose_folder(options: KeepOptions, data: Path, settings: Sequence[object]) -> Path | None:
    """Return the folder for finished models, before any work; None where nothing can be kept.

    Unless it is named, it is made from the name of the data and all settings, so that two commands do not share one.

    Raises
    ------
    InputError
        It holds finished models and neither --resume nor --anew is given, holds other files, or is in use; or --resume
        is given and only models of other settings are there.
    """
    from wsabie.studies.result_store import FILES

    if options.resume and options.anew:
        raise InputError("--resume goes on from finished models and --anew removes them; leave one of them out")
    stem = f"{re.sub(r'[^A-Za-z0-9._-]', '_', data.name)[:_LONGEST]}-{_short_hash(os.fsencode(data.resolve()))}"
    folder = options.folder or PLACE / f"{stem}-{_short_hash(repr(settings).encode('utf-8', 'surrogatepass'))}"
    try:
        try_writing(folder, within=folder.is_dir())
    except (InputError, OSError) as error:
        if options.folder or options.resume:
            raise
        note(f"finished models are not kept, for {error}; --work names another folder")
        return None
    refuse_strangers(folder, FILES)
    with held(folder):
        pass
    started = folder.is_dir() and any(folder.iterdir())
    if started and not (options.resume or options.anew):
        raise InputError(
            f"{folder} holds finished models of a comparison that was stopped; give --resume to go on from them, or "
            "--anew to begin anew"
        )
    if options.resume and not started:
        _refuse_other_settings(None if options.folder else PLACE, stem)
        note(f"there is no unfinished comparison at {folder}; this one begins at the beginning")
    return folder


@contextmanager
def result_store(folder: Path | None, options: KeepOptions, with_models: bool) -> Iterator["ResultStore | None"]:
    """Keep finished models in a folder until the block ends without an error; what is kept is said."""
    from wsabie.studies.result_store import ResultStore

    if folder is None:
        yield None
        return
    store = ResultStore(folder, with_models)
    try:
        with unfinished(folder, resume=options.resume):
            yield store
    except KeyboardInterrupt:
        message = f"stopped; {_store_phrase(store)}; go on with: {resume_line()}"
        raise Stopped(message if store.n_results else NOTHING_KEPT) from None
    except (WsabieError, MemoryError, OSError):
        if store.n_results:
            note(f"{_store_phrase(store)}; --resume goes on from there")
        raise
    finally:
        for place in (folder, PLACE):
            with suppress(OSError):  # unless it is empty
                place.rmdir()


def tell_result(result: "Entry | Method | Skipped", relation: str = "") -> None:
    """Say what a model achieved, as soon as it is finished."""
    from wsabie.studies.comparison import Entry, Skipped

    title = f"{relation}, {result.title}" if relation else result.title
    if isinstance(result, Skipped):
        note(f"{title}: skipped, {result.reason}")
        return
    means = result.evaluation.means
    figures = ", ".join(f"{name} {means[name]:.3f}" for name in NARROW if name in means)
    note(f"{title}: {figures}" + (f", trained in {result.fit_seconds:.1f} s" if isinstance(result, Entry) else ""))


def _store_phrase(store: "ResultStore") -> str:
    n = store.n_results
    return f"{plural(n, 'finished result')} {'is' if n == 1 else 'are'} kept in {store.folder}"


def _refuse_other_settings(place: Path | None, stem: str) -> None:
    folders = [] if place is None else sorted(place.glob(f"{stem}-*"))
    if folders:
        raise InputError(
            f"{folders[0]} holds finished models of the same data with other settings, which cannot be compared; give "
            "the same command again with --resume, or leave --resume out"
        )


def _short_hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:8]
