"""Functions with faults, by which it is seen that attacks notice them; they run in children."""

import os
import signal
from pathlib import Path


def spoil(name: str) -> None:
    """Empty a file in place, and leave a draft."""
    Path(name).write_text("")
    Path(".a.0123456789abcdef.tmp").write_text("draft")
    Path("b").write_text("end")


def crash() -> None:
    """End by a signal, as compiled code does that reads elsewhere."""
    os.kill(os.getpid(), signal.SIGSEGV)


def fail() -> None:
    """Raise what is not a sentence."""
    raise KeyError("x")


def hoard() -> None:
    """Take 600 MB."""
    assert bytearray(b"x") * 600_000_000


def wait() -> None:
    """Never end."""
    signal.pause()
