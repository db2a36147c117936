"""The written side says what the program does: examples run, commands parse, links lead somewhere, lists are whole."""

import contextlib
import doctest
import importlib.util
import io
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import wsabie
from doc_pages import (
    COMMAND_PAGES,
    DOCS,
    FENCE,
    MEASURED,
    PAGES,
    ROOT,
    SITE_PAGES,
    blocks,
    get_page_name,
    write_captioned,
)
from wsabie.models.estimator_specs import SYSTEMS

RESULTS = [page for folder in MEASURED for page in sorted(folder.glob("results/*/*/about.md"))]


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def load_docs_module(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"docs_{name}", DOCS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_site_builds_without_warnings(tmp_path: Path) -> None:
    for name in ("docs", "benchmarks", "papers"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns(".cache", "__pycache__", "_build"))
    for page in ROOT.glob("*.md"):
        shutil.copy(page, tmp_path)
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "-b", "html", tmp_path / "docs", tmp_path / "site"]
    process = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert process.returncode == 0, process.stderr


# ---- versions and lists


def test_version_and_changelog_agree() -> None:
    newest = re.search(r"^## \[([^\]]+)\]", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert newest is not None
    assert newest[1] == wsabie.__version__ == project()["project"]["version"]


def test_the_reference_has_every_public_name() -> None:
    page = (DOCS / "reference" / "python.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^\.\. auto\w+:: wsabie\.(\w+)|^\.\. data:: wsabie\.(\w+)", page, re.MULTILINE))
    assert {a or b for a, b in listed} == set(wsabie.__all__)


def test_pages_and_examples_import_public_names_alone() -> None:
    pages = [path for path in DOCS.rglob("*.md") if path.parent.name != "decisions"]
    imports = re.compile(
        r"^(?:>>> |\.\.\. )?\s*(?:from (wsabie[\w.]*) import (.+)|import (wsabie\.[\w.]+))$", re.MULTILINE
    )
    faults = []
    for path in [ROOT / "README.md", *pages, *(ROOT / "examples").glob("*.py")]:
        for module, names, plain_import in imports.findall(path.read_text(encoding="utf-8")):
            imported = {name.split(" as ")[0].strip() for name in names.partition("#")[0].split(",") if name}
            if plain_import or module != "wsabie" or not imported <= set(wsabie.__all__):
                faults.append((path.name, plain_import or f"{module}: {names}"))
    assert faults == []


def test_the_page_on_models_has_every_kind_in_both_tables() -> None:
    page = (DOCS / "explanation" / "models.md").read_text(encoding="utf-8")
    kinds, choices = (part.partition("\n## ")[0] for part in page.split("| `--kind` |")[1:])
    first_cells = [
        set(re.findall(r"`([\w-]+)`", row.split("|")[1])) for row in choices.splitlines() if row[:3] == "| `"
    ]
    assert set(re.findall(r"^\| `([\w-]+)` \|", kinds, re.MULTILINE)) == set(SYSTEMS)
    assert set(SYSTEMS) - set.union(*first_cells) <= {"popularity", "one-vs-rest-pa", "one-vs-rest-hinge", "svm"}


def test_the_architecture_lists_the_rooms_that_the_linter_holds() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    written = next(line.strip() for line in page.splitlines() if line.startswith("    cli > "))
    layers = project()["tool"]["importlinter"]["contracts"][0]["layers"]
    assert written == " > ".join(layers).replace("wsabie.", "")


def test_files_named_for_contributors_exist() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    paths = re.findall(r"`((?:src|tests|docs|benchmarks|examples)/[\w./-]+)`", page)
    assert len(paths) > 20
    assert [path for path in paths if "NAME" not in path and not (ROOT / path).exists()] == []


# ---- links


def slug(heading: str) -> str:
    plain = re.sub(r"[`*]", "", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


def anchors(page: Path) -> set[str]:
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    return {slug(line.lstrip("#")) for line in text.splitlines() if line.startswith("#")}


def find_links(page: Path) -> list[str]:
    return re.findall(r"\]\(([^)\s]+)\)", FENCE.sub("", page.read_text(encoding="utf-8")))


def broken(page: Path) -> list[str]:
    broken_links = []
    for target in find_links(page):
        path, _, anchor = target.partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or (anchor and file.suffix == ".md" and anchor not in anchors(file)):
            broken_links.append(target)
    return broken_links


@pytest.mark.parametrize("page", [*PAGES, *RESULTS], ids=get_page_name)
def test_links_lead_somewhere(page: Path) -> None:
    assert broken(page) == []


def test_a_broken_link_would_be_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# One\n[a](page.md#one) [b](page.md#two) [c](other.md) [d](https://example.org/)\n")
    assert broken(page) == ["page.md#two", "other.md"]


def test_pages_with_a_text_at_the_root_lead_to_pages_of_the_site() -> None:
    conf = load_docs_module("conf")
    for name in conf.SHARED:
        conf.insert_shared(None, name, source := [""])
        targets = {target for target in re.findall(r"\]\(([^)#\s]+)", source[0]) if ":" not in target}
        assert [target for target in targets if not (DOCS / name).parent.joinpath(target).resolve().exists()] == [], (
            name
        )


def test_every_kept_result_is_listed() -> None:
    links = {(page.parent / target).resolve() for page in PAGES for target in find_links(page)}
    assert len(RESULTS) > 20
    assert [get_page_name(page) for page in RESULTS if page not in links] == []


def read_contents(folder: Path) -> set[str]:
    """Entries of the table of contents of a folder's index."""
    return {name for block in blocks(folder / "index.md", "{toctree}") for name in block.split("\n")}


def test_every_page_is_in_the_table_of_contents() -> None:
    folders = sorted({page.parent for page in SITE_PAGES} - {DOCS})
    for folder in [DOCS, *MEASURED, *folders]:
        entries = read_contents(folder)
        pages = {page.stem for page in folder.glob("*.md")}
        assert pages - entries == {"index"}, folder
        assert entries & {"search", "genindex", "modindex"} == set()  # Sphinx writes pages of these names over ours
    assert [folder for folder in folders if f"{folder.name}/index" not in read_contents(folder.parent)] == []
    assert {f"results/{folder.parent.name}/index" for folder in MEASURED} - read_contents(DOCS) == set()


# ---- commands


def command_lines(page: Path) -> list[str]:
    lines = [line for block in blocks(page, "console") for line in block.splitlines()]
    return [line.removeprefix("$ ") for line in lines if line.startswith("$ wsabie")]


@pytest.mark.parametrize("page", [p for p in PAGES if command_lines(p)], ids=get_page_name)
def test_commands_parse(page: Path) -> None:
    command_table = load_docs_module("commands").commands()
    for line in command_lines(page):
        name, *arguments = shlex.split(line, comments=True)[1:]
        if name == "collection":
            name, arguments = f"{name} {arguments[0]}", arguments[1:]
        if name.startswith("--"):
            assert name in ("--help", "--version")
        elif arguments != ["--help"]:
            command_table[name].make_context(name, arguments)


def test_the_readme_shows_commands() -> None:
    assert len(command_lines(ROOT / "README.md")) >= 3


@pytest.mark.parametrize(
    "page",
    [ROOT / "README.md", *(DOCS / "tutorials" / f"{name}.md" for name in ("documents", "photos"))],
    ids=get_page_name,
)
def test_what_the_first_commands_write_is_no_news_to_git(page: Path) -> None:
    ignored = {line.strip("/") for line in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()}
    lines = "\n".join(command_lines(page))
    written = set(re.findall(r"--(?:model|out|report) (\S+)", lines)) | set(re.findall(r"collection init (\S+)", lines))
    assert written
    assert written <= ignored


def test_options_are_documented_as_they_are() -> None:
    commands = load_docs_module("commands")
    for group, members in commands.groups().items():
        page = (commands.FOLDER / f"{group}.md").read_text(encoding="utf-8")
        headings = re.findall(r"^##+ (.+)$", page, re.MULTILINE)
        assert [name for name in headings if name in commands.commands()] == list(members)
        for kind in ("help", "options"):
            assert re.findall(rf"^<!-- {kind}: (.+) -->$", page, re.MULTILINE) == list(members)


def test_the_index_of_commands_has_every_group() -> None:
    commands = load_docs_module("commands")
    index = (commands.FOLDER / "index.md").read_text(encoding="utf-8")
    assert re.findall(r"^<!-- group: (.+) -->$", index, re.MULTILINE) == list(commands.groups())


@pytest.mark.parametrize("page", COMMAND_PAGES, ids=get_page_name)
def test_generated_blocks_are_as_the_commands_are(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert text == load_docs_module("commands").updated(text), "run `python docs/commands.py`"


def checked(page: Path) -> list[tuple[str, str]]:
    """(command, what it prints) of the blocks that a page has marked to be checked."""
    text = page.read_text(encoding="utf-8")
    console_blocks = re.findall(r"^<!-- checked -->\n```console\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    runs = [run for block in console_blocks for run in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]]
    return [(run.partition("\n")[0], run.partition("\n")[2]) for run in runs]


def test_errors_read_as_documented(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from wsabie.cli.main import run

    page = DOCS / "reference" / "command-line" / "errors.md"
    write_captioned(page, tmp_path)
    monkeypatch.chdir(tmp_path)
    runs = checked(page)
    assert len(runs) >= 5
    for command, expected in runs:
        monkeypatch.setattr(sys, "argv", shlex.split(command))
        stderr = io.StringIO()
        with contextlib.redirect_stderr(stderr), pytest.raises(SystemExit) as ended:
            run()
        assert ended.value.code == 1
        last = stderr.getvalue().splitlines()[-1]
        assert re.sub(r"\x1b\[[\d;]*m", "", last) + "\n" == expected, command


def test_nothing_but_errors_begins_with_the_programs_name() -> None:
    errors = {message.strip() for _, message in checked(DOCS / "reference" / "command-line" / "errors.md")}
    console_lines = {line for page in PAGES for block in blocks(page, "console") for line in block.splitlines()}
    assert {line for line in console_lines if line.startswith("wsabie: ")} == errors


def test_the_service_is_shown_as_it_says_what_it_serves() -> None:
    (block,) = [code for code in blocks(DOCS / "how-to" / "service.md", "console") if "serving " in code]
    command, output = block.splitlines()
    assert output == f"serving {command.removeprefix('$ wsabie serve ')} on http://127.0.0.1:8420 (Ctrl-C ends it)"


def find_route(routes: set[tuple[str, str]], method: str, path: str) -> tuple[str, str] | None:
    """The route of the service that a request goes to; one without parameters comes first."""
    steps = path.partition("?")[0].split("/")
    fitting = [
        route
        for route in sorted(routes, key=lambda route: route[1].count("{"))
        if route[0] == method and len(route[1].split("/")) == len(steps)
        if all(part == step or part[:1] == "{" for part, step in zip(route[1].split("/"), steps, strict=True))
    ]
    return fitting[0] if fitting else None


def test_the_page_on_http_lists_every_request() -> None:
    from wsabie.server.app import make_api

    routes = {
        (method.upper(), path.removeprefix("/api/v1"))
        for has_collection in (False, True)
        for path, operations in make_api(has_collection=has_collection).openapi()["paths"].items()
        for method in operations
    }
    page = (DOCS / "reference" / "http-api.md").read_text(encoding="utf-8").split("## All requests")[1]
    requests = re.findall(r"`(GET|POST|PATCH|DELETE) (/[^`]*)`", page)
    assert [request for request in requests if find_route(routes, *request) is None] == []
    assert routes - {find_route(routes, *request) for request in requests} == set()


# ---- examples


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "pycon")], ids=get_page_name)
def test_sessions_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_captioned(page, tmp_path)
    monkeypatch.chdir(tmp_path)
    session = "\n".join(blocks(page, "pycon"))
    test = doctest.DocTestParser().get_doctest(session, {}, get_page_name(page), str(page), 0)
    failures = io.StringIO()
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    outcome = runner.run(test, out=failures.write)
    assert outcome.attempted > 0
    assert outcome.failed == 0, failures.getvalue()


def run_example(name: str) -> list[str]:
    """The lines that an example prints."""
    stdout = io.StringIO()
    with contextlib.redirect_stdout(stdout):
        runpy.run_path(str(ROOT / "examples" / name), run_name="__main__")
    return stdout.getvalue().splitlines()


def test_the_readme_example_is_the_one_that_runs() -> None:
    code = (ROOT / "examples" / "first_model.py").read_text(encoding="utf-8").partition('"""\n\n')[2]
    assert code in blocks(ROOT / "README.md", "python")


def test_pictures_are_found_by_text() -> None:
    matches = dict(line.split(": ") for line in run_example("pictures_by_text.py"))
    assert set(matches) == {"red fruit", "oiseau", "water bird"}
    assert {"dove", "swan", "penguin", "eagle", "duck", "bird", "parrot"} & set(matches["oiseau"].split(", "))


def test_the_readme_example_prints_what_is_printed() -> None:
    lines = run_example("first_model.py")
    assert "\n".join(f"    {line}" for line in lines) in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", [DOCS / "tutorials" / "documents.md"], ids=get_page_name)
def test_commands_of_a_tutorial_print_what_is_printed(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from wsabie.cli.main import run

    write_captioned(page, tmp_path)
    monkeypatch.chdir(tmp_path)
    runs = [entry.partition("\n") for block in blocks(page, "console") for entry in block.split("$ ")[1:]]
    assert len(runs) >= 2
    for command, _, expected in runs:
        monkeypatch.setattr(sys, "argv", shlex.split(command))
        stdout = io.StringIO()
        with contextlib.redirect_stdout(stdout), pytest.raises(SystemExit) as ended:
            run()
        assert ended.value.code in (0, None)
        assert stdout.getvalue() == expected, command


def test_labels_of_emoji_come_in_many_languages() -> None:
    annotation, neighbours = run_example("emoji_in_many_languages.py")
    assert "'동물'" in annotation
    assert "'animale'" in neighbours


def test_the_example_with_own_features_runs() -> None:
    lines = run_example("own_features.py")
    assert lines[:2] == ["document 0: ['quiet', 'sea']", "document 299: town"]
    assert lines[2].endswith("-> harbour")
    assert lines[3].endswith("True")
