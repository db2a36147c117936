"""The commands of README and the guides run as a reader types them, and print what the pages print.

A block that does not run has a line `<!-- not run: REASON -->` before it, with a reason of `REASONS`.
Programs other than wsabie run if `SHELL` has them; `PROGRAMS` says why the others do not.
Files that a page names without showing them come from `SAMPLES`.
"""

import contextlib
import io
import re
import shlex
import shutil
import subprocess
import sys
import wave
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from doc_pages import COMMAND_PAGES, DOCS, FENCE, ROOT, SITE_PAGES, blocks, get_page_name, write_captioned

PHOTOS = ROOT / "src" / "wsabie" / "samples" / "photos"
WORDNET = Path("/usr/share/wordnet")
REASONS = {
    "a server": "the page's program answers until Ctrl-C",
    "installs": "packages come over the network",
    "Ray": "a cluster takes longer to start than all commands together",
    "minutes": "the data are too large for a test",
    "alternative": "it stands beside the main way of the page, and would change what follows",
    "papers": "the tests of `papers` run these tables",
    "own data": "a disk, a browser or a download of the reader",
}
"""Why a block does not run, as its mark says it."""
PROGRAMS = {
    "pip": "installs",
    "apt-get": "installs",
    "make": "installs",
    "podman": "installs",
    "ray": "Ray",
    "curl": "a server",
    "optuna-dashboard": "a server",
    "exiftool": "own data",
    ".": "own data",
    "export": "own data",
}
"""Programs that never run, and why."""
SHELL = ("cp", "mv", "sed", "python")
MODEL_FOLDER = re.compile(r"\b\d{8}-\d{6}-[0-9a-f]{6}\b")
MARK = re.compile(r"<!-- not run: (.+?) -->\n\Z")


class DocCommand(NamedTuple):
    """One command of a page, and the lines that the page prints after it."""

    line: str
    expected: str
    reason: str | None


def list_commands(page: Path) -> list[DocCommand]:
    """Commands of a page's blocks, each with the reason if it does not run."""
    text = page.read_text(encoding="utf-8")
    commands = []
    for block in FENCE.finditer(text):
        if block[3] not in ("console", "sh"):
            continue
        mark = MARK.search(text[: block.start()])
        content = block[4] if block[3] == "console" else "".join(f"$ {line}\n" for line in block[4].splitlines())
        for entry in re.split(r"^\$ ", content, flags=re.MULTILINE)[1:]:
            line, _, expected = entry.partition("\n")
            reason = mark[1] if mark else PROGRAMS.get(line.split()[0])
            if line.startswith("wsabie serve"):
                reason = "a server"
            commands.append(DocCommand(line, expected, reason))
    return commands


def run_wsabie(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> tuple[object, str]:
    """The exit code of a command, and what it writes to both streams."""
    from wsabie.cli.main import run

    monkeypatch.setattr(sys, "argv", arguments)
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output), pytest.raises(SystemExit) as ended:
        run()
    return ended.value.code, output.getvalue()


def run_line(line: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The output of a command that succeeds."""
    folders = sorted(Path().glob("*/.wsabie/models/*-*"))
    line = re.sub(r"(?<= )src/", f"{ROOT}/src/", line)
    arguments = shlex.split(MODEL_FOLDER.sub(folders[-1].name if folders else "", line), comments=True)
    if arguments[0] == "wsabie":
        code, output = run_wsabie(arguments, monkeypatch)
        assert code in (0, None), f"{line}\n{output}"
        return output.replace(str(Path.cwd()), "/home/eve")
    assert arguments[0] in SHELL, line
    if arguments[0] == "python":
        arguments[0] = sys.executable
    return subprocess.run(arguments, check=True, capture_output=True, text=True).stdout


def mask_figures(line: str) -> str:
    """A line without what differs between processors: numbers, widths, and scores with their labels."""
    cells = ["scores" if re.search(r" -?\d+\.\d\d", cell) else cell for cell in line.split("\t")]
    line = "\t".join(cells) if len(cells) > 1 else line
    line = MODEL_FOLDER.sub("folder", line)
    line = re.sub(r"[▁-█]+", "bars", re.sub(r"─+", "─", line))
    return " ".join(re.sub(r"[-+]?\d[\d.,]*", "N", line).split())


def find_missing(expected: str, output: str) -> list[str]:
    """Lines of a page that a command does not print, in this order; `...` stands for any lines."""
    printed = iter([mask_figures(line) for line in output.splitlines()])
    shown = [line for line in expected.splitlines() if line.strip() and not line.endswith("...")]
    return [line for line in shown if mask_figures(line) not in printed]


# ---- files that pages name without showing them


def copy_photos(folder: Path, n_photos: int) -> None:
    """The first photos of fish and of monuments, with their lines of the table."""
    header, *lines = (PHOTOS / "metadata.csv").read_text(encoding="utf-8").splitlines()
    rows = [line for line in lines if line.startswith("fish/")][:n_photos]
    rows += [line for line in lines if line.startswith("monument/")][: n_photos // 2]
    for row in rows:
        path = row.partition(",")[0]
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(PHOTOS / path, folder / path)
    (folder / "metadata.csv").write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")


def write_tone(path: Path, hertz: float) -> None:
    time = np.arange(8000) / 8000
    samples = np.random.default_rng(int(hertz)).normal(0, 500, 8000) + 9000 * np.sin(2 * np.pi * hertz * time)
    path.parent.mkdir(parents=True, exist_ok=True)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(samples.astype("<i2").tobytes())


def write_songs(folder: Path, first: int = 0) -> None:
    """Two tones of each of three artists."""
    lines = ["file_name,artist"]
    for n, artist in enumerate(("Nina Simone", "Bach", "Cage")):
        for take in range(12):
            name = f"{first + n}{take}.wav"
            write_tone(folder / name, 200 + 300 * n + 10 * take + first)
            lines.append(f"{name},{artist}")
    (folder / "metadata.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_recordings(folder: Path) -> None:
    """Tones in a folder for each of two labels."""
    for label, hertz in (("hum", 200), ("whistle", 1500)):
        for take in range(16):
            write_tone(folder / label / f"{label}{take}.wav", hertz + 20 * take)


def write_many_labels(path: Path, n_rows: int, seed: int) -> None:
    """Rows of 16 numbers, each with one of 1,200 labels."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n_rows) % 1200
    centres = np.random.default_rng(0).normal(size=(1200, 16))
    rows = centres[labels] + rng.normal(0, 0.1, (n_rows, 16))
    cells = [" ".join(f"{j + 1}:{x:.3f}" for j, x in enumerate(row)) for row in rows]
    lines = [f"{label} {row}" for label, row in zip(labels, cells, strict=True)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_rows(path: Path, n_rows: int, seed: int) -> None:
    """Rows of three labels with two features each, and an id and noise."""
    rng = np.random.default_rng(seed)
    kinds = rng.integers(3, size=n_rows)
    lines = [f"{kind} {2 * kind + 1}:{1 + rng.random():.2f} {2 * kind + 2}:1 {7 + rng.integers(4)}:1" for kind in kinds]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_articles(path: Path, separator: str = "\t") -> None:
    subjects = {"bridges": "steel arch span river", "energy": "wind sun battery grid", "sea": "wave tide harbour salt"}
    rng = np.random.default_rng(0)
    texts = [
        (" ".join(rng.choice(words.split(), 3)), subject) for subject, words in subjects.items() for _ in range(20)
    ]
    lines = [f"{words} report{separator}{subject}" for words, subject in texts]
    path.write_text(f"text{separator}labels\n" + "\n".join(lines) + "\n", encoding="utf-8")


def write_tags(path: Path) -> None:
    """Pairs of 60 pictures with three of six tags."""
    rng = np.random.default_rng(0)
    pairs = [f"p{n}\ttag {tag}\n" for n in range(60) for tag in sorted(rng.choice(6, 3, replace=False))]
    path.write_text("".join(pairs), encoding="utf-8")


def write_listeners(path: Path) -> None:
    """Eight people who hear the same three songs."""
    lines = [f"user{user}\ts{song}\t2\n" for user in range(8) for song in range(3)]
    path.write_text("".join(lines), encoding="utf-8")


def write_part(data: Path, path: Path, first: int, n_rows: int) -> None:
    """Some rows of Corel5k, as a file of their own beside its list of labels."""
    head, _, rows = (data / "corel5k_mulan/Corel5k-train-sparse.arff").read_text(encoding="utf-8").partition("@data\n")
    lines = [line for line in rows.splitlines() if line][first : first + n_rows]
    path.write_text(f"{head}@data\n" + "\n".join(lines) + "\n", encoding="utf-8")
    shutil.copy(data / "corel5k_mulan/Corel5k.xml", path.with_suffix(".xml"))


def copy_corel(data: Path, path: Path) -> None:
    shutil.copy(data / "corel5k_mulan" / path.name, path)
    shutil.copy(data / "corel5k_mulan/Corel5k.xml", path.with_name("Corel5k.xml"))


def copy_vectors(data: Path, path: Path) -> None:
    shutil.copy(data / "glove_twitter_25d_12k/glove_twitter_25d.txt", path)


def text(content: str) -> Callable[[Path], None]:
    """A function that writes this content."""

    def write(path: Path) -> None:
        path.write_text(content, encoding="utf-8")

    return write


SAMPLES: dict[str, Callable[[Path], None]] = {
    "photos": lambda path: copy_photos(path, 28),
    "new-photos": lambda path: copy_photos(path, 2),
    "articles.tsv": write_articles,
    "recordings": write_recordings,
    "songs": write_songs,
    "new-songs": lambda path: write_songs(path, 5),
    "new.wav": lambda path: write_tone(path, 500),
    "reports.csv": lambda path: write_articles(path, ","),
    "new.txt": text("Waves in the sea\n"),
    "rows.txt": text("3:1 7:1\n20:1 31:1 44:1\n"),
    "many-labels.txt": lambda path: write_many_labels(path, 2400, 1),
    "validation.txt": lambda path: write_many_labels(path, 400, 2),
    "articles.txt": text("A beagle is a dog. A dog is an animal.\n" * 3),
    "tags.tsv": write_tags,
    "train_triplets.txt": write_listeners,
    "unique_tracks.txt": text("".join(f"t{n}<SEP>s{n}<SEP>artist<SEP>title\n" for n in range(3))),
    "near.tsv": text("Bach\tCage\n"),
    "keywords.csv": text('SourceFile,Subject\nphotos/fish/cat_fish1.jpg,"reef, blue"\n'),
    "train.txt": lambda path: write_rows(path, 120, 0),
    "test.txt": lambda path: write_rows(path, 40, 1),
}
"""How to write the file or folder of a name, in the folder where the commands run."""
DATA_SAMPLES: dict[str, Callable[[Path, Path], None]] = {
    "Corel5k-train-sparse.arff": copy_corel,
    "Corel5k-test-sparse.arff": copy_corel,
    "first.arff": lambda data, path: write_part(data, path, 0, 1500),
    "later.arff": lambda data, path: write_part(data, path, 1500, 1000),
    "glove.twitter.27B.25d.txt": copy_vectors,
}
"""The same, of public data that lie in the folder of shared test data."""


@pytest.fixture(scope="module")
def trained_collection(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A collection of all bundled photos with their tags, and a model of it."""
    skip_without_network()
    folder = tmp_path_factory.mktemp("collection")
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.chdir(folder)
        monkeypatch.delenv("WSABIE_FEATURES")
        shutil.copytree(PHOTOS, folder / "photos")
        for command in ("init", "train"):
            run_line(f"wsabie collection {command} photos", monkeypatch)
    return folder / "photos"


def skip_without_network() -> None:
    """Skip a test that needs the network for photos."""
    pytest.importorskip("onnxruntime")
    pytest.importorskip("wsabie_lite0", reason="wsabie-lite0 is not installed; run `make setup`")


def list_words(page: Path) -> set[str]:
    """Words of the commands that run, and texts in quotes in files that the page shows; folders without a slash."""
    lines = [command.line for command in list_commands(page) if not command.reason]
    words = {word for line in lines for word in shlex.split(line, comments=True)}
    quoted = {name for block in blocks(page, "{code-block}") for name in re.findall(r'"([\w.-]+)"', block)}
    return {word.rstrip("/") for word in words | quoted}


def write_samples(words: set[str], folder: Path, request: pytest.FixtureRequest) -> None:
    """Write the files that commands name, unless the page shows them."""
    if {"collection", "photos"} <= words and "init" not in words:
        shutil.copytree(request.getfixturevalue("trained_collection"), folder / "photos")
    for name in words & SAMPLES.keys() - ({"photos"} if "cp" in words else set()):
        if not (folder / name).exists():
            SAMPLES[name](folder / name)
    for name in words & DATA_SAMPLES.keys():
        DATA_SAMPLES[name](request.getfixturevalue("data_dir"), folder / name)


def test_the_tutorial_on_photos_prints_what_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    skip_without_network()
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WSABIE_FEATURES")
    for command in list_commands(DOCS / "tutorials" / "photos.md"):
        if not command.reason:
            output = run_line(command.line, monkeypatch)
            assert find_missing(command.expected, output) == [], f"{command.line}\n{output}"
    assert any((tmp_path / "photos" / ".wsabie" / "models").iterdir())


OTHERS = [DOCS / "tutorials" / "photos.md", *COMMAND_PAGES]
"""Pages that other tests are about."""
GUIDES = [page for page in [ROOT / "README.md", *SITE_PAGES] if page not in OTHERS and list_commands(page)]


@pytest.mark.parametrize("page", GUIDES, ids=get_page_name)
def test_commands_print_what_the_page_prints(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.chdir(tmp_path)
    commands = list_commands(page)
    write_samples(list_words(page), tmp_path, request)
    monkeypatch.delenv("WSABIE_FEATURES")
    write_captioned(page, tmp_path)
    for command in commands:
        if command.reason is None and (WORDNET.exists() or str(WORDNET) not in command.line):
            output = run_line(command.line, monkeypatch)
            assert find_missing(command.expected, output) == [], f"{command.line}\n{output}"


def test_blocks_that_do_not_run_say_why() -> None:
    reasons = {command.reason for page in GUIDES for command in list_commands(page)} - {None}
    assert reasons <= REASONS.keys()
