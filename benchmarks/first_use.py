"""A new user's first minutes: `python -m benchmarks.first_use [--screenshots docs/images]`.

1,000 pictures, two thirds with some tags; three commands (init, train, serve), then a real browser opens the first page
of suggestions to review. The pictures of the documentation are taken on the way.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from PIL import Image

from benchmarks.machine import told
from benchmarks.service_pages import ROOT, pictures, served


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--screenshots", type=Path, metavar="FOLDER", help="where pictures of the pages go, as WebP")
    asked = parser.parse_args()
    print(told())
    with tempfile.TemporaryDirectory() as scratch:
        folder, shots = Path(scratch) / "emoji", Path(scratch) / "shots"
        pictures(folder)
        begun = time.perf_counter()
        for command in ("init", "train"):
            subprocess.run([sys.executable, "-m", "wsabie", "collection", command, folder], check=True)
            print(f"{command}: done {time.perf_counter() - begun:.0f} s after the start", flush=True)
        with served(folder) as address:
            browse = ["node", "tests/first-use.mjs", address, *([str(shots)] if asked.screenshots else [])]
            with subprocess.Popen(browse, cwd=ROOT / "web", stdout=subprocess.PIPE, text=True) as browser:
                for line in browser.stdout:  # type: ignore[union-attr]
                    print(f"{line.strip()} {time.perf_counter() - begun:.0f} s after the start", flush=True)
            if browser.returncode:
                sys.exit(browser.returncode)
        for shot in sorted(shots.glob("*.png")) if asked.screenshots else ():
            Image.open(shot).convert("RGB").save(asked.screenshots / f"{shot.stem}.webp", quality=80, method=6)


if __name__ == "__main__":
    main()
