"""Sounds as histograms of words: typical coefficients, or typical boxes of stabilised images ([S], part II)."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np

from wsabie.base.arrays import Float32, Int32
from wsabie.base.errors import InputError
from wsabie.base.executor import Executor, Serial
from wsabie.base.progress import SILENT, Progress
from wsabie.features.auditory import BOX_FEATURES, SaiPlan, boxes, channel_frequencies, describe_boxes, images
from wsabie.features.decode import RejectedItem
from wsabie.features.dictionary import Dictionary, learn_dictionary, suggested_terms
from wsabie.features.learning import Run, learn_idf, sample_blocks, sample_places, spread, taken_at
from wsabie.features.mfcc import MfccPlan, mfcc, with_derivatives
from wsabie.features.sound import RATES, Listener, Sound, SoundDescriber, require_audio
from wsabie.features.viewer import Describing
from wsabie.features.weighting import weighed
from wsabie.sources.records import ItemSource
from wsabie.storage.folder import Array
from wsabie.storage.rejects import Rejects

Weighting = Literal["counts", "tfidf"]
WORDS = 2_000
"""Words of a dictionary: as many as in [S]."""

_ASKED_FOR_RATE = 64  # sounds
_HIGHEST_AUTO = 22_050
_IMAGES_AT_ONCE = 64
_LEARNT_SECONDS = 60.0  # of a sound: words are learnt from its beginning


class Cut(ABC):
    """Parts of a sound, (n, n_columns); travels to workers."""

    @abstractmethod
    def pieces(self, sound: Sound) -> Iterator[Float32]:
        """A few at a time."""

    def __call__(self, sound: Sound) -> Float32:
        return np.concatenate(list(self.pieces(sound)))


@dataclass(frozen=True)
class Frames(Cut):
    """Coefficients and their derivatives, (n, 39)."""

    plan: MfccPlan

    def pieces(self, sound: Sound) -> Iterator[Float32]:
        """Those of `PIECE_SECONDS` at a time."""
        for piece in sound.pieces(self.plan.rate):
            yield with_derivatives(mfcc(piece, self.plan))


@dataclass(frozen=True)
class ImageBoxes(Cut):
    """Boxes of stabilised images, (n, n_boxes * BOX_FEATURES)."""

    plan: SaiPlan

    def pieces(self, sound: Sound) -> Iterator[Float32]:
        """Those of a few images at a time."""
        for piece in sound.pieces(self.plan.rate):
            stack: list[Float32] = []
            for image in images(piece, self.plan):
                stack.append(image.copy())
                if len(stack) == _IMAGES_AT_ONCE:
                    yield _flat(stack)
                    stack = []
            if stack:
                yield _flat(stack)


def _flat(stack: list[Float32]) -> Float32:
    found = describe_boxes(np.stack(stack))
    return found.reshape(len(found), -1)


@dataclass(frozen=True)
class Words:
    """Several dictionaries, each of its own columns of a sample, whose words are numbered through.

    Attributes
    ----------
    shift, scale : (n_columns,) float32
        What is taken from a sample, and what the rest is then multiplied by.
    dictionaries : tuple of Dictionary
        Of equal numbers of columns, side by side.
    """

    shift: Float32
    scale: Float32
    dictionaries: tuple[Dictionary, ...]

    def __len__(self) -> int:
        return sum(map(len, self.dictionaries))

    def counts(self, samples: Float32) -> Float32:
        """How often each word is found in samples, (n_terms,)."""
        parts = np.split((samples - self.shift) * self.scale, len(self.dictionaries), axis=1)
        found = [
            np.bincount(dictionary.assign(part), minlength=len(dictionary))
            for dictionary, part in zip(self.dictionaries, parts, strict=True)
        ]
        return np.concatenate(found).astype(np.float32)


@dataclass(frozen=True)
class WordCounts:
    """The words of a sound and how often each is found; travels to workers."""

    cut: Cut
    words: Words
    idf: Float32 | None = None

    def __call__(self, sound: Sound) -> tuple[Int32, Float32]:
        counts = sum(self.words.counts(part) for part in self.cut.pieces(sound))
        found = np.flatnonzero(counts).astype(np.int32)
        return found, weighed(found, np.asarray(counts)[found], self.idf)


class SoundWords(SoundDescriber):
    """Sounds as counts of words; a kind of its own says what is cut from a sound, and how words are learnt.

    Parameters
    ----------
    n_terms : int or "auto"
        Words of the dictionary; fewer where the sample has not ten times as many distinct parts. "auto": 2,000.
    weighting : {"counts", "tfidf"}
        "counts": the number of parts that are nearest to the word. "tfidf": log(1 + count) * idf at unit length.
    rate, max_seconds, seed
        As in `SoundDescriber`.

    Attributes
    ----------
    words_ : Words
    rate_ : int
        Samples a second.
    idf_ : (n_features_,) float32, or None with "counts"
    """

    max_samples: ClassVar[int]
    """Parts that words are learnt from."""

    _names = ("n_terms", "weighting")

    def __init__(
        self,
        n_terms: int | Literal["auto"] = "auto",
        *,
        weighting: Weighting = "counts",
        rate: int | Literal["auto"] = "auto",
        max_seconds: float = 3600.0,
        seed: int = 0,
    ) -> None:
        super().__init__(rate=rate, max_seconds=max_seconds, seed=seed)
        self.n_terms = n_terms
        self.weighting = weighting

    @property
    def n_features_(self) -> int:
        """Number of columns."""
        return len(self._fitted())

    @property
    def counts(self) -> bool:
        """The values are counts."""
        return self.weighting == "counts"

    @abstractmethod
    def cut(self) -> Cut:
        """What is cut from a sound at the rate that was learnt."""

    @abstractmethod
    def learn(self, samples: Float32, progress: Progress) -> Words:
        """Words of samples (n, n_columns)."""

    def fit(
        self,
        source: ItemSource,
        *,
        executor: Executor | None = None,
        progress: Progress = SILENT,
        rejects: Rejects | None = None,
    ) -> Self:
        """Learn the words from a sample of sounds spread evenly over the collection.

        Raises
        ------
        InputError
            A parameter is out of range, no sound can be read, or soundfile or soxr is missing.
        """
        require_audio()
        self.check()
        self.refuse(source)
        run = Run(executor or Serial(), progress, Rejects() if rejects is None else rejects)
        self.rate_ = self._common_rate(source) if self.rate == "auto" else int(self.rate)
        places = sample_places(source, self.max_samples)
        listener = Listener(min(self.max_seconds, _LEARNT_SECONDS), self.seed)
        samples = sample_blocks(listener, self.cut(), source, places, self.max_samples, run)
        self.words_ = self.learn(samples, progress)
        self.idf_ = None
        if self.weighting == "tfidf":
            job = Describing(self.viewer(), WordCounts(self.cut(), self.words_))
            self.idf_ = learn_idf(job, self.n_features_, source, places, run)
        return self

    def encoder(self) -> WordCounts:
        """The part that travels to workers."""
        require_audio()
        return WordCounts(self.cut(), self._fitted(), self.idf_)

    def check(self) -> None:
        """Raise InputError where a parameter is out of range."""
        super().check()
        if self.n_terms != "auto" and not (isinstance(self.n_terms, int | np.integer) and 1 <= self.n_terms <= 10_000):
            raise InputError(f'n_terms is {self.n_terms}; give a number of words from 1 to 10,000, or "auto"')
        if self.weighting not in ("counts", "tfidf"):
            raise InputError(f'weighting is {self.weighting!r}; choose "counts" or "tfidf"')

    def _wanted(self) -> int:
        return WORDS if self.n_terms == "auto" else int(self.n_terms)

    def _common_rate(self, source: ItemSource) -> int:
        """The median rate of some sounds; that of sounds that cannot be read does not count."""
        found = []
        for _, item in taken_at(source, spread(len(source), _ASKED_FOR_RATE)):
            try:
                found.append(Sound(item.whole, self.max_seconds).native_rate())
            except RejectedItem:
                continue
        return min(_HIGHEST_AUTO, int(np.median(found))) if found else _HIGHEST_AUTO

    def _tensors(self) -> dict[str, Array]:
        words = self._fitted()
        found: dict[str, Array] = {
            "rate": np.array([self.rate_], np.int64),
            "centres": np.concatenate([each.centres for each in words.dictionaries]),
            "sizes": np.array([len(each) for each in words.dictionaries], np.int64),
            "shift": words.shift,
            "scale": words.scale,
        }
        return found if self.idf_ is None else {**found, "idf": self.idf_}

    def _restore(self, tensors: dict[str, Any]) -> None:
        try:
            (rate,), sizes = tensors["rate"], np.asarray(tensors["sizes"])
            centres, shift, scale = (np.asarray(tensors[name]) for name in ("centres", "shift", "scale"))
        except (KeyError, ValueError, TypeError) as error:
            raise self._other_version() from error
        idf = tensors.get("idf")
        low, high = RATES
        whole = low <= rate <= high and sizes.ndim == 1 and len(sizes) > 0 and bool((sizes > 0).all())
        whole = whole and centres.ndim == 2 and int(sizes.sum()) == len(centres) and bool(np.isfinite(centres).all())
        whole = whole and shift.shape == scale.shape == (len(sizes) * centres.shape[1],)
        whole = whole and (idf is None) == self.counts and (idf is None or idf.shape == (len(centres),))
        self.rate_, self.idf_ = int(rate), idf
        if not whole or shift.shape != (self._n_columns(),):
            raise self._other_version()
        parts = np.split(centres, np.cumsum(sizes)[:-1])
        self.words_ = Words(shift, scale, tuple(map(Dictionary, parts)))

    @abstractmethod
    def _n_columns(self) -> int:
        """Of what is cut from a sound at the rate that was learnt."""

    def _fitted(self) -> Words:
        found: Words | None = getattr(self, "words_", None)
        if found is None:
            raise InputError("these words of sound have not been learned yet; call fit with sounds first")
        return found


class MfccWords(SoundWords):
    """Sounds as counts of typical mel-frequency cepstral coefficients, 39 numbers every 10 ms.

    Columns are brought to mean 0 and deviation 1 over the sample, so that none drowns the others. See `SoundWords`.
    """

    name = "mfcc"
    kind = "mfcc_words"
    max_samples = 200_000

    def cut(self) -> Frames:
        """Frames at the rate that was learnt."""
        return Frames(MfccPlan(self.rate_))

    def _n_columns(self) -> int:
        return 3 * MfccPlan(self.rate_).n_coefficients

    def learn(self, samples: Float32, progress: Progress) -> Words:
        """One dictionary of all columns."""
        shift, deviation = samples.mean(axis=0), samples.std(axis=0)
        scale = 1 / np.maximum(deviation, np.float32(1e-6))
        return Words(shift, scale, (_dictionary((samples - shift) * scale, self._wanted(), self.seed, progress),))


class SaiWords(SoundWords):
    """Sounds as counts of typical boxes of their stabilised auditory images, an image every 20 ms.

    Each box has a dictionary of its own, all of them together `n_terms` words, one or more each (Lyon et al. 2010).
    See `SoundWords`.
    """

    name = "sai"
    kind = "sai_words"
    max_samples = 16_000

    def cut(self) -> ImageBoxes:
        """Boxes at the rate that was learnt."""
        return ImageBoxes(SaiPlan(self.rate_))

    def _n_columns(self) -> int:
        plan = SaiPlan(self.rate_)
        return BOX_FEATURES * len(boxes(len(channel_frequencies(plan)), plan.n_lags))

    def learn(self, samples: Float32, progress: Progress) -> Words:
        """A dictionary of each box."""
        n = samples.shape[1] // BOX_FEATURES
        each = max(1, self._wanted() // n)
        with progress.stage("learning boxes", n, "boxes") as stage:
            dictionaries = []
            for part in np.split(samples, n, axis=1):
                dictionaries.append(_dictionary(part, each, self.seed, SILENT))
                stage.advance(1)
        nothing, one = np.zeros(samples.shape[1], np.float32), np.ones(samples.shape[1], np.float32)
        return Words(nothing, one, tuple(dictionaries))


def _dictionary(samples: Float32, n_terms: int, seed: int, progress: Progress) -> Dictionary:
    """A dictionary of at most n words; a small sample has fewer."""
    distinct = np.unique(np.ascontiguousarray(samples, np.float32), axis=0)
    return learn_dictionary(distinct, min(n_terms, suggested_terms(len(distinct))), seed=seed, progress=progress)
