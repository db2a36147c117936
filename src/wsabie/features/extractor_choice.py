"""Choice of the features of pictures if the user names none ("auto")."""

import logging
import os
from collections.abc import Iterable
from importlib.util import find_spec

from wsabie.io.records import ItemSource

AUTO = "auto"
VARIABLE = "WSABIE_FEATURES"
"""Environment variable with the features that "auto" takes instead."""

_NETWORK = ("wsabie_lite0", "onnxruntime")
_DECODING = {"crop", "max_pixels", "seed"}  # options that mean the same for all features of pictures
log = logging.getLogger("wsabie")


def is_network_installed() -> bool:
    """Return True if the packaged network for photos can run."""
    return all(find_spec(name) is not None for name in _NETWORK)


def choose_picture_features(source: ItemSource | None, options: Iterable[str]) -> str:
    """Return the names that "auto" stands for, and log them.

    The packaged network is taken where it is installed, with colours beside it for regions of pictures
    (docs/decisions/packaged-encoder.md). Options that it does not have are those of visual words.

    Parameters
    ----------
    source : ItemSource or None
        The pictures, if they are known.
    options : iterable of str
        Names of the stated parameters.
    """
    if not _DECODING.issuperset(options):
        return "visual-words"
    if names := os.environ.get(VARIABLE):
        return names
    if not is_network_installed():
        log.info("features: visual words; a network that knows photos better: pip install 'wsabie[photos]'")
        return "visual-words"
    names = "lite0,colour" if getattr(source, "kind", None) in ("regions", "boxes") else "lite0"
    log.info("features: %s, by a network for photos; `features='visual-words'` does without", names)
    return names
