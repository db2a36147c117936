"""Ctrl-C in child processes of tests."""

import signal


def heed_ctrl_c() -> None:
    """Let a child end by Ctrl-C, which a shell's background jobs, and what they start, ignore."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
