"""The commands of every day: train, evaluate, annotate, neighbours, info. Work is imported when a command runs."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from wsabie.base.errors import InputError
from wsabie.faces.cli import (
    data_commands,
    export_commands,
    label_commands,
    parts_commands,
    search_commands,
    serve_commands,
    study_commands,
)
from wsabie.faces.cli.collection import group
from wsabie.faces.cli.options import (
    AllowOverlap,
    Augment,
    Candidates,
    Command,
    Components,
    Crop,
    Data,
    Describe,
    GivenSeed,
    Hierarchies,
    Items,
    Json,
    Kind,
    LabelKnowledge,
    Landmarks,
    MinRows,
    Model,
    Normalise,
    OnRay,
    Output,
    ParentFirst,
    Rate,
    Rejects,
    Replay,
    Size,
    Strict,
    Terms,
    Threads,
    Top,
    WordVectors,
    describing,
    figure,
    opening_itself,
    positive,
    refuse_options,
    stated,
)


def register(app: typer.Typer) -> None:
    """Add every command to the application."""
    for command in (
        train,
        evaluate,
        update,
        edit,
        annotate,
        neighbours,
        search_commands.search,
        search_commands.index,
        parts_commands.parts,
        study_commands.compare,
        study_commands.reproduce,
        study_commands.tune,
        data_commands.features,
        data_commands.shards,
        data_commands.split,
        study_commands.demo,
        info,
        export_commands.export,
        data_commands.hierarchy,
        data_commands.pairs,
        label_commands.labels,
        label_commands.vectors,
        serve_commands.serve,
        serve_commands.token,
    ):
        app.command(cls=Command)(opening_itself(command))
    app.add_typer(group.group())


def train(
    data: Data,
    model: Annotated[Path, typer.Option(help="Folder for the model.")],
    kind: Kind = "wsabie",
    valid: Annotated[
        Path | None, typer.Option(help="Validation data; otherwise --hold-out rows are set aside.")
    ] = None,
    hold_out: Annotated[
        float | None,
        typer.Option(min=0, max=0.9, help="Fraction of rows (whole groups) that choose the epoch (default: 0.1)."),
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            parser=figure,
            metavar="FIGURE",
            help="Figure of these rows that chooses the epoch: MAP, p@k; of parts also pairs (default: MAP).",
        ),
    ] = None,
    min_rows: MinRows = 1,
    config: Annotated[
        Path | None,
        typer.Option(help="TOML file with any parameters of the estimator (dim = 50); options here go before it."),
    ] = None,
    dim: Annotated[int | None, typer.Option(min=1, max=4096, help="Dimensions of the space (default: 100).")] = None,
    loss: Annotated[
        Literal["warp", "auc", "owpc", "k-os"] | None,
        typer.Option(help="warp, auc, owpc or k-os; order_statistic in --config is for k-os alone (default: warp)."),
    ] = None,
    similarity: Annotated[
        Literal["dot", "euclidean", "cosine"] | None, typer.Option(help="dot, euclidean or cosine (default: dot).")
    ] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="Passes over the pairs (default: by size).")] = None,
    learning_rate: Annotated[
        float | None, typer.Option(parser=positive, metavar="NUMBER", help="First step (default: by size).")
    ] = None,
    max_norm: Annotated[
        float | None,
        typer.Option(parser=positive, metavar="NUMBER", help="Limit on the norm of every row (default: 1.5)."),
    ] = None,
    ensemble: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Train N models and add up their scores (default: one model)."),
    ] = None,
    ensemble_by: Annotated[
        Literal["seed", "rows", "columns"] | None,
        typer.Option(help="How the N models differ: seed, rows (bags) or columns (kinds of features) (default: seed)."),
    ] = None,
    items: Items = None,
    whole: Annotated[
        str | None,
        typer.Option(metavar="LABEL", help="Of COCO and Pascal VOC: the whole pictures too, which show a LABEL."),
    ] = None,
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
    relations: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="For parts: related labels, object TAB part a line (see `wsabie labels pairs`); "
            "or RELATION=FILE, such as is-a=kinds.tsv.",
        ),
    ] = None,
    vectors: WordVectors = None,
    knowledge: LabelKnowledge = None,
    labels: Annotated[
        Path | None,
        typer.Option(help="Further labels that devise and conse can rank, though no row has them: a file, one a line."),
    ] = None,
    threads: Threads = None,
    ray: OnRay = None,
    nodes: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="With --ray and shards: nodes that train at most (default: all)."),
    ] = None,
    seed: GivenSeed = None,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="RELATION", help="Of a TOML file: learn this relation, and others that are named so."),
    ] = None,
    stop_on: Annotated[
        str | None,
        typer.Option(metavar="RELATION", help="Of a TOML file: the relation that chooses the epoch (default: all)."),
    ] = None,
    start: Annotated[
        Path | None,
        typer.Option("--from", metavar="MODEL", help="Begin with the space of this model of the same features."),
    ] = None,
    replay: Replay = None,
    hogwild: Annotated[bool, typer.Option("--hogwild", help="Lock-free threads instead of reproducible ones.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from where a stopped run was.")] = False,
    anew: Annotated[bool, typer.Option("--anew", help="Remove what a stopped run has kept, and begin anew.")] = False,
    log: Annotated[
        Path | None, typer.Option(help="Append the figures of every epoch to this file (JSON lines).")
    ] = None,
    strict: Strict = False,
    rejects: Rejects = None,
    json: Json = False,
) -> None:
    """Train a model on tagged data; new data is then annotated with `wsabie annotate`."""
    from wsabie.faces.cli.common import loaded
    from wsabie.faces.cli.meanings import refuse_other_kinds
    from wsabie.faces.cli.spaces import is_declaration, train_space_command
    from wsabie.faces.cli.training import (
        Asked,
        estimator_of,
        parameters_given,
        refuse_held_out_twice,
        refuse_without_epochs,
        train_command,
    )
    from wsabie.models.systems import system_of
    from wsabie.studies.training import Recipe

    run = stated(threads=threads, seed=seed)
    shape = stated(dim=dim, loss=loss, similarity=similarity, epochs=epochs)
    shape |= stated(learning_rate=learning_rate, max_norm=max_norm, replay=replay)
    described = stated(describe=describe, components=components, landmarks=landmarks, terms=terms, size=size)
    described |= stated(augment=augment, crop=crop, normalise=normalise, output=output, rate=rate)
    meant = stated(vectors=vectors, knowledge=knowledge, labels=labels)
    if nodes is not None and ray is None:
        raise InputError("--nodes says how many nodes of a cluster train; give its address too: --ray ADDRESS")
    if is_declaration(data):
        others = stated(valid=valid, config=config, ensemble=ensemble, ensemble_by=ensemble_by, relations=relations)
        others |= described | meant | stated(items=items, whole=whole, metric=metric, ray=ray)
        others |= stated(replay=replay, **{"from": start})
        refuse_options(others, "what a TOML file says in its tables, or what a space does not have")
        if kind != "wsabie" or min_rows != 1 or hogwild:
            raise InputError("a space has no --kind, --min-rows or --hogwild; leave them out, or give other data")
        train_space_command(
            data,
            model,
            shape | run,
            hold_out=0.1 if hold_out is None else hold_out,
            only=only or (),
            stop_on=stop_on or "mean",
            resume=resume,
            anew=anew,
            log=log,
            rejects_file=rejects,
            strict=strict,
            json=json,
        )
        return
    refuse_options(stated(only=only, stop_on=stop_on), "which relations of a TOML file count")
    refuse_other_kinds(kind, meant)
    refuse_without_epochs(kind, {"valid": valid, "hold-out": hold_out, "metric": metric, "log": log})
    refuse_held_out_twice(valid, hold_out, metric)
    shape |= {"deterministic": False} if hogwild else {}
    begun = None if start is None else loaded(start, threads)
    if begun is not None:
        shape = {
            name: getattr(begun.model, name) for name in ("dim", "similarity") if hasattr(begun.model, name)
        } | shape
    parameters = parameters_given(kind, config, shape, run, meant, relations)
    estimator = estimator_of(kind, parameters, run, ensemble, ensemble_by)
    rest: dict[str, Any] = {"min_rows": min_rows, "resume": resume, "system": kind, "given": run}
    rest |= stated(start=begun, hold_out=hold_out if system_of(kind).trained else 0.0, metric=metric)
    recipe = Recipe(str(data), model, estimator, describing(described), **rest)
    train_command(Asked(data, valid, recipe, log, rejects, strict, json, items, whole, ray, nodes, anew))


def evaluate(
    model: Model,
    data: Data,
    hierarchy: Hierarchies = None,
    parent_first: ParentFirst = False,
    candidates: Candidates = None,
    allow_overlap: AllowOverlap = False,
    exclude: Annotated[
        Path | None,
        typer.Option(help="Labels that a row has in this data are no candidates: the training data of --by one-label."),
    ] = None,
    relations: Annotated[
        Path | None,
        typer.Option(help="Of parts: related labels to ask for, object TAB part a line (default: the model's own)."),
    ] = None,
    among: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Of parts: pairs of labels that are ranked, a list as well (default: all)."),
    ] = None,
    quadruplets: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=1_000_000,
            help="Of parts: pairs of pictures to draw; 0: none (default: 10,000, fewer of many labels).",
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, max=2**63 - 1, help="Of parts: seed of what is drawn (default: 0).")
    ] = None,
    threads: Threads = None,
    ray: OnRay = None,
    strict: Strict = False,
    rejects: Rejects = None,
    json: Json = False,
) -> None:
    """Measure a model on data with known labels: p@k, recall@k, MAP, AUC, nDCG, coverage, with intervals.

    Of objects and parts also labels of two pictures together, and of one beside the other's label.
    """
    from wsabie.faces.cli.evaluating import evaluate_command
    from wsabie.faces.cli.evaluating_parts import PartsAsked, refuse_of_parts
    from wsabie.faces.cli.spaces import evaluate_space_command, space_in

    space, parts = space_in(model, threads), PartsAsked(quadruplets, seed, relations, among)
    if space is not None:
        refuse_options(stated(exclude=exclude, candidates=candidates), "what labels a row has")
        refuse_options(stated(ray=ray), "where models work, and a space works here")
        refuse_of_parts(parts, model)
        given = strict, rejects, json, hierarchy, parent_first
        evaluate_space_command(space, model, data, allow_overlap, threads, *given)
        return
    others = strict, rejects, json, parts, hierarchy, parent_first
    evaluate_command(model, data, allow_overlap, exclude, threads, *others, candidates, ray)


def annotate(
    model: Model,
    inputs: Annotated[
        list[Path] | None,
        typer.Argument(metavar="INPUTS", help="Pictures, folders, data in any source format; of a space also names."),
    ] = None,
    k: Top = 10,
    candidates: Candidates = None,
    min_precision: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="Only labels that are right so often on held-out items, such as 0.9, by a model of a collection.",
        ),
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option("--out", help="A file for the labels (.jsonl, .tsv, .parquet), for any number of rows."),
    ] = None,
    text: Annotated[
        list[str] | None, typer.Option(metavar="TEXT", help="A text in place of INPUTS, where documents are asked for.")
    ] = None,
    region: Annotated[
        list[str] | None,
        typer.Option(
            metavar="X,Y,W,H",
            help="Labels for a region of the pictures, in pixels or as 10%,20%,30%,40%; or a polygon X1,Y1,X2,Y2 ...",
        ),
    ] = None,
    relation: Annotated[
        str | None,
        typer.Option(help="Of a space: which relation answers, or two kinds as query:target (default: its first)."),
    ] = None,
    explain: Annotated[
        Path | None, typer.Option(help="Folder for heat maps: where in the picture the best label is seen.")
    ] = None,
    label: Annotated[str | None, typer.Option(help="Explain this label instead of the best one.")] = None,
    hierarchy: Hierarchies = None,
    parent_first: ParentFirst = False,
    exact: Annotated[bool, typer.Option("--exact", help="Without the index that `wsabie index` made.")] = False,
    threads: Threads = None,
    ray: OnRay = None,
    strict: Strict = False,
    rejects: Rejects = None,
    json: Json = False,
) -> None:
    """Give new pictures or rows their best labels; of a space, the things that belong to new or known ones."""
    from wsabie.faces.cli.spaces import annotate_space_command, refuse_of_space, space_in
    from wsabie.faces.cli.using import annotate_command

    space = space_in(model, threads)
    if space is not None:
        others = stated(explain=explain, label=label, hierarchy=hierarchy, region=region, candidates=candidates, out=to)
        others |= stated(min_precision=min_precision)
        refuse_options(others, "what labels are")
        refuse_options(stated(ray=ray), "where models work, and a space works here")
        annotate_space_command(space, model, inputs or (), text or (), k, relation, threads, strict, rejects, json)
        return
    refuse_of_space(model, stated(relation=relation))
    if not inputs and not text:
        raise InputError("nothing to annotate; give pictures, folders, or data in any source format")
    if to is not None:
        from wsabie.faces.cli.batches import annotate_to_command

        others = stated(explain=explain, label=label, hierarchy=hierarchy, region=region, text=text)
        others |= stated(parent_first=parent_first or None)
        refuse_options(others, "what single answers are like, and --out writes those of many rows")
        given_to = inputs or [], to, k, candidates, threads, strict, rejects, json, min_precision, ray, exact
        annotate_to_command(model, *given_to)
        return
    given = inputs or [], k, explain, label, threads, strict, rejects, json, hierarchy, parent_first
    annotate_command(model, *given, text or (), region or (), candidates, exact, min_precision, ray)


def update(
    model: Model,
    data: Data,
    replay: Replay = None,
    remember: Annotated[
        Path | None,
        typer.Option(metavar="DATA", help="Data that the model was trained on, where it keeps no rows yet."),
    ] = None,
    forget: Annotated[
        bool,
        typer.Option("--forget", help="Learn the new rows alone where the model keeps no others: what it knew falls."),
    ] = False,
    step: Annotated[int, typer.Option(min=1, help="Rows that are learnt before the model is saved.")] = 2000,
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the rows of a step.")] = 10,
    threads: Threads = None,
    strict: Strict = False,
    rejects: Rejects = None,
    json: Json = False,
) -> None:
    """Go on learning with new rows and labels; the same command again goes on where it was stopped."""
    from wsabie.faces.cli.updating import update_command
    from wsabie.storage.atomic import held

    with held(model):
        update_command(model, data, replay, remember, forget, step, epochs, threads, strict, rejects, json)


def edit(
    model: Model,
    what: Annotated[
        Literal["rename", "merge", "remove"], typer.Argument(metavar="rename|merge|remove", help="What is done.")
    ],
    names: Annotated[
        list[str], typer.Argument(metavar="LABEL...", help="rename OLD NEW; merge INTO OTHER ...; remove LABEL ...")
    ],
    json: Json = False,
) -> None:
    """Rename, merge or remove labels of a model; numbers of labels stay."""
    from wsabie.faces.cli.updating import edit_command
    from wsabie.storage.atomic import held

    with held(model):
        edit_command(model, what, names, json)


def neighbours(
    model: Model,
    label: Annotated[str, typer.Argument(metavar="LABEL", help="A label of the model, or a thing of a space.")],
    k: Top = 10,
    of: Annotated[str | None, typer.Option(metavar="KIND", help="Of a space: the kind of the thing.")] = None,
    words: Annotated[bool, typer.Option("--words", help="Of documents in a space: words nearest to a word.")] = False,
    hierarchy: Hierarchies = None,
    parent_first: ParentFirst = False,
    json: Json = False,
) -> None:
    """The labels nearest to a label: synonyms, translations, near misses."""
    from wsabie.faces.cli.spaces import neighbours_space_command, refuse_of_space, space_in
    from wsabie.faces.cli.using import neighbours_command

    space = space_in(model)
    if space is not None:
        refuse_options(stated(hierarchy=hierarchy), "what labels are")
        neighbours_space_command(space, label, of, k, json, words)
        return
    refuse_of_space(model, stated(of=of, words=words or None))
    neighbours_command(model, label, k, json, hierarchy, parent_first)


def info(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Model folder, or a folder of shards.")],
    epochs: Annotated[bool, typer.Option("--epochs", help="Also the figures of every epoch.")] = False,
    verify: Annotated[bool, typer.Option("--verify", help="Of shards: read all and compare their checksums.")] = False,
    json: Json = False,
) -> None:
    """What a model is: sizes, parameters, training data, last figures. Or what shards hold."""
    from wsabie.faces.cli.common import refuse_uncollected
    from wsabie.faces.cli.sharding import info_shards_command
    from wsabie.faces.cli.spaces import info_space_command, space_in
    from wsabie.faces.cli.using import info_command
    from wsabie.storage.shards import is_shard_folder

    if is_shard_folder(model):
        refuse_options(stated(epochs=epochs or None), "the training of a model, and shards are data")
        info_shards_command(model, verify, json)
        return
    refuse_options(stated(verify=verify or None), "what is done with shards, and a model is verified when it is opened")
    refuse_uncollected(model)
    space = space_in(model)
    if space is not None:
        info_space_command(space, model, epochs, json)
        return
    info_command(model, epochs, json)
