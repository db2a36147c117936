"""`python -m benchmarks`: the measurements that need no other data, one after the other; each prints its ratios."""

import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
RUNS = (
    ("training_rate.py", "S"),
    ("topk.py",),
    ("memory.py",),
    ("quality.py", "S"),
    ("quality.py", "M"),
    ("quality.py", "emoji"),
)


def main() -> int:
    failed = 0
    for script, *arguments in RUNS:
        print(f"== {script} {' '.join(arguments)}", flush=True)
        failed += subprocess.run([sys.executable, FOLDER / script, *arguments], check=False).returncode != 0
    return failed


if __name__ == "__main__":
    sys.exit(main())
