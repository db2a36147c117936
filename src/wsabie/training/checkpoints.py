"""Training state on disk; after a kill at any moment, the last saved epoch is intact."""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from wsabie.core.arrays import Array
from wsabie.core.errors import InputError, ModelFolderError
from wsabie.core.json_conversion import JsonObject, to_json_value
from wsabie.embedding.protocols import TrainableTables
from wsabie.storage import model_folder
from wsabie.storage.schema_validation import Count, check_array, check_schema
from wsabie.training.epoch_stats import EpochStats
from wsabie.training.resolved_settings import TrainingSettings

KIND = "checkpoint"


@dataclass(frozen=True)
class TrainingProgress:
    """Progress of training after a number of epochs."""

    epoch: int  # finished epochs
    history: list[EpochStats]
    best_figure: float | None
    best: TrainableTables | None


@dataclass(frozen=True)
class CheckpointConfig:
    """Config of a checkpoint folder."""

    identity: JsonObject
    epoch: Count
    history: list[EpochStats]
    best_figure: float | None


def identify_run(settings: TrainingSettings, parameters: Mapping[str, object], data: Sequence[object]) -> JsonObject:
    """Return the values that must equal a checkpoint's to resume from it; threads may differ."""
    identity: JsonObject = to_json_value({**asdict(settings), **parameters, "data": data})
    del identity["threads"]
    return identity


class CheckpointFolder:
    """Folder that holds the newest checkpoint.

    Parameters
    ----------
    path : Path
        Written atomically; it never holds a partial checkpoint.
    identity : dict
        Facts that must agree to resume: parameters, shapes, fingerprint of the data ("data"). JSON-able.
    resume : bool
        Resume from the checkpoint in the folder; otherwise overwrite it.
    every : float
        Minimum pause after a save, in multiples of its duration. With 10 saving takes a tenth of the time at most, and
        a kill costs the unfinished epoch and the epochs within the time of ten saves.
    """

    def __init__(self, path: str | Path, identity: JsonObject, *, resume: bool = False, every: float = 10.0) -> None:
        self.path = Path(path)
        self.identity = identity
        self.resume = resume
        self.every = every
        self._due = -math.inf

    def save(self, space: TrainableTables, state: TrainingProgress) -> None:
        """Save unless the pause after the last save is not over."""
        started = time.monotonic()
        if started < self._due:
            return
        tensors = space.list_arrays()
        if state.best is not None:
            tensors |= {f"best/{name}": array for name, array in state.best.list_arrays().items()}
        config = CheckpointConfig(self.identity, state.epoch, state.history, state.best_figure)
        model_folder.save_model_folder(self.path, model_folder.ModelState(KIND, asdict(config), tensors))
        saved = time.monotonic()
        self._due = saved + self.every * (saved - started)

    def restore(self, space: TrainableTables) -> TrainingProgress | None:
        """Load the newest checkpoint into `space`; return None if there is none or `resume` is off.

        Raises
        ------
        InputError
            The checkpoint belongs to other data or parameters, or the folder holds something else.
        ModelFolderError
            The checkpoint is damaged, or the folder was not written by this package.
        """
        model_folder.refuse_foreign_files(self.path)
        if not self._has_checkpoint() or not self.resume:
            return None
        state = model_folder.open_model_folder(self.path)
        advice = "restore it from a copy, or start over (`restart`)"
        config = check_schema(CheckpointConfig, state.config, self.path, advice, ModelFolderError)
        identity = config.identity
        different = sorted(k for k in {*identity, *self.identity} if identity.get(k) != self.identity.get(k))
        if "data" in different:  # shapes and automatic parameters follow from the data
            different = [name for name in different if name in ("data", "seed")]
        if different:
            fact = f"the checkpoint at {self.path} was made with other {', '.join(different)}"
            raise InputError(f"{fact}; use the same settings and data, or start over (`restart`)")
        best = None
        try:
            if config.epoch != len(config.history):
                raise ValueError(f"epoch is {config.epoch}, and the history has {len(config.history)}")
            _fill_space(space, state.tensors, "")
            if f"best/{next(iter(space.list_arrays()))}" in state.tensors:
                best = space.copy()
                _fill_space(best, state.tensors, "best/")
        except (LookupError, ValueError) as error:
            raise ModelFolderError(f"the checkpoint at {self.path} is damaged ({error}); {advice}") from error
        return TrainingProgress(config.epoch, config.history, config.best_figure, best)

    def _has_checkpoint(self) -> bool:
        """Return whether the folder holds a checkpoint; refuse a model, which must not be overwritten."""
        try:
            kind = model_folder.read_folder_kind(self.path)
        except ModelFolderError:
            if self.resume:
                raise
            return False
        if kind not in (None, KIND):
            fact = f"{self.path} holds a model of kind {kind}, not a checkpoint"
            raise InputError(f"{fact}; give checkpoints a folder of their own")
        return kind == KIND


def _fill_space(space: TrainableTables, tensors: dict[str, Array], prefix: str) -> None:
    """Copy the arrays of a space from a folder, and check their types and shapes."""
    for name, array in space.list_arrays().items():
        array[:] = check_array(tensors, prefix + name, array.dtype.name, array.shape)
