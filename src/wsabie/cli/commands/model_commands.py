"""Commands of models: train, evaluate, update, edit, annotate, neighbours, info. Imports are lazy."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from wsabie.cli.collection import command_group
from wsabie.cli.commands import (
    data_commands,
    export_commands,
    label_commands,
    parts_commands,
    search_commands,
    serve_commands,
    workflow_commands,
)
from wsabie.cli.commands.train_options import (
    Config,
    Dim,
    Ensemble,
    EnsembleBy,
    Epochs,
    Hogwild,
    HoldOut,
    ImageLabel,
    Labels,
    LearningRate,
    Log,
    Loss,
    MaxNorm,
    Metric,
    Nodes,
    Only,
    Relations,
    Restart,
    Resume,
    Similarity,
    Start,
    StopOn,
    TrainModel,
    Valid,
)
from wsabie.cli.inputs.options import (
    AllowOverlap,
    Augment,
    Candidates,
    Command,
    Components,
    Crop,
    Data,
    Describe,
    Hierarchies,
    Items,
    Json,
    Kind,
    LabelKnowledge,
    LabelLimit,
    Landmarks,
    MinRows,
    Model,
    Normalise,
    OptionalSeed,
    Output,
    ParentFirst,
    Rate,
    RayAddress,
    Rejects,
    Replay,
    Size,
    Strict,
    Terms,
    Threads,
    WordVectors,
    allow_unreadable_paths,
    collect_feature_options,
    find_stated_options,
    refuse_options,
)
from wsabie.core.errors import InputError


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
        workflow_commands.compare,
        workflow_commands.tune,
        data_commands.features,
        data_commands.shards,
        data_commands.split,
        workflow_commands.demo,
        info,
        export_commands.export,
        data_commands.hierarchy,
        data_commands.pairs,
        label_commands.labels,
        label_commands.vectors,
        serve_commands.serve,
        serve_commands.token,
    ):
        app.command(cls=Command)(allow_unreadable_paths(command))
    app.add_typer(command_group.make_group())


def train(
    data: Data,
    model: TrainModel,
    kind: Kind = "wsabie",
    valid: Valid = None,
    hold_out: HoldOut = None,
    metric: Metric = None,
    min_rows: MinRows = 1,
    config: Config = None,
    dim: Dim = None,
    loss: Loss = None,
    similarity: Similarity = None,
    epochs: Epochs = None,
    learning_rate: LearningRate = None,
    max_norm: MaxNorm = None,
    ensemble: Ensemble = None,
    ensemble_by: EnsembleBy = None,
    items: Items = None,
    image_label: ImageLabel = None,
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
    relations: Relations = None,
    vectors: WordVectors = None,
    knowledge: LabelKnowledge = None,
    labels: Labels = None,
    threads: Threads = None,
    ray: RayAddress = None,
    nodes: Nodes = None,
    seed: OptionalSeed = None,
    only: Only = None,
    stop_on: StopOn = None,
    start: Start = None,
    replay: Replay = None,
    hogwild: Hogwild = False,
    resume: Resume = False,
    restart: Restart = False,
    log: Log = None,
    strict: Strict = False,
    rejects: Rejects = None,
    json: Json = False,
) -> None:
    """Train a model on tagged data; new data is then annotated with `wsabie annotate`."""
    from wsabie.cli.inputs.command_inputs import load_annotator
    from wsabie.cli.inputs.knowledge_files import refuse_other_kinds
    from wsabie.cli.models.spaces import is_declaration, run_train_space
    from wsabie.cli.models.train import (
        TrainRequest,
        collect_parameters,
        make_estimator,
        refuse_held_out_twice,
        refuse_without_epochs,
        run_train,
    )
    from wsabie.models.estimator_specs import find_spec
    from wsabie.workflows.train.model_training import TrainingRecipe

    run = find_stated_options(threads=threads, seed=seed)
    shape = find_stated_options(dim=dim, loss=loss, similarity=similarity, epochs=epochs)
    shape |= find_stated_options(learning_rate=learning_rate, max_norm=max_norm, replay=replay)
    feature_options = find_stated_options(
        describe=describe, components=components, landmarks=landmarks, terms=terms, size=size
    )
    feature_options |= find_stated_options(augment=augment, crop=crop, normalise=normalise, output=output, rate=rate)
    label_options = find_stated_options(vectors=vectors, knowledge=knowledge, labels=labels)
    if nodes is not None and ray is None:
        raise InputError("--nodes says how many nodes of a cluster train; give its address too: --ray ADDRESS")
    if is_declaration(data):
        unsupported = find_stated_options(
            valid=valid, config=config, ensemble=ensemble, ensemble_by=ensemble_by, relations=relations
        )
        unsupported |= (
            feature_options
            | label_options
            | find_stated_options(items=items, whole=image_label, metric=metric, ray=ray)
        )
        unsupported |= find_stated_options(replay=replay, **{"from": start})
        refuse_options(unsupported, "what a TOML file says in its tables, or what a space does not have")
        if kind != "wsabie" or min_rows != 1 or hogwild:
            raise InputError("a space has no --kind, --min-rows or --hogwild; leave them out, or give other data")
        run_train_space(
            data,
            model,
            shape | run,
            hold_out=0.1 if hold_out is None else hold_out,
            only=only or (),
            stop_on=stop_on or "mean",
            resume=resume,
            restart=restart,
            log=log,
            rejects_file=rejects,
            strict=strict,
            json=json,
        )
        return
    refuse_options(find_stated_options(only=only, stop_on=stop_on), "which relations of a TOML file count")
    refuse_other_kinds(kind, label_options)
    refuse_without_epochs(kind, {"valid": valid, "hold-out": hold_out, "metric": metric, "log": log})
    refuse_held_out_twice(valid, hold_out, metric)
    shape |= {"deterministic": False} if hogwild else {}
    start_model = None if start is None else load_annotator(start, threads)
    if start_model is not None:
        shape = {
            name: getattr(start_model.model, name) for name in ("dim", "similarity") if hasattr(start_model.model, name)
        } | shape
    parameters = collect_parameters(kind, config, shape, run, label_options, relations)
    estimator = make_estimator(kind, parameters, run, ensemble, ensemble_by)
    recipe = TrainingRecipe(
        str(data),
        model,
        estimator,
        collect_feature_options(feature_options),
        min_rows=min_rows,
        resume=resume,
        system=kind,
        run_options=run,
        start=start_model,
        **find_stated_options(hold_out=hold_out if find_spec(kind).trained else 0.0, metric=metric),
    )
    run_train(TrainRequest(data, valid, recipe, log, rejects, strict, json, items, image_label, ray, nodes, restart))


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
    ray: RayAddress = None,
    strict: Strict = False,
    rejects: Rejects = None,
    json: Json = False,
) -> None:
    """Measure a model on data with known labels: p@k, recall@k, MAP, AUC, nDCG, coverage, with intervals.

    For objects and parts, also rank labels of two pictures together, and of one given the other's label.
    """
    from wsabie.cli.models.evaluate import run_evaluate
    from wsabie.cli.models.parts_evaluation import PartsOptions, refuse_parts_options
    from wsabie.cli.models.spaces import load_space, run_evaluate_space

    space, parts = load_space(model, threads), PartsOptions(quadruplets, seed, relations, among)
    if space is not None:
        refuse_options(find_stated_options(exclude=exclude, candidates=candidates), "what labels a row has")
        refuse_options(find_stated_options(ray=ray), "where models work, and a space works here")
        refuse_parts_options(parts, model)
        run_evaluate_space(space, model, data, allow_overlap, threads, strict, rejects, json, hierarchy, parent_first)
        return
    run_evaluate(
        model,
        data,
        allow_overlap,
        exclude,
        threads,
        strict,
        rejects,
        json,
        parts,
        hierarchy,
        parent_first,
        candidates,
        ray,
    )


def annotate(
    model: Model,
    inputs: Annotated[
        list[Path] | None,
        typer.Argument(metavar="INPUTS", help="Pictures, folders, data in any source format; of a space also names."),
    ] = None,
    k: LabelLimit = 10,
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
    ray: RayAddress = None,
    strict: Strict = False,
    rejects: Rejects = None,
    json: Json = False,
) -> None:
    """Give new pictures or rows their best labels; with a space, rank items of another kind."""
    from wsabie.cli.models.model_queries import run_annotate
    from wsabie.cli.models.spaces import load_space, refuse_space_options, run_annotate_space

    space = load_space(model, threads)
    if space is not None:
        unsupported = find_stated_options(
            explain=explain, label=label, hierarchy=hierarchy, region=region, candidates=candidates, out=to
        )
        unsupported |= find_stated_options(min_precision=min_precision)
        refuse_options(unsupported, "what labels are")
        refuse_options(find_stated_options(ray=ray), "where models work, and a space works here")
        run_annotate_space(space, model, inputs or (), text or (), k, relation, threads, strict, rejects, json)
        return
    refuse_space_options(model, find_stated_options(relation=relation))
    if not inputs and not text:
        raise InputError("nothing to annotate; give pictures, folders, or data in any source format")
    if to is not None:
        from wsabie.cli.models.annotation_file import run_annotate_to_file

        unsupported = find_stated_options(explain=explain, label=label, hierarchy=hierarchy, region=region, text=text)
        unsupported |= find_stated_options(parent_first=parent_first or None)
        refuse_options(unsupported, "what single answers are like, and --out writes those of many rows")
        run_annotate_to_file(
            model, inputs or [], to, k, candidates, threads, strict, rejects, json, min_precision, ray, exact
        )
        return
    arguments = inputs or [], k, explain, label, threads, strict, rejects, json, hierarchy, parent_first
    run_annotate(model, *arguments, text or (), region or (), candidates, exact, min_precision, ray)


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
    """Learn new rows and labels; the same command resumes a stopped run."""
    from wsabie.cli.models.update import run_update
    from wsabie.storage.atomic_files import lock_folder

    with lock_folder(model):
        run_update(model, data, replay, remember, forget, step, epochs, threads, strict, rejects, json)


def edit(
    model: Model,
    action: Annotated[
        Literal["rename", "merge", "remove"], typer.Argument(metavar="rename|merge|remove", help="What is done.")
    ],
    names: Annotated[
        list[str], typer.Argument(metavar="LABEL...", help="rename OLD NEW; merge INTO OTHER ...; remove LABEL ...")
    ],
    json: Json = False,
) -> None:
    """Rename, merge or remove labels of a model; the ids of labels stay."""
    from wsabie.cli.models.update import run_edit_labels
    from wsabie.storage.atomic_files import lock_folder

    with lock_folder(model):
        run_edit_labels(model, action, names, json)


def neighbours(
    model: Model,
    label: Annotated[str, typer.Argument(metavar="LABEL", help="A label of the model, or a thing of a space.")],
    k: LabelLimit = 10,
    of: Annotated[str | None, typer.Option(metavar="KIND", help="Of a space: the kind of the thing.")] = None,
    words: Annotated[bool, typer.Option("--words", help="Of documents in a space: words nearest to a word.")] = False,
    hierarchy: Hierarchies = None,
    parent_first: ParentFirst = False,
    json: Json = False,
) -> None:
    """Find the labels nearest to a label: synonyms, translations, near misses."""
    from wsabie.cli.models.model_queries import run_neighbours
    from wsabie.cli.models.spaces import load_space, refuse_space_options, run_neighbours_space

    space = load_space(model)
    if space is not None:
        refuse_options(find_stated_options(hierarchy=hierarchy), "what labels are")
        run_neighbours_space(space, label, of, k, json, words)
        return
    refuse_space_options(model, find_stated_options(of=of, words=words or None))
    run_neighbours(model, label, k, json, hierarchy, parent_first)


def info(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Model folder, or a folder of shards.")],
    epochs: Annotated[bool, typer.Option("--epochs", help="Also the figures of every epoch.")] = False,
    verify: Annotated[bool, typer.Option("--verify", help="Of shards: read all and compare their checksums.")] = False,
    json: Json = False,
) -> None:
    """Show the facts of a model: sizes, parameters, training data and figures; or of a folder of shards."""
    from wsabie.cli.data.shards import run_shards_info
    from wsabie.cli.inputs.command_inputs import refuse_collection_folder
    from wsabie.cli.models.model_queries import run_info
    from wsabie.cli.models.spaces import load_space, run_info_space
    from wsabie.io.shards.shard_folder import is_shard_folder

    if is_shard_folder(model):
        refuse_options(find_stated_options(epochs=epochs or None), "the training of a model, and shards are data")
        run_shards_info(model, verify, json)
        return
    refuse_options(
        find_stated_options(verify=verify or None),
        "what is done with shards, and a model is verified when it is opened",
    )
    refuse_collection_folder(model)
    space = load_space(model)
    if space is not None:
        run_info_space(space, model, epochs, json)
        return
    run_info(model, epochs, json)
