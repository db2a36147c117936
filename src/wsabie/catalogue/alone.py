"""One at a time: whoever trains or applies a model of a collection holds a lock, which ends with the process."""

from collections.abc import Iterator
from contextlib import contextmanager

from wsabie.base.errors import BusyError
from wsabie.catalogue.collection import Collection
from wsabie.storage.locks import lock_file

_LOCK = "learning.lock"


@contextmanager
def alone(collection: Collection) -> Iterator[None]:
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
