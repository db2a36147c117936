"""One at a time: whoever trains or applies a model of a collection holds a lock, which ends with the process."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager

from wsabie.base.errors import BusyError
from wsabie.catalogue.collection import Collection
from wsabie.storage.atomic import explained

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
    path = collection.place / _LOCK
    with explained(path):
        file = path.open("a")
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise BusyError(
                f"a model of {collection.folder} is being trained or applied by somebody else; wait until that is done"
            ) from error
        yield
