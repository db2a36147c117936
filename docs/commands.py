"""The generated parts of `reference/command-line`: what each command does, and its arguments and options.

`python docs/commands.py` writes them again; a test says when that is needed. The index lists the commands by the
groups of the help, and every group has a page. Sentences outside of the marked blocks are written by hand.
"""

import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import typer

from wsabie.cli.main import app

FOLDER = Path(__file__).parent / "reference" / "command-line"
_BLOCK = re.compile(r"(<!-- (help|options|group): ([^>]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def commands() -> dict[str, Any]:
    """Return every command by name, in the order of the help."""
    return {name: command for group in groups().values() for name, command in group.items()}


def groups() -> dict[str, dict[str, Any]]:
    """Return the commands of each page by name: pages of the groups of the help, and of groups of commands."""
    pages: dict[str, dict[str, Any]] = {}
    for page, name, command in _list_commands(typer.main.get_command(app)):
        pages.setdefault(page, {})[name] = command
    return pages


def _list_commands(application: Any) -> Iterator[tuple[str, str, Any]]:
    for name in application.list_commands(None):
        command = application.commands[name]
        if hasattr(command, "commands"):
            for inner in command.list_commands(None):
                yield name, f"{name} {inner}", command.commands[inner]
        else:
            yield _find_panel(command).lower().replace(" ", "-"), name, command


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


def group_table(page: str) -> str:
    """Return the commands of a page, each with a link and the first sentence of its help, as a Markdown table."""
    lines = ["| command | what it does |", "|---|---|"]
    for name, command in groups()[page].items():
        lines.append(f"| [`{name}`]({page}.md#{name.replace(' ', '-')}) | {command.help.partition(chr(10))[0]} |")
    return "\n".join(lines) + "\n"


def help_text(command: Any) -> str:
    """Return the help of a command, a sentence a line."""
    return re.sub(r"(?<=[.:]) (?=[A-Z])", "\n", command.help) + "\n"


def updated(page: str) -> str:
    """Return the page with its generated blocks as the commands are now."""
    known = commands()

    def write(block: re.Match[str]) -> str:
        opening, kind, name, end = block.groups()
        if kind == "group":
            return f"{opening}{group_table(name)}{end}"
        return f"{opening}{table(known[name]) if kind == 'options' else help_text(known[name])}{end}"

    return _BLOCK.sub(write, page)


if __name__ == "__main__":
    for path in sorted(FOLDER.glob("*.md")):
        path.write_text(updated(path.read_text(encoding="utf-8")), encoding="utf-8")
