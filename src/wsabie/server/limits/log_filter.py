"""Log filter that writes repeated messages once a minute, with a count."""

import logging
import time

LOGGERS = ("asyncio", "uvicorn.error", "wsabie.serve")
_INTERVAL = 60.0  # seconds
_MAX_KINDS = 1000


class RepeatFilter(logging.Filter):
    """Filter that passes each kind of message once a minute; the next one tells how many were left out.

    Examples
    --------
    >>> record = logging.makeLogRecord({"msg": "no handles"})
    >>> repeats = RepeatFilter()
    >>> [repeats.filter(record) for _ in range(3)]
    [True, False, False]
    """

    def __init__(self) -> None:
        super().__init__()
        self.counts: dict[tuple[object, ...], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a message is to be written."""
        kind, now = _kind(record), time.monotonic()
        since, count = self.counts.get(kind, (now - _INTERVAL, 0))
        if now - since < _INTERVAL:
            self.counts[kind] = since, count + 1
            return False
        if count:
            record.msg, record.args = f"{record.getMessage()} ({count:,} more like this since the last)", None
        if len(self.counts) >= _MAX_KINDS:
            self.counts.clear()
        self.counts[kind] = now, 0
        return True


def limit_log() -> None:
    """Log each kind of message at most once a minute in this process."""
    repeats = RepeatFilter()
    for name in LOGGERS:
        logging.getLogger(name).addFilter(repeats)


def _kind(record: logging.LogRecord) -> tuple[object, ...]:
    """Message without its details, and the place of the error in the code."""
    error, _, trace = record.exc_info or (None, None, None)
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = trace and (trace.tb_frame.f_code.co_filename, trace.tb_lineno)
    return record.name, str(record.msg).partition("\n")[0][:80], error, place
