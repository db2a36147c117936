"""Words nearest to a name."""

import numpy as np

from wsabie.search.exact_index import find_top_k
from wsabie.vocabulary.word_vectors import WordVectors


def find_nearest_words(vectors: WordVectors, name: str, k: int = 10) -> list[tuple[str, float]]:
    """Return the k words with the highest cosine to a name, best first, without its own words.

    Parameters
    ----------
    vectors : WordVectors
    name : str
        One word or several.
    k : int

    Raises
    ------
    UnknownLabelError
        The name has no vector.

    Examples
    --------
    >>> known = WordVectors(["dog", "cat", "oak"], np.array([[1, 0], [1, 0.5], [-1, 0]], np.float32))
    >>> find_nearest_words(known, "Dog", 1)
    [('cat', 0.89...)]
    """
    from scipy.sparse import csr_matrix

    query, name_rows = vectors.vector(name)[None], vectors.rows(name)
    hidden = csr_matrix(
        (np.ones(len(name_rows), np.int8), (np.zeros(len(name_rows), np.int8), name_rows)), shape=(1, len(vectors))
    )
    ids, scores = find_top_k(query, vectors.table, k, similarity="cosine", exclude=hidden)
    return [(vectors.words[row], score) for row, score in zip(ids[0], scores[0].tolist(), strict=True) if row >= 0]
