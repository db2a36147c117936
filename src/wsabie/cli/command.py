"""Commands of typer from functions that take one object of options, and their help in groups.

Options are fields of frozen dataclasses; a field that is such a dataclass itself is a group of options.
"""

import inspect
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar, dataclass_transform, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from wsabie.cli.errors import check_path
from wsabie.core.errors import InputError

T = TypeVar("T")
Command = Callable[[Any], None]

_MAIN_PANEL = "Options"


@dataclass_transform(frozen_default=True, kw_only_default=True)
def options(cls: type[T]) -> type[T]:
    """Make a frozen dataclass of options; `panel` of the class is their heading in the help."""
    return dataclass(frozen=True, kw_only=True, repr=False, eq=False)(cls)  # less to compile at every start


@dataclass(frozen=True)
class NotFor:
    """Mark of an option, or of a group, that some cases of a command do not take.

    Attributes
    ----------
    subjects : dict
        For each of these cases what the option says, for the sentence "--flag says ...; leave --flag out". An empty
        text makes an exception from the mark of the group.
    """

    subjects: dict[str, str]

    def __init__(self, **subjects: str) -> None:
        object.__setattr__(self, "subjects", subjects)


@dataclass(frozen=True)
class _Leaf:
    """One option of a class of options, with its place in the groups."""

    name: str
    hint: Any
    default: Any
    panel: str | None
    marks: tuple[NotFor, ...]
    path: tuple[str, ...] = field(default=())

    @property
    def flag(self) -> str:
        """Flag without its hyphens; the metavar of an argument."""
        info = _find_info(self.hint)
        declared = [word for word in (info.default, *(info.param_decls or ())) if isinstance(word, str)]
        return (declared[0] if declared else self.name).lstrip("-").replace("_", "-")

    def read(self, values: Any) -> Any:
        """Read the value of an object of options."""
        for name in self.path:
            values = getattr(values, name)
        return getattr(values, self.name)

    def is_stated(self, values: Any) -> bool:
        """Return True if the value is not the default."""
        value = self.read(values)
        return bool(value != self.default and value is not None)


def _find_info(hint: Any) -> Any:
    return next(mark for mark in get_args(hint) if isinstance(mark, typer.models.ParameterInfo))


@cache
def _get_hints(cls: Any) -> dict[str, Any]:
    return get_type_hints(cls, include_extras=True)


def list_leaves(cls: type) -> tuple[_Leaf, ...]:
    """List the options of a class and of its groups, in order."""
    return tuple(_iterate_leaves(cls, None, (), ()))


def _iterate_leaves(cls: Any, panel: str | None, marks: tuple[NotFor, ...], path: tuple[str, ...]) -> Iterator[_Leaf]:
    hints = _get_hints(cls)
    panel = getattr(cls, "panel", panel)
    for entry in fields(cls):
        hint = hints[entry.name]
        group = _find_group(hint)
        more = tuple(mark for mark in get_args(hint)[1:] if isinstance(mark, NotFor))
        if group is not None:
            yield from _iterate_leaves(group, panel, marks + more, (*path, entry.name))
        else:
            default = inspect.Parameter.empty if entry.default is MISSING else entry.default
            yield _Leaf(entry.name, hint, default, panel, marks + more, path)


def list_stated(values: Any) -> dict[str, Any]:
    """List the options of an object that are stated: not their defaults."""
    return {leaf.name: leaf.read(values) for leaf in list_leaves(type(values)) if leaf.is_stated(values)}


def refuse_options_for(case: str, values: Any) -> None:
    """Refuse stated options that this case of the command does not take."""
    for leaf in list_leaves(type(values)):
        subject = next((mark.subjects[case] for mark in reversed(leaf.marks) if case in mark.subjects), "")
        if subject and leaf.is_stated(values):
            raise InputError(f"--{leaf.flag} says {subject}; leave --{leaf.flag} out")


def _build(cls: Any, values: dict[str, Any]) -> Any:
    """Build an object of options from the values of all leaves."""
    groups = {entry.name: _find_group(_get_hints(cls)[entry.name]) for entry in fields(cls)}
    return cls(**{name: values[name] if group is None else _build(group, values) for name, group in groups.items()})


def _find_group(hint: Any) -> Any:
    """Find the class of options that a field holds; None for a single option."""
    base = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    return base if is_dataclass(base) else None


def _make_parameter(leaf: _Leaf) -> inspect.Parameter:
    """Make the parameter that typer reads; paths may be unreadable, for the code that opens them reports the error."""
    info, base = copy(_find_info(leaf.hint)), get_args(leaf.hint)[0]
    info.readable = False
    info.rich_help_panel = info.rich_help_panel or leaf.panel
    if isinstance(info, typer.models.OptionInfo):
        declared = (*(() if info.default is ... else (info.default,)), *(info.param_decls or ()))
        info.param_decls = declared or ((f"--{leaf.flag}",) if base is bool else None)  # without --no-...
    info.default = ... if leaf.default is inspect.Parameter.empty else leaf.default
    return inspect.Parameter(leaf.name, inspect.Parameter.KEYWORD_ONLY, default=info, annotation=base)


@dataclass(frozen=True)
class CommandEntry:
    """Command with its help.

    Attributes
    ----------
    run : callable
        Function of the options.
    name : str
    examples : sequence of str
        Command lines without "wsabie".
    """

    run: Command
    name: str
    examples: Sequence[str]

    def __call__(self, options: Any) -> None:
        self.run(options)

    def register(self, app: typer.Typer, panel: str | None = None) -> None:
        """Add the command to an application."""
        cls = get_type_hints(self.run)["options"]
        parameters = [_make_parameter(leaf) for leaf in list_leaves(cls)]

        def call(**values: Any) -> None:
            self.run(_build(cls, values))

        call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        call.__doc__ = self.run.__doc__
        epilog = "\n".join(f"wsabie {example}" for example in self.examples)
        app.command(self.name, cls=_HelpfulCommand, epilog=epilog, rich_help_panel=panel)(call)


def command(*examples: str, name: str = "") -> Callable[[Command], CommandEntry]:
    """Make a command of a function that takes `options`; its docstring is the help."""

    def decorate(function: Command) -> CommandEntry:
        return CommandEntry(function, name or function.__name__, examples)

    return decorate


class _HelpfulCommand(TyperCommand):
    """Command that checks its paths, and shows options in groups and examples."""

    def invoke(self, ctx: Any) -> Any:
        for value in ctx.params.values():
            for path in value if isinstance(value, list | tuple) else (value,):
                if isinstance(path, Path):
                    check_path(path)
        return super().invoke(ctx)

    def get_params(self, ctx: Any) -> Any:
        parameters = super().get_params(ctx)
        for parameter in parameters:
            if parameter.nargs == -1:  # `INPUTS` in place of `INPUTS <list[Path]>`
                vars(parameter)["display_type_rich"] = lambda ctx: None
        return parameters

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, everyday options, and then the other groups in the order of the fields."""
        groups: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for parameter in self.get_params(ctx):
            is_argument = parameter.param_type_name == "argument"
            panel = "Arguments" if is_argument else getattr(parameter, "rich_help_panel", None) or _MAIN_PANEL
            if (record := parameter.get_help_record(ctx)) is not None:
                groups[panel].append(record)
        first = [panel for panel in ("Arguments", _MAIN_PANEL) if panel in groups]
        for panel in dict.fromkeys([*first, *groups]):
            with formatter.section(panel):
                formatter.write_dl(groups[panel])

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the examples as they are to be typed."""
        if self.epilog:
            with formatter.section("Examples"):
                for line in self.epilog.splitlines():
                    formatter.write(f"{'':>{formatter.current_indent}}{line}\n")


class GroupedCommands(TyperGroup):
    """Group of commands whose help lists them below headings; `order` has the names, if not as registered."""

    order: ClassVar[tuple[str, ...]] = ()

    def list_commands(self, ctx: Any) -> list[str]:
        """List the names in the order of the help."""
        return list(self.order) or super().list_commands(ctx)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands in groups, each with the first sentence of its help."""
        groups: dict[str, list[tuple[str, str]]] = defaultdict(list)
        limit = formatter.width - 6 - max(map(len, self.commands))
        for name in self.list_commands(ctx):
            entry: Any = self.commands[name]
            groups[entry.rich_help_panel or "Commands"].append((name, entry.get_short_help_str(limit)))
        for panel, rows in groups.items():
            with formatter.section(panel):
                formatter.write_dl(rows)
