"""Tables and figures of the papers: `python -m papers list`, `python -m papers wsabie-table-2`."""

import typer

from papers.command_line import reproduce_table
from wsabie.cli import main

app = typer.Typer(name="python -m papers", add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
reproduce_table.register(app)


def run() -> None:
    """Run the command; exit codes are those of `wsabie`."""
    main.run(app)


if __name__ == "__main__":
    run()
