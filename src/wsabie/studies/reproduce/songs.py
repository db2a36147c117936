"""Generated catalogues of songs with the proportions of the slides' Big-data, made as the visual-word tasks are.

An artist is a point near that of a genre (20 artists to one), a song is its artist's point plus noise, and its words,
of a dictionary of 2,000 as the slides' coefficients have, are drawn around it (`visterms`). Artists have songs by a
Zipf law.

| catalogue | training songs | test songs | artists |
|-----------|----------------|------------|---------|
| tiny      |            800 |        200 |      40 |
| S         |         32,250 |      7,750 |   2,000 |
| L         |        771,901 |    185,994 |  26,972 |

L has the sizes of the slides; it is made only when it is asked for, and takes hours and gigabytes.
"""

from typing import Any

import numpy as np

from wsabie.base.errors import InputError
from wsabie.studies.reproduce.visterms import Size, world_of

WORDS = 2_000
SIZES = {
    "tiny": Size(800, 200, 40, WORDS),
    "S": Size(32_250, 7_750, 2_000, WORDS),
    "L": Size(771_901, 185_994, 26_972, WORDS),
}


def sized(name: str) -> Size:
    """The size of a catalogue.

    Raises
    ------
    InputError
        There is no such catalogue.

    Examples
    --------
    >>> sized("S").labels
    2000
    """
    if name not in SIZES:
        raise InputError(f"there is no catalogue of songs {name!r}; choose from {', '.join(SIZES)}")
    return SIZES[name]


def artists_and_genres(size: Size, y: Any) -> tuple[Any, list[str]]:
    """Artist and genre of songs whose artists have these numbers: Y, csr_matrix (n, n_names) int8, and the names."""
    from scipy.sparse import csr_matrix

    parents = world_of(size).parents
    genres, genre_of = np.unique(parents, return_inverse=True)
    columns = np.stack([y, size.labels + genre_of[y]], axis=1).ravel()
    names = [f"artist: artist {i}" for i in range(size.labels)] + [f"genre: genre {i}" for i in range(len(genres))]
    starts = np.arange(0, len(columns) + 1, 2)
    return csr_matrix((np.ones(len(columns), np.int8), columns, starts), (len(y), len(names))), names
