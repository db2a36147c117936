"""Docstrings of the public interface: its callables say what they take and what they return."""

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any, Self, is_typeddict

import pytest

import wsabie

CALLABLES = [name for name in wsabie.__all__ if callable(getattr(wsabie, name))]
SECTION = re.compile(r"^(\w[\w ]*)\n-+\n", re.MULTILINE)


def _split_sections(docstring: str) -> dict[str, str]:
    """Return the sections of a numpydoc docstring by title; the text above the first has the title ""."""
    return dict(zip(*[iter(["", *SECTION.split(docstring)])] * 2, strict=True))


def _list_entries(section: str) -> set[str]:
    """Return the names that a section lists: those of its lines without indentation."""
    lines = [line for line in section.splitlines() if line[:1].strip()]
    return {name.strip("* ") for line in lines for name in line.partition(" : ")[0].split(",")}


def _list_names(parameter: inspect.Parameter) -> Iterator[str]:
    """Yield the name of a parameter; of a typed `**options` the names of the options."""
    options = getattr(parameter.annotation, "__args__", ())
    is_typed = parameter.kind is parameter.VAR_KEYWORD and options and is_typeddict(options[0])
    yield from options[0].__annotations__ if is_typed else (parameter.name,)


def _find_gaps(member: Callable[..., Any]) -> Iterator[str]:
    """Yield what the docstring of a function or of a class lacks."""
    sections = _split_sections(inspect.getdoc(member) or "")
    if not sections[""].strip():
        yield "a docstring"
    signature = inspect.signature(member)
    names = {name for parameter in signature.parameters.values() for name in _list_names(parameter)}
    entries = _list_entries(sections.get("Parameters", ""))
    if inspect.isclass(member):
        entries |= _list_entries(sections.get("Attributes", ""))
    yield from (f"parameter {name}" for name in sorted(names - {"self", "_", *entries}))
    annotation = signature.return_annotation
    is_value = not inspect.isclass(member) and annotation not in (None, Self, "None", "Self")
    if is_value and not {"Returns", "Yields"} & sections.keys():
        yield f"Returns ({annotation})"


def _list_members(cls: type) -> Iterator[tuple[str, Any]]:
    """Yield the public methods and properties of a class that the package defines."""
    for attribute in inspect.classify_class_attrs(cls):
        is_own = attribute.defining_class.__module__.startswith("wsabie")
        if is_own and not attribute.name.startswith("_") and attribute.kind != "data":
            member = attribute.object if attribute.kind == "property" else getattr(cls, attribute.name)
            if getattr(member, "__module__", "wsabie").startswith("wsabie"):
                yield attribute.name, member


def _report_gaps(name: str) -> Iterator[str]:
    member = getattr(wsabie, name)
    yield from (f"{name}: {gap}" for gap in _find_gaps(member))
    for attribute, value in _list_members(member) if inspect.isclass(member) else ():
        if not callable(value):
            if not inspect.getdoc(value):
                yield f"{name}.{attribute}: a docstring"
            continue
        yield from (f"{name}.{attribute}: {gap}" for gap in _find_gaps(value))


@pytest.mark.parametrize("name", CALLABLES)
def test_docstrings_list_every_parameter_and_result(name: str) -> None:
    assert list(_report_gaps(name)) == []


def test_gaps_of_a_docstring_are_listed() -> None:
    def scale(X: float, factor: float = 1.0, *, out: float | None = None) -> float:
        """Return the product.

        Parameters
        ----------
        X, factor : float
        """
        return X * factor if out is None else out

    assert list(_find_gaps(scale)) == ["parameter out", "Returns (<class 'float'>)"]
