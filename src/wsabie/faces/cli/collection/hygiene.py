"""Commands of a collection: labels."""

from collections.abc import Callable
from typing import Any

COMMANDS: tuple[Callable[..., Any], ...] = ()
