"""The music tables: names of several kinds, on spoken digits and on a generated catalogue."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from papers import synthetic_images
from papers.claims import NOT_RUN
from papers.data import music_data
from papers.data.music_data import _make_split, list_kind_columns, open_songs, open_sounds
from papers.datasets import PaperData, open_data
from papers.record import RecordEntry
from papers.record_run import RecordRun, run_record
from papers.records.record_index import find_record
from papers.runs import music_tasks
from wsabie.core.errors import InputError
from wsabie.io.datasets.item_attributes import AttributeTable, ItemAttributes
from wsabie.io.records import FeatureTable

QUICK = {"epochs": 5}
SPEAKERS, DIGITS, TAKES = ("george", "theo"), range(3), range(3, 17)


@pytest.fixture(scope="session")
def digits(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Takes 3 to 16 of three digits by two speakers; 3 and 4 are of the test side."""
    pytest.importorskip("soundfile", reason="soundfile decodes")
    pytest.importorskip("soxr", reason="soxr changes rates")
    root = tmp_path_factory.mktemp("digits") / "digits"
    (root / "recordings").mkdir(parents=True)
    shutil.copy(data_dir / "fsdd" / "metadata.txt", root)
    for speaker in SPEAKERS:
        for digit in DIGITS:
            for take in TAKES:
                shutil.copy(data_dir / "fsdd" / "recordings" / f"{digit}_{speaker}_{take}.wav", root / "recordings")
    return root


@pytest.fixture(scope="module")
def spoken(digits: Path) -> PaperData:
    return open_sounds(str(digits))


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> PaperData:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        data = open_songs("songs:tiny")
        patch.delattr(synthetic_images, "generate_task")  # the second time it comes from the cache
        assert (open_songs("songs:tiny").train.X != data.train.X).nnz == 0
    return data


def ran(name: str, data: PaperData, **changes: object) -> RecordRun:
    return run_record(replace(find_record(name), **changes), data, threads=1, parameters=QUICK)  # type: ignore[arg-type]


def test_names_of_all_kinds_are_tags_on_the_published_sides(spoken: PaperData) -> None:
    assert (len(spoken.train), len(spoken.valid), len(spoken.test)) == (65, 7, 12)
    assert {name.rpartition("_")[2] for name in spoken.test.ids} == {"3.wav", "4.wav"}
    # all speak English and all are men: tags that everything has are none
    assert spoken.train.label_names == [
        "accent: GRC/Greek", "accent: USA/neutral", "digit: 0", "digit: 1", "digit: 2", "speaker: george",
        "speaker: theo",
    ]  # fmt: skip
    assert (spoken.test.Y.sum(axis=1) == 3).all()
    assert "the kinds digit, speaker, accent; the published test side" in spoken.about


def tones(folder: Path, names: list[str]) -> None:
    """Tones of two pitches by turns, a little noisy."""
    soundfile = pytest.importorskip("soundfile", reason="soundfile writes")
    pytest.importorskip("soxr", reason="soxr changes rates")
    rng = np.random.default_rng(0)
    for i, name in enumerate(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        wave = np.sin(np.arange(4000) * (0.1, 0.7)[i % 2]) + 0.1 * rng.standard_normal(4000)
        soundfile.write(folder / name, wave / 2, 8000)


def test_clips_of_magnatagatune_are_on_the_sides_of_their_folders(tmp_path: Path) -> None:
    names = [f"{side}/song-{i}-{i}-0-29.wav" for side in "03cf" for i in range(4)]
    tones(tmp_path, names)
    tags = ["\t".join(f'"{cell}"' for cell in (i, 1, i % 2, 1 - i % 2, name)) for i, name in enumerate(names)]
    (tmp_path / "annotations_final.csv").write_text("\n".join(['"clip_id"\t"any"\t"high"\t"low"\t"mp3_path"', *tags]))
    makers = [f'"{i}"\t"band {i % 2}"\t"album"' for i in range(len(names))]
    (tmp_path / "clip_info_final.csv").write_text("\n".join(['"clip_id"\t"artist"\t"album"', *makers]))
    data = open_sounds(str(tmp_path))
    sides = [{name[0] for name in rows.ids} for rows in (data.train, data.valid, data.test)]
    assert sides == [{"0", "3"}, {"c"}, {"f"}]
    assert data.train.label_names == ["artist: band 0", "artist: band 1", "tag: high", "tag: low"]
    assert data.about.endswith("names of the kinds tag, artist; the published sides")


def test_a_table_beside_sounds_names_their_artists_and_groups(tmp_path: Path) -> None:
    names = [f"{i}.wav" for i in range(40)]
    tones(tmp_path, names)
    lines = [f"{name},band {i % 2},{('rock', 'folk')[i % 2]},take {i // 2}" for i, name in enumerate(names)]
    (tmp_path / "metadata.csv").write_text("\n".join(["file_name,artist,genre,group", *lines]))
    data = open_sounds(str(tmp_path))
    assert (len(data.train), len(data.valid), len(data.test)) == (32, 4, 4)
    assert data.about.endswith("a tenth each for validation and test, by group, seed 0")
    assert not set(data.test.groups or ()) & set(data.train.groups or ())
    music_findings = ran("music-bigdata", data, entries=find_record("music-bigdata").entries[:2], claims=()).findings
    assert music_findings["one-vs-rest"].figures["artist p@1"] == 1
    assert len(music_findings.groups["artist p@1"]) == 4  # type: ignore[index,arg-type,call-overload]


def test_tags_of_sounds_by_both_descriptions(spoken: PaperData) -> None:
    run = ran(
        "tagatune", spoken, entries=tuple(e for e in find_record("tagatune").entries if e.row.startswith("Wsabie"))
    )
    figures_by_features = [run.findings[f"Wsabie, {features}"].figures for features in ("mfcc", "mfcc+sai")]
    assert all(float(figures["p@3"]) > 0.6 for figures in figures_by_features)  # type: ignore[arg-type]
    assert all(figures["p@12"] is not None for figures in figures_by_features)
    verdicts = {verdict.text: verdict.here for verdict in run.verdicts}
    assert verdicts["Wsabie, mfcc > 1-vs-rest, mfcc in p@3"] == NOT_RUN
    assert verdicts["Wsabie, mfcc+sai > Wsabie, mfcc in p@3"] != NOT_RUN


def test_dimensions_are_drawn_for_each_description(spoken: PaperData, tmp_path: Path) -> None:
    entries_at_hand = tuple(e for e in find_record("tagatune-dims").entries if e.row.startswith(("d = 100", "d = 200")))
    run = ran("tagatune-dims", spoken, entries=entries_at_hand)
    our_chart, paper = run.findings.charts
    assert [(line.name, list(line.x)) for line in our_chart.series] == [("mfcc", [100, 200]), ("mfcc+sai", [100, 200])]
    assert [len(line.x) for line in paper.series] == [4, 6]
    assert "figure.svg" in {file.name for file in run.write(tmp_path)}


def test_neighbours_stand_in_the_rows_of_the_slide(catalogue: PaperData) -> None:
    """Tags are known there by their bare names."""
    genre_names = [f"genre: {'techno' if name.endswith(' 0') else name}" if "genre" in name else name
             for name in catalogue.train.label_names]  # fmt: skip
    sides = {side: replace(getattr(catalogue, side), label_names=genre_names) for side in ("train", "valid", "test")}
    run = ran(
        "tagatune-neighbours", replace(catalogue, **sides), entries=(RecordEntry("Wsabie", "wsabie", {"dim": 16}),)
    )
    assert "techno" in [finding.row for finding in run.findings.rows]
    assert len(str(run.findings["techno"].figures["nearest"]).split(", ")) == 8


def test_every_task_of_big_data(catalogue: PaperData) -> None:
    run = ran("music-bigdata", catalogue)
    rows = {finding.row: finding.figures for finding in run.findings.rows}
    assert set(rows) == {entry.row for entry in run.record.entries}
    chance = {"artist": 1 / 40, "song": 1 / 40, "similar": 1 / 40, "genre": 1 / 4}
    joint_figures = rows["Wsabie, all tasks (d = 100)"]
    for task, share in chance.items():
        assert float(joint_figures[f"{task} p@1"]) > 1.5 * share, task  # type: ignore[arg-type]
    assert set(rows["one-vs-rest"]) == {"artist p@1", "artist p@6"}
    assert set(rows["cosine similarity"]) == {"similar p@1", "similar p@6"}
    assert set(rows["Wsabie, single task (d = 100)"]) == set(joint_figures)
    assert all(verdict.difference is not None for verdict in run.verdicts)


def test_similar_songs_are_those_of_the_artist_but_itself(catalogue: PaperData) -> None:
    """Precision of the cosine, counted by hand."""
    cosine = tuple(e for e in find_record("music-bigdata").entries if e.row == "cosine similarity")
    cosine_findings = ran("music-bigdata", catalogue, entries=cosine, claims=()).findings["cosine similarity"]
    test, artists = catalogue.test, list_kind_columns(catalogue.train)["artist"]
    frequent_artists = artists[np.asarray(catalogue.train.Y[:, artists].sum(axis=0)).ravel() > 0]
    artist = np.asarray(test.Y[:, frequent_artists].argmax(axis=1)).ravel()
    same = (artist[:, None] == artist[None]) & ~np.eye(len(artist), dtype=bool)
    n = catalogue.train.X.getnnz(axis=0)
    idf = np.log((1 + len(catalogue.train)) / (1 + n)) + 1
    X = np.log1p(test.X.toarray())
    scores = []
    for weight in (idf, np.log(len(catalogue.train) / np.maximum(n, 1))):  # either form of idf is near
        unit = X * weight
        unit /= np.linalg.norm(unit, axis=1, keepdims=True)
        cosines = unit @ unit.T - 2 * np.eye(len(unit))
        has_match = same.any(axis=1)
        scores.append(same[np.arange(len(same)), cosines.argmax(axis=1)][has_match].mean())
    assert float(cosine_findings.figures["similar p@1"]) == pytest.approx(np.mean(scores), abs=0.03)  # type: ignore[arg-type]


def test_any_kind_may_stand_for_artists(spoken: PaperData) -> None:
    entries = tuple(entry for entry in find_record("music-bigdata").entries if entry.entrant != "spaces")
    run = ran("music-bigdata", spoken, entries=entries, claims=())
    assert run.findings.notes[0].startswith("The kind 'speaker' stands for artists. 2 artists")
    digits = ran("music-bigdata", replace(spoken, artists="digit"), entries=entries, claims=())
    assert "3 artists" in digits.findings.notes[0]
    with pytest.raises(InputError, match=r"no names of the kind 'band'; choose --artists among accent, digit, speaker"):
        ran("music-bigdata", replace(spoken, artists="band"))


def test_sides_are_the_published_ones_or_a_tenth_each() -> None:
    names = [f"song {i}" for i in range(80)]
    rows = FeatureTable(np.zeros((80, 1)), np.zeros((80, 1)), ["a"], names, groups=[str(i // 2) for i in range(80)])

    def sides(split) -> list[int]:
        related = AttributeTable.from_items(
            Path("songs"), [ItemAttributes(n, {"artist": ("x",)}, split(i)) for i, n in enumerate(names)]
        )
        sides_of_rows = _make_split(related, 0)(rows)
        train = {i // 2 for i in sides_of_rows.train}
        assert not train & {i // 2 for i in sides_of_rows.valid}
        return [len(sides_of_rows.train), len(sides_of_rows.valid), len(sides_of_rows.test)]

    assert sides(lambda i: "test" if i >= 40 else "train") == [36, 4, 40]
    assert sides(lambda i: ("train", "val", "test", "test")[i // 20]) == [20, 20, 40]
    assert sides(lambda i: None) == [64, 8, 8]
    assert sides(lambda i: "train") == [64, 8, 8]
    assert sides(lambda i: "other" if i < 20 else "test" if i >= 40 else "train") == [18, 2, 40]


def test_wrong_data_is_refused(tmp_path: Path, catalogue: PaperData) -> None:
    with pytest.raises(InputError, match="there is no catalogue of songs 'XL'; choose from tiny, S, L"):
        open_songs("songs:XL")
    file = tmp_path / "rows.txt"
    file.write_text("50 4 2\n" + "".join(f"{i % 2} {i % 4}:{1 + i}\n" for i in range(50)))
    with pytest.raises(InputError, match=r"rows.txt holds no sounds; give a folder"):
        open_sounds(str(file))
    with pytest.raises(InputError, match="there is no file or folder"):
        open_sounds(str(tmp_path / "none"))
    with pytest.raises(InputError, match=r"label '0' is of no kind; give sounds with names, or songs:S"):
        run_record(find_record("music-bigdata"), open_data(str(file)), threads=1)
    with pytest.raises(InputError, match=r"compared on songs:tiny, whose rows are not sounds; give a folder of sounds"):
        run_record(find_record("tagatune"), catalogue, threads=1)
    with pytest.raises(InputError, match=r"tagatune needs data; name some with --data: a folder of sounds"):
        run_record(find_record("tagatune"))
    test = catalogue.test.take(range(1))
    with pytest.raises(InputError, match="no two test songs of songs:tiny have one artist"):
        run_record(find_record("music-bigdata"), replace(catalogue, test=test), threads=1, parameters=QUICK)


def test_a_catalogue_has_artists_of_genres() -> None:
    size = music_data.parse_song_size("tiny")
    Y, names = music_data.generate_artists_and_genres(size, np.array([0, 7, 7]))
    parents = synthetic_images.build_truth(size).parents
    genres = np.unique(parents)
    labels_of_rows = [[names[y] for y in row.indices] for row in Y]
    assert (
        labels_of_rows[1]
        == labels_of_rows[2]
        == ["artist: artist 7", f"genre: genre {int(np.searchsorted(genres, parents[7]))}"]
    )
    assert music_tasks.TASKS == ("artist", "song", "similar", "genre")
