"""The bundled sample collection: pictures under open licences, as Parquet; `README.md` tells of them."""

from pathlib import Path

from wsabie.base.errors import InputError

PARTS = ("emoji", "drawings")
"""Names of the parts; a wheel bundles "emoji", a checkout of the repository has both."""


def bundled_parts() -> tuple[str, ...]:
    """The parts that this install has, in the order of `PARTS`."""
    return tuple(name for name in PARTS if _place(name).is_file())


def sample_path(name: str) -> Path:
    """The Parquet file of a part of the sample collection.

    Parameters
    ----------
    name : {"emoji", "drawings"}
        "emoji": Noto Color Emoji, 96 px, labels of the Unicode CLDR in 25 languages.
        "drawings": Open Clip Art, 128 px, tags of the people who drew them.

    Returns
    -------
    Path
        One row a picture: id, image (WebP), labels, group (never to be split), part, title, category.

    Raises
    ------
    InputError
        No part has this name, or this install does not bundle it.

    Examples
    --------
    >>> sample_path("emoji").name
    'emoji.parquet'
    """
    if name not in PARTS:
        raise InputError(f"there is no sample called {name!r}; choose one of {', '.join(PARTS)}")
    path = _place(name)
    if not path.is_file():
        raise InputError(
            f"the sample {name!r} is not bundled in this install ({path} is missing); take it from a "
            "checkout of the repository, or build it there with `python scripts/build_sample.py`"
        )
    return path


def documents_path() -> Path:
    """The bundled documents: JSON lines of id, text and label (the page or file), gzip.

    Examples
    --------
    >>> documents_path().name
    'documentation.jsonl.gz'
    """
    return Path(__file__).with_name("documentation.jsonl.gz")


def _place(name: str) -> Path:
    return Path(__file__).with_name(f"{name}.parquet")
