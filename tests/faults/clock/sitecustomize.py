"""Loaded by every Python process that finds it on its path: a clock that is wrong by what a file says, in seconds."""

import datetime
import os
import time
from pathlib import Path

_SAYS = Path(os.environ["WSABIE_TEST_CLOCK"])
_time = time.time


def _off() -> float:
    return float(_SAYS.read_text())


class _Datetime(datetime.datetime):
    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> "_Datetime":
        return super().now(tz) + datetime.timedelta(seconds=_off())


time.time = lambda: _time() + _off()
datetime.datetime = _Datetime  # type: ignore[misc]
