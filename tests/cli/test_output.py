"""Progress lines, tables and names on the terminal."""

from types import SimpleNamespace

import pytest

from wsabie.cli import output
from wsabie.cli.output import TerminalProgress, _format_pace, print_error, print_note, show_table


def find_last_line(output: str) -> str:
    return output.strip().splitlines()[-1]


def test_stage_that_ends_early_is_filled_and_marked(capsys: pytest.CaptureFixture[str]) -> None:
    with TerminalProgress().stage("training", 100, "pairs") as stage:
        stage.advance(40)
        stage.advance(0, MAP=0.5)
    line = find_last_line(capsys.readouterr().err)
    assert "━━━━━━━━ 40 pairs" in line
    assert line.endswith("MAP 0.5 ended early")


def test_finished_or_failed_stage_is_not_marked_early(capsys: pytest.CaptureFixture[str]) -> None:
    with TerminalProgress().stage("training", 100, "pairs") as stage:
        stage.advance(100)

    def fail() -> None:
        with TerminalProgress().stage("reading", 100, "bytes"):
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert "early" not in capsys.readouterr().err


def test_rates_have_readable_units(capsys: pytest.CaptureFixture[str]) -> None:
    for speed, text in ((123.4, "123 MB/s"), (2.24e-5, "7/7 bytes")):
        with TerminalProgress().stage("reading", 7, "bytes") as stage:
            stage.advance(7, mb_per_s=speed)
        line = find_last_line(capsys.readouterr().err)
        assert line.endswith(text)
        assert "e-05" not in line


def test_time_limit_shows_the_remaining_time(capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever was told so far, the clock says how much is left; there is no rate of seconds a second."""
    running = SimpleNamespace(elapsed=26.0, completed=4, total=60, finished=False, fields={"unit": "s"})
    assert _format_pace(running) == "0:34 left"
    assert _format_pace(SimpleNamespace(**{**vars(running), "elapsed": 66.0})) == "0:00 left"
    with TerminalProgress().stage("tuning", 1, "s") as stage:
        stage.advance(1)
    line = find_last_line(capsys.readouterr().err)
    assert "1/1 s in 0:0" in line
    assert "/s" not in line


def test_stage_without_a_count_shows_none(capsys: pytest.CaptureFixture[str]) -> None:
    with TerminalProgress().stage("compiling (once)", None, ""):
        pass
    assert "0" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("width", "expected"),
    [
        (100, "training ━━━━━━━━ DONE MAP 0.533"),
        (80, "training ━━━━━━━━ DONE MAP 0.533"),
        (70, "training DONE MAP 0.533"),
        (60, "training DONE"),
        (50, "tra… DONE"),
    ],
)
def test_narrow_terminal_drops_the_bar_then_the_metrics(
    width: int, expected: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The count, the rate and the time left are never cut."""
    monkeypatch.setattr(output, "_format_pace", lambda task: "205,072/s 0:24 left")
    monkeypatch.setattr(output.err, "_width", width)
    with TerminalProgress().stage("training", 4_923_612, "pairs") as stage:
        stage.advance(4_923_612, MAP=0.533)
    line = find_last_line(capsys.readouterr().err)
    assert " ".join(line.split()) == expected.replace("DONE", "4,923,612/4,923,612 pairs 205,072/s 0:24 left")
    assert len(line) <= width


@pytest.mark.parametrize("width", [20, 79, 200])
def test_table_is_never_cut(width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(output.out, "_width", width)
    show_table("what was found", ["metric", "value", "interval"], [["recall@50", "0.7854", "0.7464 to 0.8213"]])
    rows = [line.split("  ") for line in capsys.readouterr().out.splitlines() if "recall" in line]
    assert [[cell.strip() for cell in row if cell.strip()] for row in rows] == [
        ["recall@50", "0.7854", "0.7464 to 0.8213"]
    ]


def test_names_are_neither_markup_nor_terminal_codes(capsys: pytest.CaptureFixture[str]) -> None:
    names = [
        "[/bold]",
        "[red]sea",
        "holiday :sun:",
        "up\x1b[2J",
        "two\nlines",
        "\u202eturned",
        "\u0645\u06cc\u200c\u062e",
    ]
    expected_lines = [
        "[/bold]",
        "[red]sea",
        "holiday :sun:",
        "up\\x1b[2J",
        "two\\nlines",
        "\\u202eturned",
        "\u0645\u06cc\u200c\u062e",
    ]
    for name, expected in zip(names, expected_lines, strict=True):
        show_table(f"nearest to {name}", ["label"], [[name]])
        table = capsys.readouterr().out
        assert table.count(expected) == 2
        print_note(name)
        print_error(name)
        with TerminalProgress().stage(name, 1, "rows") as stage:
            stage.advance()
        errors = capsys.readouterr().err
        assert errors.startswith(f"{expected}\nwsabie: {expected}\n")
        assert errors.count(expected) == 3
