"""Docstrings name classes and members that exist."""

import ast
import re
from collections.abc import Iterator

from doc_pages import ROOT

CAMEL_CASE = re.compile(r"(?<![\w./#@:&-])[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]+)+(?![\w/-])")
MEMBER = re.compile(r"`(?:[A-Z][a-z0-9]+){2,}\.(?!txt\b)(\w+)")
OTHER_NAMES = {
    "AdaGrad",
    "AllLabels",
    "AllTags1k",
    "AllTags81",
    "ClassLabel",
    "ConceptNet",
    "DejaVu",
    "FrozenTrial",
    "GloVe",
    "GroupShuffleSplit",
    "ImageFolder",
    "ImageNet",
    "LabelName",
    "LeVeque",
    "LibRaw",
    "McSherry",
    "MicrosoftPhoto",
    "MurmurHash3",
    "NumPy",
    "PhotoPrism",
    "PyArrow",
    "RecSys",
    "SciPy",
    "SplitMix64",
    "TagList1k",
    "WordNet",
}
"""Projects, people, data sets, columns of files and classes of other packages."""


def list_identifiers(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                yield name
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.alias(name=name):
                yield from name.split(".")


def list_docstrings(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield text


def test_names_in_docstrings_exist() -> None:
    trees = {
        path.relative_to(ROOT): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted((ROOT / "src").rglob("*.py"))
    }
    identifiers = {name for tree in trees.values() for name in list_identifiers(tree)}
    faults = [
        (path, name)
        for path, tree in trees.items()
        for text in list_docstrings(tree)
        for name in [*CAMEL_CASE.findall(text), *MEMBER.findall(text)]
        if name not in identifiers | OTHER_NAMES
    ]
    assert faults == []
