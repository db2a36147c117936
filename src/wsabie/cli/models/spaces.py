"""Commands for a space of several kinds of items: train, evaluate, annotate, neighbours, info."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from wsabie.cli.inputs.command_inputs import collect_rejects, make_executor, open_data, report_unknown_features
from wsabie.cli.inputs.hierarchies import read_hierarchies
from wsabie.cli.models.evaluate import SHOWN_METRICS
from wsabie.cli.models.resumption import refuse_other_model, refuse_other_space, report_trained_model
from wsabie.cli.models.train import open_epoch_log, refuse_discard, report_resumable_work
from wsabie.cli.terminal.epoch_tables import show_epochs
from wsabie.cli.terminal.output import (
    TerminalProgress,
    escape_line,
    format_count,
    out,
    print_note,
    show_json,
    show_table,
)
from wsabie.core.errors import InputError
from wsabie.core.validation import require
from wsabie.io.space_declaration import ENDING, read_declaration
from wsabie.storage.output_checks import check_output_paths
from wsabie.storage.rejects import Rejects
from wsabie.storage.scratch_folders import refuse_unknown_files
from wsabie.vocabulary.label_names import format_unknown_label

if TYPE_CHECKING:
    from wsabie.models.annotators.space_annotator import SpaceAnnotator

KS = (1, 3, 5, 10)


def is_declaration(path: Path) -> bool:
    """Return True if DATA is a declaration of kinds and relations."""
    return path.suffix.lower() == ENDING


def load_space(path: Path, threads: int | None = None) -> "SpaceAnnotator | None":
    """Load the space of a model folder; None if it holds another kind of model."""
    from wsabie.models.annotators.space_annotator import KIND, SpaceAnnotator
    from wsabie.models.entity_space.space import Space
    from wsabie.storage.model_folder import read_folder_kind

    kind = read_folder_kind(path)
    if kind not in (KIND, Space.kind):
        return None
    annotator = SpaceAnnotator.load(path) if kind == KIND else SpaceAnnotator(Space.load(path))
    annotator.space.threads = threads
    return annotator


def refuse_space_options(model: Path, options: dict[str, Any]) -> None:
    """Refuse options of spaces for other models."""
    from wsabie.storage.model_folder import require_model_folder

    for flag in options:
        require_model_folder(model)
        raise InputError(f"{model} is no space of several kinds of things, which --{flag} is for; leave it out")


def run_train_space(
    data: Path,
    model: Path,
    parameters: dict[str, Any],
    *,
    hold_out: float,
    only: Sequence[str],
    stop_on: str,
    resume: bool,
    restart: bool,
    log: Path | None,
    rejects_file: Path | None,
    strict: bool,
    json: bool,
) -> None:
    """Train a space by a declaration, save it, and report the result."""
    from wsabie.models.entity_space.space import Space
    from wsabie.storage.model_folder import refuse_foreign_files
    from wsabie.workflows.spaces.space_training import KEPT, SpaceRecipe, apply_parameters, train_space

    declaration = read_declaration(data)
    space = apply_parameters(Space(), declaration, parameters)
    recipe = SpaceRecipe(declaration, model, space, hold_out, tuple(only), stop_on, resume)
    space.check_parameters()
    refuse_foreign_files(model)
    refuse_unknown_files(recipe.work, KEPT)
    inputs = [kind.data for kind in declaration.kinds.values()] + [relation.pairs for relation in declaration.relations]
    check_output_paths(
        ("rejects", rejects_file), ("log", log), inputs=(data, *inputs, model, recipe.work), folder=model
    )
    finished = refuse_discard(model, recipe.work, resume=resume, restart=restart)
    with report_resumable_work(recipe.work, resume), collect_rejects(rejects_file, strict=strict) as rejects:
        if finished:
            _report_finished(recipe, rejects, json)
            return
        result = train_space(
            recipe,
            executor=make_executor(space.threads),
            progress=TerminalProgress(),
            rejects=rejects,
            on_epoch=open_epoch_log(log, resume),
        )
    _report_training(recipe, result, json)


def _report_finished(recipe: Any, rejects: Rejects, json: bool) -> None:
    """Keep the finished space of this declaration, and report it."""
    from wsabie.workflows.spaces.space_training import TrainedSpace

    annotator = load_space(recipe.model)
    if annotator is None:
        refuse_other_model(recipe.model, "kind")
    refuse_other_space(recipe, annotator, rejects)
    report_trained_model(recipe.model)
    _report_training(
        replace(recipe, space=annotator.space), TrainedSpace(annotator.facts, annotator.space.history_), json
    )


def _report_training(recipe: Any, result: Any, json: bool) -> None:
    from wsabie.storage.model_folder import measure_folder_bytes

    facts, n_bytes = recipe.space.facts(), measure_folder_bytes(recipe.model)
    if json:
        history = [stats.as_dict() for stats in result.history]
        show_json(
            {"schema": 1, "model": str(recipe.model), "bytes": n_bytes, **facts, **result.facts, "history": history}
        )
        return
    held_out, figures = result.facts["held_out_pairs"], facts["validation"]
    show_table(
        f"{recipe.model}: {format_count(facts['epochs'], 'epoch')}, {n_bytes / 1e6:.1f} MB",
        ["relation", "pairs", "held out", "MAP of these"],
        [
            [name, f"{pairs:,}", f"{held_out.get(name, 0):,}", f"{figures[name]:.3f}" if name in figures else ""]
            for name, pairs in result.facts["pairs"].items()
        ],
    )
    out.print("things: " + ", ".join(f"{name} {n:,}" for name, n in facts["kinds"].items()))
    first = recipe.space.relations_[0][1]
    query = "NEW_DATA" if recipe.space.known(first).n_features else f"the name of a thing of the kind {first!r}"
    print_note(f"next: wsabie annotate {quote(str(recipe.model))} with {query}, or wsabie neighbours with a name")


def run_evaluate_space(
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
    """Evaluate every relation, with bootstrap intervals."""
    from wsabie.evaluation.bootstrap import bootstrap_all
    from wsabie.workflows.spaces.space_training import evaluate_space

    require(
        is_declaration(data),
        f"{model} is a space of several kinds of things; give a file such as that of its training, with the test data, "
        f"that ends with {ENDING}",
    )
    check_output_paths(("rejects", rejects_file), inputs=(data, model))
    tree = read_hierarchies(hierarchy, parent_first)
    with collect_rejects(rejects_file, strict=strict) as rejects:
        evaluations = evaluate_space(
            annotator, read_declaration(data), KS, hierarchy=tree, allow_overlap=allow_overlap,
            executor=make_executor(threads), progress=TerminalProgress(), rejects=rejects,
        )  # fmt: skip
    relations = {}
    for name, evaluation in evaluations.items():
        per_row = {metric: evaluation.per_row[metric] for metric in SHOWN_METRICS if metric in evaluation.per_row}
        intervals = bootstrap_all(per_row)
        bounds = {metric: [i.low, i.high] for metric, i in intervals.items()}
        relations[name] = {**evaluation.as_dict(), "intervals": bounds}
        if not json:
            lines = [[metric, f"{i.mean:.4f}", f"{i.low:.4f} to {i.high:.4f}"] for metric, i in intervals.items()]
            title = f"{name}: {format_count(evaluation.n_rows, 'query', 'queries')}, {evaluation.n_labels:,} candidates"
            show_table(title, ["metric", "value", "95 % interval"], lines)
    if json:
        show_json({"schema": 1, "model": str(model), "relations": relations})


def run_annotate_space(
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
    """Rank items of a relation's second kind for new data or known items of its first kind."""
    query, target = _resolve_relation(annotator, relation)
    query_kind, extractor, progress = annotator.space.known(query), annotator.terms.get(query), TerminalProgress()
    check_output_paths(("rejects", rejects_file), inputs=(*inputs, model))
    results: list[dict[str, Any]] = []

    def add(ids: Sequence[str], items: Any) -> None:
        rankings = annotator.space.annotate(query, target, items, k)
        results.extend(
            {"id": item_id, target: [[name, round(score, 6)] for name, score in ranking]}
            for item_id, ranking in zip(ids, rankings, strict=True)
        )

    with collect_rejects(rejects_file, strict=strict) as rejects:
        for path in inputs:
            if query_kind.n_features and path.exists():
                source = open_data(
                    path, rejects, "none", query_kind.n_features, None if extractor is None else extractor.things
                )
                aligned = annotator.rows(
                    query, source, executor=make_executor(threads), progress=progress, rejects=rejects
                )
                report_unknown_features(aligned, path)
                add(aligned.rows.ids, aligned.rows.X)
            else:
                add([str(path)], query_kind.ids([str(path)]))
        for text in texts:
            add([text], annotator.text(query, text))
    require(bool(inputs or texts), f"nothing was given; name things of the kind {query!r}, or data of them")
    require(bool(results), f"nothing of what was given could be used; give things of the kind {query!r}")
    if json:
        show_json({"schema": 1, "model": str(model), "query": query, "target": target, "results": results})
        return
    for result in results:
        ranking = "  ".join(f"{escape_line(name)} {score:.2f}" for name, score in result[target])
        sys.stdout.write(f"{escape_line(result['id'])}\t{ranking}\n")  # as it is: `out` would turn the tab into blanks


def _resolve_relation(annotator: "SpaceAnnotator", relation: str | None) -> tuple[str, str]:
    """Return the kinds of a relation: the first relation, one by name, or two kinds as "query:target"."""
    relations = {name: (query, target) for name, query, target in annotator.space.relations_}
    if relation is None:
        return next(iter(relations.values()))
    if relation in relations:
        return relations[relation]
    query, colon, target = relation.partition(":")
    if not colon:
        raise InputError(
            f"there is no relation {relation!r}; choose of {', '.join(relations)}, or two kinds as query:target"
        )
    annotator.space.known(query)
    annotator.space.known(target)
    return query, target


def run_neighbours_space(
    annotator: "SpaceAnnotator", item: str, kind: str | None, k: int, json: bool, words: bool = False
) -> None:
    """Print the items nearest to an item of their kind, or the words nearest to a word."""
    space = annotator.space
    if words:
        name = kind or next(iter(annotator.terms), next(iter(space.kinds_)))
        _show_neighbours("word", item, annotator.words_near(name, item, k), json)
        return
    holders = [name for name, fitted_kind in space.kinds_.items() if item in fitted_kind.things]
    if kind is None and len(holders) > 1:
        raise InputError(f"{item!r} is a thing of the kinds {', '.join(holders)}; choose one by --of")
    if kind is None and not holders:
        raise InputError(
            format_unknown_label(
                item, [name for fitted_kind in space.kinds_.values() for name in fitted_kind.things], "thing"
            )
        )
    name = kind or holders[0]
    _show_neighbours(name, item, space.similar(name, item, k), json)


def _show_neighbours(kind: str, item: str, neighbours: list[tuple[str, float]], json: bool) -> None:
    if json:
        entries = [[name, round(cosine, 6)] for name, cosine in neighbours]
        show_json({"schema": 1, "kind": kind, "label": item, "neighbours": entries})
        return
    show_table(f"nearest to {item}", [kind, "cosine"], [[name, f"{cosine:.3f}"] for name, cosine in neighbours])


def run_info_space(annotator: "SpaceAnnotator", model: Path, epochs: bool, json: bool) -> None:
    """Print the facts of a space."""
    from wsabie.storage.model_folder import measure_folder_bytes

    space = annotator.space
    extractors = {f"describe_{name}": extractor.name for name, extractor in annotator.terms.items()}
    facts: dict[str, Any] = {**space.facts(), "bytes": measure_folder_bytes(model), **extractors, **annotator.facts}
    if not json:
        facts = {name: value for name, value in facts.items() if name not in ("fingerprints", "pair_marks")}
    if json:
        details: dict[str, Any] = {"parameters": space.to_parts().config["parameters"], "settings": space.settings_}
        if epochs:
            details["history"] = [stats.as_dict() for stats in space.history_]
        show_json({"schema": 1, "model": str(model), **facts, **details})
        return
    lines = []
    for name, value in facts.items():
        if isinstance(value, dict):
            value = ", ".join(f"{key} {_format_value(v)}" for key, v in value.items())
        elif isinstance(value, list):
            value = ", ".join(value)
        lines.append([name.replace("_", " "), f"{value:,}" if isinstance(value, int) else str(value)])
    show_table(str(model), ["", ""], lines)
    if epochs:
        show_epochs(space.history_)


def _format_value(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
