"""The program itself: help, version, start-up, Ctrl-C."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import wsabie

COMMANDS = ("train", "evaluate", "annotate", "neighbours", "compare", "features", "split", "demo", "info")


def test_help_lists_every_command(cli: Callable[..., Any]) -> None:
    said = cli("--help")
    assert said.code == 0
    assert all(command in said.out for command in COMMANDS)


def test_version(cli: Callable[..., Any]) -> None:
    assert cli("--version").out.strip() == wsabie.__version__


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys; sys.argv = ['wsabie', '--help']\n"
        "from wsabie.faces.cli.main import app\n"
        "try: app()\n"
        "except SystemExit: pass\n"
        "print([m for m in ('numba', 'sklearn', 'scipy', 'pyarrow', 'numpy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip().splitlines()[-1] == "[]"


def heed_ctrl_c() -> None:
    """In the child: a shell's background jobs, and what they start, are made to ignore Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_ctrl_c_stops_with_one_sentence(tmp_path: Path) -> None:
    """Interrupted in the middle of training; a traceback or a half model would be a loss."""
    rows = tmp_path / "rows.txt"
    lines = [f"{i % 50} {i % 97}:1 {97 + i % 89}:1" for i in range(20000)]
    rows.write_text("20000 200 50\n" + "\n".join(lines) + "\n")
    words = [sys.executable, "-m", "wsabie", "train", rows, "--model", tmp_path / "m", "--epochs", "100000"]
    words += ["--hold-out", "0"]  # nothing stops it early
    process = subprocess.Popen([*map(str, words)], stderr=subprocess.PIPE, text=True, preexec_fn=heed_ctrl_c)
    try:
        checkpoint = tmp_path / "m.training"
        deadline = time.monotonic() + 120
        while not checkpoint.exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130, err
    assert "stopped" in err
    assert "Traceback" not in err
    assert not (tmp_path / "m").exists()
