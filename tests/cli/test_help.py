"""Help and completion: groups, examples that parse, flags of estimators as their signatures are."""

import ast
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from inspect import signature
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, get_args, get_type_hints

import pytest
import typer

import wsabie
from wsabie.cli.estimator_options import EstimatorOptions, ShapeOptions
from wsabie.cli.framework import CommandEntry, list_option_fields
from wsabie.cli.main import app
from wsabie.core.message_references import REFERENCE, format_references
from wsabie.models.estimator_specs import list_parameters

HEAVY = ("numba", "sklearn", "scipy", "pyarrow", "numpy", "sqlalchemy", "fastapi")


def list_commands(group: Any, prefix: str = "") -> dict[str, Any]:
    commands: dict[str, Any] = {}
    for name in group.list_commands(None):
        command = group.commands[name]
        inner = hasattr(command, "commands")
        commands |= list_commands(command, f"{prefix}{name} ") if inner else {prefix + name: command}
    return commands


COMMANDS = list_commands(typer.main.get_command(app))


def test_everyday_commands_are_listed_first() -> None:
    group: Any = typer.main.get_command(app)
    assert group.list_commands(None)[:3] == ["collection", "train", "annotate"]
    assert sorted(group.list_commands(None)) == sorted(group.commands)


@pytest.mark.parametrize(("package", "prefix"), [("collection", "collection "), ("data", ""), ("models", "")])
def test_every_command_of_a_package_is_listed(package: str, prefix: str) -> None:
    folder = import_module(f"wsabie.cli.{package}")
    modules = [import_module(f"{folder.__name__}.{module.name}") for module in iter_modules(folder.__path__)]
    entries = [value for module in modules for value in vars(module).values() if isinstance(value, CommandEntry)]
    assert {prefix + entry.name for entry in entries} <= COMMANDS.keys()


@pytest.mark.parametrize("name", COMMANDS)
def test_examples_parse(name: str) -> None:
    examples = COMMANDS[name].epilog.splitlines()
    assert len(examples) == 2
    for example in examples:
        program, *words = shlex.split(example)
        n_names = len(name.split())
        assert (program, " ".join(words[:n_names])) == ("wsabie", name)
        COMMANDS[name].make_context(name, words[n_names:])


@pytest.mark.parametrize("words", [(), ("collection",)])
def test_help_of_groups_ends_with_examples(cli: Any, words: tuple[str, ...]) -> None:
    examples = [line.split() for line in cli(*words, "--help").out.partition("\nExamples:\n")[2].splitlines()]
    assert len(examples) == 2
    for program, *arguments in examples:
        name = " ".join(arguments[:2]) if arguments[0] == "collection" else arguments[0]
        assert (program, arguments[: len(words)]) == ("wsabie", list(words))
        COMMANDS[name].make_context(name, arguments[len(name.split()) :])


@pytest.mark.parametrize("words", [(), ("collection",)])
def test_sentences_of_the_command_list_are_whole(
    cli: Any, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = cli(*words, "--help").out.splitlines()
    assert any(line.startswith("  train  ") for line in lines)
    assert not [line for line in lines if line[:2] == "  " and line.endswith("...")]


def test_help_groups_options_and_ends_with_examples(cli: Any) -> None:
    headings = re.findall(r"^(\S.*):$", cli("train", "--help").out, re.MULTILINE)
    assert headings[:3] == ["Arguments", "Options", "Parameters of the model"]
    assert headings[-3:] == ["Machine", "Output", "Examples"]
    assert "  wsabie train photos/ --model birds\n" in cli("train", "--help").out


def test_command_help_imports_no_heavy_module() -> None:
    code = (
        "import sys, typer\n"
        "from wsabie.cli.main import app\n"
        "group = typer.main.get_command(app)\n"
        "for words in (['train'], ['compare'], ['collection', 'labels'], ['serve']):\n"
        "    try: group([*words, '--help'])\n"
        "    except SystemExit: pass\n"
        f"print([m for m in {HEAVY} if m in sys.modules])"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout.strip().splitlines()[-1] == "[]"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shell_completion_is_generated(shell: str) -> None:
    from typer._completion_shared import get_completion_script

    script = get_completion_script(prog_name="wsabie", complete_var="_WSABIE_COMPLETE", shell=shell)
    assert "_WSABIE_COMPLETE" in script
    assert {"--install-completion", "--show-completion"} <= {
        option for parameter in typer.main.get_command(app).params for option in parameter.opts
    }


def test_options_match_estimator_parameters() -> None:
    defaults = {name: parameter.default for name, parameter in signature(wsabie.Wsabie).parameters.items()}
    documented = wsabie.Wsabie.__doc__ or ""
    leaves = {leaf.name: leaf for leaf in list_option_fields(ShapeOptions)}
    assert leaves.keys() <= defaults.keys()
    assert {"replay", "deterministic"} <= defaults.keys()
    hints = get_type_hints(ShapeOptions)
    for name, leaf in leaves.items():
        default = re.search(r"\(default: (.+?)\)", leaf.info.help)
        assert default is not None
        assert default[1].partition(",")[0] == str(defaults[name])
        choices = [value for part in get_args(hints[name]) for value in get_args(part)]
        assert all(f'"{choice}"' in documented for choice in choices), (name, choices)


def test_rare_parameters_are_set_by_name() -> None:
    options = EstimatorOptions(set_=["margin=0.5", "scaling=none"], replay="auto", hogwild=True)
    assert options.settings("wsabie") == {"margin": 0.5, "scaling": None, "replay": "auto", "deterministic": False}
    assert {"margin", "scaling"} <= list_parameters("wsabie").keys()
    with pytest.raises(wsabie.InputError, match="did you mean margin"):
        EstimatorOptions(set_=["margn=0.5"]).settings("wsabie")
    with pytest.raises(wsabie.InputError, match="is not NAME=VALUE"):
        EstimatorOptions(set_=["margin"]).settings("wsabie")


def _iterate_messages(tree: ast.AST) -> Iterator[str]:
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        parts = node.values if isinstance(node, ast.JoinedStr) else [node]
        if id(node) not in docstrings and all(isinstance(part, ast.Constant | ast.FormattedValue) for part in parts):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "0" for part in parts)


def test_messages_refer_to_flags_and_commands_that_exist() -> None:
    package = Path(wsabie.__file__).parent
    files = [
        file
        for room in {path.name for path in package.iterdir()} - {"cli", "server"}
        for file in (package / room).rglob("*.py")
    ]
    messages = [text for file in files for text in _iterate_messages(ast.parse(file.read_text(encoding="utf-8")))]
    references = {match[0] for text in messages for match in REFERENCE.finditer(text)}
    every_flag = {flag for command in COMMANDS.values() for option in command.params for flag in option.opts}
    for reference in references:
        words, *flags = re.split("(?:^| )--", format_references(reference).strip("`"))
        name = next((name for name in COMMANDS if f"{words} ".startswith(f"wsabie {name} ")), "")
        assert name or not words, reference
        assert {f"--{flag.split(' ')[0]}" for flag in flags} <= (
            {flag for option in COMMANDS[name].params for flag in option.opts} if name else every_flag
        ), reference
    assert len(references) > 40
