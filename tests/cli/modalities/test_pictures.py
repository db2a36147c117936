"""From a folder of tagged pictures to annotations, through the commands."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from PIL import Image

from wsabie.features.extractors.visual_words import VisualWords
from wsabie.io.tags.tag_writer import write_embedded, write_sidecar

Cli = Callable[..., Any]


def test_info_reports_training_facts(cli: Cli, model: Path) -> None:
    result = cli("info", model, "--json")
    assert result.code == 0
    facts = result.json
    assert facts["schema"] == 1
    assert facts["pictures"] is True
    assert facts["dimensions"] == 16
    assert facts["rows"] + facts["validation_rows"] == 120


def test_training_pictures_are_annotated_correctly(cli: Cli, model: Path, pictures: Path) -> None:
    """A model of 120 pictures knows most of their own labels: far above chance."""
    annotation = cli("annotate", model, pictures, "-k", 5, "--json")
    assert annotation.code == 0
    results = {result["id"]: [name for name, _ in result["labels"]] for result in annotation.json["results"]}
    assert len(results) == 120
    lines = (pictures / "metadata.csv").read_text(encoding="utf-8").splitlines()[1:]
    true = {line.split(",")[0]: line for line in lines}
    hits = sum(any(name in true[Path(key).name] for name in names) for key, names in results.items())
    assert hits > 80


def test_one_picture_is_annotated_and_a_corrupt_one_skipped(
    cli: Cli, model: Path, pictures: Path, tmp_path: Path
) -> None:
    bad = tmp_path / "bad.png"
    bad.write_bytes(b"\x89PNG\r\n\x1a\n nonsense")
    rejects = tmp_path / "rejects.jsonl"
    result = cli("annotate", model, pictures / "000.webp", bad, "--rejects", rejects)
    assert result.code == 0
    assert len(result.out.splitlines()) == 1
    assert "bad.png" in rejects.read_text()
    assert "1 skipped" in result.err


def test_empty_picture_is_listed_as_skipped(cli: Cli, model: Path, pictures: Path, tmp_path: Path) -> None:
    empty, rejects = tmp_path / "empty.png", tmp_path / "rejects.jsonl"
    empty.touch()
    result = cli("annotate", model, pictures / "000.webp", empty, "--rejects", rejects)
    assert (result.code, len(result.out.splitlines())) == (0, 1)
    assert "empty" in rejects.read_text()
    empty_alone = cli("annotate", model, empty)
    assert empty_alone.code == 1
    assert "empty" in empty_alone.err
    assert "nothing could be annotated" in empty_alone.err


def test_equal_file_names_get_different_ids(cli: Cli, model: Path, pictures: Path, tmp_path: Path) -> None:
    """By where they come from, as it was given; what comes from one place keeps the names that it has there."""
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        shutil.copy(pictures / "000.webp", tmp_path / name / "same.webp")
    first, second_folder = tmp_path / "a" / "same.webp", tmp_path / "b"
    results = cli("annotate", model, first, second_folder, "--json").json["results"]
    assert [result["id"] for result in results] == [str(first), f"{second_folder}/same.webp"]
    assert results[0]["labels"] == results[1]["labels"]
    assert cli("annotate", model, second_folder, "--json").json["results"][0]["id"] == "same.webp"


def test_name_with_a_line_break_is_printed_on_one_line(cli: Cli, model: Path, pictures: Path, tmp_path: Path) -> None:
    shutil.copy(pictures / "000.webp", tmp_path / "new\nline\té.webp")
    result = cli("annotate", model, tmp_path / "new\nline\té.webp", "-k", 1)
    assert result.out.startswith("new\\nline\\té.webp\t")
    assert len(result.out.splitlines()) == 1


def test_heat_maps_are_not_written_among_the_pictures(cli: Cli, model: Path, pictures: Path) -> None:
    files_before = set(pictures.iterdir())
    result = cli("annotate", model, pictures / "000.webp", "--explain", pictures)
    assert result.code == 1
    assert "would lie among your pictures; name another folder" in result.err
    assert set(pictures.iterdir()) == files_before


def test_explain_draws_a_heat_map(cli: Cli, model: Path, pictures: Path, tmp_path: Path) -> None:
    result = cli("annotate", model, pictures / "000.webp", "--explain", tmp_path / "heat")
    assert result.code == 0
    (drawing,) = (tmp_path / "heat").glob("*.png")
    with Image.open(drawing) as picture:
        assert picture.size[0] >= 96


def test_evaluate_gives_intervals_and_ceilings(cli: Cli, model: Path, pictures: Path) -> None:
    result = cli("evaluate", model, pictures, "--allow-overlap", "--json")
    assert result.code == 0
    report = result.json
    low, high = report["intervals"]["MAP"]
    assert 0 < low <= report["metrics"]["MAP"] <= high <= 1
    assert report["metrics"]["p@10"] <= report["ceilings"]["p@10"]
    assert cli("evaluate", model, pictures, "--allow-overlap").out.count("p@") >= 3


def test_neighbours_refuses_an_unknown_label(cli: Cli, model: Path) -> None:
    label = cli("info", model, "--json").json["labels"]
    assert label > 10
    wrong = cli("neighbours", model, "no such label at all")
    assert wrong.code == 1
    assert "Traceback" not in wrong.err
    assert wrong.err.count("\n") == 1


def test_feature_rows_of_pictures_are_a_source(cli: Cli, pictures: Path, tmp_path: Path) -> None:
    out = tmp_path / "rows.parquet"
    result = cli("features", "images", pictures, "--out", out, "--n-words", 64, "--size", 64, "--threads", 1, "--json")
    assert result.code == 0
    assert result.json["rows"] == 120
    assert pq.read_metadata(out).num_rows == 120
    parts = cli("split", out, "--out", tmp_path / "parts", "--valid", 0.2, "--test", 0.2, "--json")
    assert parts.code == 0
    assert parts.json["train"] + parts.json["valid"] + parts.json["test"] == 120
    trained = cli(
        "train", tmp_path / "parts" / "train.parquet", "--valid", tmp_path / "parts" / "valid.parquet",
        "--model", tmp_path / "m", "--dim", 16, "--epochs", 3, "--threads", 1, "--json",
    )  # fmt: skip
    assert trained.code == 0
    assert trained.json["epochs"] <= 3
    evaluation = cli("evaluate", tmp_path / "m", tmp_path / "parts" / "test.parquet", "--json")
    assert evaluation.code == 0


def test_drop_near_lists_dropped_rows(cli: Cli, pictures: Path, tmp_path: Path) -> None:
    out = tmp_path / "rows.parquet"
    cli("features", "images", pictures, "--out", out, "--n-words", 64, "--size", 64, "--threads", 1)
    result = cli("split", out, "--out", tmp_path / "parts", "--by", "row", "--drop-near", 0.2, "--json")
    assert result.code == 0
    n_dropped = len((tmp_path / "parts" / "dropped.jsonl").read_text().splitlines())
    assert n_dropped > 0
    assert result.json["train"] + result.json["valid"] + result.json["test"] == 120 - n_dropped


def test_explain_skips_unreadable_pictures_and_numbers_all_maps(
    cli: Cli, model: Path, pictures: Path, tmp_path: Path
) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.webp").write_bytes((pictures / "000.webp").read_bytes())
    (tmp_path / "a" / "bad.png").write_bytes(b"\x89PNG\r\n\x1a\n nonsense")
    result = cli("annotate", model, tmp_path / "a", tmp_path / "b", "--explain", tmp_path / "heat")
    assert result.code == 0, result.err
    assert len(result.out.splitlines()) == 2
    assert len(list((tmp_path / "heat").glob("*.png"))) == 2


def test_only_centred_views_are_held_out(cli: Cli, pictures: Path, tmp_path: Path) -> None:
    """Other views of a picture that is trained on would be judged as if they were new."""
    rows = tmp_path / "rows.parquet"
    assert cli("features", "images", pictures, "--out", rows, "--n-words", 20, "--size", 32, "--augment", 2).code == 0
    for by in ("row", "auto"):
        out = tmp_path / by
        assert cli("split", rows, "--out", out, "--by", by, "--valid", 0.2, "--test", 0.2).code == 0
        ids = {side: pq.read_table(out / f"{side}.parquet")["id"].to_pylist() for side in ("train", "valid", "test")}
        assert not [name for side in ("valid", "test") for name in ids[side] if "#" in name]
        originals = {side: {name.split("#")[0] for name in names} for side, names in ids.items()}
        assert not originals["train"] & (originals["valid"] | originals["test"])
        assert len(ids["train"]) == 3 * len(originals["train"])


def test_dictionary_with_other_options_is_refused(cli: Cli, pictures: Path, tmp_path: Path) -> None:
    out = tmp_path / "rows.parquet"
    command = ("features", "images", pictures, "--out", out, "--size", 32)
    assert cli(*command, "--n-words", 20).code == 0
    assert cli(*command, "--n-words", 20).code == 0
    refused = cli(*command, "--n-words", 30)
    assert refused.code == 1
    assert "was made with n_words 20 and not 30" in refused.err
    with_dictionary = (
        "features",
        "images",
        pictures,
        "--out",
        tmp_path / "more.parquet",
        "--extractor",
        f"{out}.extractor",
    )
    refused = cli(*with_dictionary, "--n-words", 30)
    assert refused.code == 1
    assert "was made with n_words 20 and not 30; leave these options out" in refused.err
    assert cli(*with_dictionary).code == 0
    assert cli(*with_dictionary, "--n-words", 20, "--size", 32).code == 0


def test_rows_of_another_dictionary_do_not_mix(cli: Cli, pictures: Path, tmp_path: Path) -> None:
    """Equal widths, other meanings: nothing in the numbers would show it."""
    ours, theirs = tmp_path / "ours.parquet", tmp_path / "theirs.parquet"
    for out, seed in ((ours, 0), (theirs, 1)):
        features_run = cli("features", "images", pictures, "--out", out, "--size", 32, "--n-words", 20, "--seed", seed)
        assert features_run.code == 0
    model = tmp_path / "model"
    assert cli("train", ours, "--model", model, "--epochs", 1, "--dim", 4).code == 0
    assert cli("annotate", model, ours).code == 0
    for refused in (
        cli("annotate", model, theirs),
        cli("compare", ours, "--test", theirs, "--models", "popularity"),
        cli("train", ours, "--valid", theirs, "--model", tmp_path / "other"),
    ):
        assert refused.code == 1
        assert "another extractor than the training data" in refused.err
    cli("split", ours, "--out", tmp_path / "split")
    assert cli("annotate", model, tmp_path / "split" / "test.parquet").code == 0
    assert "sides of a split" in cli("annotate", model, tmp_path / "split").err
    cli("split", theirs, "--out", tmp_path / "split")
    assert "another extractor" in cli("annotate", model, tmp_path / "split" / "test.parquet").err


def test_compare_report_shows_held_out_pictures(cli: Cli, pictures: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.html"
    result = cli(
        "compare", pictures, "--models", "wsabie,popularity", "--n-words", 60, "--size", 64, "--threads", 1,
        "--report", report, "--json",
    )  # fmt: skip
    assert result.code == 0
    assert [entry["name"] for entry in result.json["models"]] == ["wsabie", "popularity"]
    page = report.read_text(encoding="utf-8")
    assert page.count("<img") == 11 + 2 * 4  # one of each group; four of them again, with and without their heat
    assert "Where it sees a label" in page
    assert "Which labels it takes for alike" in page


def test_intervals_resample_whole_groups(cli: Cli, model: Path, pictures: Path, tmp_path: Path) -> None:
    """Pictures of one group are one observation: how far they differ among themselves says nothing."""
    lines = [line.rpartition(",")[0] for line in (pictures / "metadata.csv").read_text(encoding="utf-8").splitlines()]
    widths = []
    for group in ("the same", ""):
        folder = tmp_path / (group or "apart")
        folder.mkdir()
        grouped_lines = [lines[0] + ",group", *(f"{line},{group}" for line in lines[1:21])]
        (folder / "metadata.csv").write_text("\n".join(grouped_lines), encoding="utf-8")
        for line in lines[1:21]:
            name = line.partition(",")[0]
            (folder / name).write_bytes((pictures / name).read_bytes())
        low, high = cli("evaluate", model, folder, "--allow-overlap", "--json").json["intervals"]["MAP"]
        widths.append(high - low)
    assert widths[0] == 0 < widths[1]


def test_dictionary_of_a_model_extracts_features_for_it(cli: Cli, model: Path, pictures: Path, tmp_path: Path) -> None:
    theirs, ours = tmp_path / "theirs.parquet", tmp_path / "ours.parquet"
    describe = ("features", "images", pictures, "--threads", 1)
    assert cli(*describe, "--out", theirs, "--n-words", 20, "--size", 32).code == 0
    refused = cli("annotate", model, theirs)
    assert refused.code == 1
    advice = f"wsabie features images FOLDER --extractor {model} --out FILE"
    assert advice in refused.err
    words = advice.replace("FOLDER", str(pictures)).replace("FILE", str(ours)).split()[1:]
    assert cli(*words).code == 0
    own_results, directly = (cli("annotate", model, source, "--json").json["results"] for source in (ours, pictures))
    assert [row["labels"] for row in own_results] == [row["labels"] for row in directly]
    assert cli(*describe, "--out", ours, "--extractor", model, "--n-words", 20).code == 1


def test_missing_or_invalid_dictionary_is_refused(cli: Cli, pictures: Path, tmp_path: Path) -> None:
    out = tmp_path / "rows.parquet"
    describe = ("features", "images", pictures, "--threads", 1, "--out", out)
    refused = cli(*describe, "--extractor", tmp_path / "slip")
    assert f"there is no feature extractor at {tmp_path / 'slip'}; give a folder that" in refused.err
    assert not (tmp_path / "slip").exists()
    assert cli(*describe, "--n-words", 20, "--size", 32).code == 0
    assert cli("train", out, "--model", tmp_path / "m", "--epochs", 1).code == 0
    refused = cli(*describe, "--extractor", tmp_path / "m")
    assert refused.code == 1
    assert "was trained on rows of features and holds no feature extractor" in refused.err
    refused = cli("annotate", tmp_path / "m", pictures)
    assert refused.code == 1
    assert f"extract features first: wsabie features images {pictures} --out FILE.parquet --extractor" in refused.err


def test_training_pictures_are_recognised_before_feature_extraction(
    cli: Cli, model: Path, pictures: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(VisualWords, "transform", lambda *args, **options: pytest.fail("features are extracted"))
    refused = cli("evaluate", model, pictures)
    assert refused.code == 1
    assert "is what the model was trained on" in refused.err


def test_largest_seed_learns_a_dictionary(cli: Cli, pictures: Path, tmp_path: Path) -> None:
    out = tmp_path / "rows.parquet"
    command = ("features", "images", pictures, "--out", out, "--n-words", 20, "--size", 32, "--augment", 1)
    assert cli(*command, "--threads", 1, "--seed", 2**63 - 1).code == 0


def test_sidecar_and_embedded_tags_train_a_model(cli: Cli, pictures: Path, tmp_path: Path) -> None:
    """The packaged pictures without their table, tagged by sidecars and inside; one sidecar is damaged."""
    lines = (pictures / "metadata.csv").read_text(encoding="utf-8").splitlines()[1:]
    tags_by_name = {line.split(",")[0]: line.split(",")[1].split(";") for line in lines}
    folder, rejects = tmp_path / "photos", tmp_path / "rejects.jsonl"
    folder.mkdir()
    for number, (name, labels) in enumerate(tags_by_name.items()):
        photo = Path(shutil.copy(pictures / name, folder))
        if number % 3 == 0:
            write_embedded(photo, [("emoji", label) for label in labels])
        else:
            write_embedded(photo, ["old"])
            sidecar = write_sidecar(photo, labels)
            if number % 3 == 1 and sidecar:
                sidecar.rename(photo.with_suffix(".xmp"))
    (folder / "000.webp.xmp").write_text("<x:xmpmeta")
    trained = cli(
        "train", folder, "--model", tmp_path / "m", "--n-words", 100, "--size", 64, "--dim", 16, "--epochs", 20,
        "--hold-out", 0, "--threads", 1, "--json", "--rejects", rejects,
    )  # fmt: skip
    assert trained.code == 0, trained.err
    assert trained.json["rows"] == 119
    assert [json.loads(line)["reason"] for line in rejects.read_text().splitlines()] == ["unreadable sidecar"]
    annotation = cli("annotate", tmp_path / "m", pictures, "-k", 5, "--json")
    results = {Path(result["id"]).name: [name for name, _ in result["labels"]] for result in annotation.json["results"]}
    assert "old" not in {name for names in results.values() for name in names}
    assert sum(any(name in tags_by_name[photo] for name in names) for photo, names in results.items()) > 80


def test_train_and_annotate_report_a_broken_picture_alike(cli: Cli, pictures: Path, tmp_path: Path) -> None:
    """The place does not matter: reading tags or decoding pictures."""
    folder, second_folder = tmp_path / "photos", tmp_path / "others"
    folder.mkdir()
    for number in range(12):
        write_embedded(Path(shutil.copy(pictures / f"{number:03d}.webp", folder)), [f"label {number % 2}"])
    shutil.copytree(pictures, second_folder)
    picture_bytes = (folder / "000.webp").read_bytes()
    broken = {
        "a.webp": picture_bytes[:-9],
        "b.webp": picture_bytes[:24],
        "c.png": b"junk",
        "d.jpg": b"",
        "e.gif": b"GIF89a",
    }
    for name, content in broken.items():
        (folder / name).write_bytes(content)

    def listed(*words: Any) -> list[dict[str, str]]:
        result = cli(*words, "--rejects", tmp_path / "rejects.jsonl", "--threads", 1)
        assert result.code == 0, result.err
        lines = (tmp_path / "rejects.jsonl").read_text().splitlines()
        return sorted(map(json.loads, lines), key=lambda entry: str(entry["where"]))

    small = "--n-words", 20, "--size", 48, "--dim", 4, "--epochs", 1, "--hold-out", 0
    entries = listed("train", folder, "--model", tmp_path / "m", *small)
    assert [(reject["where"], reject["reason"]) for reject in entries] == [
        ("a.webp", "truncated picture"),
        ("b.webp", "truncated picture"),
        ("c.png", "not a picture"),
        ("d.jpg", "empty file"),
        ("e.gif", "truncated picture"),
    ]
    assert listed("annotate", tmp_path / "m", folder) == entries
    of_two = listed("annotate", tmp_path / "m", folder, second_folder)
    assert of_two == [
        {**reject, "where": f"{folder}/{reject['where']}"} for reject in entries
    ]  # as ids of results begin there


def test_untagged_pictures_error_names_the_places_of_tags(cli: Cli, pictures: Path, tmp_path: Path) -> None:
    shutil.copy(pictures / "000.webp", tmp_path)
    result = cli("train", tmp_path, "--model", tmp_path / "m")
    assert result.code == 1
    assert "no keywords in them or in sidecars beside them (1.jpg.xmp)" in result.err
