"""The tables of objects and parts: on planted collections, on pictures with WordNet's pairs, on regions."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from papers.claims import FAILS, HOLDS, OPEN, compute_two_standard_errors
from papers.data import image_regions, synset_images
from papers.data.image_regions import open_regions
from papers.data.object_part_data import open_parts
from papers.datasets import PaperData
from papers.record_run import RecordRun, run_record
from papers.records.record_index import find_record
from papers.runs.object_parts import part_tables
from papers.runs.object_parts.part_columns import draw_named_test as quadruplets_of
from papers.runs.object_parts.part_columns import list_columns
from papers.runs.object_parts.part_models import (
    ModelCandidate,
    PairScoring,
    PartTraining,
    choose_epochs,
    list_candidates,
)
from wsabie.core.errors import InputError
from wsabie.io.vocabulary.knowledge_graphs import read_knowledge_graph
from wsabie.models.object_parts.pair_ranker import compute_label_metrics
from wsabie.storage.rejects import Rejects

EPOCHS = 6
KINDS = {"car": "#a03020", "wheel": "#303030", "house": "#20a060", "door": "#8060a0"}
IDS = dict(zip(KINDS, ("n02958343", "n02974003", "n03544360", "n03221720"), strict=True))


@pytest.fixture(scope="module")
def tiny() -> PaperData:
    return open_parts("parts:tiny")


@pytest.fixture(scope="module", autouse=True)
def quick() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(part_tables, "N_TEST_QUADRUPLETS", 1000)
        yield


def ran(name: str, data: PaperData, epochs: int = EPOCHS, seeds: int | None = 2) -> RecordRun:
    return run_record(find_record(name), data, threads=1, parameters={"epochs": epochs, "dim": 20}, seeds=seeds)


@pytest.fixture(scope="module")
def table_3(tiny: PaperData) -> RecordRun:
    return ran("parts-table3", tiny)


# ---- what is measured


def test_ranks_of_labels_by_hand() -> None:
    scores = np.array([[3.0, 2.0, 1.0, 0.0], [0.0, 2.0, 2.0, 5.0]], np.float32)
    metrics_of_labels = compute_label_metrics(scores, [1, 1])
    assert metrics_of_labels["MAP"].tolist() == pytest.approx(
        [1 / 2, (1 / 2 + 1 / 3) / 2]
    )  # the second ties for places 2 and 3
    assert metrics_of_labels["p@1"].tolist() == [0, 0]
    assert metrics_of_labels["p@10"].tolist() == pytest.approx([0.1, 0.1])


def test_the_test_is_of_true_relations_and_of_different_pictures(tiny: PaperData) -> None:
    assert tiny.related is not None
    sample, _ = quadruplets_of(tiny.test, tiny.related.true, 500, np.random.default_rng(0))
    rows = tiny.test
    labels = {(rows.label_names[a], rows.label_names[b]) for a, b in zip(*sample[1::2], strict=True)}
    assert labels == set(tiny.related.true)
    assert (sample.objects != sample.parts).all()
    assert (np.asarray(rows.Y[sample.objects, sample.object_labels]) == 1).all()
    with pytest.raises(InputError, match="no relation has two different test pictures"):
        quadruplets_of(tiny.test, [], 10, np.random.default_rng(0))


def test_what_rows_choose_from() -> None:
    assert list_candidates("objects-and-parts", "shared", "IO") == [
        ModelCandidate(PartTraining("shared", 1.0, True), PairScoring("known", 0.1))
    ]
    assert list_candidates("parts", "unshared", "I") == [
        ModelCandidate(PartTraining("unshared", 0.0), PairScoring("none", 1.0))
    ]
    choices = list_candidates("parts", "unshared", "IW", same=False)
    assert {(t.relation_weight, s.score_weight) for t, s in choices} == {
        (r, s) for r in (0.03, 0.1, 0.3, 1.0) for s in (0.1, 0.3, 1.0)
    }
    assert not any(scoring.same for _, scoring in choices)


def test_epochs_follow_the_size(tiny: PaperData) -> None:
    assert choose_epochs(tiny.train) == 20


# ---- Table 3


def test_all_rows_have_figures_with_errors_beside_those_of_the_paper(table_3: RecordRun) -> None:
    table_findings = table_3.findings
    assert [row.row for row in table_findings.rows] == [entry.row for entry in table_3.record.entries]
    assert table_findings.seeds == 2
    learned_row, image, svm = (table_findings[row] for row in ("Unshared (IW)", "Unshared (I)", "SVM"))
    assert not any(column.startswith("annotation") for column in learned_row.figures)
    for metric in ("p@1", "p@10", "MAP"):  # without scores of labels beside it a known label says nothing
        assert image.figures[f"annotation {metric}"] == image.figures[f"triplet {metric}"]
        assert svm.figures[f"annotation {metric}"] == svm.figures[f"triplet {metric}"]
    assert len(learned_row.per_row["pairs MAP"]) == 2
    assert learned_row.errors["pairs MAP"] == pytest.approx(np.std(learned_row.per_row["pairs MAP"], ddof=1) / 2**0.5)
    assert not svm.errors
    cells = {row[0]: row[1:] for row in table_3.table().rows}
    assert cells["Shared (IW), ImageNet+WordNet"][3:6] == ["0.1148", "0.034", "0.1892"]
    assert " ± " in cells["Shared (IW), parts:tiny"][3]
    assert "errors" in json.dumps(table_3.as_dict()["here"])


def test_learned_relations_find_related_labels(table_3: RecordRun) -> None:
    verdicts = {verdict.text: verdict for verdict in table_3.verdicts}
    for task in ("pairs", "triplet"):
        claim_verdict = verdicts[f"Unshared (IW) > Unshared (I) in {task} MAP"]
        assert (claim_verdict.here, claim_verdict.paper) == (HOLDS, HOLDS)
        assert "two standard errors" in claim_verdict.words
    figures = table_3.findings["Unshared (I)"].figures
    assert float(figures["annotation MAP"]) > 0.2  # type: ignore[arg-type]  # chance: .13
    assert "(fewer than 30)" in table_3.about()
    note_on_choice = next(note for note in table_3.findings.notes if note.startswith("Chosen by the mean rank"))
    assert note_on_choice.count("with r = ") == 5  # rows that had something to choose from


def test_settings_are_chosen_by_the_first_seed(tiny: PaperData, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[int, PartTraining]] = []
    real = part_tables.train_part_model

    def record_call(training: PartTraining, *arguments: object, **options: object) -> object:
        calls.append((arguments[3]["seed"], training))  # type: ignore[index]
        return real(training, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(part_tables, "train_part_model", record_call)
    record = replace(find_record("parts-table3"), entries=find_record("parts-table3").entries[:2])
    run = run_record(record, tiny, threads=1, seed=3, parameters={"epochs": 1, "dim": 8}, seeds=2)
    assert [seed for seed, _ in calls] == [3] * 8 + [4] * 2
    again = {training.tables: training for seed, training in calls if seed == 4}
    note = next(note for note in run.findings.notes if note.startswith("Chosen"))
    assert f"Shared (IW) r = {again['shared'].relation_weight:g} " in note


def test_one_seed_is_judged_by_its_quadruplets(tiny: PaperData) -> None:
    run = ran("parts-table3", tiny, seeds=1)
    assert run.findings.seeds == 0
    assert len(run.findings["Shared (IW)"].per_row["pairs MAP"]) == 1000
    assert len(run.findings["Shared (IW)"].per_row["triplet MAP"]) == 2000
    verdicts = {verdict.text: verdict for verdict in run.verdicts}
    assert "95 % interval" in verdicts["Unshared (IW) > Unshared (I) in pairs MAP"].words


def test_relations_that_do_not_hold_do_not_help(table_3: RecordRun) -> None:
    null = open_parts("parts:tiny:null")
    assert null.related is not None
    assert not set(null.related.training) & set(null.related.true)
    assert "do not hold" in null.about
    run = ran("parts-table3", null)
    verdicts = {verdict.text: verdict.here for verdict in run.verdicts}
    for task in ("pairs", "triplet"):
        assert verdicts[f"Unshared (IW) > Unshared (I) in {task} MAP"] in (FAILS, OPEN)
    with pytest.raises(InputError, match="no unseen relations beside ones that hold"):
        ran("parts-table5", null)


def test_two_standard_errors() -> None:
    gap = compute_two_standard_errors([1.0, 2.0, 3.0], [1.0, 1.0, 1.0])
    assert (gap.mean, gap.ahead) == (1.0, pytest.approx(2.5 / 3))
    assert gap.high - gap.mean == pytest.approx(2 * 1 / 3**0.5)


# ---- Tables 5 and 6


def test_who_knows_relations_by_heart_puts_unseen_ones_last(tiny: PaperData) -> None:
    run = ran("parts-table5", tiny)
    assert run.record.table_columns == list_columns("pairs", "training", "unseen")
    for row in ("Shared (IO)", "Unshared (IO)"):
        figures = run.findings[row].figures
        assert figures["unseen p@10"] == 0
        assert 1 / 25 <= float(figures["unseen MAP"]) <= 1 / 24  # type: ignore[arg-type]
        mean = (float(figures["training MAP"]) + float(figures["unseen MAP"])) / 2  # type: ignore[arg-type]
        assert float(figures["pairs MAP"]) == pytest.approx(mean)  # type: ignore[arg-type]
    assert float(run.findings["Unshared (IW)"].figures["unseen MAP"]) > 0  # type: ignore[arg-type]


def test_near_labels_are_mostly_those_of_the_relations(tiny: PaperData) -> None:
    run = ran("parts-table6", tiny, epochs=10)
    assert tiny.related is not None
    relations = {frozenset(pair) for pair in tiny.related.training}
    starred = 0
    for row in run.findings.rows:
        for name in str(row.figures["Unshared (IW)"]).split(", "):
            bare = name.strip("*")
            assert (frozenset((row.row, bare)) in relations) == (name != bare)
            starred += name != bare
    assert starred >= 12  # ten labels with two or three relations each, four neighbours; by chance 3


# ---- pictures


@pytest.fixture(scope="module")
def wordnet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wordnet")
    number = {name: f"1{synset[1:]}" for name, synset in IDS.items()}
    (folder / "wn_mp.pl").write_text(
        f"mp({number['wheel']},{number['car']}).\nmp({number['door']},{number['house']}).\n"
    )
    (folder / "wn_hyp.pl").write_text(f"hyp({number['car']},100000001).\n")
    (folder / "words.txt").write_text("".join(f"{synset}\t{name}\n" for name, synset in IDS.items()))
    return folder


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, rng = tmp_path_factory.mktemp("pictures"), np.random.default_rng(0)
    for name, colour in KINDS.items():
        (folder / name).mkdir()
        for number in range(12):
            image = Image.new("RGB", (40, 40), colour)
            image.paste(Image.fromarray(rng.integers(0, 255, (16, 16, 3), np.uint8)), (number, 4))
            image.save(folder / name / f"{number}.png")
    return folder


def test_a_folder_of_pictures_with_wordnets_pairs(pictures: Path, wordnet: Path) -> None:
    data = open_parts(str(pictures), knowledge=[wordnet])
    assert data.related is not None
    car, wheel, house, door = (f"{name} ({synset})" for name, synset in IDS.items())
    assert sorted(data.related.training) == [(car, wheel), (house, door)]
    assert data.about.endswith("2 relations are too few to rank models by (fewer than 30)")
    assert len(data.train) + len(data.valid) + len(data.test) == 48
    run = ran("parts-figure2", data)
    assert run.findings.image_sheet is not None
    sheet = Image.open(BytesIO(run.findings.image_sheet))
    assert sheet.size[1] > 2 * 100  # a line of pictures for each relation
    first = str(run.findings.rows[0].figures["pictures"]).partition(", ")[0].split(" and ")
    assert [name.partition("/")[0] for name in first] == ["car", "wheel"]


def test_data_without_relations_are_refused(pictures: Path, wordnet: Path, tiny: PaperData) -> None:
    with pytest.raises(InputError, match="no relations between labels; name WordNet with --knowledge"):
        open_parts(str(pictures))
    with pytest.raises(InputError, match="has relations of its own; leave --knowledge"):
        open_parts("parts:tiny", knowledge=[wordnet])
    with pytest.raises(InputError, match="no planted collection 'parts:huge'"):
        open_parts("parts:huge")
    with pytest.raises(InputError, match=r"says 'nul'; write null or likeness=0.8 behind parts:tiny"):
        open_parts("parts:tiny:nul")
    with pytest.raises(InputError, match="says 'likeness=much'"):
        open_parts("parts:tiny:likeness=much")
    with pytest.raises(InputError, match="likeness is nan but it lies between 0 and 1"):
        open_parts("parts:tiny:likeness=nan")
    with pytest.raises(InputError, match="no pictures to draw"):
        ran("parts-figure2", tiny)
    with pytest.raises(InputError, match="no pictures to search in"):
        ran("parts-figure4", tiny)
    with pytest.raises(InputError, match="has no regions to draw"):
        ran("parts-figure3", open_parts(str(pictures), knowledge=[wordnet]))


def test_the_knob_and_the_null_setting_are_named_behind_a_planted_collection(tiny: PaperData) -> None:
    default, alike, null = (
        open_parts(f"parts:tiny:{words}") for words in ("likeness=0.5", "likeness=1", "likeness=1:null")
    )
    assert default.related == tiny.related
    assert tiny.related is not None
    assert alike.related is not None
    assert null.related is not None
    assert alike.related.training != tiny.related.training
    assert null.related.true == alike.related.true
    assert not set(null.related.training) & set(alike.related.true)
    assert "likeness 1, seed 0" in null.about
    assert "which do not hold" in null.about
    (page,) = re.findall(r"papers/[\w/.-]+\.md", null.about)
    assert (Path(__file__).parents[2] / page).is_file()


@pytest.fixture(scope="module")
def all_of_wordnet(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("all_of_wordnet")
    for name in ("wn_mp.pl", "wn_hyp.pl", "wn_ins.pl"):
        (folder / name).symlink_to(data_dir / "wordnet_partof" / name)
    (folder / "words.txt").symlink_to(data_dir / "imagenet_synsets" / "words.txt")
    return folder


def test_the_pairs_of_the_sample_are_those_that_were_counted(all_of_wordnet: Path) -> None:
    source, matched = synset_images._open_with_concepts("sample", read_knowledge_graph(all_of_wordnet), Rejects())
    assert len(synset_images.list_stated_parts(matched, inherit=False, sample=True)) == 49
    assert len(synset_images.list_stated_parts(matched, inherit=True, sample=True)) == 198
    labelled = synset_images.relabel_with_synsets(source, matched)
    assert sum("hand (n05564590)" in item.labels for item in labelled) == 321  # papers/pages/sample-parts.md


# ---- regions


@pytest.fixture(scope="module")
def cars(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Thirty cars to learn from and four for the test, with a wheel and a mirror each."""
    root, rng = tmp_path_factory.mktemp("cars") / "cars", np.random.default_rng(1)
    for side, n in (("trainingset", 30), ("testset", 4)):
        (root / side).mkdir(parents=True)
        images, annotations = [], []
        for number in range(n):
            Image.fromarray(rng.integers(0, 255, (64, 96, 3), np.uint8)).save(root / side / f"{side}{number}.png")
            images.append({"id": number, "file_name": f"{side}{number}.png", "width": 96, "height": 64})
            for kind, box in ((1, [4, 30, 30, 30]), (2, [60, 8, 24, 20])):
                annotations.append(
                    {"id": 10 * number + kind, "image_id": number, "category_id": kind, "bbox": box, "segmentation": []}
                )
        kinds = [{"id": 1, "name": "wheel"}, {"id": 2, "name": "left_mirror"}, {"id": 3, "name": "_background_"}]
        document = {"images": images, "annotations": annotations, "categories": kinds}
        (root / side / "annotations.json").write_text(json.dumps(document))
    return root


def test_parts_of_the_same_picture(cars: Path, all_of_wordnet: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = synset_images.open_english_sample()
    monkeypatch.setattr(image_regions, "open_english_sample", lambda: replace(few, items=few.items[:20]))
    data = open_regions(str(cars), knowledge=[all_of_wordnet])
    assert data.couples is not None
    assert data.related is not None
    assert len(data.couples) == 8
    car, wheel, mirror = "car (n02958343)", "car wheel (n02974003)", "car mirror (n02965783)"
    assert (car, mirror) in data.related.training
    assert data.related.unseen == [(car, wheel)]  # stated of motor vehicles
    test = part_tables._build_test(data, 0)
    assert [data.test.label_names[y] for y in test.quadruplets.object_labels] == [car] * 8
    assert [data.test.label_names[y] for y in test.quadruplets.part_labels] == [wheel, mirror] * 4
    assert all(part.startswith(container) for container, part in data.couples)  # of the same picture
    inherited = open_regions(str(cars), knowledge=[all_of_wordnet], inherit=True).related
    assert inherited is not None
    assert inherited.unseen == []

    run = ran("parts-figure3", data)
    assert run.findings.image_sheet is not None
    assert Image.open(BytesIO(run.findings.image_sheet)).size == (96, 64)
    table = ran("parts-table4", data, epochs=2)
    assert set(table.findings["Shared (I)"].figures) == set(list_columns("annotation", "pairs", "triplet"))
    with pytest.raises(InputError, match="joined by WordNet; name it with --knowledge"):
        open_regions(str(cars))
    with pytest.raises(InputError, match=r"annotations\.json"):
        open_regions(str(cars.parent), knowledge=[all_of_wordnet])
