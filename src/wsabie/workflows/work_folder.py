"""Unfinished training in a folder beside its model, where one command at a time works."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from wsabie.core.errors import require
from wsabie.storage.atomic_files import explain_write_errors, lock_folder, remove_folder


def find_work_folder(model: Path) -> Path:
    """Return the folder of unfinished work on a model.

    Raises
    ------
    InputError
        The path cannot be a model.
    """
    path = model if model.name.strip(".") else model.resolve()
    require(bool(path.name), f"{model} cannot be a model; name a folder of its own")
    return path.with_name(path.name + ".training")


@contextmanager
def hold_work_folder(work: Path, *, resume: bool) -> Iterator[None]:
    """Lock the work folder, empty unless resumed, and remove it if the block ends without an error.

    Raises
    ------
    InputError
        Another process works in it, or it cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with hold_work_folder(Path(folder) / "model.training", resume=False):
    ...         [path.name for path in Path(folder).iterdir()]
    ...     list(Path(folder).iterdir())
    ['model.training']
    []
    """
    with explain_write_errors(work):
        work.mkdir(parents=True, exist_ok=True)
    with lock_folder(work):
        for entry in () if resume else work.iterdir():
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        yield
        remove_folder(work)
