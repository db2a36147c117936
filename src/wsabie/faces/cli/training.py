"""`wsabie train`."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from os import SEEK_END
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from wsabie.base.errors import InputError, WsabieError
from wsabie.faces.cli.common import (
    couples_in,
    executor,
    has_regions,
    listing,
    opened,
    refuse_without_effect,
    tell_unknown,
    trained_on,
    width_of,
)
from wsabie.faces.cli.epochs import epochs_run
from wsabie.faces.cli.finished_model import load_finished
from wsabie.faces.cli.meanings import meaning_parameters
from wsabie.faces.cli.settings_file import read_parameters
from wsabie.faces.cli.terminal import NOTHING_KEPT, Stopped, TerminalProgress, note, out, plural, resume_line, show_json
from wsabie.sources.records import Source
from wsabie.sources.sharded import ShardedRows, open_shards
from wsabie.storage.atomic import UnwritableError, explained, held
from wsabie.storage.folder import is_model_folder
from wsabie.storage.outputs import refuse_unwritable
from wsabie.storage.rejects import Rejects
from wsabie.storage.scratch import refuse_strangers
from wsabie.storage.shards import is_shard_folder
from wsabie.training.stats import EpochStats

if TYPE_CHECKING:
    from wsabie.distributed.averaging_rounds import Round
    from wsabie.models.base import LabelModel
    from wsabie.studies.training import Recipe


@dataclass
class Crowd:
    """The nodes of a cluster that trained: how many came, how many were lost, how often tables came together."""

    came: int = 0
    lost: int = 0
    rounds: int = 0

    def told(self, one: "Round") -> None:
        """One more round."""
        self.came, self.lost, self.rounds = one.came, one.lost, self.rounds + 1


@dataclass(frozen=True)
class Asked:
    """What the command line asks for.

    Attributes
    ----------
    recipe : Recipe
        How the model is made.
    """

    data: Path
    valid: Path | None
    recipe: "Recipe"
    log: Path | None
    rejects: Path | None
    strict: bool
    json: bool
    items: str | None = None
    whole: str | None = None
    ray: str | None = None
    nodes: int | None = None
    anew: bool = False


def estimator_of(
    kind: str, parameters: dict[str, Any], run: dict[str, Any], n: int | None, by: str | None
) -> "LabelModel":
    """The model that is asked for, not yet fitted: one, or an ensemble of n; `run` has seed and threads."""
    from wsabie.models.ensemble import Ensemble
    from wsabie.models.systems import build, system_of

    base: Any = build(kind, parameters, **run)
    if n is not None and system_of(kind).needs:
        raise InputError(f"{kind} makes no ensembles; leave --ensemble out, or choose another kind")
    if parameters.get("replay") is not None and (n is not None or base.kind != "wsabie"):
        what = "an ensemble" if n is not None else f"a model of kind {kind}"
        raise InputError(f"{what} cannot go on, so that it has nothing to keep rows for; leave replay out")
    if n is None:
        if by is not None:
            raise InputError(f"--ensemble-by {by} says how models differ; say how many by --ensemble N")
        return base  # type: ignore[no-any-return]
    own = {name: getattr(base, name, None) for name in ("threads", "seed")}
    return Ensemble(base, n=n, by=by or "seed", **own)  # type: ignore[arg-type]


def relations_of(kind: str, given: str | None, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The related labels that a model of objects and parts is told of: a FILE, or RELATION=FILE."""
    if kind != "parts":
        if given is not None:
            raise InputError(f"--relations tells of related labels, and {kind} has none; choose --kind parts")
        return {}
    if given is None and not parameters.get("relations"):
        raise InputError("--kind parts learns from related labels; give --relations FILE, object TAB part a line")
    if given is None:
        return {}
    relation, equals, file = given.partition("=")
    if not equals or Path(given).is_file():  # the name of a file may have the sign too
        return {"relations": couples_in(Path(given))}
    if not relation or not file:
        raise InputError(f"--relations {given!r} is neither FILE nor RELATION=FILE, such as is-a=kinds.tsv")
    couples = couples_in(Path(file))
    if relation == "part-of":  # part TAB whole, as --pairs has it
        return {"relations": [(whole, part) for part, whole in couples], "relation": "has-part"}
    return {"relations": couples, "relation": relation}


def refuse_without_epochs(kind: str, options: dict[str, Any]) -> None:
    """Refuse options about epochs where a kind has none."""
    from wsabie.models.systems import system_of

    for flag, value in options.items():
        if value and not system_of(kind).trained:
            raise InputError(f"--{flag} is about epochs, and {kind} has none; leave --{flag} out")


def refuse_held_out_twice(valid: Path | None, hold_out: float | None, metric: str | None) -> None:
    """Refuse two sets of rows that choose the epoch, and a figure of rows where none are set aside."""
    if metric is not None and hold_out == 0 and valid is None:
        raise InputError("--metric chooses the epoch by rows that are set aside; give --valid DATA or more --hold-out")
    if valid is not None and hold_out:
        raise InputError("--hold-out sets training rows aside and --valid gives others; leave one of them out")


def parameters_given(
    kind: str,
    config: Path | None,
    shape: dict[str, Any],
    run: dict[str, Any],
    meant: dict[str, Any],
    relations: str | None,
) -> dict[str, Any]:
    """Parameters of the estimator: what options say (`shape`, `run`) goes before what a file says.

    `meant` has what is known of what labels mean: `vectors`, `knowledge` and `labels`.
    """
    of_file = {} if config is None else read_parameters(config, kind)
    of_file = {name: value for name, value in of_file.items() if name not in run}
    found = meaning_parameters(kind, dim=shape.get("dim"), **meant) | of_file
    return found | relations_of(kind, relations, found) | shape


def train_command(asked: Asked) -> None:
    """Open, train, save, tell."""
    from wsabie.studies.training import train

    finished = _refuse_early(asked)
    _tell_order_statistic(asked.recipe.estimator)
    progress, recipe, crowd = TerminalProgress(), asked.recipe, Crowd()
    with resumable(recipe.work, recipe.resume), listing(asked.rejects, strict=asked.strict) as rejects:
        source, valid = _opened(asked, rejects)
        if finished:
            made = load_finished(recipe, source)
            asked = replace(asked, recipe=replace(recipe, estimator=made.model))
            _tell(asked, made.facts, getattr(made.model, "history_", []), crowd)
            return
        trained = train(
            source,
            valid,
            recipe,
            executor=executor(recipe.threads, asked.ray, asked.data, asked.valid),
            progress=progress,
            rejects=rejects,
            on_epoch=logging_to(asked.log, recipe.resume),
            trainer=_on_ray(asked, source, crowd),
        )
    if trained.validation is not None:
        tell_unknown(trained.validation, asked.valid)
    if valid is not None and trained_on(valid, trained.facts):
        note(f"{asked.valid} is the training data itself, so that the epoch was chosen by what is known by heart")
    if recipe.hold_out and valid is None and not trained.facts["validation_rows"]:
        note("no row that was set aside has a label that other rows have, so that the last epoch was kept")
    _tell(asked, trained.facts, trained.history, crowd)
    if not asked.json:
        on = "parts" if recipe.system == "parts" and getattr(source, "things", None) == "pictures" else "annotate"
        note(f"next: wsabie {on} {quote(str(recipe.model))} {'PICTURE' if on == 'parts' else 'NEW_DATA'}")


@contextmanager
def resumable(work: Path, resume: bool) -> Iterator[None]:
    """However training ends before its end, it is said what of it is kept in the folder `work`."""
    try:
        yield
    except UnwritableError as error:
        again = "the same command again with --resume"
        sentence = str(error).replace("the same command again", again)
        sentence = sentence.replace("choose a folder that you may write to", f"make that possible and run {again}")
        raise UnwritableError(sentence) from error
    except KeyboardInterrupt:
        kept = kept_in(work)
        raise Stopped(
            f"stopped; {kept} kept in {work}; go on with: {resume_line()}" if kept else NOTHING_KEPT
        ) from None
    except WsabieError:
        if (kept := kept_in(work)) and not resume:  # who went on from that knows of it
            note(f"{kept} kept in {work}; --resume goes on from that")
        raise
    finally:
        with suppress(OSError):
            work.rmdir()  # if it is empty


def kept_in(work: Path) -> str:
    """What of unfinished training lies in a folder, and a verb; "" where it is nothing."""
    if is_model_folder(work / "checkpoint") or any(work.glob("checkpoint/*/config.json")):
        return "finished epochs are"
    if (work / "features.parquet").exists():
        return "the description of the items is"
    return "what is described already is" if any(work.glob("*")) else ""


def _refuse_early(asked: Asked) -> bool:
    """Everything that can be known to fail at the end fails before work begins; whether the model is finished."""
    from wsabie.storage.folder import refuse_foreign
    from wsabie.studies.training import KEPT, refuse_metric

    model, work = asked.recipe.model, asked.recipe.work
    asked.recipe.estimator.check_parameters()
    refuse_metric(asked.recipe)
    refuse_foreign(model)
    refuse_strangers(work, KEPT)
    for path in (asked.data, asked.valid):
        if path is not None and work.resolve() in path.resolve().parents:
            raise InputError(f"{path} lies in {work}, which is emptied at the end; move it or name another model")
    refuse_unwritable(
        ("rejects", asked.rejects),
        ("log", asked.log),
        inputs=(asked.data, asked.valid, model, work),
        folder=model,
    )
    return refuse_unasked(model, work, resume=asked.recipe.resume, anew=asked.anew)


def refuse_unasked(model: Path, work: Path, *, resume: bool, anew: bool) -> bool:
    """Refuse to throw unfinished work away unasked; whether there is a model and nothing to go on from."""
    with held(work):
        pass  # refused while somebody else trains this model
    unfinished, made = (path.is_dir() and any(path.iterdir()) for path in (work, model))
    if resume and anew:
        raise InputError("--resume goes on from unfinished training and --anew removes it; leave one of them out")
    if unfinished and not (resume or anew):
        raise InputError(f"{work} holds unfinished training; give --resume to go on from it, or --anew to begin anew")
    if is_model_folder(model) and resume and not unfinished:
        return True
    if made:
        note(f"{model} holds a model; it is replaced when training is done")
    if resume and not unfinished:
        note(f"there is no unfinished training at {work}; this one begins at the beginning")
    return False


def _tell_order_statistic(estimator: "LabelModel") -> None:
    """Which of several positives "k-os" ranks, of a model or its parts."""
    from wsabie.training.losses import ORDER_STATISTIC

    parameters = estimator.get_params()
    losses = [name for name, value in parameters.items() if name.endswith("loss") and value == "k-os"]
    for given in dict.fromkeys(str(parameters[f"{name[:-4]}order_statistic"] or "") for name in losses):
        used = given or f"{list(ORDER_STATISTIC)} (the k-th highest of n; --config FILE takes another)"
        note(f"loss k-os ranks one of several positives: order_statistic = {used}")


def _opened(asked: Asked, rejects: Rejects) -> tuple[Source | ShardedRows, Source | None]:
    """The data and the validation data, of one kind."""
    if is_shard_folder(asked.data) and getattr(asked.recipe.estimator, "reads_shards", False):
        return _opened_shards(asked, rejects)
    source = _with_wholes(asked.whole, asked.data, opened(asked.data, rejects, items=asked.items))
    refuse_without_effect(source, asked.data, asked.recipe.description)
    if asked.valid is None:
        return source, None
    valid = opened(asked.valid, rejects, n_features=width_of(source), usual=asked.items)
    return source, _with_wholes(asked.whole, asked.valid, valid)


def _opened_shards(asked: Asked, rejects: Rejects) -> tuple[ShardedRows, Source | None]:
    rows = open_shards(asked.data)
    refuse_without_effect(rows, asked.data, asked.recipe.description)
    if asked.items or asked.whole:
        raise InputError("--items and --whole say what of marked pictures counts, and shards hold rows; leave them out")
    return rows, None if asked.valid is None else opened(asked.valid, rejects, n_features=rows.n_features)


def _with_wholes(whole: str | None, path: Path, source: Source) -> Source:
    """The whole pictures of marked ones too, under the label that is asked for."""
    from wsabie.sources.region_parts import with_pictures

    if whole is None:
        return source
    if not has_regions(source):
        raise InputError(
            f"--whole labels the pictures that regions are in, and {path} has no regions; leave --whole out"
        )
    return with_pictures(source, whole)


def _tell(asked: Asked, facts: dict[str, Any], history: list[EpochStats], crowd: Crowd) -> None:
    from wsabie.storage.folder import folder_bytes

    about = asked.recipe.estimator.facts()
    best = about.get("validation_map")
    n_bytes = folder_bytes(asked.recipe.model)
    if asked.json:
        summary = {"schema": 1, "model": str(asked.recipe.model), "bytes": n_bytes, "epochs": len(history)}
        summary |= {"models": about["models"]} if "models" in about else {}
        summary |= {"nodes": {"came": crowd.came, "lost": crowd.lost}} if crowd.rounds else {}
        show_json({**summary, "validation_map": best, **facts, "history": [stats.as_dict() for stats in history]})
        return
    kept = epochs_run(history, about)
    if "blend" in about:
        kept = f"{kept}, blend {about['blend']:.3g}"
    elif about.get("kept_epoch") is not None:
        kept = f"epoch {about['kept_epoch']} of {len(history)}"
    kept += "" if best is None else f", validation MAP {best:.3f}"
    dropped = facts["labels_dropped"]
    few = f" ({dropped:,} with fewer than {asked.recipe.min_rows} rows left out)" if dropped else ""
    labels, rows = plural(facts["labels"], "label"), plural(facts["rows"], "row")
    bare = facts["rows_without_labels"]
    rows += f" ({bare:,} without a label)" if bare else ""
    out.print(
        f"{asked.recipe.model}: {labels}{few} from {rows}, {kept + ', ' if history else ''}{n_bytes / 1e6:.1f} MB"
    )
    if crowd.rounds:
        lost = f", {crowd.lost} of them lost" if crowd.lost else ""
        note(f"{plural(crowd.came, 'node')} took part{lost}; their tables came together {plural(crowd.rounds, 'time')}")
    _tell_unused(asked.recipe.estimator)


def _on_ray(asked: Asked, source: Source | ShardedRows, crowd: Crowd) -> Callable[..., Any] | None:
    """What trains on a cluster, where one is named and the rows are in shards; None: this process does."""
    from wsabie.distributed.averaging import averaging

    if asked.ray is None:
        return None
    if not isinstance(source, ShardedRows):
        shards = "models of this kind, and ensembles, are trained on this machine; the cluster describes items alone"
        others = "rows in shards are trained on the cluster, and these on this machine; see wsabie shards --help"
        note(shards if is_shard_folder(asked.data) else others)
        return None
    return averaging(asked.ray, asked.nodes, crowd.told)


def _tell_unused(model: Any) -> None:
    """Say which related labels nothing could be learned of, and which one may be misspelt."""
    from wsabie.labels.names import unknown_label

    unused = model.unused() if hasattr(model, "unused") else []
    if unused:
        one, other = unused[0]
        note(f"{plural(len(unused), 'relation')} left out for want of two pictures, such as {one} and {other}")
        known = model.vocabulary_
        if missing := next((name for pair in unused for name in pair if name not in known), None):
            note(unknown_label(missing, list(known)))


def logging_to(log: Path | None, resume: bool) -> Callable[[EpochStats], None] | None:
    """Writes one JSON object per epoch, flushed, so that a run can be watched and a stopped one keeps its lines.

    A resumed run makes the epochs after the last checkpoint again: those that come out as before get no second line.
    With lock-free threads, here or on many machines, none does, and their lines follow those of the first time.
    """
    if log is None:
        return None
    there = _logged(log) if resume else set()
    with explained(log):
        log.parent.mkdir(parents=True, exist_ok=True)

    def write(stats: EpochStats) -> None:
        if (stats.epoch, stats.loss) not in there:
            with explained(log), log.open("a", encoding="utf-8") as lines:
                lines.write(("\n" if _is_cut_off(log) else "") + json.dumps(stats.as_dict()) + "\n")

    return write


def _is_cut_off(log: Path) -> bool:
    """Whether the last line has no end: the disk was full, or the program was killed."""
    with log.open("rb") as lines:
        size = lines.seek(0, SEEK_END)
        lines.seek(max(size - 1, 0))
        return lines.read() not in (b"", b"\n")


def _logged(log: Path) -> set[tuple[Any, Any]]:
    """Epoch and loss of every line; of one that was cut off nothing."""
    found = set()
    with explained(log):
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else []
    for line in lines:
        with suppress(ValueError, AttributeError):
            stats = json.loads(line)
            found.add((stats.get("epoch"), stats.get("loss")))
    return found
