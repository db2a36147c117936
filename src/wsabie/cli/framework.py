"""Commands of typer from functions that take one object of options, and their help in groups.

Options are fields of classes that derive from `Options`. A command's class inherits the groups of options that it takes
as they are; a field whose type is such a class holds a group that has a mark or settings of its own.

A command yields its JSON document. With `--json` the document is printed and ends the run; otherwise the run goes on
and tells people the same in words. A block that has to end well, such as one that collects rejects, has no `yield`.
"""

import inspect
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing, nullcontext
from copy import copy
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeAlias, dataclass_transform, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from wsabie.cli.error_messages import check_path
from wsabie.core.errors import InputError
from wsabie.core.json_conversion import JsonObject as JsonObject
from wsabie.storage.atomic_files import lock_folder

Report: TypeAlias = Generator[object, None, None]
"""Run of a command: it yields the JSON document, a mapping or a record, and then shows the same to people."""
Command = Callable[[Any], Report | None]
Settings: TypeAlias = dict[str, Any]
"""Parameters of a call by their names."""

_MAIN_PANEL = "Options"


class Scope(dict[str, str]):
    """Scope of an option, or of a group: the cases of a command that do not take it, each with the reason.

    An empty reason makes an exception from the scope of the group.
    """


def only_for(cases: Iterable[str], *kinds: str) -> Scope:
    """Return the scope of an option that only some cases of a command take."""
    reason = f"it is for {', '.join(kinds)}"
    return Scope({case: reason for case in cases if case not in kinds})


def option(
    text: str,
    default: object = MISSING,
    flag: str | None = None,
    scope: Scope | None = None,
    kinds: Iterable[str] = (),
    **settings: Any,
) -> Any:
    """Declare an option; without a default it is False or None where its type allows that, else required.

    With the `kinds` of a command, the help names those first that take the option, as in "tidy, fill: ...".
    """
    info = typer.Option(..., *(flag or "").split(), help=text, **settings)
    scope = only_for(kinds, *text.partition(":")[0].split(", ")) if kinds else scope
    return field(default=default, metadata={"info": info, "scope": scope})


def argument(text: str, default: object = MISSING, **settings: Any) -> Any:
    """Declare an argument; without a default it is None where its type allows that, and else required."""
    return field(default=default, metadata={"info": typer.Argument(..., help=text, **settings)})


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(option, argument))
class Options:
    """Frozen dataclass of options; `panel` is their heading in the help."""

    panel: ClassVar[str | None] = None

    def __init_subclass__(cls, panel: str | None = None) -> None:
        cls.panel = panel or cls.panel
        for name, hint in vars(cls).get("__annotations__", {}).items():
            declared: Any = vars(cls).get(name)
            if getattr(declared, "default", None) is MISSING and (hint is bool or type(None) in get_args(hint)):
                declared.default = False if hint is bool else None
        dataclass(frozen=True, kw_only=True, repr=False, eq=False)(cls)  # less to compile at every start

    def pick(self, *names: str) -> Settings:
        """Return the values of some options, for parameters of the same names."""
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class _OptionField:
    """One option of a class of options, with its path through the groups."""

    name: str
    type: Any
    info: Any
    default: object
    panel: str | None
    scopes: tuple[Scope, ...]
    path: tuple[str, ...]

    @property
    def flag(self) -> str:
        """Flag without its hyphens; the metavar of an argument."""
        return next(iter(self.info.param_decls or ()), self.name).lstrip("-").replace("_", "-")

    def read(self, values: object) -> object:
        """Read the value of an object of options."""
        for name in (*self.path, self.name):
            values = getattr(values, name)
        return values

    def is_stated(self, values: "Options") -> bool:
        """Return True if the value is not the default."""
        value = self.read(values)
        return bool(value != self.default and value is not None)

    def make_parameter(self) -> inspect.Parameter:
        """Make the parameter that typer reads; the code that opens paths reports unreadable ones."""
        info = copy(self.info)
        info.readable, info.rich_help_panel = False, self.panel
        if isinstance(info, typer.models.OptionInfo):
            info.param_decls = info.param_decls or ([f"--{self.flag}"] if self.type is bool else None)  # no --no-...
        info.default = ... if self.default is MISSING else self.default
        return inspect.Parameter(self.name, inspect.Parameter.KEYWORD_ONLY, default=info, annotation=self.type)


@cache
def _get_hints(cls: type) -> dict[str, tuple[Any, ...]]:
    """Return the type of each field, and what annotates it."""
    hints = get_type_hints(cls, include_extras=True)
    return {name: get_args(hint) if get_origin(hint) is Annotated else (hint,) for name, hint in hints.items()}


def list_option_fields(
    cls: type, scopes: tuple[Scope, ...] = (), path: tuple[str, ...] = ()
) -> tuple[_OptionField, ...]:
    """List the parameters of a class and its groups in the order of the help: inherited ones come last."""
    leaves: list[_OptionField] = []
    own_names = vars(cls).get("__annotations__", {})
    hints_by_name = {entry.name: (*_get_hints(cls)[entry.name], *entry.metadata.values()) for entry in fields(cls)}

    def is_main(entry: Any) -> bool:
        """Return True for arguments and for options of the class itself."""
        is_argument = any(isinstance(mark, typer.models.ArgumentInfo) for mark in hints_by_name[entry.name])
        return is_argument or (entry.name in own_names and not path)

    for entry in sorted(fields(cls), key=lambda entry: not path and not is_main(entry)):
        base, *extras = hints_by_name[entry.name]
        all_scopes = (*scopes, *(mark for mark in extras if isinstance(mark, Scope)))
        if _is_group(base):
            leaves += list_option_fields(base, all_scopes, (*path, entry.name))
            continue
        owner: Any = next(base for base in cls.__mro__ if entry.name in vars(base).get("__annotations__", {}))
        panel = None if is_main(entry) else owner.panel
        info = next(mark for mark in extras if isinstance(mark, typer.models.ParameterInfo))
        leaves.append(_OptionField(entry.name, base, info, entry.default, panel, all_scopes, path))
    return tuple(leaves)


def _is_group(hint: object) -> bool:
    return isinstance(hint, type) and issubclass(hint, Options)


def list_stated(values: Options) -> Settings:
    """List the options of an object that are stated: not their defaults."""
    return {leaf.name: leaf.read(values) for leaf in list_option_fields(type(values)) if leaf.is_stated(values)}


def refuse_options(case: str, values: Options) -> None:
    """Refuse stated options that this case of the command does not take."""
    for leaf in list_option_fields(type(values)):
        reason = next((mark[case] for mark in reversed(leaf.scopes) if case in mark), "")
        if reason and leaf.is_stated(values):
            raise InputError(f"--{leaf.flag} cannot be used here: {reason}; leave --{leaf.flag} out")


def _build(cls: Any, values: Settings) -> Any:
    """Build an object of options from the values of all leaves."""
    groups = {entry.name: _get_hints(cls)[entry.name][0] for entry in fields(cls)}
    return cls(**{name: _build(base, values) if _is_group(base) else values[name] for name, base in groups.items()})


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
    locks_model : bool
        No other process changes the model folder meanwhile.
    """

    run: Command
    name: str
    examples: Sequence[str]
    locks_model: bool

    def __call__(self, options: Any) -> None:
        """Run the command; with --json its document ends the run."""
        with lock_folder(options.model) if self.locks_model else nullcontext():
            if (report := self.run(options)) is not None:
                with closing(report):
                    any(map(options.show_json, report))

    def register(self, app: typer.Typer, panel: str | None = None) -> None:
        """Add the command to an application."""
        cls = get_type_hints(self.run)["options"]
        parameters = [leaf.make_parameter() for leaf in list_option_fields(cls)]

        def call(**values: object) -> None:
            self(_build(cls, values))

        call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        call.__doc__ = self.run.__doc__
        epilog = "\n".join(f"wsabie {example}" for example in self.examples)
        app.command(self.name, cls=_HelpfulCommand, epilog=epilog, rich_help_panel=panel)(call)


def command(*examples: str, name: str = "", locks_model: bool = False) -> Callable[[Command], CommandEntry]:
    """Make a command of a function that takes `options`; its docstring is the help."""

    def decorate(function: Command) -> CommandEntry:
        return CommandEntry(function, name or function.__name__, examples, locks_model)

    return decorate


class _ExampleHelp:
    """Help that ends with examples."""

    epilog: Any

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the examples as they are to be typed."""
        with formatter.section("Examples"):
            for line in self.epilog.splitlines():
                formatter.write(f"{'':>{formatter.current_indent}}{line}\n")


class _HelpfulCommand(_ExampleHelp, TyperCommand):
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


class GroupedCommands(_ExampleHelp, TyperGroup):
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
