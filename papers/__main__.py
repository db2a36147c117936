"""Tables and figures of the papers: `python -m papers list`, `python -m papers wsabie-table-2`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from papers.command_line import run_reproduce
from wsabie.cli import main
from wsabie.cli.options import (
    Hierarchies,
    Json,
    LabelKnowledge,
    ParentFirst,
    Rejects,
    Seed,
    Strict,
    Threads,
    WordVectors,
)

app = typer.Typer(name="python -m papers", add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command()
def reproduce_table(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="Name of a table or figure; `list` shows all.")],
    data: Annotated[
        str | None,
        typer.Option(
            help="sample (default), visterm:S (generated; also tiny, M, imagenet, web), or a collection's path."
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the results (default: paper-results/TABLE).")] = None,
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
    n_held_out: Annotated[
        int | None,
        typer.Option("--held", min=2, help="devise-zero-shot: labels that each split holds out (default: 25)."),
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
    """Run a table or figure of the papers: their figures beside those of other data, and the verdicts."""
    parameters = find_stated_options(epochs=epochs)
    run_reproduce(
        table,
        data,
        out,
        parameters,
        threads,
        seed,
        seeds,
        min_rows,
        hierarchy,
        parent_first,
        artists,
        find_stated_options(vectors=vectors, knowledge=knowledge, inherit=inherit or None, n_held_out=n_held_out),
        strict,
        rejects,
        json,
    )


def find_stated_options(**options: Any) -> dict[str, Any]:
    """Return the options that the command line states."""
    return {name: value for name, value in options.items() if value is not None}


def run() -> None:
    """Run the command; exit codes are those of `wsabie`."""
    main.run(app)


if __name__ == "__main__":
    run()
