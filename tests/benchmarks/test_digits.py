"""Training and test data of the digits benchmark, without sounds."""

from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from benchmarks.digits import Digits, Part, against, reciprocal_rank

SPEAKERS = ("george", "theo", "lucas")


class Unheard(Digits):
    """A row holds the number of its recording alone."""

    def extract_parts(
        self, train: np.ndarray, test: np.ndarray, called: str, seed: int
    ) -> dict[str, tuple[Part, Part]]:
        def part(rows: np.ndarray) -> Part:
            return Part(csr_matrix(rows[:, None]), {kind: names[rows] for kind, names in self.labels.items()})

        return {"numbers": (part(train), part(test))}


@pytest.fixture
def digits(tmp_path: Path) -> Unheard:
    (tmp_path / "recordings").mkdir()
    for name in (f"{d}_{s}_{take}.wav" for d in range(2) for s in SPEAKERS for take in range(12)):
        (tmp_path / "recordings" / name).touch()
    speakers = {speaker: {"gender": "male", "accent": "USA/neutral", "language": "English"} for speaker in SPEAKERS}
    (tmp_path / "metadata.py").write_text(f"metadata = {speakers}")
    return Unheard(tmp_path, None)


def numbers(X: csr_matrix) -> set[int]:
    return set(X.toarray().ravel().tolist())


def test_takes_of_known_speakers_are_drawn_apart_from_the_test(digits: Unheard) -> None:
    task = digits.build_known_speaker_tasks(5, 1)["numbers"]
    assert numbers(task.test.X) == set(np.flatnonzero(digits.test).tolist())
    assert not numbers(task.train.X) & numbers(task.test.X)
    cells = digits.cells()[task.train.X.toarray().ravel()]
    assert np.bincount(cells).tolist() == [5] * 6
    assert np.bincount(cells[task.valid]).tolist() == [1] * 6, "a fifth of every digit and speaker"
    assert numbers(digits.build_known_speaker_tasks(5, 2)["numbers"].train.X) != numbers(task.train.X)


def test_a_new_speaker_is_heard_by_nobody_and_validation_is_another(digits: Unheard) -> None:
    task = digits.new("theo", 0)["numbers"]
    assert set(task.test.labels["speaker"]) == {"theo"}
    assert len(task.test.labels["speaker"]) == 24
    assert set(task.train.labels["speaker"]) == {"george", "lucas"}
    assert set(task.train.labels["speaker"][task.valid]) == {"george"}
    assert (task.valid.size, task.train.X.shape[0]) == (14, 28)


def test_level_is_within_a_standard_error() -> None:
    assert against(np.array([0.5, 0.7]), np.array([0.6, 0.6])).startswith("level")
    assert against(np.array([0.7, 0.8]), np.array([0.6, 0.6])).startswith("above (+0.1500 se 0.0500")
    assert against(np.array([0.6, 0.6]), np.array([0.7, 0.8])).startswith("BELOW")


def test_reciprocal_rank() -> None:
    ranked = np.array([["a", "b"], ["a", "b"]])
    assert reciprocal_rank(ranked, np.array(["a", "b"])) == (1 + 1 / 2) / 2
