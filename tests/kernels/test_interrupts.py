"""Ctrl-C while something is compiled waits until the compiler is done."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from numba.core.compiler_lock import global_compiler_lock

from interrupts import heed_ctrl_c
from wsabie.kernels import compiler


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Let SIGINT raise KeyboardInterrupt, also where a shell's background job ignores it."""
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, handler)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_comes_when_the_compiler_is_done() -> None:
    assert compiler.numba is not None  # its import has numba told
    handler, steps = signal.getsignal(signal.SIGINT), []

    def compiles() -> None:
        with global_compiler_lock:
            with global_compiler_lock:  # compilers call each other
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0.05)
                steps.append("inner")
            steps.append("outer")

    with pytest.raises(KeyboardInterrupt):
        compiles()
    assert steps == ["inner", "outer"]
    assert signal.getsignal(signal.SIGINT) is handler


def test_other_threads_compile_without_a_word() -> None:
    handler, handlers = signal.getsignal(signal.SIGINT), []

    def compiles() -> None:
        with global_compiler_lock:
            handlers.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=compiles)
    thread.start()
    thread.join()
    assert handlers == [handler]


@pytest.mark.parametrize("seconds", [0.0, 0.8])
def test_a_command_that_compiles_is_stopped(tmp_path: Path, seconds: float) -> None:
    """Whenever Ctrl-C comes, while text is read by a kernel without code: exit code 130, one sentence, no model."""
    rows = tmp_path / "rows.txt"
    rows.write_text("".join(f"{i % 40} {i % 97}:1 {97 + i % 89}:1\n" for i in range(3000)))
    words = [sys.executable, "-m", "wsabie", "train", rows, "--model", tmp_path / "m", "--epochs", "100000"]
    process = subprocess.Popen(
        [*map(str, words), "--hold-out", "0"],
        stderr=subprocess.PIPE,
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")},
        preexec_fn=heed_ctrl_c,
    )
    try:
        output = b""
        while b"reading" not in output:
            output += os.read(process.stderr.fileno(), 1 << 16)  # type: ignore[union-attr]
        time.sleep(seconds)
        process.send_signal(signal.SIGINT)
        err = process.communicate(timeout=120)[1].decode()
    finally:
        process.kill()
    assert (process.returncode, "Traceback" in err, "wsabie: stopped" in err) == (130, False, True), err
    assert not (tmp_path / "m").exists()


def test_an_interrupt_inside_exec_keeps_the_exit_code(tmp_path: Path) -> None:
    """CPython would end by the signal, although the exception was caught."""
    (tmp_path / "interruption.py").write_text("""
import sys
from wsabie import __main__
from wsabie.cli import main

def interrupt():
    try:
        exec("raise KeyboardInterrupt")
    except KeyboardInterrupt:
        sys.exit(130)

main.run = interrupt
__main__.run()
""")
    command = [sys.executable, "-m", "interruption"]
    assert subprocess.run(command, cwd=tmp_path, check=False).returncode == 130
