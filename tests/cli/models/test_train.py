"""Stopped, resumed and strict training with `wsabie train`, and its held-out rows."""

import errno
import json
import shlex
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from wsabie.core.errors import InputError
from wsabie.features.extractors.visual_words import VisualWords
from wsabie.io.formats.parquet_rows import write_parquet_rows
from wsabie.io.records import FeatureTable
from wsabie.models.annotators import Annotator
from wsabie.models.joint_embedding.estimator import Wsabie
from wsabie.storage.atomic_files import explain_write_errors, lock_folder
from wsabie.training.checkpoints import CheckpointFolder
from wsabie.workflows.work_folder import hold_work_folder

Cli = Callable[..., Any]


def short_options(collection: Path) -> tuple[object, ...]:
    """Options of a short training."""
    pictures = ("--n-words", 20, "--size", 32) if collection.is_dir() else ()
    return ("--epochs", 6, "--hold-out", 0, *pictures, "--threads", 1, "--json")


SMALL = ("--n-words", 20, "--size", 32, "--epochs", 6, "--threads", 1)
"""Options of a short training on pictures, some of which choose the epoch."""


def interrupt(*args: Any, **short_options: Any) -> None:
    """Raise what Ctrl-C raises."""
    raise KeyboardInterrupt


@pytest.fixture(params=["rows", "pictures"])
def collection(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Rows of features in a file, or 24 of the pictures in three folders that are named for their labels."""
    if request.param == "rows":
        return request.getfixturevalue("rows")
    folder = tmp_path / "tagged"
    for number, file in enumerate(sorted(request.getfixturevalue("pictures").glob("*.webp"))[:24]):
        place = folder / "abc"[number % 3] / file.name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(file.read_bytes())
    return folder


def list_tensors(model: Path) -> list[str]:
    """Their files are named for their content."""
    return sorted(file.name for file in (model / "tensors").iterdir())


@pytest.mark.usefixtures("every_epoch")
def test_resumed_training_makes_the_remaining_epochs_and_the_same_model(
    cli: Cli, collection: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save = CheckpointFolder.save

    def stop_after_three(self: Any, space: Any, state: Any) -> None:
        save(self, space, state)
        if state.epoch == 3:
            raise KeyboardInterrupt

    full_run = cli("train", collection, "--model", tmp_path / "whole", *short_options(collection))
    with monkeypatch.context() as patch:
        patch.setattr(CheckpointFolder, "save", stop_after_three)
        assert cli("train", collection, "--model", tmp_path / "m", *short_options(collection)).code == 130
    assert not (tmp_path / "m").exists()
    monkeypatch.setattr(VisualWords, "fit", None)  # the dictionary has been learned
    log = tmp_path / "log.jsonl"
    resumed = cli("train", collection, "--model", tmp_path / "m", *short_options(collection), "--resume", "--log", log)
    assert resumed.code == 0, resumed.err
    assert [json.loads(line)["epoch"] for line in log.read_text().splitlines()] == [3, 4, 5]
    assert "unfinished training" not in resumed.err
    assert [s["loss"] for s in resumed.json["history"]] == [s["loss"] for s in full_run.json["history"]]
    assert list_tensors(tmp_path / "m") == list_tensors(tmp_path / "whole")
    assert not (tmp_path / "m.training").exists()


@pytest.mark.usefixtures("every_epoch")
def test_repeated_epochs_are_logged_once(cli: Cli, rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped in epoch 4 with a checkpoint of epoch 2 alone; a line was cut off by the stop."""
    save, log = CheckpointFolder.save, tmp_path / "log.jsonl"
    command = ("train", rows, "--model", tmp_path / "m", *short_options(rows), "--log", log)

    def save_the_second(self: Any, space: Any, state: Any) -> None:
        if state.epoch == 2:
            save(self, space, state)
        if state.epoch == 4:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(CheckpointFolder, "save", save_the_second)
        assert cli(*command).code == 130
    assert [json.loads(line)["epoch"] for line in log.read_text().splitlines()] == [0, 1, 2, 3]
    with log.open("a") as lines:
        lines.write("[1]\n{cut off")
    assert cli(*command, "--resume").code == 0
    written = [line for line in log.read_text().splitlines() if line.startswith('{"')]
    assert [json.loads(line)["epoch"] for line in written] == [0, 1, 2, 3, 4, 5]
    assert cli(*command).code == 0
    assert len(log.read_text().splitlines()) == 6 + 2 + 6


def test_resume_without_a_checkpoint_is_reported(cli: Cli, rows: Path, tmp_path: Path) -> None:
    result = cli("train", rows, "--model", tmp_path / "m", *short_options(rows), "--resume")
    assert result.code == 0
    assert (
        f"there is no unfinished training at {tmp_path / 'm.training'}; this run starts from the beginning"
        in result.err
    )


@pytest.mark.parametrize("removal", ["before", "during", "after"])
def test_resume_keeps_a_finished_model(
    cli: Cli, rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, removal: str
) -> None:
    """Killed before, during or after the removal of the checkpoints, which follows the last save."""
    command = ("train", rows, "--model", tmp_path / "m", *short_options(rows))
    with monkeypatch.context() as patch:
        if removal == "before":
            patch.setattr("wsabie.workflows.work_folder.remove_folder", interrupt)
        if removal == "during":
            patch.setattr("wsabie.storage.atomic_files.remove_tree", interrupt)
        first = cli(*command)
    assert first.code == (0 if removal == "after" else 130)
    tensors_before = list_tensors(tmp_path / "m")
    again = cli(*command, "--resume")
    assert again.code == 0, again.err
    assert again.json["labels"] == 3
    assert ("m is finished and stays as it is" in again.err) == (removal != "before")
    assert list_tensors(tmp_path / "m") == tensors_before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m", "rows.txt"]


def test_resume_refuses_a_finished_model_of_another_command(cli: Cli, rows: Path, tmp_path: Path) -> None:
    command = ("train", rows, "--model", tmp_path / "m", *short_options(rows))
    assert cli(*command).code == 0
    tensors_before = list_tensors(tmp_path / "m")
    changed_rows = tmp_path / "others.txt"
    changed_rows.write_text(rows.read_text().replace("90 9 3\n0 ", "90 9 3\n1 ", 1))
    for words, setting in ((("--seed", 7), "seed"), (("--dim", 7, "--learning-rate", 0.3), "dim, learning_rate")):
        again = cli("train", rows, "--model", tmp_path / "m", *short_options(rows), "--resume", *words)
        assert (again.code, f"m is a finished model with other {setting}, and no training" in again.err) == (1, True)
    again = cli("train", changed_rows, "--model", tmp_path / "m", *short_options(rows), "--resume")
    assert (again.code, "a finished model with other data" in again.err) == (1, True)
    assert list_tensors(tmp_path / "m") == tensors_before


def test_unfinished_training_is_kept_until_restart(
    cli: Cli, pictures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ("train", "--model", tmp_path / "my m", *SMALL, "--", pictures)
    work = tmp_path / "my m.training"
    with monkeypatch.context() as patch:
        patch.setattr(Annotator, "save", interrupt)
        first = cli(*command)
    assert f"stopped; finished epochs are kept in {work}; go on with: wsabie train --resume " in first.err
    times_before = {path: path.stat().st_mtime_ns for path in work.rglob("*")}
    for words, message in (
        ((), f"{work} holds unfinished training; give --resume to go on from it, or --restart"),
        (("--resume", "--restart"), "leave one of them out"),
        (("--restart", "--metric", "mapp"), "no epoch can be chosen by 'mapp'; choose MAP, or p@k such as p@10"),
        (("--restart", "--metric", "p@" + "9" * 5000), "no epoch can be chosen by 'p@999"),
        (
            ("--resume", "--metric", "p@5000"),
            "no epoch can be chosen by 'p@5000'; choose MAP, or p@k with k from 1 to ",
        ),
        (("--resume", "--n-words", "30"), "start over (--restart)"),
        (("--resume", "--min-rows", "1000"), "no label has 1000 training rows"),
    ):
        refused = cli(*command[:-2], *words, pictures)
        assert (refused.code, message in refused.err) == (1, True), refused.err
        assert "goes on from that" not in refused.err
        assert {path: path.stat().st_mtime_ns for path in work.rglob("*")} == times_before, words
    with monkeypatch.context() as patch:
        patch.setattr(VisualWords, "fit", None)  # the dictionary is there
        line = first.err.strip().splitlines()[-1].partition("go on with: wsabie ")[2]
        assert cli(*shlex.split(line)).code == 0
    assert not work.exists()


def test_second_command_does_not_train_a_locked_model(
    cli: Cli, rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second one would remove what the first one works on; it touches nothing."""
    command, work = ("train", rows, "--model", tmp_path / "m", "--epochs", 6), tmp_path / "m.training"
    save, saved = Annotator.save, []

    def save_under_lock(self: Annotator, place: Path) -> None:
        with pytest.raises(InputError, match="another command is changing"), lock_folder(work):
            pass
        if place.exists():  # nor may it be updated meanwhile
            with pytest.raises(InputError, match="another command is changing"), lock_folder(place):
                pass
        saved.append(place)
        save(self, place)

    monkeypatch.setattr(Annotator, "save", save_under_lock)
    for _ in ("made", "replaced"):
        assert cli(*command).code == 0
    assert saved == [tmp_path / "m"] * 2
    with hold_work_folder(work, resume=False):
        (work / "extractor").touch()
        for words in ((), ("--resume",), ("--restart",)):
            refused = cli(*command, *words)
            assert (refused.code, f"another command is changing {work}; give this one again" in refused.err) == (
                1,
                True,
            )
            assert "--resume" not in refused.err
            assert (work / "extractor").exists()


def test_restart_uses_nothing_of_the_previous_run(
    cli: Cli, pictures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ("train", pictures, "--model", tmp_path / "m", *SMALL)
    work = tmp_path / "m.training"
    with monkeypatch.context() as patch:
        patch.setattr(Annotator, "save", interrupt)
        cli(*command)
        patch.setattr(VisualWords, "fit", interrupt)
        restarted = cli(*command, "--n-words", 30, "--restart")
    assert (restarted.code, "stopped before anything was finished" in restarted.err, work.exists()) == (
        130,
        True,
        False,
    )
    failed = cli(*command, "--learning-rate", 1e30)
    assert (failed.code, f"the features of all items are kept in {work}; --resume goes on" in failed.err) == (1, True)
    assert cli(*command, "--restart").code == 0


def test_early_ctrl_c_leaves_no_files(
    cli: Cli, pictures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ("train", pictures, "--model", tmp_path / "m", *SMALL)
    with monkeypatch.context() as patch:
        patch.setattr(VisualWords, "fit", interrupt)
        result = cli(*command)
    assert (result.code, "stopped before anything was finished, so the same command starts" in result.err) == (
        130,
        True,
    )
    monkeypatch.setattr("wsabie.workflows.model_training.extract_to_file", interrupt)
    result = cli(*command)
    assert f"stopped; the features extracted so far are kept in {tmp_path / 'm.training'}" in result.err


def test_info_names_the_best_epoch(cli: Cli, rows: Path, tmp_path: Path) -> None:
    """Figures may be written in small and large letters; a device is not a place for a model."""
    result = cli("train", rows, "--model", tmp_path / "m", "--epochs", 6, "--metric", "P@1", "--json")
    figures = [epoch["validation"] for epoch in result.json["history"]]
    info = cli("info", tmp_path / "m", "--json").json
    assert info["best_epoch"] == figures.index(max(figures)) + 1
    assert cli("train", rows, "--model", tmp_path / "m", "--epochs", 2, "--metric", "map").code == 0
    refused = cli("train", rows, "--model", "/dev/full", *short_options(rows))
    assert (refused.code, "/dev/full is a file; give the name of a folder" in refused.err) == (1, True), refused.err


@pytest.mark.parametrize(
    ("code", "message"),
    [(errno.ENOSPC, "the disk is full; free some space"), (errno.EACCES, "refused; make that possible")],
)
def test_failed_save_names_the_resume_command(
    cli: Cli, rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, message: str
) -> None:
    def fails(*args: Any) -> None:
        with explain_write_errors(tmp_path / "m"):
            raise OSError(code, "refused")

    monkeypatch.setattr(Annotator, "save", fails)
    result = cli("train", rows, "--model", tmp_path / "m", *short_options(rows))
    assert result.code == 1
    assert f"{message} and run the same command again with --resume" in result.err
    assert (tmp_path / "m.training" / "checkpoint").exists()


def test_training_data_as_validation_data_are_reported(cli: Cli, rows: Path, tmp_path: Path) -> None:
    command = ("train", rows, "--model", tmp_path / "m", "--epochs", 2, "--threads", 1)
    copy = tmp_path / "copy.txt"
    copy.write_text(rows.read_text())
    assert f"{copy} is the training data itself" in cli(*command, "--valid", copy).err
    copy.write_text(rows.read_text().replace(":1", ":3"))
    assert "is the training data itself" not in cli(*command, "--valid", copy).err


@pytest.mark.parametrize("content", ["", "{", None])
def test_damaged_model_is_retrained(cli: Cli, rows: Path, tmp_path: Path, content: str | None) -> None:
    command = ("train", rows, "--model", tmp_path / "m", *short_options(rows))
    assert cli(*command).code == 0
    config = tmp_path / "m" / "config.json"
    if content is None:
        config.unlink()
    else:
        config.write_text(content)
    assert cli("info", tmp_path / "m").code == 1
    again = cli(*command)
    assert again.code == 0, again.err
    assert cli("info", tmp_path / "m").code == 0


def test_strict_training_ends_at_the_first_bad_item(cli: Cli, collection: Path, tmp_path: Path) -> None:
    if collection.is_dir():
        bad = collection / "a" / "bad.png"
        bad.write_bytes(b"\x89PNG\r\n\x1a\n nonsense")
        where = "bad.png"
    else:
        lines = collection.read_text().splitlines()
        collection.write_text("\n".join([*lines[:7], "0 1:one", *lines[8:]]) + "\n")
        where = "rows.txt:8"
    strict = cli("train", collection, "--model", tmp_path / "m", *short_options(collection), "--strict")
    assert strict.code == 1
    assert strict.out == ""
    last = strict.err.strip().splitlines()[-1]
    assert last.startswith("wsabie: ")
    assert where in last
    assert "run without --strict to skip it" in last
    assert not (tmp_path / "m").exists()
    assert cli("train", collection, "--model", tmp_path / "m", *short_options(collection)).json["skipped"] == 1


@pytest.mark.parametrize("grouped", [True, False])
def test_whole_groups_are_held_out_with_their_views(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, grouped: bool
) -> None:
    """Twenty pictures with three views each, two pictures to a group; the only feature of row i is number i."""
    i = np.arange(60)
    ids = [f"p{n // 3}" + (f"#{n % 3}" if n % 3 else "") for n in i]
    X, Y = sp.identity(60, np.float32, "csr"), sp.csr_matrix(np.eye(2, dtype=np.int8)[i % 2])
    write_parquet_rows(
        FeatureTable(X, Y, ["a", "b"], ids, [f"g{n // 6}" for n in i] if grouped else None, augment=2),
        tmp_path / "rows.parquet",
    )
    fit, sides = Wsabie.fit, []

    @wraps(fit)  # with its signature, which says what `fit` takes
    def spy(self: Any, X: Any, Y: Any, *, validation: Any, **short_options: Any) -> Any:
        sides.extend([X.indices, validation[0].indices])
        return fit(self, X, Y, validation=validation, **short_options)

    monkeypatch.setattr(Wsabie, "fit", spy)
    words = ("--epochs", 1, "--hold-out", 0.3, "--threads", 1)
    assert cli("train", tmp_path / "rows.parquet", "--model", tmp_path / "m", *words).code == 0
    train, valid = sides
    rows_per_group = 6 if grouped else 3
    assert not {*train // rows_per_group} & {*valid // rows_per_group}
    assert (len(train), len(valid)) == (42, 6)
    assert not (valid % 3).any()  # of a picture that is held out the centred view alone is judged


def test_command_line_overrides_the_config_file(cli: Cli, rows: Path, tmp_path: Path) -> None:
    config = tmp_path / "settings.toml"
    config.write_text(
        'dim = 7\nepochs = 2\nrank_weight = "mean_rank"\nmax_norm = "none"\nlearning_rate = { V = 0.5, W = 0.25 }\n'
    )
    words = ("train", rows, "--model", tmp_path / "m", "--config", config, "--dim", 5, "--threads", 1)
    assert cli(*words).code == 0
    model = Annotator.load(tmp_path / "m").model
    expected = Wsabie(
        5, epochs=2, rank_weight="mean_rank", max_norm=None, learning_rate={"V": 0.5, "W": 0.25}, threads=1
    )
    assert model.get_params() == expected.get_params()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("dimm = 3", "wsabie has no parameter dimm; did you mean dim?"),
        ("colour = 3", "wsabie has no parameter colour; its parameters are deterministic, dim, "),
        ("dim = ", "settings.toml is not a TOML file: Invalid value"),
        ("loss = 'hinge'", "loss is 'hinge'; choose one of warp, auc"),
        ("label_bias = 3", "label_bias is 3; choose one of False, True"),
        ("learning_rate = { Q = 1 }", "learning_rate names the table 'Q'"),
        ("#" * (1 << 16) + "#", "settings.toml is larger than 64 KiB"),
        (b"dim = 3 # \xff", "settings.toml is not a TOML file"),
        (None, "there is no file "),
    ],
)
def test_bad_config_file_is_refused_before_reading(
    cli: Cli, rows: Path, tmp_path: Path, content: str | bytes | None, sentence: str
) -> None:
    config = tmp_path / "settings.toml"
    if content is not None:
        config.write_bytes(content if isinstance(content, bytes) else content.encode())
    refused = cli("train", rows, "--model", tmp_path / "m", "--config", config)
    assert refused.code == 1
    assert sentence in refused.err
    assert "reading" not in refused.err
    assert not (tmp_path / "m.training").exists()


def test_validation_rows_without_a_known_label_choose_no_epoch(cli: Cli, tmp_path: Path) -> None:
    data = tmp_path / "data.txt"
    data.write_text("".join(f"__label__only{i} word{i % 5}\n" for i in range(40)) + "__label__both a\n" * 3)
    result = cli("train", data, "--model", tmp_path / "m", "--min-rows", 2, "--epochs", 2, "--seed", 1)
    assert result.code == 0, result.err
    assert "so that the last epoch was kept" in result.err
    assert "from 43 rows" in result.out


@pytest.mark.parametrize("name", ["/", "."])
def test_model_folder_needs_a_name(cli: Cli, rows: Path, name: str) -> None:
    refused = cli("train", rows, "--model", name)
    assert refused.code == 1
    assert refused.err.startswith("wsabie: ")
