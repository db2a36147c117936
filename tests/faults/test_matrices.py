"""No sparse matrix whose arrays lie brings the process down, at any public door."""

import json
import subprocess
import sys
from pathlib import Path


def test_hostile_matrices_are_refused_at_every_door() -> None:
    """In a process of its own: a segmentation fault would end this one."""
    script = Path(__file__).with_name("matrices.py")
    done = subprocess.run([sys.executable, script, "7", "2"], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["odd"] == {}
    assert found["refused"] > found["tried"] / 2
