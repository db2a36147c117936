"""Health of the database that a service reads and writes."""

import logging
import math
import time

from anyio import to_thread

from wsabie.collection.folder.collection import Collection, check_database
from wsabie.core.errors import WsabieError

_CHECK_INTERVAL = 60.0  # seconds between two checks of the whole database

_log = logging.getLogger("wsabie.serve")


class DamageCheck:
    """Known damage of a database, which is checked at most once a minute.

    Attributes
    ----------
    due : float
        Earliest time of the next check.
    damage : WsabieError or None
        Result of the last check, or damage that a request met.
    """

    def __init__(self) -> None:
        self.due = 0.0
        self.damage: WsabieError | None = None

    def report(self, damage: WsabieError) -> None:
        """Note damage that a request met."""
        _log.error("%s", damage)
        self.damage = damage

    async def find(self, collection: Collection) -> WsabieError | None:
        """Return the damage that the last check found; check again if that was a while ago."""
        if time.monotonic() >= self.due:
            self.due = math.inf  # until this check has ended
            try:
                await to_thread.run_sync(check_database, collection)
                self.damage = None
            except WsabieError as damage:
                self.report(damage)
            finally:
                self.due = time.monotonic() + _CHECK_INTERVAL
        return self.damage
