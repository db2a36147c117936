"""Sounds as histograms of words: typical coefficients, or typical boxes of stabilised images.

Bengio et al. 2012, part II.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from wsabie.core.arrays import Array, Float32, Int32
from wsabie.core.errors import InputError
from wsabie.core.progress import SILENT, Progress
from wsabie.features.audio.audio_extractor import (
    RATES,
    AudioDecoder,
    AudioFeatureExtractor,
    EncodedAudio,
    require_audio,
)
from wsabie.features.audio.auditory_images import (
    BOX_FEATURES,
    AuditoryImageConfig,
    compute_auditory_images,
    compute_channel_frequencies,
    extract_box_features,
    list_boxes,
)
from wsabie.features.audio.mfcc import MfccConfig, append_derivatives, compute_mfcc
from wsabie.features.base.codebook import Codebook, learn_codebook, suggest_codebook_size
from wsabie.features.base.extraction_tasks import ExtractionTask
from wsabie.features.base.idf_weighting import weight_counts
from wsabie.features.base.sampling import (
    WorkContext,
    iterate_at_positions,
    learn_idf,
    sample_blocks,
    select_evenly,
    select_sample_positions,
)
from wsabie.features.images.image_decoder import UnreadableItemError
from wsabie.io.records import ItemSource

Weighting = Literal["counts", "tfidf"]
WORDS = 2_000
"""Words of a codebook, as in Bengio et al. 2012."""

_RATE_SAMPLE = 64  # sounds
_HIGHEST_AUTO = 22_050
_IMAGES_AT_ONCE = 64
_LEARNT_SECONDS = 60.0  # of a sound: words are learned from its beginning


class AudioSegments(ABC):
    """Base of functions that cut a sound into segments, (n, n_columns); sent to workers."""

    @abstractmethod
    def pieces(self, sound: EncodedAudio) -> Iterator[Float32]:
        """Yield a few segments at a time."""

    def __call__(self, sound: EncodedAudio) -> Float32:
        return np.concatenate(list(self.pieces(sound)))


@dataclass(frozen=True)
class MfccSegments(AudioSegments):
    """Segmentation into coefficients and their derivatives, (n, 39)."""

    plan: MfccConfig

    def pieces(self, sound: EncodedAudio) -> Iterator[Float32]:
        """Yield the segments of `PIECE_SECONDS` at a time."""
        for piece in sound.pieces(self.plan.rate):
            yield append_derivatives(compute_mfcc(piece, self.plan))


@dataclass(frozen=True)
class AuditoryImageSegments(AudioSegments):
    """Segmentation into boxes of stabilised images, (n, n_boxes * BOX_FEATURES)."""

    plan: AuditoryImageConfig

    def pieces(self, sound: EncodedAudio) -> Iterator[Float32]:
        """Yield the boxes of a few images at a time."""
        for piece in sound.pieces(self.plan.rate):
            stack: list[Float32] = []
            for image in compute_auditory_images(piece, self.plan):
                stack.append(image.copy())
                if len(stack) == _IMAGES_AT_ONCE:
                    yield _flatten_boxes(stack)
                    stack = []
            if stack:
                yield _flatten_boxes(stack)


def _flatten_boxes(stack: list[Float32]) -> Float32:
    features = extract_box_features(np.stack(stack))
    return features.reshape(len(features), -1)


@dataclass(frozen=True)
class AudioCodebooks:
    """Codebooks of groups of columns, whose words are numbered consecutively.

    Attributes
    ----------
    shift, scale : (n_columns,) float32
        Subtracted from a sample, and factor of the difference.
    dictionaries : tuple of Codebook
        Codebooks of equal numbers of columns, side by side.
    """

    shift: Float32
    scale: Float32
    dictionaries: tuple[Codebook, ...]

    def __len__(self) -> int:
        return sum(map(len, self.dictionaries))

    def counts(self, samples: Float32) -> Float32:
        """Count each word in samples, (n_words,)."""
        parts = np.split((samples - self.shift) * self.scale, len(self.dictionaries), axis=1)
        histograms = [
            np.bincount(dictionary.assign(part), minlength=len(dictionary))
            for dictionary, part in zip(self.dictionaries, parts, strict=True)
        ]
        return np.concatenate(histograms).astype(np.float32)


@dataclass(frozen=True)
class AudioWordEncoder:
    """Encoder of a sound as counts of words; sent to workers."""

    cut: AudioSegments
    words: AudioCodebooks
    idf: Float32 | None = None

    def __call__(self, sound: EncodedAudio) -> tuple[Int32, Float32]:
        counts = sum(self.words.counts(part) for part in self.cut.pieces(sound))
        words = np.flatnonzero(counts).astype(np.int32)
        return words, weight_counts(words, np.asarray(counts)[words], self.idf)


class AudioWords(AudioFeatureExtractor):
    """Base of extractors of sounds as counts of words; subclasses define the segments and the codebooks.

    Parameters
    ----------
    n_words : int or "auto"
        Words of the codebook; fewer where the sample has not ten times as many distinct segments. "auto": 2,000.
    weighting : {"counts", "tfidf"}
        "counts": the number of segments nearest to the word. "tfidf": log(1 + count) * idf at unit length.
    rate, max_seconds, seed
        As in `AudioFeatureExtractor`.

    Attributes
    ----------
    words_ : AudioCodebooks
    rate_ : int
        Samples a second.
    idf_ : (n_features_,) float32, or None with "counts"
    """

    max_samples: ClassVar[int]
    """Segments in the training sample."""

    _names = ("n_words", "weighting")

    def __init__(
        self,
        n_words: int | Literal["auto"] = "auto",
        *,
        weighting: Weighting = "counts",
        rate: int | Literal["auto"] = "auto",
        max_seconds: float = 3600.0,
        seed: int = 0,
    ) -> None:
        super().__init__(rate=rate, max_seconds=max_seconds, seed=seed)
        self.n_words = n_words
        self.weighting = weighting

    @property
    def n_features_(self) -> int:
        """Number of columns."""
        return len(self._fitted())

    @property
    def counts(self) -> bool:
        """True if the values are counts."""
        return self.weighting == "counts"

    @abstractmethod
    def cut(self) -> AudioSegments:
        """Return the segmentation of a sound at the learned rate."""

    @abstractmethod
    def learn(self, samples: Float32, progress: Progress) -> AudioCodebooks:
        """Learn the words of samples (n, n_columns)."""

    def _learn(self, source: ItemSource, run: WorkContext) -> None:
        require_audio()
        self.rate_ = self._choose_rate(source) if self.rate == "auto" else int(self.rate)
        places = select_sample_positions(source, self.max_samples)
        listener = AudioDecoder(min(self.max_seconds, _LEARNT_SECONDS), self.seed)
        samples = sample_blocks(listener, self.cut(), source, places, self.max_samples, run)
        self.words_ = self.learn(samples, run.progress)
        self.idf_ = None
        if self.weighting == "tfidf":
            job = ExtractionTask(self.make_decoder(), AudioWordEncoder(self.cut(), self.words_))
            self.idf_ = learn_idf(job, self.n_features_, source, places, run)

    def encoder(self) -> AudioWordEncoder:
        """Return the encoder, which is sent to workers."""
        require_audio()
        return AudioWordEncoder(self.cut(), self._fitted(), self.idf_)

    def check(self) -> None:
        """Raise InputError where a parameter is out of range."""
        super().check()
        if self.n_words != "auto" and not (isinstance(self.n_words, int | np.integer) and 1 <= self.n_words <= 10_000):
            raise InputError(f'n_words is {self.n_words}; give a number of words from 1 to 10,000, or "auto"')
        if self.weighting not in ("counts", "tfidf"):
            raise InputError(f'weighting is {self.weighting!r}; choose "counts" or "tfidf"')

    def _count_words(self) -> int:
        return WORDS if self.n_words == "auto" else int(self.n_words)

    def _choose_rate(self, source: ItemSource) -> int:
        """Return the median rate of some readable sounds."""
        rates = []
        for _, item in iterate_at_positions(source, select_evenly(len(source), _RATE_SAMPLE)):
            try:
                rates.append(EncodedAudio(item.full_content, self.max_seconds).native_rate())
            except UnreadableItemError:
                continue
        return min(_HIGHEST_AUTO, int(np.median(rates))) if rates else _HIGHEST_AUTO

    def _tensors(self) -> dict[str, Array]:
        words = self._fitted()
        tensors: dict[str, Array] = {
            "rate": np.array([self.rate_], np.int64),
            "centres": np.concatenate([each.centres for each in words.dictionaries]),
            "sizes": np.array([len(each) for each in words.dictionaries], np.int64),
            "shift": words.shift,
            "scale": words.scale,
        }
        return tensors if self.idf_ is None else {**tensors, "idf": self.idf_}

    def _restore(self, tensors: dict[str, Any]) -> None:
        try:
            (rate,), sizes = tensors["rate"], np.asarray(tensors["sizes"])
            centres, shift, scale = (np.asarray(tensors[name]) for name in ("centres", "shift", "scale"))
        except (KeyError, ValueError, TypeError) as error:
            raise self._other_version() from error
        self.rate_, self.idf_ = int(rate), tensors.get("idf")
        are_words = sizes.ndim == 1 and len(sizes) > 0 and bool((sizes > 0).all()) and centres.ndim == 2
        are_words = are_words and int(sizes.sum()) == len(centres) and bool(np.isfinite(centres).all())
        has_weights = (self.idf_ is None) == self.counts and (self.idf_ is None or self.idf_.shape == (len(centres),))
        if not (RATES[0] <= rate <= RATES[1] and are_words and has_weights):
            raise self._other_version()
        if not shift.shape == scale.shape == (len(sizes) * centres.shape[1],) == (self._n_columns(),):
            raise self._other_version()
        parts = np.split(centres, np.cumsum(sizes)[:-1])
        self.words_ = AudioCodebooks(shift, scale, tuple(map(Codebook, parts)))

    @abstractmethod
    def _n_columns(self) -> int:
        """Return the number of columns of a segment."""

    def _fitted(self) -> AudioCodebooks:
        words: AudioCodebooks | None = getattr(self, "words_", None)
        if words is None:
            raise InputError("these words of sound have not been learned yet; call fit with sounds first")
        return words


class MfccWords(AudioWords):
    """Sounds as counts of typical mel-frequency cepstral coefficients, 39 numbers every 10 ms.

    Columns have mean 0 and deviation 1 over the sample, so that none dominates. See `AudioWords`.
    """

    name = "mfcc"
    kind = "mfcc_words"
    max_samples = 200_000

    def cut(self) -> MfccSegments:
        """Return the segmentation into frames at the learned rate."""
        return MfccSegments(MfccConfig(self.rate_))

    def _n_columns(self) -> int:
        return 3 * MfccConfig(self.rate_).n_coefficients

    def learn(self, samples: Float32, progress: Progress) -> AudioCodebooks:
        """Learn one codebook of all columns."""
        shift, deviation = samples.mean(axis=0), samples.std(axis=0)
        scale = 1 / np.maximum(deviation, np.float32(1e-6))
        return AudioCodebooks(
            shift, scale, (_learn_codebook((samples - shift) * scale, self._count_words(), self.seed, progress),)
        )


class SaiWords(AudioWords):
    """Sounds as counts of typical boxes of their stabilised auditory images, an image every 20 ms.

    Each box has a codebook of its own, all of them together `n_words` words, one or more each (Lyon et al. 2010).
    See `AudioWords`.
    """

    name = "sai"
    kind = "sai_words"
    max_samples = 16_000

    def cut(self) -> AuditoryImageSegments:
        """Return the segmentation into boxes at the learned rate."""
        return AuditoryImageSegments(AuditoryImageConfig(self.rate_))

    def _n_columns(self) -> int:
        plan = AuditoryImageConfig(self.rate_)
        return BOX_FEATURES * len(list_boxes(len(compute_channel_frequencies(plan)), plan.n_lags))

    def learn(self, samples: Float32, progress: Progress) -> AudioCodebooks:
        """Learn a codebook of each box."""
        n_boxes = samples.shape[1] // BOX_FEATURES
        n_words = max(1, self._count_words() // n_boxes)
        with progress.stage("learning boxes", n_boxes, "boxes") as stage:
            dictionaries = []
            for part in np.split(samples, n_boxes, axis=1):
                dictionaries.append(_learn_codebook(part, n_words, self.seed, SILENT))
                stage.advance(1)
        shift, scale = np.zeros(samples.shape[1], np.float32), np.ones(samples.shape[1], np.float32)
        return AudioCodebooks(shift, scale, tuple(dictionaries))


def _learn_codebook(samples: Float32, n_words: int, seed: int, progress: Progress) -> Codebook:
    """Learn a codebook of at most `n_words` words; a small sample has fewer."""
    distinct = np.unique(np.ascontiguousarray(samples, np.float32), axis=0)
    return learn_codebook(distinct, min(n_words, suggest_codebook_size(len(distinct))), seed=seed, progress=progress)
