"""`wsabie demo`."""

import sys
from pathlib import Path
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


def _program() -> str:
    """How this program was called, so that the line can be copied where it is not on the PATH."""
    called = Path(sys.argv[0])
    return "wsabie" if called.name != "wsabie" or which("wsabie") == str(called) else str(called)
