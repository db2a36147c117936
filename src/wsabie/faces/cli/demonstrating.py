"""`wsabie demo`."""

import sys
from pathlib import Path
from shlex import quote
from shutil import which

from wsabie.faces.cli.common import executor
from wsabie.faces.cli.terminal import NARROW, TerminalProgress, out, show_json, show_table


def demo_command(folder: Path, part: str, threads: int | None, seed: int, json: bool) -> None:
    """Run the demonstration and say where things are."""
    from wsabie.storage.folder import refuse_foreign
    from wsabie.storage.outputs import refuse_unwritable
    from wsabie.studies.demo import demonstrate

    refuse_foreign(folder / "model")
    refuse_unwritable(("html", folder / "report.html"), folder=folder / "model")
    made = demonstrate(
        folder, part=part, threads=threads, seed=seed, executor=executor(threads), progress=TerminalProgress()
    )
    if json:
        show_json({**made.comparison.as_dict(), "model": str(made.model), "report": str(made.report)})
        return
    table, facts = made.comparison.table(NARROW), made.comparison.task.facts
    judged = made.comparison.entries[0].evaluation.n_rows  # one whose labels are all unknown cannot be judged
    show_table(
        f"{judged:,} held-out pictures, {facts.labels:,} labels, {facts.train_rows:,} training pictures",
        table.headers,
        table.rows,
    )
    out.print(f"model:  {made.model}\nreport: {made.report.resolve()}")
    out.print(f"try:    {_program()} neighbours {made.model} star")


OWN = """\
[kinds.text]
data = "texts.jsonl"   # {"id": "a", "text": "...", "labels": ["page"]} on a line; texts of a label belong together
scaling = "tfidf"

[relations.page]
query = "text"
target = "text"
names = "labels"
"""
"""What a TOML file for the user's own texts says."""


def documents_command(folder: Path, threads: int | None, seed: int, json: bool) -> None:
    """Run the demonstration of documents, and say how to go on with other texts."""
    from wsabie.storage.folder import refuse_foreign
    from wsabie.storage.outputs import refuse_unwritable
    from wsabie.studies.demo_documents import QUESTION, WORD, demonstrate_documents

    refuse_foreign(folder / "model")
    refuse_unwritable(folder=folder / "model")
    made = demonstrate_documents(folder / "model", threads=threads, seed=seed, progress=TerminalProgress())
    gap, facts = made.difference, made.facts
    if json:
        found = {name: evaluation.as_dict() for name, evaluation in made.found.items()}
        answers = {"question": QUESTION, "answers": made.answers, "word": WORD, "near": made.words}
        show_json(
            {"schema": 1, "model": str(made.model), **facts, "found": found, "difference": gap._asdict(), **answers}
        )
        return
    metrics = ("recall@10", "MAP", "p@1")
    show_table(
        f"{made.found['space'].n_rows:,} held-out texts look for those of their page or file among others; "
        f"{facts['documents']:,} texts, {facts['words']:,} words",
        ["", *metrics],
        [[name, *(f"{found.means[metric]:.3f}" for metric in metrics)] for name, found in made.found.items()],
    )
    out.print(f"recall@10, space minus cosine: {gap.mean:+.3f} (95 % interval {gap.low:+.3f} to {gap.high:+.3f})")
    model = quote(str(made.model))
    out.print(f'\n$ {_program()} annotate {model} --text "{QUESTION}" -k 3')
    for name, score in made.answers:
        out.print(f"  {name} {score:.2f}")
    out.print(f"$ {_program()} neighbours {model} {WORD} --words -k 5")
    out.print(f"  {'  '.join(f'{word} {cosine:.2f}' for word, cosine in made.words)}")
    out.print(f"\nwith your own texts, from a file texts.toml:\n\n{OWN}", markup=False)
    out.print(f"$ {_program()} train texts.toml --model my-texts")


def _program() -> str:
    """How this program was called, so that the line can be copied where it is not on the PATH."""
    called = Path(sys.argv[0])
    return "wsabie" if called.name != "wsabie" or which("wsabie") == str(called) else str(called)
