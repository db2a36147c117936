"""Training state on disk: after a kill at any moment, the last finished epoch that was saved is whole."""

import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wsabie.base.errors import InputError, ModelFolderError
from wsabie.space.protocol import Trainable
from wsabie.storage.folder import Parts, folder_kind, load_folder, refuse_foreign, save_folder
from wsabie.storage.schema import Count, check_array, check_schema
from wsabie.training.stats import EpochStats

KIND = "checkpoint"


@dataclass(frozen=True)
class Progressed:
    """How far training has come."""

    epoch: int  # epochs finished
    history: list[EpochStats]
    best_figure: float | None
    best: Trainable | None


@dataclass(frozen=True)
class CheckpointConfig:
    """The config of a folder of a checkpoint."""

    identity: dict[str, Any]
    epoch: Count
    history: list[EpochStats]
    best_figure: float | None


class Checkpoints:
    """A folder that holds the newest checkpoint.

    Parameters
    ----------
    path : Path
        Written atomically; never holds a half checkpoint.
    identity : dict
        What must agree to go on: parameters, shapes, fingerprint of the data ("data"). JSON-able.
    resume : bool
        Go on from what lies there; otherwise it is overwritten.
    every : float
        A save is followed by another after so many times its own duration at the earliest: with 10 saving takes a
        tenth of the time at most, and a kill costs the unfinished epoch and what was done in the time of ten saves.
    """

    def __init__(
        self, path: str | Path, identity: dict[str, Any], *, resume: bool = False, every: float = 10.0
    ) -> None:
        self.path = Path(path)
        self.identity = identity
        self.resume = resume
        self.every = every
        self._due = -math.inf

    def save(self, space: Trainable, state: Progressed) -> None:
        """Save, unless the last save was too short a while ago for what it took."""
        started = time.monotonic()
        if started < self._due:
            return
        tensors = space.arrays()
        if state.best is not None:
            tensors |= {f"best/{name}": array for name, array in state.best.arrays().items()}
        config = {
            "identity": self.identity,
            "epoch": state.epoch,
            "history": [stats.as_dict() for stats in state.history],
            "best_figure": state.best_figure,
        }
        save_folder(self.path, Parts(KIND, config, tensors))
        saved = time.monotonic()
        self._due = saved + self.every * (saved - started)

    def restore(self, space: Trainable) -> Progressed | None:
        """Load the newest checkpoint into `space`; None when there is none or `resume` is off.

        Raises
        ------
        InputError
            The checkpoint belongs to other data or other parameters, or the folder holds something else.
        ModelFolderError
            The checkpoint is damaged, or the folder is not one of ours.
        """
        refuse_foreign(self.path)
        if not self._is_there() or not self.resume:
            return None
        parts = load_folder(self.path)
        again = "restore it from a copy, or begin anew (--anew)"
        known = check_schema(CheckpointConfig, parts.config, self.path, again, ModelFolderError)
        theirs = known.identity
        different = sorted(k for k in {*theirs, *self.identity} if theirs.get(k) != self.identity.get(k))
        if "data" in different:  # shapes and automatic parameters follow from the data
            different = [name for name in different if name in ("data", "seed")]
        if different:
            raise InputError(
                f"the checkpoint at {self.path} was made with other {', '.join(different)}; "
                "use the same settings and data, or begin anew (--anew)"
            )
        best = None
        try:
            if known.epoch != len(known.history):
                raise ValueError(f"epoch is {known.epoch}, and the history has {len(known.history)}")
            filled = _arrays_for(space, parts.tensors, "")
            if f"best/{next(iter(space.arrays()))}" in parts.tensors:
                best = space.copy()
                _fill(best, _arrays_for(best, parts.tensors, "best/"))
        except (LookupError, ValueError) as error:
            raise ModelFolderError(f"the checkpoint at {self.path} is damaged ({error}); {again}") from error
        _fill(space, filled)
        return Progressed(known.epoch, known.history, known.best_figure, best)

    def _is_there(self) -> bool:
        """Whether a checkpoint lies in the folder; a model there is refused, it must not be overwritten."""
        try:
            kind = folder_kind(self.path)
        except ModelFolderError:
            if self.resume:
                raise
            return False
        if kind not in (None, KIND):
            raise InputError(
                f"{self.path} holds a model of kind {kind}, not a checkpoint; give checkpoints a folder of their own"
            )
        return kind == KIND


def _arrays_for(space: Trainable, tensors: dict[str, Any], prefix: str) -> dict[str, Any]:
    """The arrays of a space out of a folder, each of its own type and shape."""
    own = space.arrays().items()
    return {name: check_array(tensors, prefix + name, array.dtype.name, array.shape) for name, array in own}


def _fill(space: Trainable, arrays: dict[str, Any]) -> None:
    for name, array in space.arrays().items():
        array[:] = arrays[name]
