"""Standard error that is full, such as a log on a full disk: what cannot be told must not end the work."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class LossyStream:
    """A text stream that goes nowhere from the first write on that fails, unless its reader left.

    Parameters
    ----------
    stream : TextIO
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write text if that can be done; its length."""
        with self._lossy():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush the stream if that can be done."""
        with self._lossy():
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    @contextmanager
    def _lossy(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            raise
        except OSError:
            discard_output(self._stream)


def discard_output(stream: Any) -> None:
    """Send what a stream holds, and all that is written to it from now on, nowhere."""
    with open(os.devnull, "wb") as nowhere:  # noqa: PTH123 - the stream keeps a handle of its own
        os.dup2(nowhere.fileno(), stream.fileno())


@contextmanager
def lossy_standard_error() -> Iterator[None]:
    """Inside, a full disk behind standard error is no error."""
    before: Any = sys.stderr
    if before is not None:
        sys.stderr = LossyStream(before)
    try:
        yield
    finally:
        sys.stderr = before
