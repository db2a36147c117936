"""Sounds of an instrument through fluidsynth: all of them in one run, then cut apart."""

import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from soundfont.midi import midi_file
from soundfont.plan import Sound

RATE, SECONDS = 22_050, 2.0
_EVERY, _LENGTH = 3_000, 1_200  # milliseconds
_RENDERED = 2 * RATE  # twice as many samples as are kept: what lies too high is filtered out and not folded back
_FADED = 0.02  # seconds at the end


class SilentError(Exception):
    """The sound font gave nothing."""


def rendered(sounds: Sequence[Sound], soundfont: Path) -> Iterator[Any]:
    """Samples of each sound, (44100,) float32, one channel; those of an instrument are given at once.

    Raises
    ------
    SilentError
        The sound font cannot be used.
    """
    import soundfile
    import soxr

    with tempfile.TemporaryDirectory() as folder:
        song, wave = Path(folder) / "a.mid", Path(folder) / "a.wav"
        program = sounds[0].program
        song.write_bytes(midi_file(program, [(s.notes, s.velocity) for s in sounds], every=_EVERY, length=_LENGTH))
        options = ["-ni", "-q", "-R", "0", "-C", "0", "-g", "0.5", "-r", str(_RENDERED), "-T", "wav", "-O", "s16"]
        options += ["-o", "synth.default-soundfont="]  # would take the place of a font that cannot be read
        ran = subprocess.run(
            ["fluidsynth", *options, "-F", str(wave), str(soundfont), str(song)], capture_output=True, text=True
        )
        if ran.returncode or not wave.is_file() or not wave.stat().st_size:
            raise SilentError(f"fluidsynth made nothing of {soundfont}: {ran.stderr.strip()[:200]}")
        stereo, _ = soundfile.read(wave, dtype="float32", always_2d=True)
    if not stereo.any():
        raise SilentError(f"{soundfont} plays nothing as program {program}; give a General MIDI sound font")
    samples = soxr.resample(stereo.mean(axis=1), _RENDERED, RATE)
    for number in range(len(sounds)):
        yield _cut(samples, number)


def _cut(samples: Any, number: int) -> Any:
    start, size = number * _EVERY * RATE // 1000, int(SECONDS * RATE)
    part = np.zeros(size, np.float32)
    audible = samples[start : start + size]
    part[: len(audible)] = audible
    part[-int(_FADED * RATE) :] *= np.linspace(1, 0, int(_FADED * RATE), dtype=np.float32)
    return part
