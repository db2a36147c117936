"""Threads of kernels survive interrupts at any moment."""

import subprocess
import sys

STORM = """
import random, signal
from wsabie.training.kernel_threads import KernelThreads

signal.signal(signal.SIGALRM, signal.default_int_handler)
for _ in range(1500):
    try:
        with KernelThreads(2) as threads:
            signal.setitimer(signal.ITIMER_REAL, random.uniform(0.0002, 0.0007))
            while True:
                threads.run_each(lambda t: None)
    except KeyboardInterrupt:
        pass
"""


def test_an_interrupt_at_any_moment_ends_the_threads() -> None:
    """A pool of `concurrent.futures` fails here: of a few hundred interrupts one leaves a lock behind."""
    process = subprocess.run([sys.executable, "-c", STORM], capture_output=True, text=True, timeout=120)
    assert process.returncode == 0, process.stderr
