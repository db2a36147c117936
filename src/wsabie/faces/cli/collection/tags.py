"""Commands of a collection: export."""

from collections.abc import Callable
from typing import Any

COMMANDS: tuple[Callable[..., Any], ...] = ()
