"""Files that a machine makes up: each is read or refused in a sentence, and what it was taken for is printed.

They are examples of all formats, and of files that other programs write, with a few damages: changed, repeated and
missing lines, other separators and encodings, odd bytes. `make fuzz-files` makes up 2,000; as tests among others some.
WSABIE_FUZZ_FILES says how many.
"""

import contextlib
import io
import os
import shutil
import sys
import tempfile
import unicodedata
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from picture_collections import sample
from wsabie.cli.main import run
from wsabie.core.errors import InputError
from wsabie.io.data_sources import open_source, summarise_source
from wsabie.io.format_detection import FORMATS, detect_format
from wsabie.io.records import FeatureTable

N_FILES = int(os.environ.get("WSABIE_FUZZ_FILES", "60"))
NAMES = ("data.csv", "data.tsv", "data.txt", "data.json", "data.jsonl", "data.arff", "data", "metadata.csv",
         "metadata.jsonl", "labels.csv", "data.xml", "data.parquet", "data.svm")  # fmt: skip
OTHER_PROGRAMS = (
    "SourceFile,Keywords\n./1.webp,\"sea, sky\"\n./2.webp,sea\n",
    '[{"SourceFile": "1.webp", "Keywords": ["sea", "sky"]}, {"SourceFile": "2.webp", "Subject": "sea"}]\n',
    '[{"image": "/data/upload/1.webp", "annotations": [{"result": [{"type": "choices", '
    '"value": {"choices": ["sea"]}}]}]}]',
    '{"images": [{"id": 1, "file_name": "1.webp"}], "categories": [{"id": 1, "name": "sea"}], '
    '"annotations": [{"image_id": 1, "category_id": 1, "bbox": [0, 0, 5, 5]}]}',
    "0 0.5 0.5 0.2 0.2\n1 0.1 0.1 0.1 0.1\n",
    "file_name,sea,sky\n1.webp,1,0\n2.webp,1,1\n",
    "sep=;\nfile_name;labels\n1.webp;sea|sky\n2.webp;sea\n",
    "1 qid:1 1:0.5 2:3\n0 qid:1 1:0.1\n",
    "+1 1:0.5 3:2 # a\n-1 2:1\n",
    "path,tags\n1.webp,\"['sea', 'sky']\"\n2.webp,\"['sea']\"\n",
    "id\tlabel\n1\tsea\n1\tsky\n2\tsea\n3\tsky\n",
    "text\tsubjects\nwaves and salt\tsea;water\nclouds\tsky\n",
    '{"text": "waves", "labels": ["sea", "water"]}\n{"text": "clouds", "labels": ["sky"]}\n',
    "<annotation><filename>1.webp</filename><object><name>sea</name></object></annotation>",
    "waves and salt\t<http://www.yso.fi/onto/yso/p3018> <http://www.yso.fi/onto/yso/p1>\nclouds\t<http://a.b/c>\n",
    "@relation 'a: -C 2'\n@attribute x numeric\n@attribute y numeric\n@attribute sea {0,1}\n@attribute sky {0,1}\n"
    "@data\n0.5,1,1,0\n2,3,0,1\n",
    "3 2 2\n0 0:1\n1 1:2\n0,1 0:2 1:1\n",
)  # fmt: skip
EXAMPLES = [form.example.replace(".jpg", ".webp") + "\n" for form in FORMATS] + list(OTHER_PROGRAMS)
PIECES = ("", "\t", ";", ",", "|", '"', "'", "\0", "\r\n", "\ufeff", "é", "e\u0301", "日本", "nan", "1e999", "-1:2",
          "[]", "{}", "{", "]", "<a>", "#", "__label__", "/../x", "C:\\a\\1.webp", "http://a/1.webp", " ", "=1+1",
          "x" * 3000, "0:0", "99999999999999999999:1", "\x1a", "\u2028", "true", "null", "text", "labels",
          "file_name")  # fmt: skip
ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "latin-1", "cp1252")


@st.composite
def made_up_texts(draw: st.DrawFn) -> tuple[str, str]:
    """Text and encoding of a file."""
    lines = draw(st.sampled_from(EXAMPLES)).splitlines(keepends=True)
    lines *= draw(st.sampled_from((1, 1, 20)))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(lines) - 1))
        damage = draw(st.sampled_from(("insert", "replace", "drop", "repeat", "foreign", "separator", "case")))
        if damage == "insert":
            column = draw(st.integers(0, len(lines[at])))
            lines[at] = lines[at][:column] + draw(st.sampled_from(PIECES)) + lines[at][column:]
        elif damage == "replace":
            lines[at] = draw(st.sampled_from(PIECES)) + "\n"
        elif damage == "drop" and len(lines) > 1:
            del lines[at]
        elif damage == "repeat":
            lines.insert(at, lines[at])
        elif damage == "foreign":
            lines.insert(at, draw(st.sampled_from(EXAMPLES)))
        elif damage == "separator":
            old, new = draw(st.sampled_from(((",", ";"), (",", "\t"), ("\t", ","), (" ", "\t"), (";", "|"))))
            lines = [line.replace(old, new) for line in lines]
        else:
            lines[at] = lines[at].upper()
    return "".join(lines), draw(st.sampled_from(ENCODINGS[:1] * 5 + ENCODINGS))


def fold(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


many_files = settings(max_examples=N_FILES, suppress_health_check=[HealthCheck.too_slow], print_blob=True)


@many_files
@given(made_up_texts(), st.sampled_from(NAMES))
def test_a_file_is_read_or_refused_in_a_sentence(made_up: tuple[str, str], name: str) -> None:
    text, encoding = made_up
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / name
        path.write_bytes(text.encode(encoding, "replace"))
        (Path(scratch) / "1.webp").write_bytes(sample(each=1)[0]["image"])
        try:
            data_format, source = detect_format(path), open_source(path)
        except InputError as error:
            assert_sentence(str(error))
            return
        summary = summarise_source(source, data_format)
        assert ": " in summary
        names = source.label_names if isinstance(source, FeatureTable) else {n for item in source for n in item.labels}
        content = fold(text.encode(encoding, "replace").decode(encoding, "replace"))
        if data_format == "glosses":  # the number of a lexicographer's file stands for its name
            return
        for label in names:
            assert fold(label) in content or label.isdigit(), f"{label!r} stands in no cell; {summary}"


def assert_sentence(message: str) -> None:
    assert message
    assert "Traceback" not in message
    assert len(message) < 2000


@settings(many_files, max_examples=max(1, N_FILES // 5))
@given(made_up_texts(), st.sampled_from(NAMES))
def test_a_collection_is_made_or_refused_in_a_sentence(made_up: tuple[str, str], name: str) -> None:
    text, encoding = made_up
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "photos"
        folder.mkdir()
        for number, row in enumerate(sample(each=1)[:2], 1):
            (folder / f"{number}.webp").write_bytes(row["image"])
        (folder / name).write_bytes(text.encode(encoding, "replace"))
        output = io.StringIO()
        with (
            pytest.MonkeyPatch.context() as patch,
            contextlib.redirect_stdout(output),
            contextlib.redirect_stderr(output),
        ):
            patch.setattr(sys, "argv", ["wsabie", "collection", "init", str(folder)])
            with pytest.raises(SystemExit) as ended:
                run()
        printed = output.getvalue()
        assert ended.value.code in (0, None, 1, 2), printed
        assert_sentence(printed)
        shutil.rmtree(folder)
