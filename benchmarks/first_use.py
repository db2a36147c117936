"""A new user's first minutes: `python -m benchmarks.first_use [--screenshots docs/images]`.

1,000 pictures, two thirds with some tags; three commands (init, train, serve), then a real browser opens the first page
of suggestions to review. The pictures of the pages in the documentation are taken afterwards.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from PIL import Image

from benchmarks.machine import describe_machine
from benchmarks.service_pages import N_PICTURES, ROOT, pictures, serve

SCREENSHOTS = {"grid": "review", "search": "search-page", "label": "labels-page", "map": "map", "training": "training"}
"""Pages that the documentation shows, and what their pictures are called there."""
SCREEN = "wide-light"
LABEL = "face"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--screenshots", type=Path, metavar="FOLDER", help="where pictures of the pages go, as WebP")
    parser.add_argument("--pictures", type=int, default=N_PICTURES, metavar="N", help="how many there are")
    options = parser.parse_args()
    print(describe_machine())
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "emoji"
        pictures(folder, options.pictures)
        start = time.perf_counter()
        for command in ("init", "train"):
            run("collection", command, folder)
            print(f"{command}: done after {time.perf_counter() - start:.0f} s", flush=True)
        with serve(folder) as address:
            subprocess.run(["node", "tests/first-use.mjs", address], cwd=ROOT / "web", check=True)
            print(
                f"the first suggestions to review, in a browser: after {time.perf_counter() - start:.0f} s", flush=True
            )
            if options.screenshots:
                # one to compare with
                run("collection", "train", folder, "--from-scratch", "--seed", "1", "--accept-worse")
                shoot(address, Path(scratch) / "shots", options.screenshots)


def run(*words: object) -> None:
    subprocess.run([sys.executable, "-m", "wsabie", *map(str, words)], check=True)


def shoot(address: str, shots: Path, folder: Path) -> None:
    """The pages that the documentation shows."""
    words = ["node", "tests/shoot.mjs", address, str(shots), LABEL, ",".join(SCREENSHOTS), SCREEN]
    subprocess.run(words, cwd=ROOT / "web", check=True)
    for page, name in SCREENSHOTS.items():
        with Image.open(shots / f"{page}-{SCREEN}.png") as shot:
            shot.convert("RGB").save(folder / f"{name}.webp", quality=80, method=6)


if __name__ == "__main__":
    main()
