"""Training that is not finished, in a folder beside its model, where one command at a time works."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from wsabie.base.errors import InputError
from wsabie.storage.atomic import explained, held, remove_folder


def work_beside(model: Path) -> Path:
    """Where unfinished work on a model is kept.

    Raises
    ------
    InputError
        The path is no place for a model.
    """
    place = model if model.name.strip(".") else model.resolve()
    if not place.name:
        raise InputError(f"{model} cannot be a model; name a folder of its own")
    return place.with_name(place.name + ".training")


@contextmanager
def unfinished(work: Path, *, resume: bool) -> Iterator[None]:
    """Hold the folder of unfinished work, emptied unless it is gone on from; it is removed when the block has no error.

    Raises
    ------
    InputError
        Another process works in it, or it cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with unfinished(Path(folder) / "model.training", resume=False):
    ...         [path.name for path in Path(folder).iterdir()]
    ...     list(Path(folder).iterdir())
    ['model.training']
    []
    """
    with explained(work):
        work.mkdir(parents=True, exist_ok=True)
    with held(work):
        for old in () if resume else work.iterdir():
            shutil.rmtree(old) if old.is_dir() else old.unlink()
        yield
        remove_folder(work)
