"""The program itself: help, version, start-up, Ctrl-C, standard output that fails or cannot show a letter."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import wsabie
from interrupts import heed_ctrl_c
from wsabie.cli.error_messages import explain_error

GOLDEN = Path(__file__).parents[1] / "golden" / "0.1.0" / "estimator"
COMMANDS = ("train", "evaluate", "annotate", "neighbours", "compare", "features", "split", "demo", "info")


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (MemoryError(), "there is not enough memory; use fewer rows"),
        (MemoryError("8 GiB"), "there is not enough memory (8 GiB); use fewer rows"),
    ],
)
def test_memory_errors_are_explained(error: MemoryError, sentence: str) -> None:
    assert explain_error(error).startswith(sentence)


def test_help_lists_every_command(cli: Callable[..., Any]) -> None:
    result = cli("--help")
    assert result.code == 0
    assert all(command in result.out for command in COMMANDS)


@pytest.mark.parametrize(
    "command",
    [
        *("train", "evaluate", "annotate", "features", "edit", "neighbours", "search", "compare", "labels", "serve"),
        *("collection add", "collection search", "collection labels", "collection tag", "collection models"),
    ],
)
def test_help_shows_no_python_types(cli: Callable[..., Any], command: str) -> None:
    result = cli(*command.split(), "--help")
    assert result.code == 0
    assert "<list[" not in result.out


def test_a_removed_current_folder_is_reported(
    cli: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    result = cli("train", "rows.txt", "--model", "m")
    assert (result.code, "Traceback" in result.err, len(result.err.splitlines())) == (1, False, 1), result.err


def test_version(cli: Callable[..., Any]) -> None:
    assert cli("--version").out.strip() == wsabie.__version__


def test_argument_that_looks_like_an_option_gets_advice(cli: Callable[..., Any], tmp_path: Path) -> None:
    result = cli("collection", "search", tmp_path, "-dog cat")
    assert (result.code, "a word that begins with - is given behind --" in result.err) == (2, True)
    result = cli("collection", "search", tmp_path, "--", "-dog cat")
    assert (result.code, "is not a collection yet" in result.err) == (1, True)
    assert "behind --" not in cli("collection", "search", tmp_path, "x", "-k").err
    for word, message in (("-kite", "behind a label: search photos 'bird -kite'"), ("-kite bird", "-- '-kite bird'")):
        result = cli("collection", "search", tmp_path, word)
        assert (result.code, message in " ".join(result.err.split())) == (2, True), result.err
    assert "behind" not in cli("collection", "search", tmp_path, "x", "-k", "ite").err


def test_main_help_imports_no_heavy_module() -> None:
    code = (
        "import sys; sys.argv = ['wsabie', '--help']\n"
        "from wsabie.cli.main import app\n"
        "try: app()\n"
        "except SystemExit: pass\n"
        "print([m for m in ('numba', 'sklearn', 'scipy', 'pyarrow', 'numpy') if m in sys.modules])"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout.strip().splitlines()[-1] == "[]"


def test_ctrl_c_during_imports_leaves_no_traceback() -> None:
    code = """
import sys

class Interrupting:
    def find_spec(self, name, *rest):
        if name == "wsabie.cli.main":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupting())
from wsabie.__main__ import run
run()
"""
    process = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert (process.returncode, process.stdout, process.stderr) == (130, "", "")


def test_ctrl_c_gives_one_sentence(tmp_path: Path) -> None:
    """Interrupted in the middle of training; a traceback or a half model would be a loss."""
    rows = tmp_path / "rows.txt"
    lines = [f"{i % 50} {i % 97}:1 {97 + i % 89}:1" for i in range(20000)]
    rows.write_text("20000 200 50\n" + "\n".join(lines) + "\n")
    words = [sys.executable, "-m", "wsabie", "train", rows, "--model", tmp_path / "m", "--epochs", "100000"]
    words += ["--hold-out", "0"]  # nothing stops it early
    process = subprocess.Popen([*map(str, words)], stderr=subprocess.PIPE, text=True, preexec_fn=heed_ctrl_c)
    try:
        checkpoint = tmp_path / "m.training" / "checkpoint" / "config.json"
        deadline = time.monotonic() + 120
        while not checkpoint.exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130, err
    work_folder = tmp_path / "m.training"
    assert f"stopped; finished epochs are kept in {work_folder}; go on with: wsabie train --resume " in err
    assert "Traceback" not in err
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("command", "words", "message"),
    [
        (
            "data.features._extract_features",
            ("features", "images", "x", "--out", "y"),
            "the same command again goes on from it",
        ),
        (
            "data.features._write_map_rows",
            ("features", "kpca", "x", "--out", "y"),
            "unfinished work of this command is not kept",
        ),
        ("models.compare._compare_rows", ("compare", "x"), "unfinished work of this command is not kept"),
    ],
)
def test_ctrl_c_message_names_finished_work(
    cli: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, command: str, words: tuple[str, ...], message: str
) -> None:
    def stopped(*args: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(f"wsabie.cli.{command}", stopped)
    result = cli(*words)
    assert result.code == 130
    assert message in result.err
    assert "--resume" not in result.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("collection", "scan"), "and the same command again goes on from it"),
        (("collection", "train"), "the model in use stays"),
        (("collection", "map"), "unfinished work of this command is not kept"),
        (("serve",), "what it had acknowledged is kept"),
    ],
)
def test_ctrl_c_message_names_the_state_of_a_collection(
    cli: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    def stopped(folder: Any, **_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("wsabie.collection.folder.collection.open_collection", stopped)
    monkeypatch.setattr("wsabie.collection.folder.collection_file.is_collection", lambda _: True)
    monkeypatch.setattr("wsabie.server.launcher.open_socket", stopped)
    result = cli(*words, tmp_path)
    assert (result.code, message in result.err) == (130, True), result.err


@pytest.mark.parametrize(
    "words", [("train", "", "--model", "q"), ("annotate", "m", ""), ("train", "x", "--model", ""), ("info", "--model=")]
)
def test_empty_argument_is_refused(cli: Callable[..., Any], words: tuple[str, ...]) -> None:
    result = cli(*words)
    assert result.code == 2
    assert result.err.startswith("wsabie: an argument of `wsabie ")
    assert "is empty, perhaps a variable that is not set" in result.err


# ---- standard output


def run_with_stdout(stdout: int, *words: object, **environment: str) -> tuple[int, str]:
    """Exit code and standard error of a program whose results go to a file descriptor."""
    process = subprocess.run(
        [sys.executable, "-m", "wsabie", *map(str, words)],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )
    return process.returncode, process.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", [("info", GOLDEN), ("info", GOLDEN, "--json"), ("--version",)])
def test_failed_write_of_results_gives_one_sentence(words: tuple[object, ...], unbuffered: str) -> None:
    with Path("/dev/full").open("w") as full:
        code, err = run_with_stdout(full.fileno(), *words, PYTHONUNBUFFERED=unbuffered)
    assert code == 1
    message = "cannot write the results: No space left on device; free some space, or send standard output elsewhere"
    assert err == f"wsabie: {message}\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_full_standard_error_stops_no_work(
    cli: Callable[..., Any], rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Path("/dev/full").open("w") as full:
        monkeypatch.setattr(sys, "stderr", full)
        result = cli("train", rows, "--model", tmp_path / "m", "--epochs", 1, "--threads", 1)
    assert (result.code, "3 labels" in result.out) == (0, True)


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", [("info", GOLDEN), ("info", GOLDEN, "--json")])
def test_closed_pipe_is_no_error(words: tuple[object, ...], unbuffered: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        assert run_with_stdout(writer, *words, PYTHONUNBUFFERED=unbuffered) == (1, "")
    finally:
        os.close(writer)


def test_file_error_names_the_file(cli: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*args: Any) -> None:
        raise OSError(28, "No space left on device", "some file")

    monkeypatch.setattr("wsabie.cli.models.info._show_model", fails)
    result = cli("info", "m")
    assert (result.code, result.err) == (
        1,
        "wsabie: cannot write some file: No space left on device; free some space and try again\n",
    )


def test_labels_unprintable_in_the_terminal_are_escaped(
    cli: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "text").write_text("__label__Größe apple pear\n__label__milk milk\n" * 10, encoding="utf-8")
    model = tmp_path / "m"
    command = ("train", tmp_path / "text", "--model", model, "--epochs", 1, "--threads", 1, "--hold-out", 0)
    assert cli(*command).code == 0
    for words, message in (
        (("annotate", model, tmp_path / "text"), "Gr\\xf6\\xdfe"),
        (("neighbours", model, "milk"), "Gr\\xf6\\xdfe"),
        (("neighbours", model, "milk", "--json"), "Gr\\u00f6\\u00dfe"),
    ):
        stream = io.BytesIO()
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", io.TextIOWrapper(stream, encoding="ascii"))
            result = cli(*words)
            text = stream.getvalue().decode()
        assert result.code == 0, result.err
        assert message in text
        if "--json" in words:
            assert json.loads(text)["neighbours"][0][0] == "Größe"
