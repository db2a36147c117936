"""`wsabie demo`."""

import sys
from pathlib import Path
from shutil import which
from typing import Literal

from wsabie.cli.framework import Report, command, option
from wsabie.cli.output import NARROW, TerminalProgress, out, quote_path, show_table
from wsabie.cli.shared_options import OutputOptions, SeededThreadOptions

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


class DemoOptions(OutputOptions, SeededThreadOptions):
    """Options of `wsabie demo`."""

    out: Path = option("Folder for the model and the report.", Path("wsabie-demo"))
    part: Literal["photos", "emoji", "drawings", "all", "documents"] = option(
        "Photos; emoji, drawings or all of both; or documents.", "photos"
    )


@command("demo", "demo --part documents --out text-demo")
def demo(options: DemoOptions) -> Report:
    """Train on bundled samples and compare with baselines.

    The result is a report.
    """
    from wsabie.storage.model_folder import refuse_foreign_files

    refuse_foreign_files(options.out / "model")
    return _show_document_demo(options) if options.part == "documents" else _show_image_demo(options)


def _show_image_demo(options: DemoOptions) -> Report:
    """Run the demonstration, and print the paths of its results."""
    from wsabie.workflows.demos import run_image_demo

    model, report = options.out / "model", options.out / "report.html"
    options.check_outputs(("html", report), folder=model)
    comparison = run_image_demo(options.out, **options.pick("part", "threads", "seed"), **options.resources())
    yield {**comparison.as_dict(), "model": model, "report": report}
    table, facts = comparison.table(NARROW), comparison.task.facts
    n_test = comparison.entries[0].evaluation.n_rows  # pictures with only unknown labels are not evaluated
    title = f"{n_test:,} held-out pictures, {facts.labels:,} labels, {facts.train_rows:,} training pictures"
    show_table(title, table.headers, table.rows)
    out.print(f"model:  {model}\nreport: {report.resolve()}")
    label = "castle" if options.part == "photos" else "star"
    out.print(f"try:    {_format_program()} neighbours {model} {label}")


def _show_document_demo(options: DemoOptions) -> Report:
    """Run the demonstration of documents, and show the commands for other texts."""
    from wsabie.workflows.demos import QUESTION, WORD, run_document_demo

    folder = options.out / "model"
    options.check_outputs(folder=folder)
    result = run_document_demo(folder, **options.pick("threads", "seed"), progress=TerminalProgress())
    difference, facts = result.difference, result.facts
    evaluations = {name: evaluation.as_dict() for name, evaluation in result.evaluations.items()}
    answers = {"question": QUESTION, "answers": result.answers, "word": WORD, "neighbours": result.words}
    figures = {"evaluations": evaluations, "difference": difference}
    yield {"model": folder, **facts, **figures, **answers}
    metrics, n_texts = ("recall@10", "MAP", "p@1"), f"{result.evaluations['space'].n_rows:,} held-out texts"
    counts = f"{facts['documents']:,} texts, {facts['words']:,} words"
    title = f"{n_texts} look for those of their page or file among others; {counts}"
    rows = [[name, *(f"{e.means[metric]:.3f}" for metric in metrics)] for name, e in result.evaluations.items()]
    show_table(title, ["", *metrics], rows)
    interval = f"95 % interval {difference.low:+.3f} to {difference.high:+.3f}"
    out.print(f"recall@10, space minus cosine: {difference.mean:+.3f} ({interval})")
    model = quote_path(folder)
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
