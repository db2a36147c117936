"""Plan of the sounds of an instrument: pitches, chords, loudness, and the side of the split."""

import re
from typing import NamedTuple

import numpy as np

from soundfont.instruments import INSTRUMENTS

LOWEST, HIGHEST = 40, 84
PER_ROOT = 4
"""Sounds that share their lowest note: two single notes of different loudness and two chords."""
VELOCITIES = (44, 64, 84, 104, 124)
CHORDS = {
    "fifth": (0, 7),
    "octave": (0, 12),
    "major": (0, 4, 7),
    "minor": (0, 3, 7),
    "seventh": (0, 4, 7, 10),
    "diminished": (0, 3, 6),
}
FEWEST, MOST = 2 * PER_ROOT, PER_ROOT * (HIGHEST - LOWEST + 1)
_TESTED = 6  # one root of so many
_NOTES = ("C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B")


class Sound(NamedTuple):
    """One sound of the corpus."""

    program: int
    root: int
    chord: str
    velocity: int
    split: str

    @property
    def notes(self) -> tuple[int, ...]:
        """Numbers of the MIDI notes."""
        return tuple(self.root + step for step in CHORDS.get(self.chord, (0,)))

    @property
    def file_name(self) -> str:
        """Place in the corpus.

        Examples
        --------
        >>> Sound(40, 60, "major", 64, "train").file_name
        '040-violin/060-major-064.flac'
        """
        name = re.sub(r"\W+", "-", INSTRUMENTS[self.program][0].lower()).strip("-")
        return f"{self.program:03}-{name}/{self.root:03}-{self.chord}-{self.velocity:03}.flac"

    def row(self) -> dict[str, str | int]:
        """Its row of metadata.csv.

        Examples
        --------
        >>> row = Sound(40, 60, "major", 64, "train").row()
        >>> row["labels"], row["pitch"], row["group"]
        ('Violin;Strings', 'C4', '40/60')
        """
        instrument, family = INSTRUMENTS[self.program]
        return {
            "file_name": self.file_name,
            "labels": f"{instrument};{family}",
            "instrument": instrument,
            "family": family,
            "pitch": f"{_NOTES[self.root % 12]}{self.root // 12 - 1}",
            "chord": self.chord,
            "velocity": self.velocity,
            "group": f"{self.program}/{self.root}",
            "split": self.split,
        }


def planned(program: int, count: int, seed: int) -> list[Sound]:
    """The sounds of an instrument, `PER_ROOT` of each root; one root of six is for testing, with all its sounds.

    An instrument has the same sounds whatever others are made.

    Examples
    --------
    >>> sounds = planned(0, 24, seed=0)
    >>> len(set(sounds)), len({sound.root for sound in sounds}), len({s.root for s in sounds if s.split == "test"})
    (24, 6, 1)
    """
    rng = np.random.default_rng([seed, program])
    n_roots = -(-count // PER_ROOT)
    roots = rng.choice(np.arange(LOWEST, HIGHEST + 1), n_roots, replace=False).tolist()
    tested = set(roots[: max(1, round(n_roots / _TESTED))])
    sounds = []
    for root in sorted(roots):
        velocities = rng.choice(VELOCITIES, PER_ROOT, replace=False).tolist()
        chords = ["note", "note", *rng.choice(list(CHORDS), PER_ROOT - 2, replace=False).tolist()]
        side = "test" if root in tested else "train"
        sounds += [Sound(program, root, chord, v, side) for chord, v in zip(chords, velocities, strict=True)]
    return sounds[:count]
