"""Render a collection of instrument sounds from a General MIDI sound font.

Needs, besides an installed `wsabie[audio]`:

    apt-get install fluidsynth timgm6mb-soundfont

and then, from the root of the repository:

    python scripts/soundfont_corpus.py --out ../instruments

128 instruments in 16 families, single notes and chords of several pitches and degrees of loudness: FLAC of 2 s at
22,050 samples a second, in a folder for each instrument, and `metadata.csv` (labels: instrument and family; further
columns instrument, family, pitch, chord, velocity, group, split). Sounds of an instrument that share their lowest note
are a group, and all on one side of the split. The same packages give the same samples. What is silent is left out, and
listed in `rejects.jsonl`.
"""

import argparse
import csv
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from shutil import which

from sample.progress import track
from soundfont.plan import FEWEST, MOST, Sound, planned
from soundfont.render import RATE, SilentError, rendered
from wsabie.storage.atomic_files import replace_file
from wsabie.storage.rejects import Rejects

SOUNDFONT = Path("/usr/share/sounds/sf2/TimGM6mb.sf2")
_SILENT = 0.002  # of full scale


def main(arguments: Sequence[str] | None = None) -> int:
    """Render the corpus; returns the exit code."""
    options = _parser().parse_args(arguments)
    if missing := _missing(options):
        print(f"missing: {', '.join(missing)}; see `--help` for what to install", file=sys.stderr)
        return 1
    if not FEWEST <= options.per_instrument <= MOST:
        print(f"--per-instrument is {options.per_instrument} but has to be {FEWEST} to {MOST}", file=sys.stderr)
        return 1
    rejects = Rejects()
    try:
        sounds = build(options.out, track(range(128), "instruments"), options, rejects)
    except SilentError as error:
        print(error, file=sys.stderr)
        return 1
    tested = sum(sound.split == "test" for sound in sounds)
    print(
        f"{options.out}: {len(sounds):,} sounds, {tested:,} of them for testing; {rejects.summary() or 'none silent'}"
    )
    return 0


def build(out: Path, programs: Iterable[int], options: argparse.Namespace, rejects: Rejects) -> list[Sound]:
    """Write the sounds of some instruments, and the table last; returns what was written."""
    sounds = [sound for program in programs for sound in _written(out, program, options, rejects)]
    with replace_file(out / "metadata.csv") as draft, draft.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, sounds[0].row(), lineterminator="\n")
        table.writeheader()
        table.writerows(sound.row() for sound in sounds)
    rejects.write(out / "rejects.jsonl")
    return sounds


def _written(out: Path, program: int, options: argparse.Namespace, rejects: Rejects) -> Iterator[Sound]:
    import soundfile

    sounds = planned(program, options.per_instrument, options.seed)
    for sound, samples in zip(sounds, rendered(sounds, options.soundfont), strict=True):
        if abs(samples).max() < _SILENT:
            rejects.add(sound.file_name, "silent")
            continue
        (out / sound.file_name).parent.mkdir(parents=True, exist_ok=True)
        soundfile.write(out / sound.file_name, samples, RATE, subtype="PCM_16")
        yield sound


def _missing(options: argparse.Namespace) -> list[str]:
    absent = [] if which("fluidsynth") else ["fluidsynth"]
    absent += [] if options.soundfont.is_file() else [str(options.soundfont)]
    return absent + [f"the Python package {name}" for name in ("soundfile", "soxr") if not find_spec(name)]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder for the sounds and metadata.csv")
    parser.add_argument("--per-instrument", type=int, default=24, help=f"sounds of each, {FEWEST} to {MOST}")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--soundfont", type=Path, default=SOUNDFONT, help="a General MIDI sound font (.sf2)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
