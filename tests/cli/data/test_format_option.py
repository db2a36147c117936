"""Files that two formats fit: a person at a terminal is asked, others are refused, and --format decides."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Cli

from wsabie.core.errors import InputError
from wsabie.io.data_sources import open_source
from wsabie.io.format_detection import AmbiguousFormatError

TRAIN = ("--dim", 4, "--epochs", 2, "--threads", 1, "--hold-out", 0)


@pytest.fixture
def ambiguous(tmp_path: Path) -> Path:
    """Texts with the addresses of their subjects; one line in ten has a name in place of the address."""
    path = tmp_path / "subjects.tsv"
    address = "<http://www.yso.fi/onto/yso/p{}>"
    lines = [f"waves and salt {n}\t{address.format(n % 3) if n % 10 else 'sea'}\n" for n in range(60)]
    path.write_text("".join(lines))
    return path


def test_the_error_names_both_formats_and_either_is_read(ambiguous: Path) -> None:
    readings = r"may be annif TSV \(45 of 50 lines .*\) or list of id TAB label \(50 of 50 lines"
    with pytest.raises(AmbiguousFormatError, match=readings) as error:
        open_source(ambiguous)
    assert error.value.formats == ["annif", "pairs"]
    assert len(open_source(ambiguous, data_format="annif")) == 54
    assert len(open_source(ambiguous, data_format="pairs")) == 60
    with pytest.raises(InputError, match="there is no format 'anif'; there are iapr, magnatagatune, "):
        open_source(ambiguous, data_format="anif")


COMMANDS: list[Callable[[Path, Path], list[object]]] = [
    lambda data, folder: ["train", data, "--model", folder / "model", *TRAIN],
    lambda data, folder: ["split", data, "--out", folder / "parts"],
    lambda data, folder: ["shards", data, "--out", folder / "shards"],
    lambda data, folder: ["compare", data, "--models", "popularity", "--threads", 1],
    lambda data, folder: ["tune", data, "--out", folder / "tuned", "--trials", 1, "--threads", 1],
]


@pytest.mark.parametrize("make_command", COMMANDS)
def test_a_file_of_two_formats_is_refused_until_a_flag_decides(
    cli: Cli, ambiguous: Path, tmp_path: Path, make_command: Callable[[Path, Path], list[object]]
) -> None:
    words = make_command(ambiguous, tmp_path)
    refused = cli(*words)
    assert refused.code == 1
    assert "add --format annif or --format pairs" in " ".join(refused.err.split())
    decided = cli(*words, "--format", "pairs")
    assert decided.code == 0, decided.err


def test_a_person_at_a_terminal_is_asked(
    cli: Cli, ambiguous: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter(["annif", "neither"])

    def answer(question: str, default: str, **_: Any) -> str:
        assert question.endswith("; read it as")
        return next(answers)

    monkeypatch.setattr("wsabie.cli.inputs.is_at_terminal", lambda: True)
    monkeypatch.setattr("typer.prompt", answer)
    trained = cli("train", ambiguous, "--model", tmp_path / "model", *TRAIN)
    assert "annif TSV: 54 documents" in " ".join(trained.err.split())
    assert cli("train", ambiguous, "--model", tmp_path / "other", *TRAIN).code == 1


def test_a_model_reads_further_files_in_the_format_that_is_named(cli: Cli, ambiguous: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    assert cli("train", ambiguous, "--model", model, *TRAIN, "--format", "annif").code == 0
    for words in (["annotate", model, ambiguous], ["annotate", model, ambiguous, "--out", tmp_path / "best.tsv"],
                  ["evaluate", model, ambiguous, "--allow-overlap", "--propensities", ambiguous],
                  ["search", model, "http://www.yso.fi/onto/yso/p1", "--in", ambiguous],
                  ["update", model, ambiguous, "--without-replay"]):  # fmt: skip
        assert "add --format annif" in " ".join(cli(*words).err.split())
        decided = cli(*words, "--format", "annif")
        assert decided.code == 0, decided.err


def test_info_shows_the_scores_of_both(cli: Cli, ambiguous: Path) -> None:
    about = cli("info", ambiguous, "--json").json
    assert [rating["kind"] for rating in about["formats"]] == ["annif", "pairs"]
    assert "other commands take --format annif or --format pairs" in " ".join(cli("info", ambiguous).err.split())


@pytest.mark.parametrize(
    ("content", "score", "reason", "refusal"),
    [
        ("just a sentence\nand another\n", "0.00", "0 of 2 lines have __label__ words", "has no format that wsabie"),
        ("file_name,labels\nnone.jpg,sea\n", "0.90", "the column file_name names files", "none of them lies beside it"),
        ("1 qid:1 1:0.5\n", "0.00", "0 of 1 lines hold feature:value", "holds queries"),
    ],
)
def test_info_shows_the_scores_of_what_is_refused(
    cli: Cli, tmp_path: Path, content: str, score: str, reason: str, refusal: str
) -> None:
    file = tmp_path / "data.csv"
    file.write_text(content)
    shown, document = cli("info", file), cli("info", file, "--json")
    assert (shown.code, document.code) == (1, 1)
    assert re.search(rf"{re.escape(score)}\s+{reason}", shown.out)
    assert refusal in " ".join(shown.err.split())
    assert refusal in document.json["refused"]
    assert (float(score), reason) in [(rating["score"], rating["reason"]) for rating in document.json["formats"]]
