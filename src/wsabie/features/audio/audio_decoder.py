"""Decoder of recordings into samples of one channel and one rate, up to a maximum length.

Samples come a piece at a time. libsndfile decodes (WAV, FLAC, Ogg, MP3, AIFF ...), libsoxr changes the rate; both come
with the extra "audio".
"""

import io
import math
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from wsabie.core.arrays import Float32
from wsabie.core.errors import UnreadableItemError
from wsabie.core.optional_packages import import_optional
from wsabie.features.images.image_decoder import open_image_stream

PIECE_SECONDS = 30.0
"""Length of the pieces in which sounds are processed, so that memory does not grow with their length."""
MIN_SECONDS = 0.02
"""Shortest sound; less than a frame holds no features."""
MAX_SECONDS = 86_400
"""Longest recording that may be asked for; the part after `max_seconds` is ignored."""

_MAX_CHANNELS = 32
_RECORDED_RATES = (1_000, 1_536_000)  # of files: recorders of bats take 384,000 samples a second
_BLOCK = 1 << 16  # frames that are decoded at once
_LOUDEST = 1e9  # samples are from -1 to 1; powers of far larger ones leave the range of floats
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
        if n_samples < MIN_SECONDS * rate:
            raise UnreadableItemError("too short", f"{n_samples / rate:.3f} seconds")
        if len(tail) >= MIN_SECONDS * rate:
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
    """Return the name of a file, or its content as a stream."""
    # MP3 without a tag is opened by name alone (soundfile 0.14 with libsndfile 1.2.2); in memory it gets an empty
    # tag
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
    if missing >= MIN_SECONDS or not file.frames:  # some writers count a few bytes of a header
        raise UnreadableItemError("damaged sound", f"{present:,} bytes of {stated:,} are there")


@contextmanager
def _explain_sound_errors(reason: str) -> Iterator[None]:
    """Turn errors of the decoder into an `UnreadableItemError` with this reason."""
    try:
        yield
    except (_import_library("soundfile").SoundFileError, OSError) as error:
        raise UnreadableItemError(reason, getattr(error, "error_string", str(error))) from error
