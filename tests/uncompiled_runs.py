"""Runs of a script with and without the compiler, whose outputs a test compares."""

import os
import subprocess
import sys


def run_with_and_without_compiler(script: str) -> list[str]:
    """Return what a script prints, compiled and uncompiled."""
    command, flags = [sys.executable, "-c", script], ({"NUMBA_DISABLE_JIT": off} for off in "01")
    return [subprocess.check_output(command, env=os.environ | flag, text=True) for flag in flags]
