"""The generator of the papers' sizes: a row depends on its number alone, and words follow the law."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks import papers_size
from benchmarks.papers_size import GROUP, draw, generate_rows, law_of, main, oracles, sample
from papers.synthetic_images import _compute_word_chances
from wsabie.io.shards.sharded_table import open_shards

ROWS = 20_000


@pytest.fixture(scope="module")
def law():
    return law_of("imagenet", ROWS)


def test_parts_can_be_made_again(law) -> None:
    full_task, points = generate_rows(law, 0, 700, 2)
    part, part_points = generate_rows(law, 256, 384, 1)
    same = full_task.part(256, 384)
    assert np.array_equal(points[256:384], part_points)
    assert all(np.array_equal(part.lists["x"].parts[key], same.lists["x"].parts[key]) for key in ("indices", "values"))
    assert np.array_equal(part.lists["y"].parts["labels"], same.lists["y"].parts["labels"])
    assert part.numbers["id"].tolist() == list(range(256, 384))


def test_rows_have_the_papers_statistics(law) -> None:
    columns, _ = generate_rows(law, 0, ROWS, 2)
    x, labels = columns.lists["x"], columns.lists["y"].parts["labels"]
    assert 243 < np.diff(x.starts.astype(int)).mean() < 249
    assert len(np.unique(labels)) == 15_952  # each has a row
    starts = x.starts[:-1].astype(int)
    rising = np.diff(x.parts["indices"].astype(int)) > 0
    rising[starts[1:] - 1] = True
    assert rising.all()


def test_words_follow_the_law(law) -> None:
    n, times = 128, 40
    chances = np.exp(np.hstack([np.repeat(law.world.labels[:1], n, 0), np.ones((n, 1), np.float32)]) @ law.words)
    assert chances.shape[1] % GROUP == 0
    word_counts, lengths = np.zeros(chances.shape[1]), np.full(n, 292)
    for k in range(times):
        word_ids, often = np.empty(n * 292, np.uint16), np.empty(n * 292, np.uint8)
        filled = draw(k * n, n, chances, *law.common, lengths, word_ids, often, np.zeros(n, int))
        np.add.at(word_counts, word_ids[:filled].astype(int), often[:filled])
    expected = _compute_word_chances(law.world, law.world.labels[:1])[0].astype(float) * word_counts.sum()
    assert word_counts.sum() == n * 292 * times
    excess = ((word_counts - expected) ** 2 / expected).sum() - len(expected)
    assert abs(excess) < 4 * (2 * len(expected)) ** 0.5  # chi squared


def test_scorers_that_know_the_truth_are_better_than_words_alone(law) -> None:
    figures = oracles(law, *sample(law, 200, 2))
    assert 0.2 < figures["noise_free_MAP"] < figures["oracle_MAP"] < 0.8


def test_rows_of_a_run_that_was_stopped_are_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["imagenet", "--rows", ROWS, "--no-training", "--sample", 0, "--out", tmp_path / "out", "--threads", 1]
    monkeypatch.setattr("sys.argv", ["papers_size", *map(str, words)])
    monkeypatch.setattr(papers_size, "SHARD", ROWS // 2)
    with monkeypatch.context() as patched:
        patched.setattr(papers_size, "write_manifest", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            main()
    assert len(list(tmp_path.glob("out/rows-*"))) == 2
    for written in (True, False):
        capsys.readouterr()
        main()
        assert ('"written"' in capsys.readouterr().out) == written
    assert len(open_shards(tmp_path / "out").shards) == ROWS


def test_draw_without_training_is_refused_before_rows_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["imagenet", "--rows", "20000", "--no-training", "--out", tmp_path / "o", "--draw", tmp_path / "epoch.svg"]
    monkeypatch.setattr("sys.argv", ["papers_size", *map(str, words)])
    with pytest.raises(SystemExit):
        main()
    assert "--draw shows the time of an epoch" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
