"""Cells of labels: separators by whole columns, lists in several notations, vectors of 0 and 1."""

import json
import logging
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wsabie.core.errors import InputError
from wsabie.io.parsers.label_cells import LabelCellReader, find_flag_columns, parse_label_list
from wsabie.io.parsers.text_tables import normalise_columns
from wsabie.vocabulary.label_names import normalise_label_name


def read_cells(cells, name="tags"):
    reader = LabelCellReader(name).inspect(cells)
    return [tuple(label.strip() for label in reader.read_labels(cell, "here")) for cell in cells]


@pytest.mark.parametrize(
    ("cells", "labels"),
    [
        (
            ["fox, \\|/", "fox, moss", "heath, moss", "bog"],
            [("fox", "\\|/"), ("fox", "moss"), ("heath", "moss"), ("bog",)],
        ),
        (["wink, ;)", "dusk, rain", "dusk, wink"], [("wink", ";)"), ("dusk", "rain"), ("dusk", "wink")]),
        (["soul, R&amp;B", "folk, ska"], [("soul", "R&amp;B"), ("folk", "ska")]),
        (["soul;R&amp;B", "folk"], [("soul", "R&amp;B"), ("folk",)]),
        (["fern; tern", "tern; wolf, grey", "wolf, grey"], [("fern", "tern"), ("tern", "wolf, grey"), ("wolf, grey",)]),
        (["a|b", "b|c", "c, or d|a"], [("a", "b"), ("b", "c"), ("c, or d", "a")]),
        ([*["elk"] * 20, *["ibis"] * 20, "hi;)"], [*[("elk",)] * 20, *[("ibis",)] * 20, ("hi;)",)]),
        ([*["elk"] * 20, *["ibis"] * 20, "elk;ibis"], [*[("elk",)] * 20, *[("ibis",)] * 20, ("elk", "ibis")]),
        (["a, b, ", "b, c, ", "c; d, a, "], [("a", "b"), ("b", "c"), ("c; d", "a")]),
    ],
)
def test_separator_is_chosen_by_the_whole_column(cells, labels):
    assert read_cells(cells) == labels


def test_column_of_single_labels_is_not_split():
    assert read_cells(["a;b", "b;c"], "label") == [("a;b",), ("b;c",)]
    assert read_cells(["['a', 'b']", "[]"], "label") == [("a", "b"), ()]


@pytest.mark.parametrize("values", [["elk", "sea gull"], ["it's", 'the "big" one'], ["a, b", "c;d|e"], ["é", "犬"], []])
@pytest.mark.parametrize("write", [json.dumps, repr, lambda v: str(np.array(v, object)), partial(json.dumps, indent=1)])
def test_list_notations_are_lists(values, write):
    assert read_cells([write(values), "['other']"]) == [tuple(values), ("other",)]


@pytest.mark.parametrize("write", [set, tuple, lambda v: json.dumps({"choices": v})])
def test_sets_tuples_and_choices_are_lists(write):
    assert [set(labels) for labels in read_cells([str(write(["elk", "bog"]))])] == [{"elk", "bog"}]


@pytest.mark.parametrize(
    "text", ["[untitled]", "(500) Days", "{curly}", "[sic] yes", "(2019)", '{"a": 1}', "[1.5]", "[[1]]", "["]
)
def test_brackets_alone_make_no_list(text):
    assert parse_label_list(text) is None
    assert read_cells([text], "label") == [(text,)]


@settings(deadline=None)
@given(st.text("[]{}()'\",;\\ ab1\n", max_size=30))
def test_any_text_gives_a_list_or_none(text):
    values = parse_label_list(text)
    assert values is None or all(isinstance(value, str | int | float | None) for value in values)


@settings(deadline=None)
@given(st.lists(st.text("ab ,;|&[]'\"", max_size=9), max_size=6), st.sampled_from(["tags", "label"]))
def test_every_label_is_part_of_its_cell(cells, name):
    reader = LabelCellReader(name).inspect(cells)
    for cell in cells:
        assert all(label in cell for label in reader.read_labels(cell, "here"))


@pytest.mark.parametrize("empty", ["nan", "NaN", "<NA>", "null", None, float("nan"), "#N/A"])
def test_empty_values_of_programs_are_no_labels(empty):
    assert read_cells(["elk;bog", empty, "bog"])[1] == ()


def test_equal_numbers_give_one_label():
    assert read_cells([["elk", 2019], 7, 7.0, "8"]) == [("elk", "2019"), ("7",), ("7",), ("8",)]
    with pytest.raises(InputError, match=r"holds 7.5, which is not a label"):
        read_cells([7.5])
    with pytest.raises(InputError, match="holds the number 7 but the text 'elk'"):
        read_cells(["elk", 7], "label")


@pytest.mark.parametrize(
    ("cells", "labels"),
    [
        ([[0, 1, 0], [1, 0, 1]], [("1",), ("0", "2")]),
        (["[0 1 0]", "[1 0 1]"], [("1",), ("0", "2")]),
        ([[0.0, 1.0], [1.0, 0.0]], [("1",), ("0",)]),
        ([[True, False, False], [False, False, False]], [("0",), ()]),
        ([[0, 1], [0, 1]], [("0", "1"), ("0", "1")]),
        ([[0], [1]], [("0",), ("1",)]),
        ([[0, 1, 0], [2, 1]], [("0", "1", "0"), ("2", "1")]),
    ],
)
def test_binary_vectors_become_column_numbers(cells, labels):
    assert read_cells(cells) == labels


def test_binary_columns_become_labels():
    rows = [{"id": "1", "fox": "1", "moss": "0", "size": "3"}, {"id": "0", "fox": "0", "moss": "1", "size": "1"}]
    reader = find_flag_columns(rows)
    assert reader.columns == ["fox", "moss"]
    assert [reader.read_labels(reader.get_cell(row), "") for row in rows] == [("fox",), ("moss",)]
    assert find_flag_columns([{"id": 1, "fox": 1}]) is None
    assert find_flag_columns([{"fox": [1], "moss": 1, "bog": 0}]).columns == ["moss", "bog"]


def test_sentences_and_fragments_are_reported(tmp_path, caplog):
    sentences = ["a view of a town, from a hill", "a dog that sleeps, on a mat", "one cat and a bowl"]
    with pytest.raises(
        InputError, match=r"column 'text' of .* holds sentences such as 'a view of a town, from a hill'"
    ):
        LabelCellReader("text").inspect(sentences).check(tmp_path)
    with caplog.at_level(logging.WARNING, logger="wsabie"):
        LabelCellReader("labels").inspect(sentences).check(tmp_path)
        LabelCellReader("tags").inspect(["Perth, W.A."] * 4 + ["Oslo"] * 3).check(tmp_path)
        LabelCellReader("tags").inspect(["fox, moss"] * 4 + ["moss, bog"] * 3).check(tmp_path)
    assert [record.getMessage() for record in caplog.records] == [
        f"the column 'labels' of {tmp_path} holds sentences such as 'a view of a town, from a hill'; are these labels?",
        f"the column 'tags' of {tmp_path} is split at ','; if 'Perth' and 'W.A.' are one name, call the column label",
    ]


def test_column_names_have_one_spelling():
    assert normalise_columns([" File Name", "LABELS ", "Site "]) == ["file_name", "labels", "Site"]
    assert normalise_columns(["Tags", "tags"]) == ["Tags", "tags"]


@pytest.mark.parametrize("name", ["el\u200bk", "\ufeffelk", "elk\u00ad", "\u202aelk", " elk\u2060"])
def test_invisible_marks_are_removed_from_names(name):
    assert normalise_label_name(name) == "elk"


@pytest.mark.parametrize("name", ["el\0k", "el\x1bk", "é\x07"])
def test_control_characters_are_refused(name):
    with pytest.raises(InputError, match="cannot be a label; take the control character out of it"):
        normalise_label_name(name)


@pytest.mark.parametrize(
    ("cells", "labels"),
    [
        (["animal|elk, place|bog", "animal|fox", "place|bog"], [("animal", "elk", "place", "bog"), ("animal", "fox"),
                                                               ("place", "bog")]),
        (["a|b;c|d", "a|e"], [("a", "b", "c", "d"), ("a", "e")]),
        (["elk\nbog", "bog"], [("elk", "bog"), ("bog",)]),
        (["{elk,bog}", "{}", '{fox,"old bog"}'], [("elk", "bog"), (), ("fox", "old bog")]),
        (["[elk, bog]", "[fox]"], [("elk", "bog"), ("fox",)]),
        (["('elk',)", "()", "set()", "{'fox'}"], [("elk",), (), (), ("fox",)]),
        (['[{"id": 3, "name": "elk"}]', '[{"uri": "http://a/b"}]'], [("elk",), ("http://a/b",)]),
        ([[{"uri": "http://a/b", "label": "elk"}]], [("elk",)]),
        (["1.0", "2.0", ""], [("1",), ("2",), ()]),
        (["1.0", "2.5"], [("1.0",), ("2.5",)]),
    ],
)  # fmt: skip
def test_nested_lists_lines_and_objects_are_lists(cells, labels):
    assert [tuple(name for name in names if name) for names in read_cells(cells)] == labels


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("label", ["elk,bog", "fox,bog", "elk,fox", "elk"]),
        ("tags", ["elk / bog", "fox / bog", "elk / fox"]),
        ("tags", ["elk bog", "fox bog", "elk fox", "moss"]),
    ],
)
def test_cells_with_several_labels_are_reported(name, cells, tmp_path, caplog):
    with caplog.at_level(logging.WARNING, logger="wsabie"):
        LabelCellReader(name).inspect(["great tit", "blue tit", "great owl"]).check(tmp_path)
        assert not caplog.records
        LabelCellReader(name).inspect(cells).check(tmp_path)
    assert f"parts of cells such as {cells[0]!r} are labels of other cells" in caplog.text


def test_lists_of_a_single_joined_text_are_reported(tmp_path, caplog):
    with caplog.at_level(logging.WARNING, logger="wsabie"):
        LabelCellReader("tags").inspect([["sea, dog"], ["sky; sea"], ["sea"]]).check(tmp_path)
        assert not caplog.records
        reader = LabelCellReader("tags").inspect([["sea, dog"], [], ["sky; sea"]]).check(tmp_path)
    assert "each list of 'tags'" in caplog.text
    assert "holds a single text such as 'sea, dog', which stays one label" in caplog.text
    assert reader.read_labels(["sea, dog"], "") == ("sea, dog",)


@pytest.mark.parametrize("cell", ['{"elk": 1, "bog": 0}', "[{'id': 3, 'name': 'elk'}]"])
def test_objects_are_refused(cell, tmp_path):
    with pytest.raises(InputError, match=r"holds objects such as .*, and no labels; write their names"):
        LabelCellReader("tags").inspect([cell, "elk"]).check(tmp_path)


def test_box_corners_and_ids_are_no_labels(caplog):
    rows = [{"file_name": "a", "xmin": 1, "y": 0, "image_id": 1, "iscrowd": 0}]
    assert find_flag_columns(rows) is None
    with caplog.at_level(logging.INFO, logger="wsabie"):
        assert find_flag_columns([{**rows[0], "elk": 1, "bog": 0}]).columns == ["elk", "bog"]
    assert "labels are the names of the columns of 0 and 1: elk, bog" in caplog.text


def test_number_among_bracketed_lists_is_a_label() -> None:
    cells = ["[sea, dog]", "[sea, cat]", 7, "[dog, cat]"]
    reader = LabelCellReader("labels").inspect(cells)
    assert [reader.read_labels(cell, "x:1") for cell in cells] == [
        ("sea", "dog"),
        ("sea", "cat"),
        ("7",),
        ("dog", "cat"),
    ]
