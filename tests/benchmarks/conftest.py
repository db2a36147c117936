"""The benchmarks are no part of the package; their folder is found from here."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))
