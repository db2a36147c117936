"""`wsabie demo`."""

import sys
from pathlib import Path
from shlex import quote
from shutil import which
from typing import Annotated, Literal

import typer

from wsabie.cli.command import command, options
from wsabie.cli.options import OutputOptions, SeededThreadOptions
from wsabie.cli.output import NARROW, TerminalProgress, out, show_json, show_table


@options
class DemoOptions:
    """Options of `wsabie demo`."""

    out: Annotated[Path, typer.Option(help="Folder for the model and the report.")] = Path("wsabie-demo")
    part: Annotated[
        Literal["emoji", "drawings", "all", "documents"],
        typer.Option(help="Pictures: emoji, drawings, or all that are installed; or documents, which takes seconds."),
    ] = "all"
    machine: SeededThreadOptions = SeededThreadOptions()
    output: OutputOptions = OutputOptions()


@command("demo", "demo --part documents --out text-demo")
def demo(options: DemoOptions) -> None:
    """Train on the bundled sample collection, compare with baselines, write a report."""
    if options.part == "documents":
        _show_document_demo(options)
    else:
        _show_image_demo(options)


def _show_image_demo(options: DemoOptions) -> None:
    """Run the demonstration, and print the paths of its results."""
    from wsabie.storage.model_folder import refuse_foreign_files
    from wsabie.storage.output_checks import check_output_paths
    from wsabie.workflows.demos import run_image_demo

    folder, machine = options.out, options.machine
    refuse_foreign_files(folder / "model")
    check_output_paths(("html", folder / "report.html"), folder=folder / "model")
    result = run_image_demo(
        folder,
        part=options.part,
        threads=machine.threads,
        seed=machine.seed,
        executor=machine.make_executor(),
        progress=TerminalProgress(),
    )
    if options.output.json:
        show_json({**result.comparison.as_dict(), "model": str(result.model), "report": str(result.report)})
        return
    table, facts = result.comparison.table(NARROW), result.comparison.task.facts
    n_test = result.comparison.entries[0].evaluation.n_rows  # pictures with only unknown labels are not evaluated
    show_table(
        f"{n_test:,} held-out pictures, {facts.labels:,} labels, {facts.train_rows:,} training pictures",
        table.headers,
        table.rows,
    )
    out.print(f"model:  {result.model}\nreport: {result.report.resolve()}")
    out.print(f"try:    {_format_program()} neighbours {result.model} star")


EXAMPLE_DECLARATION = """\
[kinds.text]
data = "texts.jsonl"   # {"id": "a", "text": "...", "labels": ["page"]} on a line; texts of a label belong together
scaling = "tfidf"

[relations.page]
query = "text"
target = "text"
names = "labels"
"""
"""Declaration in TOML for the user's own texts."""


def _show_document_demo(options: DemoOptions) -> None:
    """Run the demonstration of documents, and show the commands for other texts."""
    from wsabie.storage.model_folder import refuse_foreign_files
    from wsabie.storage.output_checks import check_output_paths
    from wsabie.workflows.demos import QUESTION, WORD, run_document_demo

    folder, machine = options.out, options.machine
    refuse_foreign_files(folder / "model")
    check_output_paths(folder=folder / "model")
    result = run_document_demo(
        folder / "model", threads=machine.threads, seed=machine.seed, progress=TerminalProgress()
    )
    difference, facts = result.difference, result.facts
    if options.output.json:
        evaluations = {name: evaluation.as_dict() for name, evaluation in result.evaluations.items()}
        answers = {"question": QUESTION, "answers": result.answers, "word": WORD, "near": result.words}
        show_json(
            {
                "schema": 1,
                "model": str(result.model),
                **facts,
                "evaluations": evaluations,
                "difference": difference._asdict(),
                **answers,
            }
        )
        return
    metrics = ("recall@10", "MAP", "p@1")
    show_table(
        f"{result.evaluations['space'].n_rows:,} held-out texts look for those of their page or file among others; "
        f"{facts['documents']:,} texts, {facts['words']:,} words",
        ["", *metrics],
        [
            [name, *(f"{evaluation.means[metric]:.3f}" for metric in metrics)]
            for name, evaluation in result.evaluations.items()
        ],
    )
    out.print(
        f"recall@10, space minus cosine: {difference.mean:+.3f} (95 % interval {difference.low:+.3f} to "
        f"{difference.high:+.3f})"
    )
    model = quote(str(result.model))
    out.print(f'\n$ {_format_program()} annotate {model} --text "{QUESTION}" -k 3')
    for name, score in result.answers:
        out.print(f"  {name} {score:.2f}")
    out.print(f"$ {_format_program()} neighbours {model} {WORD} --words -k 5")
    out.print(f"  {'  '.join(f'{word} {cosine:.2f}' for word, cosine in result.words)}")
    out.print(f"\nwith your own texts, from a file texts.toml:\n\n{EXAMPLE_DECLARATION}", markup=False)
    out.print(f"$ {_format_program()} train texts.toml --model my-texts")


def _format_program() -> str:
    """Return the name or path of this program for lines to copy, if it is not on the PATH."""
    program = Path(sys.argv[0])
    return "wsabie" if program.name != "wsabie" or which("wsabie") == str(program) else str(program)
