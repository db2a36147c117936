"""The commands where the model is a space of many kinds of things: train FILE.toml, evaluate, annotate, neighbours."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from wsabie.base.errors import InputError
from wsabie.base.validation import require
from wsabie.faces.cli.common import executor, listing, opened, tell_unknown_features
from wsabie.faces.cli.epochs import show_epochs
from wsabie.faces.cli.evaluating import SHOWN
from wsabie.faces.cli.finished_model import refuse_other_model, refuse_other_space, tell_finished
from wsabie.faces.cli.hierarchies import kinds_in
from wsabie.faces.cli.terminal import TerminalProgress, note, one_line, out, plural, show_json, show_table
from wsabie.faces.cli.training import logging_to, refuse_unasked, resumable
from wsabie.labels.names import unknown_label
from wsabie.sources.declaration import ENDING, read_declaration
from wsabie.storage.outputs import refuse_unwritable
from wsabie.storage.rejects import Rejects
from wsabie.storage.scratch import refuse_strangers

if TYPE_CHECKING:
    from wsabie.models.space_annotator import SpaceAnnotator

KS = (1, 3, 5, 10)


def is_declaration(path: Path) -> bool:
    """Whether DATA says which kinds and relations there are."""
    return path.suffix.lower() == ENDING


def space_in(path: Path, threads: int | None = None) -> "SpaceAnnotator | None":
    """The space in a model folder; None where another kind of model lies there."""
    from wsabie.models.space import Space
    from wsabie.models.space_annotator import KIND, SpaceAnnotator
    from wsabie.storage.folder import folder_kind

    kind = folder_kind(path)
    if kind not in (KIND, Space.kind):
        return None
    found = SpaceAnnotator.load(path) if kind == KIND else SpaceAnnotator(Space.load(path))
    found.space.threads = threads
    return found


def refuse_of_space(model: Path, given: dict[str, Any]) -> None:
    """Refuse options that ask things of a space where the model is none."""
    from wsabie.storage.folder import require_model

    for flag in given:
        require_model(model)
        raise InputError(f"{model} is no space of several kinds of things, which --{flag} is for; leave it out")


def train_space_command(
    data: Path,
    model: Path,
    parameters: dict[str, Any],
    *,
    hold_out: float,
    only: Sequence[str],
    stop_on: str,
    resume: bool,
    anew: bool,
    log: Path | None,
    rejects_file: Path | None,
    strict: bool,
    json: bool,
) -> None:
    """Read the declaration, train, save, tell."""
    from wsabie.models.space import Space
    from wsabie.storage.folder import refuse_foreign
    from wsabie.studies.relating import KEPT, SpaceRecipe, train_space, with_parameters

    declared = read_declaration(data)
    space = with_parameters(Space(), declared, parameters)
    recipe = SpaceRecipe(declared, model, space, hold_out, tuple(only), stop_on, resume)
    space.check_parameters()
    refuse_foreign(model)
    refuse_strangers(recipe.work, KEPT)
    inputs = [kind.data for kind in declared.kinds.values()] + [one.pairs for one in declared.relations]
    refuse_unwritable(("rejects", rejects_file), ("log", log), inputs=(data, *inputs, model, recipe.work), folder=model)
    finished = refuse_unasked(model, recipe.work, resume=resume, anew=anew)
    with resumable(recipe.work, resume), listing(rejects_file, strict=strict) as rejects:
        if finished:
            _tell_finished(recipe, rejects, json)
            return
        trained = train_space(
            recipe,
            executor=executor(space.threads),
            progress=TerminalProgress(),
            rejects=rejects,
            on_epoch=logging_to(log, resume),
        )
    _tell_trained(recipe, trained, json)


def _tell_finished(recipe: Any, rejects: Rejects, json: bool) -> None:
    """Keep the finished space of this declaration."""
    from wsabie.studies.relating import TrainedSpace

    made = space_in(recipe.model)
    if made is None:
        refuse_other_model(recipe.model, "kind")
    refuse_other_space(recipe, made, rejects)
    tell_finished(recipe.model)
    _tell_trained(replace(recipe, space=made.space), TrainedSpace(made.facts, made.space.history_), json)


def _tell_trained(recipe: Any, trained: Any, json: bool) -> None:
    from wsabie.storage.folder import folder_bytes

    facts, n_bytes = recipe.space.facts(), folder_bytes(recipe.model)
    if json:
        history = [stats.as_dict() for stats in trained.history]
        show_json(
            {"schema": 1, "model": str(recipe.model), "bytes": n_bytes, **facts, **trained.facts, "history": history}
        )
        return
    held, figures = trained.facts["held_out_pairs"], facts["validation"]
    show_table(
        f"{recipe.model}: {plural(facts['epochs'], 'epoch')}, {n_bytes / 1e6:.1f} MB",
        ["relation", "pairs", "held out", "MAP of these"],
        [
            [name, f"{pairs:,}", f"{held.get(name, 0):,}", f"{figures[name]:.3f}" if name in figures else ""]
            for name, pairs in trained.facts["pairs"].items()
        ],
    )
    out.print("things: " + ", ".join(f"{name} {n:,}" for name, n in facts["kinds"].items()))
    first = recipe.space.relations_[0][1]
    what = "NEW_DATA" if recipe.space.known(first).n_features else f"the name of a thing of the kind {first!r}"
    note(f"next: wsabie annotate {quote(str(recipe.model))} with {what}, or wsabie neighbours with a name")


def evaluate_space_command(
    annotator: "SpaceAnnotator",
    model: Path,
    data: Path,
    allow_overlap: bool,
    threads: int | None,
    strict: bool,
    rejects_file: Path | None,
    json: bool,
    hierarchy: Sequence[Path] | None = None,
    parent_first: bool = False,
) -> None:
    """Figures of every relation with bootstrap intervals."""
    from wsabie.evaluation.bootstrap import bootstrap_all
    from wsabie.studies.relating import evaluate_space

    require(
        is_declaration(data),
        f"{model} is a space of several kinds of things; give a file such as that of its training, with the test data, "
        f"that ends with {ENDING}",
    )
    refuse_unwritable(("rejects", rejects_file), inputs=(data, model))
    kinds = kinds_in(hierarchy, parent_first)
    with listing(rejects_file, strict=strict) as rejects:
        found = evaluate_space(
            annotator, read_declaration(data), KS, hierarchy=kinds, allow_overlap=allow_overlap,
            executor=executor(threads), progress=TerminalProgress(), rejects=rejects,
        )  # fmt: skip
    relations = {}
    for name, evaluation in found.items():
        measured = {metric: evaluation.per_row[metric] for metric in SHOWN if metric in evaluation.per_row}
        intervals = bootstrap_all(measured)
        bounds = {metric: [i.low, i.high] for metric, i in intervals.items()}
        relations[name] = {**evaluation.as_dict(), "intervals": bounds}
        if not json:
            lines = [[metric, f"{i.mean:.4f}", f"{i.low:.4f} to {i.high:.4f}"] for metric, i in intervals.items()]
            title = f"{name}: {plural(evaluation.n_rows, 'query', 'queries')}, {evaluation.n_labels:,} candidates"
            show_table(title, ["metric", "value", "95 % interval"], lines)
    if json:
        show_json({"schema": 1, "model": str(model), "relations": relations})


def annotate_space_command(
    annotator: "SpaceAnnotator",
    model: Path,
    inputs: Sequence[Path],
    texts: Sequence[str],
    k: int,
    relation: str | None,
    threads: int | None,
    strict: bool,
    rejects_file: Path | None,
    json: bool,
) -> None:
    """The best things of a relation's second kind, for new data or known things of its first."""
    query, target = _ends(annotator, relation)
    known, terms, progress = annotator.space.known(query), annotator.terms.get(query), TerminalProgress()
    refuse_unwritable(("rejects", rejects_file), inputs=(*inputs, model))
    results: list[dict[str, Any]] = []

    def add(ids: Sequence[str], things: Any) -> None:
        ranked = annotator.space.annotate(query, target, things, k)
        results.extend(
            {"id": i, target: [[name, round(score, 6)] for name, score in top]}
            for i, top in zip(ids, ranked, strict=True)
        )

    with listing(rejects_file, strict=strict) as rejects:
        for path in inputs:
            if known.n_features and path.exists():
                source = opened(path, rejects, "none", known.n_features, None if terms is None else terms.things)
                aligned = annotator.rows(query, source, executor=executor(threads), progress=progress, rejects=rejects)
                tell_unknown_features(aligned, path)
                add(aligned.rows.ids, aligned.rows.X)
            else:
                add([str(path)], known.ids([str(path)]))
        for text in texts:
            add([text], annotator.text(query, text))
    require(bool(inputs or texts), f"nothing was given; name things of the kind {query!r}, or data of them")
    require(bool(results), f"nothing of what was given could be used; give things of the kind {query!r}")
    if json:
        show_json({"schema": 1, "model": str(model), "query": query, "target": target, "results": results})
        return
    for result in results:
        shown = "  ".join(f"{one_line(name)} {score:.2f}" for name, score in result[target])
        sys.stdout.write(f"{one_line(result['id'])}\t{shown}\n")  # as it is: `out` would turn the tab into blanks


def _ends(annotator: "SpaceAnnotator", relation: str | None) -> tuple[str, str]:
    """The kinds of a relation: the first that was learned, one by name, or any two as "query:target"."""
    known = {name: (query, target) for name, query, target in annotator.space.relations_}
    if relation is None:
        return next(iter(known.values()))
    if relation in known:
        return known[relation]
    query, colon, target = relation.partition(":")
    if not colon:
        raise InputError(
            f"there is no relation {relation!r}; choose of {', '.join(known)}, or two kinds as query:target"
        )
    annotator.space.known(query)
    annotator.space.known(target)
    return query, target


def neighbours_space_command(
    annotator: "SpaceAnnotator", thing: str, kind: str | None, k: int, json: bool, words: bool = False
) -> None:
    """The things nearest to a thing of their kind, or the words nearest to a word."""
    space = annotator.space
    if words:
        name = kind or next(iter(annotator.terms), next(iter(space.kinds_)))
        _show_near("word", thing, annotator.words_near(name, thing, k), json)
        return
    holders = [name for name, known in space.kinds_.items() if thing in known.things]
    if kind is None and len(holders) > 1:
        raise InputError(f"{thing!r} is a thing of the kinds {', '.join(holders)}; choose one by --of")
    if kind is None and not holders:
        raise InputError(
            unknown_label(thing, [one for known in space.kinds_.values() for one in known.things], "thing")
        )
    name = kind or holders[0]
    _show_near(name, thing, space.similar(name, thing, k), json)


def _show_near(kind: str, thing: str, near: list[tuple[str, float]], json: bool) -> None:
    if json:
        listed = [[other, round(cosine, 6)] for other, cosine in near]
        show_json({"schema": 1, "kind": kind, "label": thing, "neighbours": listed})
        return
    show_table(f"nearest to {thing}", [kind, "cosine"], [[other, f"{cosine:.3f}"] for other, cosine in near])


def info_space_command(annotator: "SpaceAnnotator", model: Path, epochs: bool, json: bool) -> None:
    """Print what a space is."""
    from wsabie.storage.folder import folder_bytes

    space = annotator.space
    described = {f"describe_{name}": terms.name for name, terms in annotator.terms.items()}
    facts: dict[str, Any] = {**space.facts(), "bytes": folder_bytes(model), **described, **annotator.facts}
    if not json:
        facts = {name: value for name, value in facts.items() if name not in ("fingerprints", "pair_marks")}
    if json:
        more: dict[str, Any] = {"parameters": space.to_parts().config["parameters"], "settings": space.settings_}
        if epochs:
            more["history"] = [stats.as_dict() for stats in space.history_]
        show_json({"schema": 1, "model": str(model), **facts, **more})
        return
    lines = []
    for name, value in facts.items():
        if isinstance(value, dict):
            value = ", ".join(f"{key} {_shown(v)}" for key, v in value.items())
        elif isinstance(value, list):
            value = ", ".join(value)
        lines.append([name.replace("_", " "), f"{value:,}" if isinstance(value, int) else str(value)])
    show_table(str(model), ["", ""], lines)
    if epochs:
        show_epochs(space.history_)


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
