"""Bad names and closed files: every command answers with a result or one sentence."""

import os
import tempfile
from pathlib import Path

import pytest
from tests.faults.attacks import closed_files
from tests.faults.attacks.bad_names import LINES, NAMES, find_failures, list_attempts, list_commands

SLOW = ("demo", "tune", "search", "collection train", "collection map")
"""Commands whose attempts take a second each; the whole table has them."""
EVERY = 19
"""One attempt of so many, so that each kind of name comes to every command."""


def test_every_command_is_in_the_table() -> None:
    assert set(LINES) == {name for name, _ in list_commands()}
    assert {attempt.name for attempt in list_attempts()} >= set(NAMES)


def test_bad_names_are_answered_with_a_sentence(tmp_path: Path) -> None:
    attempts, failures = find_failures(tmp_path, EVERY, without=SLOW)
    assert attempts > 90
    assert not failures, failures[:3]


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
def test_closed_files_are_answered_with_a_sentence() -> None:
    commands = ("train", "annotate", "export", "serve")
    with tempfile.TemporaryDirectory() as folder:  # that of pytest is closed to others
        attempts, failures = closed_files.find_failures(Path(folder), commands)
    assert attempts == len(commands) * len(closed_files.KINDS)
    assert not failures, failures[:3]
