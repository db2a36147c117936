"""Check what a reader meets first: names, docstrings, sizes, folders and imports. `make lint` runs it.

    python scripts/check_code.py            every rule: its figure and its limit
    python scripts/check_code.py RULE       the places behind one rule

The rules for names and docstrings hold in all other folders with code too, with their own limits.
No page but the records in docs/decisions has a private mark of a paper.
A name is vague if it says how a value came about (`found`, `told`) or only points at it (`those`, `others`).
"""

import ast
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Set
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "wsabie"
OTHER_FOLDERS = ("tests", "papers", "benchmarks", "scripts", "examples", "weights", "docs")
VAGUE_WORDS = {
    "above", "after", "all", "anew", "apart", "alone", "asked", "aside", "away", "before", "begun", "below",
    "beside", "both", "chosen", "come", "counted", "done", "drawn", "found", "given", "gone", "heard", "held",
    "here", "how", "judged", "kept", "known", "learned", "learnt", "left", "looked", "made", "meant", "named",
    "one", "ones", "other", "others", "own", "put", "read", "ready", "rest", "said", "seen", "set", "shown", "so",
    "some", "such", "sure", "taken", "then", "there", "these", "those", "together", "told", "tried", "wanted",
    "what", "which", "who", "whole", "whose",
}  # fmt: skip
QUESTION = re.compile(
    "(What|How|Whether|Where|Which|Who|Whose|From which|Of|Those|One of|Nobody|Such|Both|Until|As"
    r"|(To|In|By|Up to) which)\b"
)
MARK = re.compile(r"\[[WSPVD]\]")
COMMANDS = "|".join(sorted(path.stem for path in (PACKAGE / "cli").rglob("[a-z]*")))
COMMAND_LINE = re.compile(rf"\bwsabie ({COMMANDS})\b")
INTERFACE_WORDS = re.compile(rf"(?<![\w-])--[a-z]|{COMMAND_LINE.pattern}|\bon the page\b|\bpress [A-Z]")
OTHER_PROGRAMS = re.compile(
    r"ray start|--(local-dir|format=custom|file=|dbname=|clean|if-exists|no-owner|single-transaction)"  # pg_dump, hf
    r"|(# Written|Made) by `wsabie [a-z]+`|^wsabie (tune|demo --part )$|^ --seed $"  # origins that files record
)
"""Commands and flags that are no words of our own interfaces."""
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Module:
    """A module of the package, parsed."""

    path: Path
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.tree))

    @property
    def room(self) -> str:
        """Folder of the package; empty outside."""
        return self.path.relative_to(PACKAGE).parts[0] if self.path.is_relative_to(PACKAGE) else ""

    def place(self, line: int = 1) -> str:
        return f"{self.path.relative_to(ROOT) if self.path.is_relative_to(ROOT) else self.path}:{line}"


@dataclass(frozen=True)
class Rule:
    """A rule: how many of its places are too many.

    Attributes
    ----------
    limit : float
        Places, or their share of all that the rule looks at.
    find : function
        Yields a place, or None for what is as it should be, for each thing that the rule looks at.
    """

    limit: float
    find: Callable[[list[Module]], Iterator[str | None]]
    is_share: bool = False

    def check(self, modules: list[Module]) -> tuple[float, list[str]]:
        """Return the figure and the places behind it."""
        results = list(self.find(modules))
        places = [place for place in results if place is not None]
        return (len(places) / max(1, len(results)) if self.is_share else len(places)), places


def find_vague_names(modules: list[Module]) -> Iterator[str | None]:
    """Yield names all of whose words are vague."""
    for module in modules:
        for node in module.nodes:
            if (name := _bound_name(node)) is not None:
                words = [word for word in name.lower().split("_") if word]
                is_vague = bool(words) and all(word in VAGUE_WORDS for word in words)
                yield f"{module.place(node.lineno)} {name}" if is_vague else None  # type: ignore[attr-defined]


def _bound_name(node: ast.AST) -> str | None:
    match node:
        case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()) | ast.arg(arg=name):
            return name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if not name.startswith("__"):
            return name
        case ast.ClassDef(name=name):
            return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)
    return None


def find_questions(modules: list[Module]) -> Iterator[str | None]:
    """Yield docstrings that do not begin with an imperative or a noun phrase."""
    for place, line in _iterate_first_lines(modules):
        yield f"{place} {line}" if QUESTION.match(line) else None


def find_long_first_lines(modules: list[Module]) -> Iterator[str]:
    """Yield docstrings whose first line has more than 100 characters."""
    yield from (f"{place} {len(line)} characters" for place, line in _iterate_first_lines(modules) if len(line) > 100)


def _iterate_first_lines(modules: list[Module]) -> Iterator[tuple[str, str]]:
    for module in modules:
        for node in module.nodes:
            if isinstance(node, Function | ast.ClassDef | ast.Module) and (text := ast.get_docstring(node)):
                yield module.place(getattr(node, "lineno", 1)), text.partition("\n")[0]


def find_marks(modules: list[Module]) -> Iterator[str]:
    """Yield private marks of papers in docstrings, comments and pages."""
    for module in modules:
        for number, line in enumerate(module.text.splitlines(), 1):
            if MARK.search(line):
                yield f"{module.place(number)} {line.strip()}"


def find_interface_words(modules: list[Module]) -> Iterator[str]:
    """Yield texts below the command line and the service that name a flag, a command or a page."""
    for module in modules:
        docstrings = {id(node.value) for node in module.nodes if isinstance(node, ast.Expr)}
        if module.room not in ("cli", "server"):
            for node in module.nodes:
                text = node.value if isinstance(node, ast.Constant) and id(node) not in docstrings else None
                if isinstance(text, str) and INTERFACE_WORDS.search(text) and not OTHER_PROGRAMS.search(text):
                    yield f"{module.place(node.lineno)} {text}"  # type: ignore[attr-defined]
    for folder in sorted({module.path.parent / "templates" for module in modules}):
        for path in sorted(folder.glob("*")):
            if path.name != "model_card.md.jinja":  # its readers come from a hub, and look for the command
                yield from (f"{path.name} {match[0]}" for match in COMMAND_LINE.finditer(path.read_text("utf-8")))


def find_twin_classes(modules: list[Module]) -> Iterator[str]:
    """Yield class names that stand twice in one room."""
    places = defaultdict(list)
    for module in modules:
        for node in module.nodes:
            if isinstance(node, ast.ClassDef):
                places[module.room, node.name].append(module.place(node.lineno))
    yield from (f"{name}: {', '.join(paths)}" for (_, name), paths in sorted(places.items()) if len(paths) > 1)


def find_full_folders(modules: list[Module]) -> Iterator[str]:
    """Yield folders of more than 20 modules."""
    counts = Counter(module.path.parent for module in modules if module.path.name != "__init__.py")
    yield from (f"{folder}: {count} modules" for folder, count in sorted(counts.items()) if count > 20)


def find_long_functions(modules: list[Module], most: int) -> Iterator[str | None]:
    """Yield functions of more than so many lines without their docstring."""
    for module in modules:
        for node in module.nodes:
            if isinstance(node, Function):
                length = _length(node)
                yield f"{module.place(node.lineno)} {node.name}: {length} lines" if length > most else None


def _length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    first = function.body[0]
    docstring = 0 if ast.get_docstring(function) is None else (first.end_lineno or 0) - first.lineno + 1
    return (function.end_lineno or 0) - function.lineno + 1 - docstring


def find_long_files(modules: list[Module]) -> Iterator[str]:
    """Yield modules of more than 500 lines."""
    for module in modules:
        if (lines := module.text.count("\n")) > 500:
            yield f"{module.place()} {lines} lines"


def find_single_importers(modules: list[Module]) -> Iterator[str]:
    """Yield modules that one module alone imports, unless that is a table, which imports 6 of the folder."""
    targets = _list_imports(modules, _iterate_import_time)
    importers = defaultdict(list)
    for name, imports in targets.items():
        for target in imports:
            importers[target].append(name)
    for target, (name, *others) in sorted(importers.items()):
        folder = target.rpartition(".")[0]
        if not others and sum(sibling.rpartition(".")[0] == folder for sibling in targets[name]) < 6:
            yield f"{target} <- {name}"


def _list_imports(modules: list[Module], iterate_nodes: Callable[[ast.AST], Iterable[ast.AST]]) -> dict[str, set[str]]:
    """Return the modules that each module imports in the nodes of its tree."""
    trees = {_dotted_name(module.path): module.tree for module in modules}
    return {name: _list_targets(iterate_nodes(tree), trees.keys() - {name}) for name, tree in trees.items()}


def _dotted_name(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")


def _list_targets(nodes: Iterable[ast.AST], names: Set[str]) -> set[str]:
    targets = set()
    for node in nodes:
        match node:
            case ast.ImportFrom(module=source, names=aliases):
                dotted_names = (f"{source}.{alias.name}" for alias in aliases)
                targets |= {name if name in names else source or "" for name in dotted_names}
            case ast.Import(names=aliases):
                targets |= {alias.name for alias in aliases}
    return targets & names


def _iterate_import_time(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that run when a module is imported: none inside functions or for types alone."""
    for node in ast.iter_child_nodes(tree):
        is_for_types = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        if not is_for_types and not isinstance(node, Function):
            yield node
            yield from _iterate_import_time(node)


def find_import_circles(modules: list[Module]) -> Iterator[str]:
    """Yield circles of imports at the top, and those of more than two modules through any import."""
    circles = [
        *_find_circles(_list_imports(modules, _iterate_import_time), most=1),
        *_find_circles(_list_imports(modules, ast.walk), most=2),
    ]
    yield from dict.fromkeys(circles)


def _find_circles(imports: dict[str, set[str]], most: int) -> Iterator[str]:
    """Yield circles of more than `most` modules."""
    names = sorted(imports)
    matrix = sp.csr_matrix([[target in imports[name] for target in names] for name in names], dtype=np.int8)
    _, circle = connected_components(matrix, connection="strong")
    for component in np.flatnonzero(np.bincount(circle) > most):
        yield " <-> ".join(names[i] for i in np.flatnonzero(circle == component))


RULES = {
    "names": Rule(0.015, find_vague_names, is_share=True),
    "docstrings": Rule(0.015, find_questions, is_share=True),
    "first-lines": Rule(0, find_long_first_lines),
    "marks": Rule(0, find_marks),
    "interface-words": Rule(0, find_interface_words),
    "classes": Rule(0, find_twin_classes),
    "folders": Rule(0, find_full_folders),
    "functions": Rule(0, partial(find_long_functions, most=80)),
    "functions-18": Rule(0.1, partial(find_long_functions, most=18), is_share=True),
    "functions-6": Rule(0.5, partial(find_long_functions, most=6), is_share=True),
    "files": Rule(0, find_long_files),
    "importers": Rule(40, find_single_importers),
    "circles": Rule(0, find_import_circles),
}


OTHER_RULES = {
    "other-names": Rule(0.02, find_vague_names, is_share=True),
    "other-docs": Rule(0.03, find_questions, is_share=True),
}
PAGE_RULES = {"page-marks": Rule(0, find_marks)}


def read_modules(*folders: Path) -> list[Module]:
    """Return the modules of folders but the steps of migrations."""
    paths = [path for folder in folders for path in sorted(folder.rglob("*.py")) if "migrations" not in path.parts]
    return [Module(path, path.read_text(encoding="utf-8")) for path in paths]


def read_pages() -> list[Module]:
    """Return the pages that a reader is sent to; decisions are records."""
    docs = ROOT / "docs"
    paths = (path for path in docs.rglob("*.md") if path.relative_to(docs).parts[0] not in {"decisions", "_build"})
    return [Module(path, path.read_text(encoding="utf-8")) for path in sorted([*ROOT.glob("*.md"), *paths])]


def main(words: list[str]) -> int:
    """Check every rule, or list the places behind one; return the exit code."""
    package = read_modules(PACKAGE)
    other_modules = read_modules(*(ROOT / folder for folder in OTHER_FOLDERS))
    checks = {name: (rule, package) for name, rule in RULES.items()}
    checks |= {name: (rule, other_modules) for name, rule in OTHER_RULES.items()}
    checks |= {name: (rule, read_pages()) for name, rule in PAGE_RULES.items()}
    if words:
        rule, modules = checks[words[0]]
        print("\n".join(rule.check(modules)[1]))
        return 0
    failures = 0
    for name, (rule, modules) in checks.items():
        figure, places = rule.check(modules)
        show = "{:.1%}" if rule.is_share else "{:.0f}"
        print(f"{name:<16}{show.format(figure):>8}   at most {show.format(rule.limit)}")
        if figure > rule.limit:
            failures += 1
            print("\n".join(f"  {place}" for place in places[:5]))
            print(f"  all {len(places)}: python scripts/check_code.py {name}")
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
