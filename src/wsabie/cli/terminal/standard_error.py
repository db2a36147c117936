"""Standard error on a full disk: a message that cannot be written must not end the work."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class LossyStream:
    """Text stream that discards its output after the first failed write, unless its reader left.

    Parameters
    ----------
    stream : TextIO
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write text if possible; return its length."""
        with self._lossy():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush the stream if possible."""
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
    """Discard the buffer of a stream and all later output."""
    with open(os.devnull, "wb") as nowhere:  # noqa: PTH123 - the stream keeps a handle of its own
        os.dup2(nowhere.fileno(), stream.fileno())


@contextmanager
def ignore_full_standard_error() -> Iterator[None]:
    """Ignore a full disk behind standard error inside the block."""
    original: Any = sys.stderr
    if original is not None:
        sys.stderr = LossyStream(original)
    try:
        yield
    finally:
        sys.stderr = original
