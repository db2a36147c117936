"""Bundled sample collection: pictures under open licences, and tables about labels (see `README.md`)."""

from pathlib import Path

from wsabie.core.errors import InputError, require

PARTS = ("emoji", "drawings")
"""Names of the parts in Parquet files, which the source distribution and the repository have, and a wheel has not."""
TABLES = ("label_concepts", "part_exclusions", "car_part_concepts", "emoji_couples")
"""Names of the tables about labels, all of them bundled."""


def get_sample_path(name: str) -> Path:
    """Return the Parquet file of a part of the sample collection.

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
    >>> get_sample_path("emoji").name
    'emoji.parquet'
    """
    require(name in PARTS, f"there is no sample called {name!r}; choose one of {', '.join(PARTS)}")
    path = Path(__file__).with_name(f"{name}.parquet")
    if not path.is_file():
        raise InputError(
            f"the sample {name!r} is not in this install; it is the file src/wsabie/samples/{name}.parquet of the "
            "repository and of the source distribution: open that file by its path"
        )
    return path


def get_table_path(name: str) -> Path:
    """Return the path of a handmade table about labels; synsets are those of WordNet 3.0.

    Parameters
    ----------
    name : {"label_concepts", "part_exclusions", "car_part_concepts", "emoji_couples"}
        "label_concepts": label of the sample and synset, or "-", as `read_label_table` takes it.
        "part_exclusions": pairs of synsets that are not useful part-of pairs although WordNet implies them.
        "car_part_concepts": class of the car parts of Pasupa et al. (2021) and synset, several to one.
        "emoji_couples": couples of labels of the emoji, for group pictures.

    Returns
    -------
    Path
        Columns separated by tabs; lines that begin with "# " are comments.

    Raises
    ------
    InputError
        No table has this name.

    Examples
    --------
    >>> get_table_path("label_concepts").name
    'label_concepts.tsv'
    """
    require(name in TABLES, f"there is no table called {name!r}; choose one of {', '.join(TABLES)}")
    return Path(__file__).with_name(f"{name}.tsv")


def get_photo_folder() -> Path:
    """Return the folder of the bundled photos; its `metadata.csv` has their labels, authors and licences.

    Examples
    --------
    >>> (get_photo_folder() / "metadata.csv").is_file()
    True
    """
    return Path(__file__).with_name("photos")


def get_documents_path() -> Path:
    """Return the path of the bundled documents: JSON lines of id, text and label (page or file), gzip.

    Examples
    --------
    >>> get_documents_path().name
    'documentation.jsonl.gz'
    """
    return Path(__file__).with_name("documentation.jsonl.gz")
