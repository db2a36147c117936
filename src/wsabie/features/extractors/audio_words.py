"""Sounds as histograms of words: typical coefficients, or typical boxes of stabilised images.

Bengio et al. 2012, part II.
"""

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from functools import reduce
from typing import ClassVar, Literal

import numpy as np

from wsabie.core.arrays import Array, Float32
from wsabie.core.errors import UnreadableItemError, require
from wsabie.core.execution import SILENT, Progress
from wsabie.features.audio import auditory_images, mfcc
from wsabie.features.audio.audio_decoder import MAX_SECONDS, MIN_SECONDS, EncodedAudio, require_audio
from wsabie.features.base.codebook import Codebook, learn_codebook, suggest_codebook_size
from wsabie.features.base.feature_extractor import EncodedRow
from wsabie.features.base.sampling import WorkContext, iterate_at_positions, iterate_batches, select_evenly
from wsabie.features.base.word_extractor import BlockExtractor, Weighting, WordExtractor
from wsabie.io.records import Item, ItemSource
from wsabie.storage.schema_validation import check_array

RATES = (1_000, 192_000)
WORDS = 2_000
"""Words of a codebook, as in Bengio et al. 2012."""
_RATE_SAMPLE = 64  # sounds
_HIGHEST_AUTO = 22_050
_IMAGES_AT_ONCE = 64
_LEARNED_SECONDS = 60.0  # of a sound: words are learned from its beginning


@dataclass(frozen=True)
class AudioCodebooks:
    """Codebooks of groups of columns, whose words are numbered consecutively.

    Attributes
    ----------
    shift, scale : (n_columns,) float32
        Subtracted from a sample, and factor of the difference.
    codebooks : tuple of Codebook
        Codebooks of equal numbers of columns, side by side.
    """

    shift: Float32
    scale: Float32
    codebooks: tuple[Codebook, ...]

    def __len__(self) -> int:
        return sum(map(len, self.codebooks))

    def count_words(self, samples: Float32) -> Float32:
        """Count each word in samples, (n_words,)."""
        parts = np.split((samples - self.shift) * self.scale, len(self.codebooks), axis=1)
        histograms = [
            np.bincount(codebook.assign(part), minlength=len(codebook))
            for codebook, part in zip(self.codebooks, parts, strict=True)
        ]
        return np.concatenate(histograms).astype(np.float32)


@dataclass(eq=False, repr=False)
class AudioWords(WordExtractor, BlockExtractor):
    """Base of extractors of sounds as counts of words; subclasses define the segments and the codebooks.

    Parameters
    ----------
    n_words : int or "auto"
        Words of the codebook; fewer where the sample has not ten times as many distinct segments. "auto": 2,000.
    weighting : {"counts", "tfidf"}
        "counts": the number of segments nearest to the word. "tfidf": log(1 + count) * idf at unit length.
    rate : int or "auto"
        Samples a second to which sounds are converted. "auto": the median of the sounds, at most 22,050.
    max_seconds : float
        Later parts of a sound are ignored.
    seed : int
        Seed of the training sample.

    Attributes
    ----------
    words_ : AudioCodebooks
    rate_ : int
        Samples a second.
    idf_ : (n_features_,) float32, or None with "counts"
    """

    max_samples: ClassVar[int]
    """Segments in the training sample."""

    modality = "sounds"

    n_words: int | Literal["auto"] = "auto"
    _: KW_ONLY
    weighting: Weighting = "counts"
    rate: int | Literal["auto"] = "auto"
    max_seconds: float = 3600.0
    words_: AudioCodebooks = field(init=False)
    rate_: int = field(init=False)

    def iterate_views(self, item: Item, augment: int = 0) -> Iterator[EncodedAudio]:
        """Yield the sound, which has no further views."""
        yield EncodedAudio(item.full_content, self.max_seconds)

    @abstractmethod
    def iterate_segments(self, sound: EncodedAudio) -> Iterator[Float32]:
        """Yield segments of a sound at the learned rate, (n, n_columns), a few at a time."""

    @abstractmethod
    def learn_codebooks(self, samples: Float32, progress: Progress) -> AudioCodebooks:
        """Learn the words of samples (n, n_columns)."""

    def cut(self, view: EncodedAudio) -> Float32:
        """Return the segments of the beginning of a sound."""
        beginning = view._replace(max_seconds=min(view.max_seconds, _LEARNED_SECONDS))
        return np.concatenate(list(self.iterate_segments(beginning)))

    def _learn_words(self, source: ItemSource, context: WorkContext) -> list[int]:
        require_audio()
        self.rate_ = self._choose_rate(source) if self.rate == "auto" else int(self.rate)
        positions, samples = self._sample_blocks(source, self.max_samples, context)
        self.words_ = self.learn_codebooks(samples, context.progress)
        return positions

    def prepare(self, augment: int = 0) -> None:
        """Raise InputError before `fit`, or where libraries are not installed."""
        require_audio()
        super().prepare(augment)

    def check(self) -> None:
        """Raise InputError where a parameter is out of range."""
        super().check()
        low, high = RATES
        is_rate = self.rate == "auto" or (isinstance(self.rate, int | np.integer) and low <= self.rate <= high)
        require(is_rate, f'rate is {self.rate}; give samples a second from {low:,} to {high:,}, or "auto"')
        in_range = MIN_SECONDS <= self.max_seconds <= MAX_SECONDS
        require(in_range, f"max_seconds is {self.max_seconds}; give {MIN_SECONDS} to {MAX_SECONDS:,} seconds")
        is_count = isinstance(self.n_words, int | np.integer) and 1 <= self.n_words <= 10_000
        is_count = is_count or self.n_words == "auto"
        require(is_count, f'n_words is {self.n_words}; give a number of words from 1 to 10,000, or "auto"')

    def _get_words(self) -> AudioCodebooks:
        self._require_learned("words_", "these words of sound have not been learned")
        return self.words_

    def _count_words(self, view: EncodedAudio) -> EncodedRow:
        counts = reduce(np.add, map(self.words_.count_words, self.iterate_segments(view)))
        words = np.flatnonzero(counts).astype(np.int32)
        return words, counts[words]

    def _get_codebook_size(self) -> int:
        return WORDS if self.n_words == "auto" else int(self.n_words)

    def _choose_rate(self, source: ItemSource) -> int:
        """Return the median rate of some readable sounds."""
        rates = []
        for _, item in iterate_at_positions(source, select_evenly(len(source), _RATE_SAMPLE)):
            with suppress(UnreadableItemError):
                rates.append(EncodedAudio(item.full_content, self.max_seconds).read_rate())
        return min(_HIGHEST_AUTO, int(np.median(rates))) if rates else _HIGHEST_AUTO

    def _dump_tensors(self) -> dict[str, Array]:
        words = self._get_words()
        return {
            "rate": np.array([self.rate_], np.int64),
            "centres": np.concatenate([codebook.centres for codebook in words.codebooks]),
            "sizes": np.array([len(codebook) for codebook in words.codebooks], np.int64),
            "shift": words.shift,
            "scale": words.scale,
            **super()._dump_tensors(),
        }

    def _restore(self, tensors: dict[str, Array]) -> None:
        self.rate_ = int(check_array(tensors, "rate", "int64", (1,), upper_bound=RATES[1] + 1)[0])
        sizes = check_array(tensors, "sizes", "int64", (None,))
        centres = check_array(tensors, "centres", "float32", (None, None))
        shift, scale = (check_array(tensors, name, "float32", (self._count_columns(),)) for name in ("shift", "scale"))
        is_whole = (sizes > 0).all() and sizes.sum() == len(centres) and np.isfinite(centres).all()
        if self.rate_ < RATES[0] or not is_whole or len(sizes) * centres.shape[1] != self._count_columns():
            raise self._make_version_error()
        parts = np.split(centres, np.cumsum(sizes)[:-1])
        self.words_ = AudioCodebooks(shift, scale, tuple(map(Codebook, parts)))
        super()._restore(tensors)

    @abstractmethod
    def _count_columns(self) -> int:
        """Return the number of columns of a segment."""


class MfccWords(AudioWords):
    """Sounds as counts of typical mel-frequency cepstral coefficients, 39 numbers every 10 ms.

    Columns have mean 0 and deviation 1 over the sample, so that none dominates. See `AudioWords`.
    """

    name = "mfcc"
    kind = "mfcc_words"
    max_samples = 200_000

    def iterate_segments(self, sound: EncodedAudio) -> Iterator[Float32]:
        """Yield coefficients with their derivatives, (n, 39)."""
        config = mfcc.MfccConfig(self.rate_)
        for piece in sound.iterate_pieces(config.rate):
            yield mfcc.append_derivatives(mfcc.compute_mfcc(piece, config))

    def _count_columns(self) -> int:
        return 3 * mfcc.MfccConfig(self.rate_).n_coefficients

    def learn_codebooks(self, samples: Float32, progress: Progress) -> AudioCodebooks:
        """Learn one codebook of all columns."""
        shift, deviation = samples.mean(axis=0), samples.std(axis=0)
        scale = 1 / np.maximum(deviation, np.float32(1e-6))
        scaled, n_words = (samples - shift) * scale, self._get_codebook_size()
        return AudioCodebooks(shift, scale, (_learn_codebook(scaled, n_words, self.seed, progress),))


class SaiWords(AudioWords):
    """Sounds as counts of typical boxes of their stabilised auditory images, an image every 20 ms.

    Each box has a codebook of its own, all of them together `n_words` words, one or more each (Lyon et al. 2010).
    See `AudioWords`.
    """

    name = "sai"
    kind = "sai_words"
    max_samples = 16_000

    def iterate_segments(self, sound: EncodedAudio) -> Iterator[Float32]:
        """Yield the boxes of stabilised images, (n, n_boxes * BOX_FEATURES)."""
        config = auditory_images.AuditoryImageConfig(self.rate_)
        for piece in sound.iterate_pieces(config.rate):
            images = (image.copy() for image in auditory_images.compute_auditory_images(piece, config))
            for stack in iterate_batches(images, _IMAGES_AT_ONCE):
                features = auditory_images.extract_box_features(np.stack(stack))
                yield features.reshape(len(features), -1)

    def _count_columns(self) -> int:
        config = auditory_images.AuditoryImageConfig(self.rate_)
        return auditory_images.BOX_FEATURES * len(
            auditory_images.list_boxes(len(auditory_images.compute_channel_frequencies(config)), config.n_lags)
        )

    def learn_codebooks(self, samples: Float32, progress: Progress) -> AudioCodebooks:
        """Learn a codebook of each box."""
        n_boxes = samples.shape[1] // auditory_images.BOX_FEATURES
        n_words = max(1, self._get_codebook_size() // n_boxes)
        with progress.stage("learning boxes", n_boxes, "boxes") as stage:
            codebooks = []
            for part in np.split(samples, n_boxes, axis=1):
                codebooks.append(_learn_codebook(part, n_words, self.seed, SILENT))
                stage.advance(1)
        shift, scale = np.zeros(samples.shape[1], np.float32), np.ones(samples.shape[1], np.float32)
        return AudioCodebooks(shift, scale, tuple(codebooks))


def _learn_codebook(samples: Float32, n_words: int, seed: int, progress: Progress) -> Codebook:
    """Learn a codebook of at most `n_words` words; a small sample has fewer."""
    distinct = np.unique(np.ascontiguousarray(samples, np.float32), axis=0)
    return learn_codebook(distinct, min(n_words, suggest_codebook_size(len(distinct))), seed=seed, progress=progress)
