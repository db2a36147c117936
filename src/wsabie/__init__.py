"""Annotation and search of large collections by joint embeddings trained with the WARP ranking loss.

`__all__` is the public interface; modules inside the package are internal and change without notice. `__init__.pyi`
lists its names. Each is loaded when it is first used, so that `import wsabie` costs nothing.
"""

from importlib import import_module
from pathlib import Path
from typing import Any

from wsabie.core.version import VERSION

__version__ = VERSION

_LINES = [line.split() for line in Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8").splitlines()]
_MODULES = {line[3]: line[1] for line in _LINES if line[:1] == ["from"]}
"""Module that defines each public name."""

__all__ = [*_MODULES, "__version__"]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'wsabie' has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return __all__
