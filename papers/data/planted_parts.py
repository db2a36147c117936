"""Seeded annotated images with part-of relations of labels, at the size of Mesnil et al. 2014, 4.3.2.

The paper's collection joins ImageNet with WordNet's part-of relations and is not public. Here the images are those of
`synthetic_images`, with more noise, and the relations are planted:

- *Looks.* Label y looks like the point m_y = 0.7 C' g_f(y) + 0.7 e_y of R^50, near its family f(y), one of
  `labels / 20`, so that labels of one family look alike. Families g differ along 10 directions, the rows of C, and lie
  as far from 0 as e.
- *Pictures.* One label each. A picture is the point x = SIGNAL m_y + NOISE n, and draws about 289 words (log-normal),
  each with chance BACKGROUND from b_w ~ exp(beta_w), which says nothing, and else from softmax_w(x . u_w + beta_w);
  words u_w are points of R^50 of length about 1, and beta is a Zipf law. Label frequencies fall as (k + K / 20)^-SKEW.
- *Roles.* What an object asks of its parts, and what a part offers to its object, are points of R^10,

      a_o = rho Q C m_o + sqrt(1 - rho^2) h_o        b_p = C m_p

  where Q is a quarter turn of each two directions, so that parts do not look like their objects, and h follows the law
  of C m, with families of its own, but knows nothing of looks. rho is the knob `likeness`: at 1 objects that look alike
  have parts that look alike or are the same; at 0 relations are as regular, but how an object looks says nothing about
  its parts.
- *Relations.* Objects are 47 % of the labels, parts 60 %, so that 7 % are both, and each label is in a relation. Every
  object and every part has one relation; the others go to labels by a Zipf law, (k + 5)^-1. Given these numbers,
  relations are the assignment with the largest sum of cos(a_o, b_p), without circles. (The 21,841 synsets of ImageNet
  have 1,521 part-of pairs in WordNet: of the labels in them 46 % are objects, 60 % parts, 6 % both; 23 % of the objects
  have several parts, at most 21, and 10 % of the parts several objects, at most 12.)
- *Unseen relations* are some of these that training is not told of; either label has another one that it is told of.
- *The null setting* deals the parts of the relations that training is told of out again, so that none of them is true.
  Every label is in as many as before. The relations to test on stay.

Pictures and their order do not depend on likeness or the null setting; relations do not depend on the number of
pictures. Labels, sides and relations are the same everywhere, words up to the rounding of a matrix product.

| collection  | labels | relations | unseen |   train |  valid |   test |  words |
|-------------|--------|-----------|--------|---------|--------|--------|--------|
| parts:paper |  1,000 |       771 |     10 | 324,158 | 37,920 | 38,412 | 10,000 |
| parts:S     |    100 |        77 |      4 |  32,416 |  3,792 |  3,841 | 10,000 |
| parts:tiny  |     30 |        23 |      2 |   1,200 |    150 |    150 |  1,000 |
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from papers.synthetic_images import LATENT, WORD_ZIPF, ImageTask
from wsabie.core.arrays import Float32, Int32, Int64
from wsabie.core.errors import InputError
from wsabie.evaluation.quadruplets import split_quadruplets
from wsabie.evaluation.splits import Split

LIKENESS = 0.5
SIGNAL, NOISE = 0.8, 1.7
BACKGROUND = 0.5
TOKENS = 289
SKEW = 0.5
ROLES = 10
OBJECTS, PARTS = 0.47, 0.60
SEED = 2013_01_15
_BLOCK = 100
_FORBIDDEN = 1e6
_TRIES = 1000
_LOOKS, _WORDS, _LABELS, _PICTURES, _RELATIONS, _NULL = range(6)


@dataclass(frozen=True)
class PlantedPartsSize:
    """The size of a collection; `relations` are those of training."""

    labels: int
    relations: int
    unseen: int
    train: int
    valid: int
    test: int
    words: int = 10_000

    @property
    def pictures(self) -> int:
        return self.train + self.valid + self.test


SIZES = {
    "parts:paper": PlantedPartsSize(1000, 771, 10, 324_158, 37_920, 38_412),
    "parts:S": PlantedPartsSize(100, 77, 4, 32_416, 3_792, 3_841),
    "parts:tiny": PlantedPartsSize(30, 23, 2, 1_200, 150, 150, words=1_000),
}


class PartAppearance(NamedTuple):
    """Looks of labels and words."""

    labels: Float32  # (n_labels, LATENT)
    families: Int64  # (n_labels,): labels of one family look alike
    directions: Float32  # (ROLES, LATENT), in which families differ
    words: Float32  # (n_words, LATENT)
    bias: Float32  # (n_words,) log frequency of words
    popularity: Any  # (n_labels,) float64, chance of labels


class PlantedPartsTask(NamedTuple):
    """Annotated images and their relations, pairs (object label, part label)."""

    pictures: ImageTask  # rows of word counts and their labels; training, validation and test rows in this order
    split: Split
    true: Int32  # (n_told + n_unseen, 2), the relations that hold, those of `unseen` last
    training: Int32  # (n_told, 2), relations of training and validation: the first of `true`, or none of them (null)
    unseen: Int32  # (n_unseen, 2)
    appearance: PartAppearance

    @property
    def Y(self) -> Any:  # noqa: N802, the field's own name
        """Labels, (n, n_labels) csr_matrix of int8."""
        from scipy.sparse import csr_matrix

        y = self.pictures.y
        entries = (np.ones(len(y), np.int8), y, np.arange(len(y) + 1))
        return csr_matrix(entries, shape=(len(y), self.pictures.n_labels))


def generate_planted_parts(
    name: str, *, likeness: float = LIKENESS, null: bool = False, seed: int = 0, pictures: ImageTask | None = None
) -> PlantedPartsTask:
    """Generate a collection with planted relations.

    Parameters
    ----------
    name : str
        One of `SIZES`.
    likeness : float
        rho, from 0 (relations say nothing about looks) to 1.
    null : bool
        The relations of training are false.
    seed : int
        Of the collection, images and relations.
    pictures : ImageTask or None
        Images of an earlier call with this name and seed, to save time; None = generate them.

    Raises
    ------
    InputError
        There is no such collection, the likeness or the seed is out of range, or the images are of another collection.

    Examples
    --------
    >>> task = generate_planted_parts("parts:tiny")
    >>> task.pictures.X.shape, len(task.training), len(task.unseen)
    ((1500, 1000), 23, 2)
    """
    if name not in SIZES:
        raise InputError(f"there is no planted collection {name!r}; choose from {', '.join(SIZES)}")
    size = SIZES[name]
    appearance = draw_appearance(size, seed)
    true = draw_relations(size, appearance, likeness, seed)
    training_relations, unseen = true[: size.relations], true[size.relations :]
    if null:
        training_relations = _permute_parts(true, size.relations, _make_generator(seed, _NULL))
    y = _draw_labels(size, appearance, seed)
    if pictures is None:
        pictures = ImageTask(_draw_images(size, appearance, y, seed), y, size.train, size.labels)
    elif not np.array_equal(pictures.y, y):
        raise InputError(f"the pictures given are not those of {name} with seed {seed}; leave them out")
    ends = np.cumsum([0, size.train, size.valid, size.test])
    sides = Split(*(np.arange(lo, hi) for lo, hi in pairwise(ends)))
    return PlantedPartsTask(pictures, sides, true, training_relations, unseen, appearance)


def draw_appearance(size: PlantedPartsSize, seed: int = 0) -> PartAppearance:
    """Draw the looks of labels and words."""
    if not 0 <= seed < 2**63:
        raise InputError(f"seed is {seed}; choose a whole number from 0 to {2**63 - 1}")
    rng = _make_generator(seed, _LOOKS)
    directions = np.linalg.qr(rng.standard_normal((LATENT, ROLES)))[0].T
    near, families = _draw_families(size.labels, rng)
    labels = (near @ directions + 0.7 * rng.standard_normal((size.labels, LATENT))).astype(np.float32)
    popularity = (np.arange(size.labels) + size.labels / 20) ** -SKEW
    popularity = rng.permutation(popularity / popularity.sum())
    rng = _make_generator(seed, _WORDS)
    words = (rng.standard_normal((size.words, LATENT)) / np.sqrt(LATENT)).astype(np.float32)
    bias = (-WORD_ZIPF * np.log(np.arange(size.words) + 50.0)).astype(np.float32)
    return PartAppearance(labels, families, directions.astype(np.float32), words, rng.permutation(bias), popularity)


def draw_relations(
    size: PlantedPartsSize, appearance: PartAppearance, likeness: float = LIKENESS, seed: int = 0
) -> Int32:
    """Draw the true relations, (n_training + n_unseen, 2), the unseen ones last."""
    if not 0 <= likeness <= 1:
        raise InputError(f"likeness is {likeness} but it lies between 0 and 1; the default is {LIKENESS}")
    rng = _make_generator(seed, _RELATIONS)
    objects, parts = _draw_roles(size.labels, rng)
    total = size.relations + size.unseen
    object_points, part_points = _draw_role_points(appearance, likeness, rng)
    for _ in range(_TRIES):
        object_places, part_places = (
            _list_places(labels, _draw_degrees(len(labels), total, rng)) for labels in (objects, parts)
        )
        relations = _assign(object_places, part_places, object_points @ part_points.T, rng)
        if relations is not None and (ordered := _move_unseen_last(relations, size.unseen, rng)) is not None:
            return ordered
    raise InputError(f"no relations could be planted in {_TRIES} tries; choose another seed")


def _make_generator(seed: int, purpose: int) -> np.random.Generator:
    """Return a random generator per purpose, so that no purpose changes the numbers of another."""
    return np.random.default_rng([SEED, seed, purpose])


def _draw_families(n: int, rng: np.random.Generator) -> tuple[Any, Int64]:
    """Draw the family centres in R^ROLES of n labels, as far from 0 as e on average, and their numbers."""
    centres = rng.standard_normal((max(4, n // 20), ROLES)) * np.sqrt(LATENT / ROLES)
    families = rng.integers(0, len(centres), n)
    return 0.7 * centres[families], families


def _draw_roles(n: int, rng: np.random.Generator) -> tuple[Int64, Int64]:
    """Draw the labels that are objects and those that are parts: each label is one or both."""
    labels = rng.permutation(n)
    return labels[: round(OBJECTS * n)], labels[n - round(PARTS * n) :]


def _draw_role_points(appearance: PartAppearance, likeness: float, rng: np.random.Generator) -> tuple[Any, Any]:
    """Return a and b of the module's docstring at unit length, (n_labels, ROLES) each."""
    part_points = appearance.labels @ appearance.directions.T
    quarter_turned = np.stack([-part_points[:, 1::2], part_points[:, ::2]], axis=2).reshape(part_points.shape)
    centres, _ = _draw_families(len(part_points), rng)
    hidden = centres + 0.7 * rng.standard_normal(part_points.shape)
    object_points = likeness * quarter_turned + np.sqrt(1 - likeness**2) * hidden
    return _normalise(object_points), _normalise(part_points)


def _normalise(points: Any) -> Any:
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def _draw_degrees(n: int, total: int, rng: np.random.Generator) -> Int64:
    """Draw the number of relations of each of n labels: one, and a share of the others by a Zipf law."""
    chances = 1 / (np.arange(n) + 5.0)
    return rng.permutation(1 + rng.multinomial(total - n, chances / chances.sum()))


class _Places(NamedTuple):
    """Places of labels, as many as a label has relations, (n_relations,) each."""

    label: Int64
    number: Int64  # place number within its label
    n_places: Int64  # places of the label


def _list_places(labels: Int64, degrees: Int64) -> _Places:
    number = np.arange(degrees.sum()) - np.repeat(np.cumsum(degrees) - degrees, degrees)
    return _Places(np.repeat(labels, degrees), number, np.repeat(degrees, degrees))


def _assign(wholes: _Places, pieces: _Places, fits: Any, rng: np.random.Generator) -> Int32 | None:
    """Assign places of objects to places of parts one to one, with the largest sum of `fits`.

    Of the cells of two labels one random cell is open, so that no relation comes twice. Labels that are objects and
    parts have parts of a higher number only, so that relations do not run in circles.
    """
    from scipy.optimize import linear_sum_assignment

    object_ids, part_ids = wholes.label[:, None], pieces.label
    draws = rng.random((2, *fits.shape))[:, object_ids, part_ids]
    closed = (draws[0] * wholes.n_places[:, None]).astype(int) != wholes.number[:, None]
    closed |= (draws[1] * pieces.n_places).astype(int) != pieces.number
    closed |= np.isin(object_ids, pieces.label) & np.isin(part_ids, wholes.label) & (object_ids >= part_ids)
    rows, columns = linear_sum_assignment(np.where(closed, _FORBIDDEN, -fits[object_ids, part_ids]))
    if closed[rows, columns].any():
        return None
    return np.stack([wholes.label[rows], pieces.label[columns]], axis=1).astype(np.int32)


def _move_unseen_last(relations: Int32, n: int, rng: np.random.Generator) -> Int32 | None:
    """Return relations in random order, at the end n whose labels have others; None if there are too few."""
    relations = rng.permutation(relations)
    n_relations_left, unseen = np.bincount(relations.ravel()), np.zeros(len(relations), bool)
    for number, pair in enumerate(relations):
        if unseen.sum() < n and (n_relations_left[pair] > 1).all():
            unseen[number] = True
            n_relations_left[pair] -= 1
    return np.concatenate([relations[~unseen], relations[unseen]]) if unseen.sum() == n else None


def _permute_parts(true: Int32, n: int, rng: np.random.Generator) -> Int32:
    """Permute the parts of the first n relations: none holds, comes twice, or reverses another."""
    shuffled = true[:n].copy()
    forbidden = {pair for object_id, part_id in true.tolist() for pair in ((object_id, part_id), (part_id, object_id))}
    shuffled[:, 1] = rng.permutation(shuffled[:, 1])
    for _ in range(_TRIES):
        invalid = _find_invalid(shuffled, forbidden)
        if not len(invalid):
            return shuffled
        for number, partner in zip(invalid, rng.integers(n, size=len(invalid)), strict=True):
            shuffled[number, 1], shuffled[partner, 1] = shuffled[partner, 1], shuffled[number, 1]
    raise InputError("no relations that do not hold were found for the numbers drawn; choose another seed")


def _find_invalid(relations: Int32, forbidden: set[tuple[int, int]]) -> list[int]:
    """Return relations that hold, pair a label with itself, or repeat an earlier one in either direction."""
    pairs, invalid = set(forbidden), list[int]()
    for number, (object_id, part_id) in enumerate(relations.tolist()):
        if object_id == part_id or (object_id, part_id) in pairs:
            invalid.append(number)
        pairs |= {(object_id, part_id), (part_id, object_id)}
    return invalid


def _draw_labels(size: PlantedPartsSize, appearance: PartAppearance, seed: int) -> Int32:
    """Return the label of each training, validation and test image; each label is on each side."""
    rng = _make_generator(seed, _LABELS)
    exact = appearance.popularity * size.pictures
    counts = np.floor(exact).astype(int)
    counts[np.argsort(counts - exact, kind="stable")[: size.pictures - counts.sum()]] += 1
    y = rng.permutation(np.repeat(np.arange(size.labels, dtype=np.int32), counts))
    sides = _split_sides(y, size, seed)
    return np.concatenate([y[sides.train], y[sides.valid], y[sides.test]])


def _split_sides(y: Int32, size: PlantedPartsSize, seed: int) -> Split:
    """Split so that each label, and so each relation, is on each side, by a chain of all labels."""
    from scipy.sparse import csr_matrix

    Y = csr_matrix((np.ones(len(y), np.int8), y, np.arange(len(y) + 1)), shape=(len(y), size.labels))
    chain = np.stack([np.arange(size.labels), np.roll(np.arange(size.labels), -1)], axis=1)
    n = size.pictures
    return split_quadruplets(Y, chain, valid=size.valid / n, test=size.test / n, seed=seed).split


def _draw_images(size: PlantedPartsSize, appearance: PartAppearance, y: Int32, seed: int) -> Any:
    """Draw word counts of the images, (n, n_words) csr_matrix of float32."""
    from scipy.sparse import csr_matrix
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    rng = _make_generator(seed, _PICTURES)
    lengths, words, counts = [], [], []
    with threadpool_limits(1):  # the rounding of a product may depend on the number of threads
        for start in range(0, len(y), _BLOCK):
            length, word, count = _draw_words(size, appearance, y[start : start + _BLOCK], rng)
            lengths.append(length)
            words.append(word)
            counts.append(count)
    indptr = np.concatenate([[0], np.cumsum(np.concatenate(lengths))])
    entries = (np.concatenate(counts).astype(np.float32), np.concatenate(words), indptr)
    return csr_matrix(entries, shape=(len(y), size.words))


def _draw_words(
    size: PlantedPartsSize, appearance: PartAppearance, y: Int32, rng: np.random.Generator
) -> tuple[Any, Any, Any]:
    """Draw distinct words of each image: number of words (n,), word ids and counts, image after image."""
    tokens = np.clip(rng.lognormal(np.log(TOKENS), 0.25, len(y)), 60, 1200).astype(int)
    background = rng.binomial(tokens, BACKGROUND)
    common = np.cumsum(np.exp(appearance.bias), dtype=np.float64)
    background_words = np.searchsorted(common, rng.random(background.sum()) * common[-1])
    points = SIGNAL * appearance.labels[y] + NOISE * rng.standard_normal((len(y), LATENT)).astype(np.float32)
    informative_words = np.concatenate(list(_draw_informative_words(appearance, points, tokens - background, rng)))
    pictures = np.arange(len(y))
    keys = np.concatenate([background_words, informative_words]) + size.words * np.concatenate(
        [np.repeat(pictures, background), np.repeat(pictures, tokens - background)]
    )
    word_keys, counts = np.unique(keys, return_counts=True)
    lengths = np.bincount(word_keys // size.words, minlength=len(y))
    return lengths, (word_keys % size.words).astype(np.int32), counts.astype(np.uint16)


def _draw_informative_words(
    appearance: PartAppearance, points: Float32, tokens: Int64, rng: np.random.Generator
) -> Iterator[Int64]:
    """Yield words that depend on the points, image after image, by the softmax of the docstring."""
    ladders = points @ appearance.words.T
    ladders += appearance.bias
    np.exp(ladders, out=ladders)
    np.cumsum(ladders, axis=1, out=ladders)
    for ladder, n in zip(ladders, tokens, strict=True):
        heights = np.sort(rng.random(n, np.float32)) * ladder[-1]  # searching sorted numbers takes half the time
        yield np.minimum(np.searchsorted(ladder, heights), len(ladder) - 1)
