"""Commands that measure: compare, tune, reproduce, demo."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from wsabie.base.errors import InputError
from wsabie.faces.cli.options import (
    AllowOverlap,
    Augment,
    By,
    Components,
    Crop,
    Data,
    Describe,
    GivenSeed,
    Hierarchies,
    Items,
    Json,
    LabelKnowledge,
    Landmarks,
    MinRows,
    Normalise,
    OnRay,
    Output,
    ParentFirst,
    Rate,
    Rejects,
    Seed,
    Size,
    Strict,
    Terms,
    Threads,
    WordVectors,
    describing,
    positive,
    refuse_options,
    stated,
)
from wsabie.studies.entrants import NAMES, USUAL


def compare(
    data: Data,
    models: Annotated[str, typer.Option(help=f"Comma-separated: {', '.join(NAMES)}.")] = ",".join(USUAL),
    by: Annotated[
        By, typer.Option(help="How to split: group, row, label or time (default: group if there are groups).")
    ] = "auto",
    test: Annotated[Path | None, typer.Option(help="Test data; otherwise a tenth is split off.")] = None,
    allow_overlap: AllowOverlap = False,
    min_rows: MinRows = 1,
    hierarchy: Hierarchies = None,
    parent_first: ParentFirst = False,
    items: Items = None,
    describe: Describe = None,
    components: Components = None,
    landmarks: Landmarks = None,
    terms: Terms = None,
    size: Size = None,
    rate: Rate = None,
    threads: Threads = None,
    seed: GivenSeed = None,
    report: Annotated[Path | None, typer.Option(help="Write an HTML report here.")] = None,
    hold_out: Annotated[
        float | None,
        typer.Option(
            min=0.01,
            max=0.9,
            help="Of a TOML file: share that is held out, half to choose the epoch, half to judge (default: 0.2); with "
            "--test all to choose the epoch (default: 0.1).",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Of a TOML file: folder for table.csv, figure.svg, figure.png and about.md.")
    ] = None,
    work: Annotated[
        Path | None,
        typer.Option(help="Folder that keeps finished models until all are (default: one in wsabie-compare)."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the models that a stopped run finished.")
    ] = False,
    anew: Annotated[bool, typer.Option("--anew", help="Remove what a stopped run has kept, and begin anew.")] = False,
    strict: Strict = False,
    rejects: Rejects = None,
    json: Json = False,
) -> None:
    """One table: every model and baseline on the same split, with time and memory; of a TOML file one a relation."""
    from wsabie.faces.cli.comparing import compare_command
    from wsabie.faces.cli.finished_results import KeepOptions
    from wsabie.faces.cli.spaces import is_declaration

    described = stated(describe=describe, components=components, landmarks=landmarks, terms=terms, size=size, rate=rate)
    keep = KeepOptions(work, resume, anew)
    if is_declaration(data):
        from wsabie.faces.cli.space_studies import compare_spaces_command

        others = stated(items=items, hierarchy=hierarchy, report=report, parent_first=parent_first or None)
        refuse_options(others | described, "what a TOML file says in its tables, or what a space does not have")
        if by != "auto" or min_rows != 1:
            raise InputError("a space has no --by and no --min-rows; leave them out, or give other data")
        run = stated(threads=threads, seed=seed)
        compare_spaces_command(data, test, allow_overlap, models, hold_out, out, run, strict, rejects, json, keep)
        return
    refuse_options(stated(hold_out=hold_out, out=out), "how the things of a TOML file are compared")
    compare_command(
        data,
        models,
        by,
        test,
        allow_overlap,
        min_rows,
        hierarchy,
        parent_first,
        describing(described),
        threads,
        seed or 0,
        report,
        strict,
        rejects,
        json,
        items,
        keep,
    )


def tune(
    data: Data,
    out: Annotated[Path, typer.Option(help="Folder for the trials, the model and the page; a second run goes on.")],
    kind: Annotated[str, typer.Option(help="Kind of model, as in `wsabie train`.")] = "wsabie",
    valid: Annotated[
        Path | None, typer.Option(help="Validation data; otherwise --hold-out rows are set aside.")
    ] = None,
    hold_out: Annotated[
        float | None,
        typer.Option(min=0.01, max=0.9, help="Fraction of rows (whole groups) that judge trials (default: 0.1)."),
    ] = None,
    test: Annotated[
        Path | None, typer.Option(help="Test data: the best setting and the defaults are judged on them at the end.")
    ] = None,
    allow_overlap: AllowOverlap = False,
    metric: Annotated[Literal["MAP", "p@1", "p@10"], typer.Option(help="MAP, p@1 or p@10.")] = "MAP",
    trials: Annotated[
        int | None, typer.Option(min=1, help="Trials in all (default: 30, or no limit with --minutes).")
    ] = None,
    minutes: Annotated[
        float | None,
        typer.Option(parser=positive, metavar="NUMBER", help="Minutes for all trials; the last training comes on top."),
    ] = None,
    fix: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="Give a parameter this value in all trials.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="TOML file with parameters, and with a table [space] of what to try.")
    ] = None,
    stop_on: Annotated[
        str | None,
        typer.Option(metavar="RELATION", help="Of a TOML file: the relation that judges trials (default: all)."),
    ] = None,
    together: Annotated[
        int | None,
        typer.Option(min=1, max=1000, help="Trials proposed at once, from those before (default: 1; with --ray 4)."),
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Train all trials to their end, also those behind.")] = False,
    all_rows: Annotated[
        bool, typer.Option("--all-rows", help="Train the model that is saved on the validation rows too.")
    ] = False,
    min_rows: MinRows = 1,
    describe: Describe = None,
    components: Components = None,
    landmarks: Landmarks = None,
    terms: Terms = None,
    size: Size = None,
    augment: Augment = None,
    crop: Crop = None,
    normalise: Normalise = None,
    output: Output = None,
    rate: Rate = None,
    threads: Threads = None,
    ray: OnRay = None,
    seed: GivenSeed = None,
    strict: Strict = False,
    rejects: Rejects = None,
    json: Json = False,
) -> None:
    """Search for better parameters on validation rows or held-out pairs; the best setting becomes a model."""
    from wsabie.faces.cli.spaces import is_declaration
    from wsabie.faces.cli.tuning import Asked, read_changes, tune_command
    from wsabie.models.systems import build
    from wsabie.studies.search_spaces import search
    from wsabie.studies.training import Recipe
    from wsabie.studies.tuned import Plan

    if valid is not None and hold_out:
        raise InputError("--hold-out sets training rows aside and --valid gives others; leave one of them out")
    described = stated(describe=describe, components=components, landmarks=landmarks, terms=terms, size=size)
    described |= stated(augment=augment, crop=crop, normalise=normalise, output=output, rate=rate)
    changes, trials = read_changes(config, fix or []), 30 if trials is None and minutes is None else trials
    if is_declaration(data):
        from wsabie.faces.cli.space_studies import tune_spaces_command

        refuse_options(stated(valid=valid, test=test, ray=ray) | described, "what a space is not tuned with")
        if kind != "wsabie" or metric != "MAP" or min_rows != 1 or all_rows or allow_overlap:
            raise InputError(
                "a space has no --kind, --metric, --min-rows, --all-rows or --allow-overlap; leave them out, or give "
                "other data"
            )
        limits: dict[str, Any] = {"trials": trials, "minutes": minutes, "halving": not full, "together": together or 1}
        run, share = stated(threads=threads, seed=seed), 0.1 if hold_out is None else hold_out
        tune_spaces_command(data, out, changes, limits, share, stop_on, run, strict, rejects, json)
        return
    refuse_options(stated(stop_on=stop_on), "which relation of a TOML file counts")
    searched = search(changes, kind)
    estimator = build(kind, threads=threads, seed=seed or 0)
    rest: dict[str, Any] = {"min_rows": min_rows, "resume": True, "system": kind, **stated(hold_out=hold_out)}
    recipe = Recipe(str(data), out / "model", estimator, describing(described), **rest)
    at_once = together or (1 if ray is None else 4)
    plan = Plan(searched, metric, trials, minutes, not full, all_rows, allow_overlap, at_once)
    tune_command(Asked(data, valid, test, out, plan, recipe, rejects, strict=strict, json=json, ray=ray))


def reproduce(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="Name of a table or figure; `list` shows all.")],
    data: Annotated[
        str | None,
        typer.Option(
            help="sample (default), visterm:S (generated; also tiny, M, imagenet, web), or a collection's path."
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the results (default: wsabie-reproduce/TABLE).")] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="Passes over the pairs (default: by size).")] = None,
    min_rows: Annotated[
        int | None, typer.Option(min=1, help="Leave out labels with fewer training rows (default: 1; sample: 2).")
    ] = None,
    hierarchy: Hierarchies = None,
    parent_first: ParentFirst = False,
    artists: Annotated[
        str | None,
        typer.Option(
            metavar="KIND",
            help="music-bigdata: kind of the names that are artists (default: artist, speaker, instrument).",
        ),
    ] = None,
    vectors: WordVectors = None,
    knowledge: LabelKnowledge = None,
    inherit: Annotated[
        bool,
        typer.Option("--inherit", help="parts-table3 and its like: wholes have the parts of what they are a kind of."),
    ] = False,
    held: Annotated[
        int | None, typer.Option(min=2, help="devise-zero-shot: labels that each split holds out (default: 25).")
    ] = None,
    threads: Threads = None,
    seed: Seed = 0,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="parts-table3 and its like: trainings of each model (default: 5).")
    ] = None,
    strict: Strict = False,
    rejects: Rejects = None,
    json: Json = False,
) -> None:
    """A table or figure of the papers: their figures beside those of the data at hand, and what holds here."""
    from wsabie.faces.cli.reproducing import reproduce_command

    parameters = stated(epochs=epochs)
    reproduce_command(
        table, data, out, parameters, threads, seed, seeds, min_rows, hierarchy, parent_first, artists,
        stated(vectors=vectors, knowledge=knowledge, inherit=inherit or None, held=held), strict, rejects, json,
    )  # fmt: skip


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the model and the report.")] = Path("wsabie-demo"),
    part: Annotated[
        Literal["emoji", "drawings", "all", "documents"],
        typer.Option(help="Pictures: emoji, drawings, or all that are installed; or documents, which takes seconds."),
    ] = "all",
    threads: Threads = None,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Train on the bundled sample collection, compare with baselines, write a report."""
    from wsabie.faces.cli.demonstrating import demo_command, documents_command

    if part == "documents":
        documents_command(out, threads, seed, json)
        return
    demo_command(out, part, threads, seed, json)
