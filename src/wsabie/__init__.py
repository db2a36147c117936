"""Annotation and search of large collections by joint embeddings trained with the WARP ranking loss.

The names below are the public shelf; each is loaded when it is first used, so that `import wsabie` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wsabie.base.errors import InputError, WsabieError
    from wsabie.evaluation.evaluate import evaluate_scores
    from wsabie.evaluation.splits import split
    from wsabie.features.registry import describer
    from wsabie.features.visual_terms import VisualTerms
    from wsabie.models.annotator import Annotator
    from wsabie.models.registry import load
    from wsabie.models.wsabie import Wsabie
    from wsabie.search.exact import top_k
    from wsabie.sources.open import open_source
    from wsabie.sources.records import Rows

__version__ = "0.1.0"

_SHELF = {
    "Wsabie": "wsabie.models.wsabie",
    "Annotator": "wsabie.models.annotator",
    "load": "wsabie.models.registry",
    "VisualTerms": "wsabie.features.visual_terms",
    "describer": "wsabie.features.registry",
    "open_source": "wsabie.sources.open",
    "Rows": "wsabie.sources.records",
    "split": "wsabie.evaluation.splits",
    "evaluate_scores": "wsabie.evaluation.evaluate",
    "top_k": "wsabie.search.exact",
    "WsabieError": "wsabie.base.errors",
    "InputError": "wsabie.base.errors",
}

__all__ = [
    "Wsabie",
    "Annotator",
    "load",
    "VisualTerms",
    "describer",
    "open_source",
    "Rows",
    "split",
    "evaluate_scores",
    "top_k",
    "WsabieError",
    "InputError",
    "__version__",
]


def __getattr__(name: str) -> Any:
    if name not in _SHELF:
        raise AttributeError(f"module 'wsabie' has no attribute {name!r}")
    return getattr(import_module(_SHELF[name]), name)


def __dir__() -> list[str]:
    return __all__
