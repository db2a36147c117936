"""Lock that lets one process at a time train or apply a model of a collection."""

from collections.abc import Iterator
from contextlib import contextmanager

from wsabie.collection.folder.collection import Collection
from wsabie.core.errors import BusyError
from wsabie.storage.file_locks import lock_file

_LOCK = "learning.lock"


@contextmanager
def lock_models(collection: Collection) -> Iterator[None]:
    """Hold the lock of a collection's models.

    Raises
    ------
    BusyError
        Another process trains or applies a model of this collection.
    InputError
        The folder cannot be written.
    """
    with lock_file(collection.place / _LOCK) as free:
        if not free:
            raise BusyError(
                f"a model of {collection.folder} is being trained or applied by somebody else; wait until that is done"
            )
        yield
