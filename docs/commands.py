"""The tables of arguments and options in `reference/command-line.md`, made from the commands themselves.

`python docs/commands.py` writes them again; a test says when that is needed.
"""

import re
from itertools import groupby
from pathlib import Path
from typing import Any

import typer

from wsabie.cli.main import app

PAGE = Path(__file__).parent / "reference" / "command-line.md"
_BLOCK = re.compile(r"(<!-- options: ([^>]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def commands() -> dict[str, Any]:
    """Return every command by name, in the order of the help."""
    return _list_commands(typer.main.get_command(app), "")


def _list_commands(group: Any, prefix: str) -> dict[str, Any]:
    commands: dict[str, Any] = {}
    for name in group.list_commands(None):
        command = group.commands[name]
        inner = hasattr(command, "commands")
        commands |= _list_commands(command, f"{prefix}{name} ") if inner else {prefix + name: command}
    return commands


def table(command: Any) -> str:
    """Return arguments and options of a command as a Markdown table, in the groups of the help."""
    lines = ["| | | default |", "|---|---|---|"]
    parameters = [parameter for parameter in command.params if parameter.name != "help"]
    for panel, group in groupby(sorted(parameters, key=_panel_order(parameters)), key=_find_panel):
        lines += [f"| **{panel}** | | |"] if panel else []
        lines += map(_line, group)
    return "\n".join(lines) + "\n"


def _panel_order(parameters: list[Any]) -> Any:
    """Return the sort key that keeps groups together, everyday options first."""
    panels = ["", *dict.fromkeys(map(_find_panel, parameters))]
    return lambda parameter: panels.index(_find_panel(parameter))


def _find_panel(parameter: Any) -> str:
    return getattr(parameter, "rich_help_panel", None) or ""


def _line(parameter: Any) -> str:
    name = parameter.opts[0]
    if not name.startswith("-"):
        name = name.upper() + (" ..." if parameter.nargs == -1 else "")
    default = "required" if parameter.required else ""
    if not parameter.required and parameter.default is not None and parameter.default is not False:
        default = f"`{parameter.default}`"
    return f"| `{name}` | {parameter.help} | {default} |"


def updated(page: str) -> str:
    """Return the page with its tables as the commands are now."""
    known = commands()
    return _BLOCK.sub(lambda block: f"{block[1]}{table(known[block[2]])}{block[3]}", page)


if __name__ == "__main__":
    PAGE.write_text(updated(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
