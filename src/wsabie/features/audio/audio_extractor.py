"""Decoding of sounds into samples of one channel and one rate, a piece at a time.

libsndfile decodes (WAV, FLAC, Ogg, MP3, AIFF ...), libsoxr changes the rate; both come with the extra "audio".
"""

import importlib
import io
import math
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from wsabie.core.arrays import Float32
from wsabie.core.errors import InputError
from wsabie.features.base.feature_extractor import FeatureExtractor
from wsabie.features.images.image_decoder import UnreadableItemError, open_image_stream
from wsabie.io.records import Item, ModalityName

REASONS = (
    "not a sound",
    "damaged sound",
    "too short",
    "too many channels",
    "no finite samples",
    "empty file",
    "unreadable file",
)
"""Possible reasons of an `UnreadableItemError` of a sound."""

RATES = (1_000, 192_000)
PIECE_SECONDS = 30.0
"""Length of the pieces in which sounds are processed, so that memory does not grow with their length."""

_MOST_CHANNELS = 32
_BLOCK = 1 << 16  # frames that are decoded at once
_LOUDEST = 1e9  # samples are from -1 to 1; powers of far larger ones leave the range of floats
_SHORTEST = 0.02  # seconds: less than a frame holds no features
_EMPTY_TAG = b"ID3\x04" + bytes(5) + b"\x0a" + bytes(10)
_STATED = re.compile(r"^ *(?:data|SSND|Data Size|riff|Riff size) *: (\d+) \(should be (\d+)\)", re.MULTILINE)
_UNKNOWN = 0x7FFFF000  # bytes: writers into a pipe, who do not know the length, state this or more


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

    def native_rate(self) -> int:
        """Return the samples a second of the recording.

        Raises
        ------
        UnreadableItemError
        """
        with _open_decoder(self.content) as file:
            return int(file.samplerate)

    def pieces(self, rate: int) -> Iterator[Float32]:
        """Yield the mean of the channels at a rate, in pieces of `PIECE_SECONDS`; the last may be shorter.

        Raises
        ------
        UnreadableItemError
            It cannot be read, or holds values that are not finite.
        """
        length, tail, n_samples = round(PIECE_SECONDS * rate), np.zeros(0, np.float32), 0
        for block in self._resampled(rate):
            tail = np.concatenate([tail, block]) if len(tail) else block
            n_samples += len(block)
            while len(tail) >= length:
                yield tail[:length]
                tail = tail[length:]
        if n_samples < _SHORTEST * rate:
            raise UnreadableItemError("too short", f"{n_samples / rate:.3f} seconds")
        if len(tail) >= _SHORTEST * rate:
            yield tail

    def _resampled(self, rate: int) -> Iterator[Float32]:
        soxr = _import_library("soxr")
        with _open_decoder(self.content) as file:
            stream = None if file.samplerate == rate else soxr.ResampleStream(file.samplerate, rate, 1, dtype="float32")
            n_frames_left = math.ceil(self.max_seconds * file.samplerate)
            while n_frames_left > 0:
                frames = _read_frames(file, min(n_frames_left, _BLOCK))
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


@dataclass(frozen=True)
class AudioDecoder:
    """Decoder of sounds, sent to each worker once.

    Attributes
    ----------
    max_seconds : float
    seed : int
    """

    max_seconds: float
    seed: int = 0
    augment: ClassVar[int] = 0

    def iterate_views(self, item: Item) -> Iterator[EncodedAudio]:
        """Yield the sound, which has no further views."""
        yield EncodedAudio(item.full_content, self.max_seconds)


class AudioFeatureExtractor(FeatureExtractor):
    """Base of the feature extractors of sounds.

    Parameters
    ----------
    rate : int or "auto"
        Samples a second to which sounds are converted. "auto": the median of the collection, at most 22,050.
    max_seconds : float
        Later parts of a sound are ignored.
    seed : int
        Seed of the training sample.
    """

    modality: ModalityName = "sounds"
    _common: ClassVar[tuple[str, ...]] = ("rate", "max_seconds", "seed")

    def __init__(self, *, rate: int | Literal["auto"] = "auto", max_seconds: float = 3600.0, seed: int = 0) -> None:
        super().__init__(seed=seed)
        self.rate = rate
        self.max_seconds = max_seconds

    def make_decoder(self, augment: int = 0) -> AudioDecoder:
        """Return the decoder of sounds.

        Raises
        ------
        InputError
            `augment` is not 0: a sound has no further views.
        """
        if augment:
            raise InputError("sounds have no further views as pictures have; leave augment out")
        return AudioDecoder(self.max_seconds, self.seed)

    def check(self) -> None:
        """Raise InputError where a parameter is out of range."""
        super().check()
        low, high = RATES
        if self.rate != "auto" and not (isinstance(self.rate, int | np.integer) and low <= self.rate <= high):
            raise InputError(f'rate is {self.rate}; give samples a second from {low:,} to {high:,}, or "auto"')
        if not _SHORTEST <= self.max_seconds <= 86_400:
            raise InputError(f"max_seconds is {self.max_seconds}; give {_SHORTEST} to 86,400 seconds")


def require_audio() -> None:
    """Raise InputError where the libraries for sounds are not installed."""
    for name in ("soundfile", "soxr"):
        _import_library(name)


def _import_library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except (ImportError, OSError) as error:  # soundfile raises OSError where libsndfile is missing
        raise InputError(f"sounds need {name}, which is not installed; run: pip install 'wsabie[audio]'") from error


@contextmanager
def _open_decoder(content: Path | bytes) -> Iterator[Any]:
    soundfile = _import_library("soundfile")
    open_image_stream(content).close()
    try:
        file = soundfile.SoundFile(_openable(content))
    except (soundfile.SoundFileError, OSError) as error:
        raise UnreadableItemError("not a sound", getattr(error, "error_string", str(error))) from error
    with file:
        low, high = RATES
        if not 1 <= file.channels <= _MOST_CHANNELS:
            raise UnreadableItemError("too many channels", f"{file.channels}, at most {_MOST_CHANNELS}")
        if not low <= file.samplerate <= high:
            raise UnreadableItemError("not a sound", f"{file.samplerate} samples a second, and not {low:,} to {high:,}")
        _refuse_truncated(file)
        yield file


def _openable(content: Path | bytes) -> bytes | io.BytesIO:
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


def _read_frames(file: Any, n_frames: int) -> Float32:
    """Return up to `n_frames` frames, (n, channels)."""
    soundfile = _import_library("soundfile")
    try:
        frames: Float32 = file.read(n_frames, dtype="float32", always_2d=True)
    except (soundfile.SoundFileError, OSError) as error:
        raise UnreadableItemError("damaged sound", getattr(error, "error_string", str(error))) from error
    return frames
