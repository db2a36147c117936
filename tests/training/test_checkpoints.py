"""Interrupted and resumed = never interrupted, to the last bit; and a checkpoint is never taken for another's."""

import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from runs import figure, make_block, make_settings, make_space, train
from wsabie.core.errors import InputError, ModelFolderError
from wsabie.storage.model_folder import ModelState, open_model_folder, save_model_folder
from wsabie.training import checkpoints
from wsabie.training.checkpoints import CheckpointFolder, TrainingProgress

BLOCK = make_block()
TESTS = str(Path(__file__).parents[1])


class Clock:
    """Stands for the module `time`."""

    now = 1000.0

    def monotonic(self) -> float:
        return self.now


class StopError(Exception):
    """Stands for whatever ends a run from outside."""


def stop_after(epochs: int) -> Any:
    def on_epoch(stats: Any) -> None:
        if stats.epoch == epochs:  # the epochs before it have been saved
            raise StopError

    return on_epoch


@pytest.mark.parametrize("deterministic", [True, False])
@pytest.mark.parametrize("monitor", [None, figure, lambda space: -figure(space)])  # the best epoch: last, or first
@pytest.mark.parametrize("stop", [1, 4])
def test_resumed_is_uninterrupted(tmp_path: Path, deterministic: bool, monitor: Any, stop: int) -> None:
    settings = make_settings(deterministic=deterministic)
    uninterrupted, expected = train(BLOCK, make_space(), settings, monitor=monitor)
    first = CheckpointFolder(tmp_path / "c", {"seed": 1}, every=0)
    with pytest.raises(StopError):
        train(BLOCK, make_space(), settings, monitor=monitor, checkpoints=first, on_epoch=stop_after(stop))
    second = CheckpointFolder(tmp_path / "c", {"seed": 1}, every=0, resume=True)
    epochs: list[int] = []
    history, space = train(
        BLOCK,
        make_space("dot"),
        settings,
        monitor=monitor,
        checkpoints=second,
        on_epoch=lambda stats: epochs.append(stats.epoch),
    )
    assert epochs == list(range(stop, 6))
    for name in ("features", "labels", "bias"):
        assert np.array_equal(getattr(space, name), getattr(expected, name))
    figures = [[(s.epoch, s.loss, s.validation, s.validation_metrics) for s in run] for run in (history, uninterrupted)]
    assert figures[0] == figures[1]


def test_resuming_a_finished_run_changes_nothing(tmp_path: Path) -> None:
    settings = make_settings(epochs=2)
    _, expected = train(BLOCK, make_space(), settings, checkpoints=CheckpointFolder(tmp_path / "c", {}, every=0))
    again = CheckpointFolder(tmp_path / "c", {}, every=0, resume=True)
    history, space = train(BLOCK, make_space(), settings, checkpoints=again)
    assert len(history) == 2
    assert np.array_equal(space.features, expected.features)


def test_without_resume_the_old_checkpoint_is_overwritten(tmp_path: Path) -> None:
    settings = make_settings(epochs=2)
    for seed in (1, 2):
        train(BLOCK, make_space(), settings, checkpoints=CheckpointFolder(tmp_path / "c", {"seed": seed}, every=0))
    assert open_model_folder(tmp_path / "c").config["identity"] == {"seed": 2}


@pytest.mark.parametrize(
    ("epoch_seconds", "save_seconds", "saved"),
    [(20.0, 1.0, range(1, 9)), (3.0, 1.0, [1, 5]), (1.0, 100.0, [1]), (0.0, 0.0, range(1, 9))],
)
def test_saving_takes_a_tenth_of_the_time_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, epoch_seconds: float, save_seconds: float, saved: Sequence[int]
) -> None:
    """Small models, whose saves are short beside an epoch, lose no finished epoch; the first is always saved."""
    clock, epochs = Clock(), []

    def save(path: Path, state: ModelState) -> None:
        clock.now += save_seconds
        epochs.append(state.config["epoch"])

    monkeypatch.setattr(checkpoints, "time", clock)
    monkeypatch.setattr(checkpoints.model_folder, "save_model_folder", save)
    keeper, space = CheckpointFolder(tmp_path / "c", {}), make_space()
    for epoch in range(1, 9):
        clock.now += epoch_seconds
        keeper.save(space, TrainingProgress(epoch, [], None, None))
    assert epochs == list(saved)


def test_other_data_or_settings_are_refused_by_name(tmp_path: Path) -> None:
    """Automatic settings of other data differ too; nobody chose them, so the message leaves them out."""
    old = CheckpointFolder(tmp_path / "c", {"data": "a", "seed": 1, "margin": 1.0}, every=0)
    train(BLOCK, make_space(), make_settings(epochs=1), checkpoints=old)
    for identity, part in (
        ({"data": "a", "seed": 1, "dim": 3}, "dim, margin"),
        ({"data": "b", "seed": 1, "dim": 3}, "data"),
        ({"data": "b", "seed": 2, "dim": 3}, "data, seed"),
    ):
        new = CheckpointFolder(tmp_path / "c", identity, resume=True)
        with pytest.raises(InputError, match=rf"with other {part}; use the same .*`restart`"):
            train(BLOCK, make_space(), make_settings(), checkpoints=new)


@pytest.mark.parametrize("resume", [True, False])
def test_a_model_is_never_overwritten(tmp_path: Path, resume: bool) -> None:
    """Somebody gives the model's own folder for the checkpoints."""
    save_model_folder(tmp_path / "m", ModelState("wsabie", {"a": 1}, {}))
    folder = CheckpointFolder(tmp_path / "m", {}, every=0, resume=resume)
    with pytest.raises(InputError, match="holds a model of kind wsabie, not a checkpoint"):
        train(BLOCK, make_space(), make_settings(), checkpoints=folder)
    assert open_model_folder(tmp_path / "m").config == {"a": 1}


@pytest.mark.parametrize("resume", [True, False])
def test_a_foreign_folder_is_refused_before_training(tmp_path: Path, resume: bool) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    folder = CheckpointFolder(tmp_path, {}, every=0, resume=resume)
    with pytest.raises(ModelFolderError, match="holds other files"):
        train(BLOCK, make_space(), make_settings(), checkpoints=folder)
    assert (tmp_path / "thesis.txt").read_text() == "mine"


def test_a_damaged_checkpoint_is_not_silently_started_over(tmp_path: Path) -> None:
    train(BLOCK, make_space(), make_settings(epochs=1), checkpoints=CheckpointFolder(tmp_path / "c", {}, every=0))
    config = tmp_path / "c" / "config.json"
    config.write_text(config.read_text().replace('"epoch": 1', '"epoch": 0'))
    with pytest.raises(ModelFolderError, match="does not agree with its checksum"):
        train(BLOCK, make_space(), make_settings(), checkpoints=CheckpointFolder(tmp_path / "c", {}, resume=True))
    train(BLOCK, make_space(), make_settings(epochs=1), checkpoints=CheckpointFolder(tmp_path / "c", {}, every=0))
    assert open_model_folder(tmp_path / "c").config["epoch"] == 1


# ---- kill -9

VICTIM = """
import sys, time, json
sys.path.insert(0, sys.argv[1])
from runs import figure, make_block, make_settings, make_space, train
from wsabie.training.checkpoints import CheckpointFolder
def on_epoch(stats):
    print(stats.epoch, flush=True)
    time.sleep(0.02)
checkpoints = CheckpointFolder(sys.argv[2], {"run": 1}, resume=True, every=0)
train(make_block(), make_space(), make_settings(epochs=40), monitor=figure, checkpoints=checkpoints, on_epoch=on_epoch)
"""


def start(folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", VICTIM, TESTS, str(folder)], stdout=subprocess.PIPE, text=True)


def test_killed_three_times_and_resumed_is_never_killed(tmp_path: Path) -> None:
    """kill -9 at a random moment after some epochs, which may be in the middle of a save."""
    rng, folder, first_epochs = random.Random(5), tmp_path / "c", []  # noqa: S311
    for _ in range(3):
        with start(folder) as victim:
            assert victim.stdout is not None
            first_epochs.append(int(victim.stdout.readline()))
            for _ in range(rng.randrange(3, 7)):
                victim.stdout.readline()
            time.sleep(rng.random() * 0.05)
            victim.send_signal(signal.SIGKILL)
        assert victim.returncode == -signal.SIGKILL
    assert first_epochs[0] == 0 < first_epochs[1] < first_epochs[2]
    with start(folder) as survivor:
        out, _ = survivor.communicate(timeout=120)
    assert survivor.returncode == 0
    assert out.split()[-1] == "39"
    assert int(out.split()[0]) > first_epochs[2]
    history, expected = train(make_block(), make_space(), make_settings(epochs=40), monitor=figure)
    state = open_model_folder(folder)
    best = "best/" if "best/features" in state.tensors else ""
    assert np.array_equal(state.tensors[f"{best}features"], expected.features)
    assert np.array_equal(state.tensors[f"{best}labels"], expected.labels)
    validation = [stats["validation"] for stats in state.config["history"]]
    assert validation == [s.validation for s in history]
    assert json.dumps(state.config["best_figure"]) == json.dumps(max(validation))
    assert not list(folder.rglob("*.tmp"))
