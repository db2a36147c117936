"""Names that no file can have: every command answers each argument and option that takes text with one sentence."""

from pathlib import Path

from tests.faults.bad_names import LINES, NAMES, find_failures, list_attempts, list_commands

SLOW = ("demo", "tune", "search", "collection train", "collection map")
"""Commands whose attempts take a second each; the whole table has them."""
EVERY = 11
"""One attempt of so many, so that each kind of name comes to every command."""


def test_every_command_is_in_the_table() -> None:
    assert set(LINES) == {name for name, _ in list_commands()}
    assert {attempt.name for attempt in list_attempts()} >= set(NAMES)


def test_bad_names_are_answered_with_a_sentence(tmp_path: Path) -> None:
    attempts, failures = find_failures(tmp_path, EVERY, without=SLOW)
    assert attempts > 150
    assert not failures, failures[:3]
