"""Options of `wsabie train`."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from wsabie.cli.inputs.options import parse_metric, parse_positive

TrainModel = Annotated[Path, typer.Option(help="Folder for the model.")]
Valid = Annotated[Path | None, typer.Option(help="Validation data; otherwise --hold-out rows are set aside.")]
HoldOut = Annotated[
    float | None,
    typer.Option(min=0, max=0.9, help="Fraction of rows (whole groups) that choose the epoch (default: 0.1)."),
]
Metric = Annotated[
    str | None,
    typer.Option(
        parser=parse_metric,
        metavar="FIGURE",
        help="Figure of these rows that chooses the epoch: MAP, p@k; of parts also pairs (default: MAP).",
    ),
]
Config = Annotated[
    Path | None,
    typer.Option(help="TOML file with any parameters of the estimator (dim = 50); options here go before it."),
]
Dim = Annotated[int | None, typer.Option(min=1, max=4096, help="Dimensions of the space (default: 100).")]
Loss = Annotated[
    Literal["warp", "auc", "owpc", "k-os"] | None,
    typer.Option(help="warp, auc, owpc or k-os; order_statistic in --config is for k-os alone (default: warp)."),
]
Similarity = Annotated[
    Literal["dot", "euclidean", "cosine"] | None, typer.Option(help="dot, euclidean or cosine (default: dot).")
]
Epochs = Annotated[int | None, typer.Option(min=1, help="Passes over the pairs (default: by size).")]
LearningRate = Annotated[
    float | None, typer.Option(parser=parse_positive, metavar="NUMBER", help="First step (default: by size).")
]
MaxNorm = Annotated[
    float | None,
    typer.Option(parser=parse_positive, metavar="NUMBER", help="Limit on the norm of every row (default: 1.5)."),
]
Ensemble = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Train N models and add up their scores (default: one model)."),
]
EnsembleBy = Annotated[
    Literal["seed", "rows", "columns"] | None,
    typer.Option(help="How the N models differ: seed, rows (bags) or columns (kinds of features) (default: seed)."),
]
ImageLabel = Annotated[
    str | None,
    typer.Option(
        "--whole", metavar="LABEL", help="Of COCO and Pascal VOC: the whole pictures too, which show a LABEL."
    ),
]
Relations = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="For parts: related labels, object TAB part a line (see `wsabie labels pairs`); "
        "or RELATION=FILE, such as is-a=kinds.tsv.",
    ),
]
Labels = Annotated[
    Path | None,
    typer.Option(help="Further labels that devise and conse can rank, though no row has them: a file, one a line."),
]
Nodes = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="With --ray and shards: nodes that train at most (default: all)."),
]
Only = Annotated[
    list[str] | None,
    typer.Option(metavar="RELATION", help="Of a TOML file: learn this relation, and others that are named so."),
]
StopOn = Annotated[
    str | None,
    typer.Option(metavar="RELATION", help="Of a TOML file: the relation that chooses the epoch (default: all)."),
]
Start = Annotated[
    Path | None,
    typer.Option("--from", metavar="MODEL", help="Begin with the space of this model of the same features."),
]
Hogwild = Annotated[bool, typer.Option("--hogwild", help="Lock-free threads instead of reproducible ones.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on from where a stopped run was.")]
Restart = Annotated[bool, typer.Option("--anew", help="Remove what a stopped run has kept, and begin anew.")]
Log = Annotated[Path | None, typer.Option(help="Append the figures of every epoch to this file (JSON lines).")]
