"""Sounds as histograms of words: typical coefficients, or typical boxes of stabilised images.

Bengio et al. 2012, part II. Sounds are decoded into samples of one channel and one rate, a piece at a time: libsndfile
decodes (WAV, FLAC, Ogg, MP3, AIFF ...), libsoxr changes the rate; both come with the extra "audio".
"""

import io
import math
import os
import re
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import KW_ONLY, dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from wsabie.core.arrays import Array, Float32
from wsabie.core.errors import UnreadableItemError, require
from wsabie.core.execution import SILENT, Progress
from wsabie.core.optional_packages import import_optional
from wsabie.features.audio import auditory_images, mfcc
from wsabie.features.base.codebook import Codebook, learn_codebook, suggest_codebook_size
from wsabie.features.base.feature_extractor import EncodedRow
from wsabie.features.base.sampling import WorkContext, iterate_at_positions, iterate_batches, select_evenly
from wsabie.features.base.word_extractor import BlockExtractor, Weighting, WordExtractor
from wsabie.features.images.image_decoder import open_image_stream
from wsabie.io.records import Item, ItemSource
from wsabie.storage.schema_validation import check_array

RATES = (1_000, 192_000)
PIECE_SECONDS = 30.0
"""Length of the pieces in which sounds are processed, so that memory does not grow with their length."""

_MAX_CHANNELS = 32
_RECORDED_RATES = (1_000, 1_536_000)  # of files: recorders of bats take 384,000 samples a second
_BLOCK = 1 << 16  # frames that are decoded at once
_LOUDEST = 1e9  # samples are from -1 to 1; powers of far larger ones leave the range of floats
_SHORTEST = 0.02  # seconds: less than a frame holds no features
_EMPTY_TAG = b"ID3\x04" + bytes(5) + b"\x0a" + bytes(10)
_STATED = re.compile(r"^ *(?:data|SSND|Data Size|riff|Riff size) *: (\d+) \(should be (\d+)\)", re.MULTILINE)
_UNKNOWN = 0x7FFFF000  # bytes: writers into a pipe, who do not know the length, state this or more
WORDS = 2_000
"""Words of a codebook, as in Bengio et al. 2012."""
_RATE_SAMPLE = 64  # sounds
_HIGHEST_AUTO = 22_050
_IMAGES_AT_ONCE = 64
_LEARNT_SECONDS = 60.0  # of a sound: words are learned from its beginning


class EncodedAudio(NamedTuple):
    """Encoded sound.

    Attributes
    ----------
    content : Path or bytes
    max_seconds : float
        Later samples are ignored.
    """

    content: Path | bytes
    max_seconds: float

    def read_rate(self) -> int:
        """Return the samples a second of the recording.

        Raises
        ------
        UnreadableItemError
        """
        with _open_decoder(self.content) as file:
            return int(file.samplerate)

    def iterate_pieces(self, rate: int) -> Iterator[Float32]:
        """Yield the mean of the channels at a rate, in pieces of `PIECE_SECONDS`; the last may be shorter.

        Raises
        ------
        UnreadableItemError
            It cannot be read, or holds values that are not finite.
        """
        length, tail, n_samples = round(PIECE_SECONDS * rate), np.zeros(0, np.float32), 0
        for block in self._iterate_resampled(rate):
            tail = np.concatenate([tail, block]) if len(tail) else block
            n_samples += len(block)
            while len(tail) >= length:
                yield tail[:length]
                tail = tail[length:]
        if n_samples < _SHORTEST * rate:
            raise UnreadableItemError("too short", f"{n_samples / rate:.3f} seconds")
        if len(tail) >= _SHORTEST * rate:
            yield tail

    def _iterate_resampled(self, rate: int) -> Iterator[Float32]:
        soxr = _import_library("soxr")
        with _open_decoder(self.content) as file:
            stream = None if file.samplerate == rate else soxr.ResampleStream(file.samplerate, rate, 1, dtype="float32")
            n_frames_left = math.ceil(self.max_seconds * file.samplerate)
            while n_frames_left > 0:
                with _explain_sound_errors("damaged sound"):
                    frames = file.read(min(n_frames_left, _BLOCK), dtype="float32", always_2d=True)
                n_frames_left -= len(frames)
                last = not len(frames) or n_frames_left <= 0
                with np.errstate(all="ignore"):
                    mono = frames.mean(axis=1, dtype=np.float32)
                if not (np.abs(mono) <= _LOUDEST).all():
                    raise UnreadableItemError("no finite samples", f"or some above {_LOUDEST:g}")
                block = mono if stream is None else stream.resample_chunk(mono, last=last)
                if len(block):
                    yield block
                if last:
                    return


def require_audio() -> None:
    """Raise InputError where the libraries for sounds are not installed."""
    for name in ("soundfile", "soxr"):
        _import_library(name)


def _import_library(name: str) -> Any:
    return import_optional(name, f"sounds need {name}", "audio")


@contextmanager
def _open_decoder(content: Path | bytes) -> Iterator[Any]:
    soundfile = _import_library("soundfile")
    open_image_stream(content).close()
    with _explain_sound_errors("not a sound"):
        file = soundfile.SoundFile(_as_decoder_input(content))
    with file:
        low, high = _RECORDED_RATES
        if not 1 <= file.channels <= _MAX_CHANNELS:
            raise UnreadableItemError("too many channels", f"{file.channels}, at most {_MAX_CHANNELS}")
        if not low <= file.samplerate <= high:
            detail = f"{file.samplerate:,} samples a second, and not {low:,} to {high:,}"
            raise UnreadableItemError("sampling rate out of range", detail)
        _refuse_truncated(file)
        yield file


def _as_decoder_input(content: Path | bytes) -> bytes | io.BytesIO:
    """Return the name of a file, or its content as a stream.

    MP3 without a tag is opened by name alone (soundfile 0.14 with libsndfile 1.2.2); in memory it gets an empty tag.
    """
    if isinstance(content, Path):
        return os.fsencode(content.absolute())  # "-" would be the standard input
    is_bare = content[:1] == b"\xff" and content[1:2] >= b"\xe0"
    return io.BytesIO(_EMPTY_TAG + content if is_bare else content)


def _refuse_truncated(file: Any) -> None:
    """Refuse a file shorter than its header states; libsndfile only logs this and reads on."""
    match = _STATED.search(file.extra_info)
    if match is None or int(match[1]) >= _UNKNOWN:
        return
    stated, present = int(match[1]), int(match[2])
    missing = file.frames * (stated / max(present, 1) - 1) / file.samplerate
    if missing >= _SHORTEST or not file.frames:  # some writers count a few bytes of a header
        raise UnreadableItemError("damaged sound", f"{present:,} bytes of {stated:,} are there")


@contextmanager
def _explain_sound_errors(reason: str) -> Iterator[None]:
    """Turn errors of the decoder into an `UnreadableItemError` with this reason."""
    try:
        yield
    except (_import_library("soundfile").SoundFileError, OSError) as error:
        raise UnreadableItemError(reason, getattr(error, "error_string", str(error))) from error


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
        beginning = view._replace(max_seconds=min(view.max_seconds, _LEARNT_SECONDS))
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
        in_range = _SHORTEST <= self.max_seconds <= 86_400
        require(in_range, f"max_seconds is {self.max_seconds}; give {_SHORTEST} to 86,400 seconds")
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

    def _dump_words(self) -> dict[str, Array]:
        words = self._get_words()
        return {
            "rate": np.array([self.rate_], np.int64),
            "centres": np.concatenate([codebook.centres for codebook in words.codebooks]),
            "sizes": np.array([len(codebook) for codebook in words.codebooks], np.int64),
            "shift": words.shift,
            "scale": words.scale,
        }

    def _restore_words(self, tensors: dict[str, Array]) -> None:
        self.rate_ = int(check_array(tensors, "rate", "int64", (1,), upper_bound=RATES[1] + 1)[0])
        sizes = check_array(tensors, "sizes", "int64", (None,))
        centres = check_array(tensors, "centres", "float32", (None, None))
        shift, scale = (check_array(tensors, name, "float32", (self._count_columns(),)) for name in ("shift", "scale"))
        is_whole = (sizes > 0).all() and sizes.sum() == len(centres) and np.isfinite(centres).all()
        if self.rate_ < RATES[0] or not is_whole or len(sizes) * centres.shape[1] != self._count_columns():
            raise self._make_version_error()
        parts = np.split(centres, np.cumsum(sizes)[:-1])
        self.words_ = AudioCodebooks(shift, scale, tuple(map(Codebook, parts)))

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
