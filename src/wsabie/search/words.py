"""Words nearest to a name."""

import numpy as np

from wsabie.labels.vectors import Vectors
from wsabie.search.exact import top_k


def nearest_words(vectors: Vectors, name: str, k: int = 10) -> list[tuple[str, float]]:
    """The k words whose vectors have the highest cosine with that of a name, best first; its own words are left out.

    Parameters
    ----------
    vectors : Vectors
    name : str
        One word or several.
    k : int

    Raises
    ------
    UnknownLabelError
        The name has no vector.

    Examples
    --------
    >>> known = Vectors(["dog", "cat", "oak"], np.array([[1, 0], [1, 0.5], [-1, 0]], np.float32))
    >>> nearest_words(known, "Dog", 1)
    [('cat', 0.89...)]
    """
    from scipy.sparse import csr_matrix

    query, own = vectors.vector(name)[None], vectors.rows(name)
    hidden = csr_matrix((np.ones(len(own), np.int8), (np.zeros(len(own), np.int8), own)), shape=(1, len(vectors)))
    ids, scores = top_k(query, vectors.table, k, similarity="cosine", exclude=hidden)
    return [(vectors.words[row], score) for row, score in zip(ids[0], scores[0].tolist(), strict=True) if row >= 0]
