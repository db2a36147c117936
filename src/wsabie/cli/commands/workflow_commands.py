"""Commands that measure: compare, tune, demo."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from wsabie.cli.inputs.options import (
    AllowOverlap,
    Augment,
    By,
    Components,
    Crop,
    Data,
    Describe,
    Hierarchies,
    Items,
    Json,
    Landmarks,
    MinRows,
    Normalise,
    OptionalSeed,
    Output,
    ParentFirst,
    Rate,
    RayAddress,
    Rejects,
    Seed,
    Size,
    Strict,
    Terms,
    Threads,
    collect_feature_options,
    find_stated_options,
    parse_positive,
    refuse_options,
)
from wsabie.core.errors import InputError
from wsabie.workflows.compare.entrants import NAMES, USUAL

Models = Annotated[str, typer.Option(help=f"Comma-separated: {', '.join(NAMES)}.")]
CompareBy = Annotated[
    By, typer.Option(help="How to split: group, row, label or time (default: group if there are groups).")
]
CompareTest = Annotated[Path | None, typer.Option(help="Test data; otherwise a tenth is split off.")]
Report = Annotated[Path | None, typer.Option(help="Write an HTML report here.")]
CompareHoldOut = Annotated[
    float | None,
    typer.Option(
        min=0.01,
        max=0.9,
        help="Of a TOML file: share that is held out, half to choose the epoch, half to judge (default: 0.2); with "
        "--test all to choose the epoch (default: 0.1).",
    ),
]
CompareOut = Annotated[
    Path | None, typer.Option(help="Of a TOML file: folder for table.csv, figure.svg, figure.png and about.md.")
]
Work = Annotated[
    Path | None,
    typer.Option(help="Folder that keeps finished models until all are (default: one in wsabie-compare)."),
]
Resume = Annotated[bool, typer.Option("--resume", help="Go on from the models that a stopped run finished.")]
Restart = Annotated[bool, typer.Option("--anew", help="Remove what a stopped run has kept, and begin anew.")]

_USUAL_MODELS = ",".join(USUAL)


def compare(
    data: Data,
    models: Models = _USUAL_MODELS,
    by: CompareBy = "auto",
    test: CompareTest = None,
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
    seed: OptionalSeed = None,
    report: Report = None,
    hold_out: CompareHoldOut = None,
    out: CompareOut = None,
    work: Work = None,
    resume: Resume = False,
    restart: Restart = False,
    strict: Strict = False,
    rejects: Rejects = None,
    json: Json = False,
) -> None:
    """Compare models and baselines on the same split, with time and memory; for a TOML file, by relation."""
    from wsabie.cli.models.spaces import is_declaration
    from wsabie.cli.workflows.compare import run_compare
    from wsabie.cli.workflows.comparison_results import KeepOptions

    feature_options = find_stated_options(
        describe=describe, components=components, landmarks=landmarks, terms=terms, size=size, rate=rate
    )
    keep = KeepOptions(work, resume, restart)
    if is_declaration(data):
        from wsabie.cli.workflows.space_workflows import run_compare_relations

        unsupported = find_stated_options(
            items=items, hierarchy=hierarchy, report=report, parent_first=parent_first or None
        )
        refuse_options(
            unsupported | feature_options, "what a TOML file says in its tables, or what a space does not have"
        )
        if by != "auto" or min_rows != 1:
            raise InputError("a space has no --by and no --min-rows; leave them out, or give other data")
        run = find_stated_options(threads=threads, seed=seed)
        run_compare_relations(data, test, allow_overlap, models, hold_out, out, run, strict, rejects, json, keep)
        return
    refuse_options(find_stated_options(hold_out=hold_out, out=out), "how the things of a TOML file are compared")
    run_compare(
        data,
        models,
        by,
        test,
        allow_overlap,
        min_rows,
        hierarchy,
        parent_first,
        collect_feature_options(feature_options),
        threads,
        seed or 0,
        report,
        strict,
        rejects,
        json,
        items,
        keep,
    )


Out = Annotated[Path, typer.Option(help="Folder for the trials, the model and the page; a second run goes on.")]
Kind = Annotated[str, typer.Option(help="Kind of model, as in `wsabie train`.")]
Valid = Annotated[Path | None, typer.Option(help="Validation data; otherwise --hold-out rows are set aside.")]
HoldOut = Annotated[
    float | None,
    typer.Option(min=0.01, max=0.9, help="Fraction of rows (whole groups) that judge trials (default: 0.1)."),
]
Test = Annotated[
    Path | None, typer.Option(help="Test data: the best setting and the defaults are judged on them at the end.")
]
Metric = Annotated[Literal["MAP", "p@1", "p@10"], typer.Option(help="MAP, p@1 or p@10.")]
Trials = Annotated[int | None, typer.Option(min=1, help="Trials in all (default: 30, or no limit with --minutes).")]
Minutes = Annotated[
    float | None,
    typer.Option(
        parser=parse_positive, metavar="NUMBER", help="Minutes for all trials; the last training comes on top."
    ),
]
Fix = Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help="Give a parameter this value in all trials.")]
Config = Annotated[
    Path | None, typer.Option(help="TOML file with parameters, and with a table [space] of what to try.")
]
StopOn = Annotated[
    str | None,
    typer.Option(metavar="RELATION", help="Of a TOML file: the relation that judges trials (default: all)."),
]
BatchSize = Annotated[
    int | None,
    typer.Option(
        "--together", min=1, max=1000, help="Trials proposed at once, from those before (default: 1; with --ray 4)."
    ),
]
Full = Annotated[bool, typer.Option("--full", help="Train all trials to their end, also those behind.")]
AllRows = Annotated[bool, typer.Option("--all-rows", help="Train the model that is saved on the validation rows too.")]


def tune(
    data: Data,
    out: Out,
    kind: Kind = "wsabie",
    valid: Valid = None,
    hold_out: HoldOut = None,
    test: Test = None,
    allow_overlap: AllowOverlap = False,
    metric: Metric = "MAP",
    trials: Trials = None,
    minutes: Minutes = None,
    fix: Fix = None,
    config: Config = None,
    stop_on: StopOn = None,
    batch_size: BatchSize = None,
    full: Full = False,
    all_rows: AllRows = False,
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
    ray: RayAddress = None,
    seed: OptionalSeed = None,
    strict: Strict = False,
    rejects: Rejects = None,
    json: Json = False,
) -> None:
    """Search for better parameters on validation rows or held-out pairs; the best setting becomes a model."""
    from wsabie.cli.models.spaces import is_declaration
    from wsabie.cli.workflows.tune import TuneRequest, read_changes, run_tune
    from wsabie.models.estimator_specs import build_estimator
    from wsabie.workflows.train.model_training import TrainingRecipe
    from wsabie.workflows.tune.search_spaces import build_search_space
    from wsabie.workflows.tune.tuning_results import TuningPlan

    if valid is not None and hold_out:
        raise InputError("--hold-out sets training rows aside and --valid gives others; leave one of them out")
    feature_options = find_stated_options(
        describe=describe, components=components, landmarks=landmarks, terms=terms, size=size
    )
    feature_options |= find_stated_options(augment=augment, crop=crop, normalise=normalise, output=output, rate=rate)
    changes, trials = read_changes(config, fix or []), 30 if trials is None and minutes is None else trials
    if is_declaration(data):
        from wsabie.cli.workflows.space_workflows import run_tune_spaces

        refuse_options(
            find_stated_options(valid=valid, test=test, ray=ray) | feature_options, "what a space is not tuned with"
        )
        if kind != "wsabie" or metric != "MAP" or min_rows != 1 or all_rows or allow_overlap:
            raise InputError(
                "a space has no --kind, --metric, --min-rows, --all-rows or --allow-overlap; leave them out, or give "
                "other data"
            )
        limits: dict[str, Any] = {
            "trials": trials,
            "minutes": minutes,
            "halving": not full,
            "together": batch_size or 1,
        }
        run, share = find_stated_options(threads=threads, seed=seed), 0.1 if hold_out is None else hold_out
        run_tune_spaces(data, out, changes, limits, share, stop_on, run, strict, rejects, json)
        return
    refuse_options(find_stated_options(stop_on=stop_on), "which relation of a TOML file counts")
    search_space = build_search_space(changes, kind)
    estimator = build_estimator(kind, threads=threads, seed=seed or 0)
    recipe = TrainingRecipe(
        str(data),
        out / "model",
        estimator,
        collect_feature_options(feature_options),
        min_rows=min_rows,
        resume=True,
        system=kind,
        **find_stated_options(hold_out=hold_out),
    )
    n_proposed = batch_size or (1 if ray is None else 4)
    plan = TuningPlan(search_space, metric, trials, minutes, not full, all_rows, allow_overlap, n_proposed)
    run_tune(TuneRequest(data, valid, test, out, plan, recipe, rejects, strict=strict, json=json, ray=ray))


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
    from wsabie.cli.workflows.demo import run_demo_command, run_documents_demo

    if part == "documents":
        run_documents_demo(out, threads, seed, json)
        return
    run_demo_command(out, part, threads, seed, json)
