"""`wsabie update` and `wsabie edit` on Corel5k: new rows and labels in steps."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import wsabie
from wsabie.io.records import FeatureTable
from wsabie.models.annotators import Annotator
from wsabie.models.joint_embedding.estimator import Wsabie
from wsabie.storage.atomic_files import lock_folder
from wsabie.storage.model_folder import open_model_folder
from wsabie.workflows.model_updates import update_model


@pytest.fixture(scope="module")
def parts(data_dir: Path, tmp_path_factory: Any) -> tuple[Path, Path]:
    """Training pictures of Corel5k: the first 2,500 without those of 20 labels, and 1,500 others."""
    folder = tmp_path_factory.mktemp("corel")
    source = data_dir / "corel5k_mulan"
    lines = (source / "Corel5k-train-sparse.arff").read_text().splitlines(keepends=True)
    at = lines.index("@data\n") + 1
    labels = (source / "Corel5k.xml").read_text()
    late = {str(column) for column in range(510, 530)}
    early = [
        line for line in lines[at : at + 2500] if not late & set(line.strip("{}\n").replace(",", " ").split()[::2])
    ]
    for name, rows in (("base", early), ("more", lines[at + 2500 : at + 4000])):
        (folder / f"{name}.arff").write_text("".join(lines[:at] + rows))
        (folder / f"{name}.xml").write_text(labels)
    return folder / "base.arff", folder / "more.arff"


def train_base(cli: Any, base: Path, folder: Path, *, replay: bool = True) -> Path:
    replay_options = ("--replay", "auto") if replay else ()
    shape = ("--dim", 30, "--epochs", 6, "--threads", 1, "--min-rows", 2)
    result = cli("train", base, "--model", folder / "m", *shape, *replay_options)
    assert result.code == 0, result.err
    return folder / "m"


def test_rows_are_learned_in_steps(cli: Any, parts: tuple[Path, Path], tmp_path: Path) -> None:
    base, more = parts
    model = train_base(cli, base, tmp_path)
    n_labels_before = len(wsabie.load(model).model.vocabulary_)
    result = cli("update", model, more, "--step", 500, "--epochs", 3, "--threads", 1, "--json")
    assert result.code == 0, result.err
    steps = result.json["steps"]
    assert [step["rows"] for step in steps] == [500, 500, 500]
    assert sum(step["new_labels"] for step in steps) == len(wsabie.load(model).model.vocabulary_) - n_labels_before > 0
    assert all(0.1 < step["map"] < 0.6 and step["ece"] < 0.3 and step["movement"] > 0 for step in steps)
    info = cli("info", model, "--json").json
    assert (info["batches"], info["buffer_rows"], len(info["stream"])) == (3, info["stream_rows"], 3)
    assert "last batch" in cli("info", model).out
    assert cli("evaluate", model, more).code == 1  # these rows are training rows now
    again = cli("update", model, more)
    assert again.code == 1
    assert "learned all 1,500 rows of this data" in again.err


def test_update_compiles_on_a_copy_of_the_model(
    cli: Any, parts: tuple[Path, Path], tmp_path: Path, monkeypatch: Any
) -> None:
    base, more = parts
    place, steps_learned, learn = train_base(cli, base, tmp_path), [], Wsabie.partial_fit

    def learn_and_record(self: Any, X: Any, *args: Any, **options: Any) -> Any:
        steps_learned.append((id(self), X.shape[0]))
        return learn(self, X, *args, **options)

    monkeypatch.setattr(Wsabie, "partial_fit", learn_and_record)
    assert cli("update", place, more, "--step", 1000, "--epochs", 1).code == 0
    (copied, first), *steps = steps_learned
    assert first <= 64
    assert copied not in {model_id for model_id, _ in steps}
    assert len({model_id for model_id, _ in steps}) == 1


@pytest.mark.parametrize("remembers", [False, True])
def test_stopped_update_resumes(
    cli: Any, parts: tuple[Path, Path], tmp_path: Path, monkeypatch: Any, remembers: bool
) -> None:
    """The folder is whole after the stop, and holds in the end what a run without one leaves."""
    base, more = parts
    folders = []
    for name in ("whole", "stopped"):
        (tmp_path / name).mkdir()
        folders.append(train_base(cli, base, tmp_path / name, replay=not remembers))
    words: tuple[Any, ...] = (more, "--step", 600, "--epochs", 2, "--threads", 1)
    words += ("--remember", base) if remembers else ()
    assert cli("update", folders[0], *words).code == 0
    save, saves = Annotator.save, []

    def stop_second(self: Any, path: Any) -> None:
        saves.append(path)
        if len(saves) == 2:
            raise KeyboardInterrupt
        save(self, path)

    with monkeypatch.context() as patched:
        patched.setattr(Annotator, "save", stop_second)
        assert cli("update", folders[1], *words).code == 130
    assert wsabie.load(folders[1]).facts["updates"][0]["rows"] == 600
    on = cli("update", folders[1], *words, "--json")
    assert [step["rows"] for step in on.json["steps"]] == [600, 300]
    assert ("--remember has no effect" in on.err) == remembers
    step, two = (open_model_folder(folder) for folder in folders)
    assert step.tensors.keys() == two.tensors.keys()
    for name, array in step.tensors.items():
        assert np.array_equal(array, two.tensors[name]), name


def test_labels_are_edited(cli: Any, parts: tuple[Path, Path], tmp_path: Path) -> None:
    base, more = parts
    model = train_base(cli, base, tmp_path)
    names = list(wsabie.load(model).model.vocabulary_)
    counts = wsabie.load(model).model.replay_buffer_.label_counts
    first, second, third = (names[i] for i in np.argsort(-counts)[:3])
    merged, renamed = cli("edit", model, "merge", first, second), cli("edit", model, "rename", third, "a new name")
    labels_left = f"{len(names) - 1:,} labels in {model} now"
    assert (merged.code, f"{second!r} went into {first!r}: {labels_left}" in merged.err) == (0, True), merged.err
    assert (renamed.code, f"{third!r} is called 'a new name': {labels_left}" in renamed.err) == (0, True), renamed.err
    for name, became in ((second, f"is part of {first!r} now"), (third, "is called 'a new name' now")):
        refused = cli("edit", model, "remove", name)
        assert (refused.code, became in refused.err) == (1, True), refused.err
    assert cli("edit", model, "remove", names[5], "--json").json["labels"] == len(names) - 2
    assert cli("info", model, "--json").json["labels"] == len(names) - 2
    assert cli("export", model, tmp_path / "card", "--as", "huggingface").code == 0
    assert f"of {len(names) - 2:,}: " in (tmp_path / "card" / "README.md").read_text(encoding="utf-8")
    results = cli("annotate", model, more, "-k", 400, "--json").json["results"]
    label_names = {name for row in results for name, _ in row["labels"]}
    assert {first, "a new name"} <= label_names
    assert not {second, third, names[5]} & label_names
    assert cli("evaluate", model, more, "--json").json["labels"] == len(names) - 2  # the others are not candidates
    result = cli("update", model, more, "--epochs", 1, "--json")  # has the old names
    assert result.code == 0, result.err
    now = wsabie.load(model).model.vocabulary_
    assert now.ids([second]).tolist() == now.ids([first]).tolist()
    assert "a new name" in now
    evaluation = cli("evaluate", model, more, "--allow-overlap", "--json").json
    assert evaluation["labels"] == len(now.active_ids())
    assert cli("evaluate", model, more, "--allow-overlap", "--candidates", model, "--json").json == evaluation
    search_report = cli("search", model, second, "--in", more, "-k", 1, "--json").json
    assert (search_report["query"], search_report["labels"]) == (second, [first])
    assert [match["label"] for match in search_report["groups"][0]["matches"]] == [first]
    for words, message in (
        (("rename", first), "rename takes two names"),
        (("merge", first), "merge takes two names or more"),
        (("merge", first, "no such"), "there is no label 'no such'"),
        (("rename", first, "a new name"), "another label is called 'a new name' already"),
    ):
        refused = cli("edit", model, *words)
        assert (refused.code, message in refused.err) == (1, True), refused.err


def test_locked_model_refuses_a_second_command(cli: Any, parts: tuple[Path, Path], tmp_path: Path) -> None:
    """Each would write what it read and changed, and the other's change would be gone."""
    place = train_base(cli, parts[0], tmp_path)
    with lock_folder(place):
        for command in (("update", place, parts[1]), ("edit", place, "rename", "sky", "heaven"), ("index", place)):
            result = cli(*command)
            assert (result.code, result.out) == (1, "")
            assert "another command is changing" in result.err
    assert cli("edit", place, "rename", "sky", "heaven").code == 0


def test_bad_updates_are_refused(cli: Any, parts: tuple[Path, Path], tmp_path: Path) -> None:
    base, more = parts
    model = train_base(cli, base, tmp_path, replay=False)
    for words, message in (
        ((more,), "it would forget old labels; give the training data by --remember DATA, or --without-replay"),
        ((more, "--replay", "100"), "it would forget old labels"),
        ((more, "--remember", base, "--without-replay"), "leave it out"),
        ((tmp_path / "missing", "--without-replay"), "missing"),
    ):
        refused = cli("update", model, *words)
        assert (refused.code, message in refused.err) == (1, True), refused.err
    for size in ("some", "0"):
        refused = cli("update", model, more, "--replay", size)
        assert (refused.code, f"{size} is not a number of rows; give one above 0, or auto" in refused.err) == (2, True)
    bare = cli("update", model, more, "--without-replay", "--epochs", 1, "--json")
    assert bare.err.index("compiling (once)") < bare.err.index("learning") < bare.err.index("1,500/1,500 rows")
    assert "map" not in bare.json["steps"][0]
    popularity = tmp_path / "popular"
    assert cli("train", base, "--model", popularity, "--kind", "popularity").code == 0
    refused = cli("update", popularity, more)
    assert "is of kind popularity, which cannot go on" in refused.err


def test_rows_without_a_known_feature_are_refused(cli: Any, tmp_path: Path) -> None:
    """Rows with some unknown features are used, rows with only such features are refused."""
    for name, first in (("known", 0), ("wider", 30), ("far", 300)):
        lines = [f"{i % 3} {first + i % 3}:1 {first + 3 + i % 9}:1" for i in range(60)]
        (tmp_path / f"{name}.txt").write_text("\n".join([*lines, "1 0:1 40:2"] if first == 30 else lines) + "\n")
    config = tmp_path / "own.toml"
    config.write_text('dim = 4\nepochs = 2\nreplay = "auto"\n')
    assert cli("train", tmp_path / "known.txt", "--model", tmp_path / "m", "--config", config).code == 0
    for command in ("update", "evaluate", "annotate"):
        refused = cli(command, tmp_path / "m", tmp_path / "far.txt")
        assert (refused.code, "has none of the model's 12 features" in refused.err) == (1, True), refused.err
    wider = cli("update", tmp_path / "m", tmp_path / "wider.txt", "--json")
    assert (wider.code, "121 values of" in wider.err) == (0, True), wider.err
    assert cli("info", tmp_path / "m", "--json").json["stream"][0]["unseen_features"] == 0.0


def test_replay_buffer_is_filled_later(cli: Any, parts: tuple[Path, Path], tmp_path: Path) -> None:
    base, more = parts
    model = train_base(cli, base, tmp_path, replay=False)
    result = cli("update", model, more, "--remember", base, "--replay", 800, "--epochs", 2)
    assert result.code == 0, result.err
    assert "MAP" in result.out
    info = json.loads(cli("info", model, "--json").out)
    n = len(base.read_text().split("@data\n")[1].splitlines())
    assert (info["buffer_rows"], info["stream_rows"]) == (800, n + info["stream"][0]["rows"])
    assert "training rows of" not in result.err
    (tmp_path / "again").mkdir()
    strange = cli("update", train_base(cli, base, tmp_path / "again", replay=False), base, "--remember", more)
    assert (strange.code, f"0 of 1,500 rows of {more} that were looked at are training rows of" in strange.err) == (
        0, True,
    ), strange.err  # fmt: skip


def test_init_model_starts_training_from_another_space(cli: Any, parts: tuple[Path, Path], tmp_path: Path) -> None:
    base, more = parts
    start = train_base(cli, base, tmp_path)
    words = (more, "--model", tmp_path / "warm", "--epochs", 2, "--threads", 1, "--json")
    result = cli("train", *words, "--init-model", start)
    assert result.code == 0, result.err
    assert cli("info", tmp_path / "warm", "--json").json["dimensions"] == 30
    warm = cli("evaluate", tmp_path / "warm", base, "--json").json["metrics"]["MAP"]
    assert cli("train", *words, "--dim", 30).code == 0
    assert warm > cli("evaluate", tmp_path / "warm", base, "--json").json["metrics"]["MAP"]
    refused = cli("train", *words, "--init-model", start, "--dim", 40)
    assert "init_model has dim=30" in refused.err


def test_calibration_stays_and_labels_need_a_training_row(tmp_path: Path) -> None:
    """Steps of too few rows to fit probabilities again; a label that only a held row has is not learned."""
    rng = np.random.default_rng(0)

    def rows(n: int, name: str, labels: Any) -> FeatureTable:
        X = sp.csr_matrix((rng.random((n, 12)) < 0.4).astype(np.float32) + np.eye(12, dtype=np.float32)[labels])
        Y = sp.csr_matrix((np.ones(n, np.int8), (np.arange(n), labels)), (n, 12))
        return FeatureTable(X, Y, [f"label {y}" for y in range(12)], [f"{name} {i}" for i in range(n)])

    first = rows(400, "a", rng.integers(0, 10, 400)).with_labels(np.arange(10))
    model = Wsabie(dim=8, epochs=3, threads=1, replay=100).fit(first.X, first.Y, label_names=first.label_names)
    model.calibrate(first.X, first.Y)
    labels = rng.integers(0, 10, 130)
    labels[9], labels[109] = 11, 10  # one is held in a step of 100; of the last 30 rows none is
    update_model(Annotator(model), rows(130, "b", labels), tmp_path / "m", step=100, epochs=2)
    updated = wsabie.load(tmp_path / "m").model
    assert ("label 10" in updated.vocabulary_, "label 11" in updated.vocabulary_) == (True, False)
    assert updated.calibration_ is not None
    assert updated.predict_proba(first.X[:2]).shape == (2, 11)
    assert (updated.replay_buffer_.label_counts > 0).all()


def test_step_without_a_known_label_keeps_the_calibration(tmp_path: Path) -> None:
    """Held rows without a known label leave probabilities as they are; a step without labels is not an arrival."""
    rng = np.random.default_rng(0)
    names, row_labels = [f"label {y}" for y in range(6)], rng.integers(0, 6, 500)
    X = sp.csr_matrix((rng.random((500, 12)) < 0.4).astype(np.float32) + np.eye(12, dtype=np.float32)[row_labels])
    Y = np.eye(6, dtype=np.int8)[row_labels]
    Y[109:200:10] = 0  # those that the second step holds back
    Y[200:300] = 0
    rows = FeatureTable(X, sp.csr_matrix(Y), names, [str(i) for i in range(500)])
    first = rows.take(np.arange(100))
    model = Wsabie(dim=8, epochs=3, threads=1, replay=100).fit(first.X, first.Y, label_names=names)
    model.calibrate(first.X, first.Y)
    steps = update_model(Annotator(model), rows.take(np.arange(100, 500)), tmp_path / "m", step=100, epochs=2)
    assert [entry["rows"] for entry in steps] == [100] * 4
    assert ["map" in entry for entry in steps] == [True, False, True, True]
    assert wsabie.load(tmp_path / "m").model.calibration_ is not None


def test_rows_that_cannot_be_scaled_are_skipped(cli: Any, tmp_path: Path) -> None:
    """A negative value, where training rows had counts, stops no command and is listed by the row's number."""
    lines = [f"{i % 3} {i % 3}:1 {3 + i % 9}:2" for i in range(60)]
    first, later, listed = (tmp_path / name for name in ("first.txt", "later.txt", "listed"))
    first.write_text("\n".join(lines) + "\n")
    later.write_text("\n".join([*lines[:40], "1 5:-1", *lines[40:]]) + "\n")
    model = tmp_path / "m"
    assert cli("train", first, "--model", model, "--dim", 4, "--epochs", 2, "--replay", "auto").code == 0
    for command in (
        ("evaluate", model, later, "--allow-overlap"),
        ("annotate", model, later, "--out", tmp_path / "out.tsv"),
        ("annotate", model, later),
        ("update", model, later, "--step", 20),
    ):
        result = cli(*command, "--rejects", listed)
        assert result.code == 0, result.err
        (reject,) = map(json.loads, listed.read_text().splitlines())
        assert (reject["reason"], reject["where"].endswith("41")) == ("negative value", True), reject
