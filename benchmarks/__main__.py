"""`python -m benchmarks`: the measurements that need no other data, one after the other; each prints its ratios."""

import argparse
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
RUNS = (("training_rate", "S"), ("topk",), ("memory",), ("quality", "S"), ("quality", "M"), ("quality", "emoji"))


def main() -> int:
    listed = "\n".join(f"  {' '.join(run)}" for run in RUNS)
    form = argparse.RawDescriptionHelpFormatter
    argparse.ArgumentParser(
        prog="python -m benchmarks", description=f"{__doc__}\n\n{listed}", formatter_class=form
    ).parse_args()
    failed = 0
    for script, *arguments in RUNS:
        print(f"== {script} {' '.join(arguments)}", flush=True)
        failed += (
            subprocess.run([sys.executable, "-m", f"benchmarks.{script}", *arguments], cwd=ROOT, check=False).returncode
            != 0
        )
    return failed


if __name__ == "__main__":
    sys.exit(main())
