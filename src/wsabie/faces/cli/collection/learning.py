"""Commands of a collection: train, apply, models."""

from collections.abc import Callable
from typing import Any

COMMANDS: tuple[Callable[..., Any], ...] = ()
