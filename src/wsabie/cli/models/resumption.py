"""`wsabie train --resume`: unfinished work, the log of epochs, and finished models that are kept."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from os import SEEK_END
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from wsabie.cli.framework import JsonObject
from wsabie.cli.inputs import load_annotator, load_space, make_label_table
from wsabie.cli.output import InterruptExit, print_note
from wsabie.core.errors import InputError, WsabieError, require
from wsabie.core.json_conversion import to_json_value
from wsabie.storage.atomic_files import WriteError, explain_write_errors, lock_folder
from wsabie.storage.rejects import Rejects

if TYPE_CHECKING:
    from wsabie.io.records import FeatureTable, Source
    from wsabie.io.shards.sharded_table import ShardedFeatureTable
    from wsabie.io.space_declaration import KindDeclaration
    from wsabie.models.base.label_model import LabelModel
    from wsabie.models.entity_space.space import Space
    from wsabie.training.epoch_stats import EpochStats
    from wsabie.workflows.model_training import TrainingOutcome, TrainingRecipe
    from wsabie.workflows.spaces.space_training import SpaceRecipe

_IGNORED_PARAMETERS = ("threads", "init_model", "init_labels", "vectors", "knowledge")
"""Parameters that may differ, or that models do not store."""


def load_trained_model(
    recipe: "TrainingRecipe", source: "Source | ShardedFeatureTable"
) -> "tuple[TrainingRecipe, TrainingOutcome]":
    """Return the recipe with the finished model of these data and parameters, and its facts.

    Raises
    ------
    InputError
        The folder holds another model.
    """
    from wsabie.io.fingerprints import compute_fingerprint_or_none
    from wsabie.io.shards.sharded_table import ShardedFeatureTable
    from wsabie.workflows.model_training import TrainingOutcome

    annotator = load_annotator(recipe.model)
    data = source.shards.fingerprint if isinstance(source, ShardedFeatureTable) else compute_fingerprint_or_none(source)
    facts = annotator.facts
    if facts.get("system") != recipe.system:
        refuse_other_model(recipe.model, "kind")
    if data is None:
        _refuse_unreadable(recipe.model)
    if data not in (facts.get("fingerprint"), facts.get("source_fingerprint")):
        refuse_other_model(recipe.model, "data")
    refuse_other_parameters(recipe.model, annotator.model, recipe.estimator)
    _report_trained_model(recipe.model)
    return replace(recipe, estimator=annotator.model), TrainingOutcome(facts, getattr(annotator.model, "history_", []))


def load_trained_space(recipe: "SpaceRecipe", rejects: Rejects) -> "tuple[SpaceRecipe, TrainingOutcome]":
    """Return the recipe with the finished space of these data, pairs and parameters, and its facts.

    Raises
    ------
    InputError
        The folder holds another model, or the data cannot be read.
    """
    import numpy as np

    from wsabie.io.fingerprints import compute_fingerprint_or_none
    from wsabie.io.space_declaration import compute_declaration_fingerprint
    from wsabie.workflows.model_training import TrainingOutcome
    from wsabie.workflows.spaces.declared_data import collect_declared_data, select_relations

    model, declared = recipe.model, select_relations(recipe.declared, recipe.only)
    finished = load_space(model)
    if finished is None:
        refuse_other_model(model, "kind")
    facts = finished.facts
    digest, fingerprints = compute_declaration_fingerprint(declared), dict[str, str | None]()
    if sorted(facts["pairs"]) != sorted(relation.name for relation in declared.relations):
        refuse_other_model(model, "relations")
    if facts.get("declaration", digest) != digest:
        refuse_other_model(model, "kinds or relations in its declaration")

    def read_known_rows(kind: "KindDeclaration", source: "Source") -> "FeatureTable":
        """Return the rows of items whose features could be extracted."""
        fingerprints[kind.name] = compute_fingerprint_or_none(source)
        rows, item_names = make_label_table(source), set(finished.space.entity_names(kind.name))
        return rows.take(np.flatnonzero([name in item_names for name in rows.ids]))

    data = collect_declared_data(declared, read_known_rows, rejects)
    if None in fingerprints.values():
        _refuse_unreadable(model)
    if fingerprints != facts["fingerprints"]:
        refuse_other_model(model, "data")
    if any(data.pair_fingerprints[name] != value for name, value in facts["pair_fingerprints"].items()):
        refuse_other_model(model, "pairs")
    refuse_other_parameters(model, finished.space, recipe.space)
    _report_trained_model(model)
    return replace(recipe, space=finished.space), TrainingOutcome(facts, finished.space.history_)


def _report_trained_model(model: Path) -> None:
    """Report that there is nothing left to do."""
    print_note(f"{model} is finished and stays as it is; leave --resume out to train it again")


def refuse_other_parameters(model: Path, finished: "LabelModel | Space", requested: "LabelModel | Space") -> None:
    """Refuse a finished model that has other parameters than the command line asks for."""
    old, new = _serialize_parameters(finished), _serialize_parameters(requested)
    different = sorted(name for name in old.keys() & new.keys() if old[name] != new[name])
    if different:
        refuse_other_model(model, ", ".join(different))


def refuse_other_model(model: Path, difference: str) -> NoReturn:
    """Raise the refusal of a model that another command made."""
    fact = f"{model} is a finished model with other {difference}, and no training of it is unfinished"
    raise InputError(f"{fact}; leave --resume out to replace it, or name another folder")


def _refuse_unreadable(model: Path) -> NoReturn:
    """Raise the refusal of data with an unreadable item, which cannot be compared."""
    raise InputError(f"{model} is a finished model, perhaps of other data; leave --resume out to train it again")


def _serialize_parameters(model: "LabelModel | Space") -> JsonObject:
    """Return the comparable parameters of a model as JSON values."""
    values = {name: value for name, value in model.get_params(deep=False).items() if not hasattr(value, "get_params")}
    comparable = {name: value for name, value in values.items() if name not in _IGNORED_PARAMETERS}
    return JsonObject(json.loads(json.dumps(to_json_value(comparable), default=str)))


@contextmanager
def report_resumable_work(work: Path, resume: bool) -> Iterator[None]:
    """Report the work that is kept in the folder `work` if training ends early."""
    try:
        yield
    except WriteError as error:
        command = "the same command again with --resume"
        sentence = str(error).replace("the same command again", command)
        sentence = sentence.replace("choose a folder that you may write to", f"make that possible and run {command}")
        raise WriteError(sentence) from error
    except KeyboardInterrupt:
        raise InterruptExit(_format_unfinished_work(work)) from None
    except WsabieError:
        if (unfinished := _format_unfinished_work(work)) and not resume:  # a resumed run has told the user already
            print_note(f"{unfinished}; --resume goes on from that")
        raise
    finally:
        with suppress(OSError):
            work.rmdir()  # if it is empty


def _format_unfinished_work(work: Path) -> str:
    """Return a sentence on the unfinished work in a folder; "" if there is none."""
    from wsabie.storage.model_folder import is_model_folder

    if is_model_folder(work / "checkpoint") or any(work.glob("checkpoint/*/config.json")):
        return f"finished epochs are kept in {work}"
    if (work / "features.parquet").exists():
        return f"the features of all items are kept in {work}"
    return f"the features extracted so far are kept in {work}" if any(work.glob("*")) else ""


def refuse_discard(model: Path, work: Path, *, resume: bool, restart: bool) -> bool:
    """Refuse to discard unfinished work; return True if the model is finished and `resume` has no work."""

    from wsabie.storage.model_folder import is_model_folder

    with lock_folder(work):
        pass  # raises while another process trains this model
    has_work, has_model = (path.is_dir() and any(path.iterdir()) for path in (work, model))
    if resume and restart:
        raise InputError("--resume goes on from unfinished training and --restart removes it; leave one of them out")
    remedy = "give --resume to go on from it, or --restart to start over"
    require(not has_work or resume or restart, f"{work} holds unfinished training; {remedy}")
    if is_model_folder(model) and resume and not has_work:
        return True
    if has_model:
        print_note(f"{model} holds a model; it is replaced when training is done")
    if resume and not has_work:
        print_note(f"there is no unfinished training at {work}; this run starts from the beginning")
    return False


def open_epoch_log(log: Path | None, resume: bool) -> "Callable[[EpochStats], None] | None":
    """Open a log that gets one flushed JSON line per epoch, for watching a run; None without a path.

    A resumed run repeats the epochs after the last checkpoint; identical epochs get no second line. With lock-free
    threads, here or on a cluster, epochs differ, and their lines follow those of the first run.
    """
    if log is None:
        return None
    logged = _read_logged_epochs(log) if resume else set()
    with explain_write_errors(log):
        log.parent.mkdir(parents=True, exist_ok=True)

    def write(stats: "EpochStats") -> None:
        if (stats.epoch, stats.loss) not in logged:
            with explain_write_errors(log), log.open("a", encoding="utf-8") as lines:
                lines.write(("\n" if _is_cut_off(log) else "") + json.dumps(stats.as_dict()) + "\n")

    return write


def _is_cut_off(log: Path) -> bool:
    """Return True if the last line is incomplete after a full disk or a killed process."""
    with log.open("rb") as lines:
        size = lines.seek(0, SEEK_END)
        lines.seek(max(size - 1, 0))
        return lines.read() not in (b"", b"\n")


def _read_logged_epochs(log: Path) -> set[tuple[object, object]]:
    """Read the epoch and the loss of every complete line."""
    epochs = set()
    with explain_write_errors(log):
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else []
    for line in lines:
        with suppress(ValueError, AttributeError):
            stats = json.loads(line)
            epochs.add((stats.get("epoch"), stats.get("loss")))
    return epochs
