"""The bundled sample collection: pictures under open licences, and what labels mean; `README.md` tells of them."""

from pathlib import Path

from wsabie.base.errors import InputError

PARTS = ("emoji", "drawings")
"""Names of the parts; a wheel bundles "emoji", a checkout of the repository has both."""
TABLES = ("meanings", "not_parts", "car_parts", "married")
"""Names of the tables about labels, all of them bundled."""


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


def table_path(name: str) -> Path:
    """A table of what is known of labels, made by hand; synsets are those of WordNet 3.0.

    Parameters
    ----------
    name : {"meanings", "not_parts", "car_parts", "married"}
        "meanings": label of the sample and synset, or "-", as `read_label_table` and `--table` take it.
        "not_parts": pairs of synsets that no part-of pair should be made of, though WordNet implies it.
        "car_parts": class of the car parts of Pasupa et al. (2021) and synset, several to one.
        "married": couples of labels of the emoji, for group pictures.

    Returns
    -------
    Path
        Columns between tabs; lines that begin with "# " tell of the table.

    Raises
    ------
    InputError
        No table has this name.

    Examples
    --------
    >>> table_path("meanings").name
    'meanings.tsv'
    """
    if name not in TABLES:
        raise InputError(f"there is no table called {name!r}; choose one of {', '.join(TABLES)}")
    return Path(__file__).with_name(f"{name}.tsv")


def not_parts() -> frozenset[tuple[str, str]]:
    """Part and whole of each pair of synsets that the table "not_parts" rules out.

    Examples
    --------
    >>> ("n02709367", "n02951358") in not_parts()  # no anchor of a canoe
    True
    """
    lines = table_path("not_parts").read_text("utf-8").splitlines()
    pairs = (line.split("\t") for line in lines if not line.startswith("# "))
    return frozenset((part, whole) for part, whole, *_ in pairs)


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
