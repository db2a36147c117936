"""The tables of arguments and options in `command-line.md`, made from the commands themselves.

`python docs/commands.py` writes them anew; a test says when that is needed.
"""

import re
from pathlib import Path
from typing import Any

import typer

from wsabie.cli.main import app

PAGE = Path(__file__).with_name("command-line.md")
_BLOCK = re.compile(r"(<!-- options: ([^>]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def commands() -> dict[str, Any]:
    """Every command by name."""
    group: Any = typer.main.get_command(app)
    found: dict[str, Any] = {}
    for name, command in group.commands.items():
        inner = getattr(command, "commands", None)
        found |= {name: command} if inner is None else {f"{name} {n}": c for n, c in inner.items()}
    return found


def table(command: Any) -> str:
    """Arguments and options of a command as a Markdown table."""
    lines = ["| | | default |", "|---|---|---|"]
    return "\n".join(lines + [_line(p) for p in command.params if p.name != "help"]) + "\n"


def _line(parameter: Any) -> str:
    name = parameter.opts[0]
    if not name.startswith("-"):
        name = name.upper() + (" ..." if parameter.nargs == -1 else "")
    default = "required" if parameter.required else ""
    if not parameter.required and parameter.default is not None and parameter.default is not False:
        default = f"`{parameter.default}`"
    return f"| `{name}` | {parameter.help} | {default} |"


def updated(page: str) -> str:
    """The page with its tables as the commands are now."""
    known = commands()
    return _BLOCK.sub(lambda found: f"{found[1]}{table(known[found[2]])}{found[3]}", page)


if __name__ == "__main__":
    PAGE.write_text(updated(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
