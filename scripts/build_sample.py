"""Build the bundled sample collection from Debian packages.

Needs, besides an installed wsabie:

    apt-get install fonts-noto-color-emoji unicode-cldr-core openclipart-svg librsvg2-bin
    pip install fonttools

and then, from the root of the repository:

    python scripts/build_sample.py --out src/wsabie/samples

The same packages and library versions give the same bytes. Everything that is left out is counted on the
screen and listed, one JSON object a line, in the file named by `--rejects`.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from shutil import which

from sample.tables import Row, write_rows
from wsabie.storage.rejects import Rejects

FONT = Path("/usr/share/fonts/truetype/noto/NotoColorEmoji.ttf")
CLDR = Path("/usr/share/unicode/cldr/common")
CLIPART = Path("/usr/share/openclipart/svg")


def main(arguments: Sequence[str] | None = None) -> int:
    """Build what was asked for; returns the exit code."""
    options = _parser().parse_args(arguments)
    rejects = Rejects()
    missing = [name for part in options.parts for name in _missing(part, options)]
    if missing:
        print(f"missing: {', '.join(missing)}; see `--help` for what to install", file=sys.stderr)
        return 1
    for part in options.parts:
        rows, metadata = _build(part, options, rejects)
        size = write_rows(options.out / f"{part}.parquet", rows, metadata)
        print(_described(part, rows, size))
    rejects.write(options.rejects)
    print(f"{rejects.summary() or 'nothing was left out'}; listed in {options.rejects}")
    return 0


def _missing(part: str, options: argparse.Namespace) -> list[str]:
    """Return the requirements of `part` that this machine lacks."""
    if part == "emoji":
        absent = [str(path) for path in (options.font, options.cldr) if not path.exists()]
        return absent if find_spec("fontTools") else [*absent, "the Python package fonttools"]
    absent = [] if options.clipart.is_dir() else [str(options.clipart)]
    return absent if which("rsvg-convert") else [*absent, "rsvg-convert"]


def _build(part: str, options: argparse.Namespace, rejects: Rejects) -> tuple[list[Row], dict[str, str]]:
    if part == "emoji":
        from sample.emoji import build_emoji

        return build_emoji(options.font, options.cldr, rejects)
    from sample.drawings import build_drawings

    return build_drawings(options.clipart, rejects)


def _described(part: str, rows: Sequence[Row], size: int) -> str:
    pictures = Counter(label for row in rows for label in row.labels)
    shared = [count for count in pictures.values() if count > 1]
    groups = Counter(row.group for row in rows)
    return (
        f"{part}: {len(rows):,} pictures in {len(groups):,} groups (largest {max(groups.values())}), "
        f"{len(pictures):,} labels and {sum(pictures.values()):,} pairs, of these {len(shared):,} labels and "
        f"{sum(shared):,} pairs where a label has two pictures or more; {size / 1e6:.2f} MB"
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("src/wsabie/samples"), help="folder for the Parquet files")
    parser.add_argument("--parts", nargs="+", choices=("emoji", "drawings"), default=["emoji", "drawings"])
    parser.add_argument("--font", type=Path, default=FONT, help="NotoColorEmoji.ttf with CBDT bitmaps")
    parser.add_argument("--cldr", type=Path, default=CLDR, help="the folder `common` of Unicode CLDR")
    parser.add_argument("--clipart", type=Path, default=CLIPART, help="the folder `svg` of Open Clip Art")
    parser.add_argument("--rejects", type=Path, default=Path("build/sample-rejects.jsonl"))
    return parser


if __name__ == "__main__":
    sys.exit(main())
