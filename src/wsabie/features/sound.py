"""Encoded sounds become samples of one channel and one rate, a piece at a time; what cannot be read is refused.

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

from wsabie.base.arrays import Float32
from wsabie.base.errors import InputError
from wsabie.features.decode import RejectedItem, opened
from wsabie.features.describer import Describer
from wsabie.sources.records import Item, Things

REASONS = (
    "not a sound",
    "damaged sound",
    "too short",
    "too many channels",
    "no finite samples",
    "empty file",
    "unreadable file",
)
"""All that a `RejectedItem` of a sound can give as its reason."""

RATES = (1_000, 192_000)
PIECE_SECONDS = 30.0
"""Sounds are described in pieces of this length, so that memory does not grow with theirs."""

_MOST_CHANNELS = 32
_BLOCK = 1 << 16  # frames that are decoded at once
_LOUDEST = 1e9  # samples are from -1 to 1; powers of what is far above leave the range of floats
_SHORTEST = 0.02  # seconds: less than a frame tells nothing
_EMPTY_TAG = b"ID3\x04" + bytes(5) + b"\x0a" + bytes(10)
_STATED = re.compile(r"^ *(?:data|SSND|Data Size|riff|Riff size) *: (\d+) \(should be (\d+)\)", re.MULTILINE)
_UNKNOWN = 0x7FFFF000  # bytes: from here on it is what writers into a pipe put, who do not know the length


class Sound(NamedTuple):
    """An encoded sound that is about to be listened to.

    Attributes
    ----------
    content : Path or bytes
    max_seconds : float
        What comes later is not listened to.
    """

    content: Path | bytes
    max_seconds: float

    def native_rate(self) -> int:
        """Samples a second as it was recorded.

        Raises
        ------
        RejectedItem
        """
        with _decoder(self.content) as file:
            return int(file.samplerate)

    def pieces(self, rate: int) -> Iterator[Float32]:
        """The mean of its channels at a rate, in pieces of `PIECE_SECONDS`; the last one may be shorter.

        Raises
        ------
        RejectedItem
            It cannot be read, or holds what is no number.
        """
        length, rest, n = round(PIECE_SECONDS * rate), np.zeros(0, np.float32), 0
        for block in self._resampled(rate):
            rest = np.concatenate([rest, block]) if len(rest) else block
            n += len(block)
            while len(rest) >= length:
                yield rest[:length]
                rest = rest[length:]
        if n < _SHORTEST * rate:
            raise RejectedItem("too short", f"{n / rate:.3f} seconds")
        if len(rest) >= _SHORTEST * rate:
            yield rest

    def _resampled(self, rate: int) -> Iterator[Float32]:
        soxr = _library("soxr")
        with _decoder(self.content) as file:
            same = file.samplerate == rate
            stream = None if same else soxr.ResampleStream(file.samplerate, rate, 1, dtype="float32")
            left = math.ceil(self.max_seconds * file.samplerate)
            while left > 0:
                frames = _read(file, min(left, _BLOCK))
                left -= len(frames)
                last = not len(frames) or left <= 0
                with np.errstate(all="ignore"):
                    mono = frames.mean(axis=1, dtype=np.float32)
                if not (np.abs(mono) <= _LOUDEST).all():
                    raise RejectedItem("no finite samples", f"or some above {_LOUDEST:g}")
                block = mono if stream is None else stream.resample_chunk(mono, last=last)
                if len(block):
                    yield block
                if last:
                    return


@dataclass(frozen=True)
class Listener:
    """How sounds are listened to; sent to each worker once.

    Attributes
    ----------
    max_seconds : float
    seed : int
    """

    max_seconds: float
    seed: int = 0
    augment: ClassVar[int] = 0

    def looks(self, item: Item) -> Iterator[Sound]:
        """The sound itself: it has no further views."""
        yield Sound(item.whole, self.max_seconds)


class SoundDescriber(Describer):
    """A describer of sounds.

    Parameters
    ----------
    rate : int or "auto"
        Samples a second to which sounds are brought. "auto": the median of the collection's, at most 22,050.
    max_seconds : float
        What comes later in a sound is not listened to.
    seed : int
        Of the sample that it learns from.
    """

    things: Things = "sounds"
    _common: ClassVar[tuple[str, ...]] = ("rate", "max_seconds", "seed")

    def __init__(self, *, rate: int | Literal["auto"] = "auto", max_seconds: float = 3600.0, seed: int = 0) -> None:
        super().__init__(seed=seed)
        self.rate = rate
        self.max_seconds = max_seconds

    def viewer(self, augment: int = 0) -> Listener:
        """How sounds are listened to.

        Raises
        ------
        InputError
            `augment` is not 0: a sound has no further views.
        """
        if augment:
            raise InputError("sounds have no further views as pictures have; leave augment out")
        return Listener(self.max_seconds, self.seed)

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
        _library(name)


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except (ImportError, OSError) as error:  # soundfile raises OSError where libsndfile is missing
        raise InputError(f"sounds need {name}, which is not installed; run: pip install 'wsabie[audio]'") from error


@contextmanager
def _decoder(content: Path | bytes) -> Iterator[Any]:
    soundfile = _library("soundfile")
    opened(content).close()
    try:
        file = soundfile.SoundFile(_openable(content))
    except (soundfile.SoundFileError, OSError) as error:
        raise RejectedItem("not a sound", getattr(error, "error_string", str(error))) from error
    with file:
        low, high = RATES
        if not 1 <= file.channels <= _MOST_CHANNELS:
            raise RejectedItem("too many channels", f"{file.channels}, at most {_MOST_CHANNELS}")
        if not low <= file.samplerate <= high:
            raise RejectedItem("not a sound", f"{file.samplerate} samples a second, and not {low:,} to {high:,}")
        _refuse_cut(file)
        yield file


def _openable(content: Path | bytes) -> bytes | io.BytesIO:
    """A file by its name, or its content as a stream.

    MP3 without a tag is opened by name alone (soundfile 0.14 with libsndfile 1.2.2); in memory it gets an empty tag.
    """
    if isinstance(content, Path):
        return os.fsencode(content.absolute())  # "-" would be the standard input
    is_bare = content[:1] == b"\xff" and content[1:2] >= b"\xe0"
    return io.BytesIO(_EMPTY_TAG + content if is_bare else content)


def _refuse_cut(file: Any) -> None:
    """Refuse what is shorter than its header says; libsndfile tells it in its log alone, and goes on with the rest."""
    found = _STATED.search(file.extra_info)
    if found is None or int(found[1]) >= _UNKNOWN:
        return
    stated, there = int(found[1]), int(found[2])
    missing = file.frames * (stated / max(there, 1) - 1) / file.samplerate
    if missing >= _SHORTEST or not file.frames:  # some writers count a few bytes of a header
        raise RejectedItem("damaged sound", f"{there:,} bytes of {stated:,} are there")


def _read(file: Any, n: int) -> Float32:
    """Up to n frames, (n, channels)."""
    soundfile = _library("soundfile")
    try:
        found: Float32 = file.read(n, dtype="float32", always_2d=True)
    except (soundfile.SoundFileError, OSError) as error:
        raise RejectedItem("damaged sound", getattr(error, "error_string", str(error))) from error
    return found
