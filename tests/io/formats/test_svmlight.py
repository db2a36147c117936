"""XC and svmlight files."""

import gzip
import logging
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from wsabie.core.errors import InputError
from wsabie.io.data_sources import open_unlabelled_rows
from wsabie.io.fingerprints import compute_fingerprint
from wsabie.io.formats import svmlight
from wsabie.io.formats.svmlight import SvmlightStream
from wsabie.io.parsers.text_files import iterate_line_blocks
from wsabie.storage.rejects import Rejects
from wsabie.vocabulary.label_names import normalise_label_name

XC = "3 5 4\n0,3 1:.5 4:2\n 0:1\n2,2 \n"


@pytest.fixture
def write(tmp_path):
    def write(text, name="data.txt"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def read_svmlight(path, *, n_features=None, **options):
    return SvmlightStream(path, **options).read_all(n_features)


def test_xc_file_is_read_exactly(write):
    rows = read_svmlight(write(XC), rejects=Rejects())
    assert rows.X.toarray().tolist() == [[0, 0.5, 0, 0, 2], [1, 0, 0, 0, 0], [0] * 5]
    assert rows.Y.toarray().tolist() == [[1, 0, 0, 1], [0] * 4, [0, 0, 1, 0]]
    assert rows.label_names == ["0", "1", "2", "3"]
    assert rows.ids == ["2", "3", "4"]
    assert (rows.X.dtype, rows.Y.dtype, rows.counts) == (np.float32, np.int8, False)


def test_plain_svmlight_keeps_label_and_feature_numbers(write):
    rows = read_svmlight(write("# made by hand\n-1 1:1\n\n+1 3:2 # last\n"), rejects=Rejects())
    assert rows.label_names == ["-1", "1"]
    assert rows.X.toarray().tolist() == [[0, 1, 0, 0], [0, 0, 0, 2]]
    assert rows.ids == ["2", "4"]


def test_plain_file_is_widened_and_never_cut(write):
    assert read_svmlight(write("1 3:1\n"), n_features=9, rejects=Rejects()).X.shape == (1, 9)
    assert read_svmlight(write("1 3:1\n"), n_features=2, rejects=Rejects()).X.shape == (1, 4)


def test_label_names_come_from_the_file_beside(write):
    write("sea\n  old   town\nsea\nmoon\n", "labels.txt")
    assert read_svmlight(write(XC), rejects=Rejects()).label_names == ["sea", "old town", "sea (2)", "moon"]
    assert read_svmlight(write("3 1:1\n"), rejects=Rejects()).label_names[3] == "moon"


def test_wrong_number_of_label_names_is_refused(write):
    write("sea\nmoon\n", "Yf.txt")
    with pytest.raises(InputError, match=r"Yf\.txt holds 2 label names but .* promises 4 labels"):
        read_svmlight(write(XC), rejects=Rejects())
    with pytest.raises(InputError, match=r"data\.txt:1 has label 3 but 2 labels are promised"):
        read_svmlight(write("3 1:1\n"), rejects=Rejects())
    write(b"\xff\n", "Yf.txt")
    with pytest.raises(InputError, match=r"Yf\.txt:1 is not UTF-8"):
        read_svmlight(write(XC), rejects=Rejects())


def test_gzip_and_small_blocks_change_nothing(write, monkeypatch):
    text = "7 9 4\n" + "".join(f"{i % 4} " + " ".join(f"{j}:{j}.{i}" for j in range(i, 9)) + "\n" for i in range(7))
    plain = compute_fingerprint(read_svmlight(write(text), rejects=Rejects()))
    assert (
        compute_fingerprint(read_svmlight(write(gzip.compress(text.encode()), "data.txt.gz"), rejects=Rejects()))
        == plain
    )
    assert compute_fingerprint(read_svmlight(write(text.replace("\n", "\r\n")), rejects=Rejects())) == plain
    monkeypatch.setattr(svmlight.text_files, "iterate_line_blocks", partial(iterate_line_blocks, size=16))
    assert compute_fingerprint(read_svmlight(write(text), rejects=Rejects())) == plain


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (XC.replace("3 5", "4 5"), r"holds 3 rows but its header promises 4"),
        (XC.replace("3 5", "2 5"), r"holds 3 rows but its header promises 2"),
        (XC.replace("5 4", "4 4"), r"data\.txt:2 has feature 4 but 4 features are promised"),
        (XC.replace("5 4", "5 3"), r"data\.txt:2 has label 3 but 3 labels are promised"),
        ("1 9999999999 2\n0 1:1\n", r"data\.txt:1 promises 9,999,999,999 features"),
        ("0 5 4\n", r"holds no rows"),
        ("", r"holds no rows"),
        ("1 5:nan\n", r"no rows are left .*data\.txt:1 for value that is not finite \(5:nan\)"),
    ],
)
def test_wrong_header_and_empty_file_are_refused(write, text, sentence):
    with pytest.raises(InputError, match=sentence):
        read_svmlight(write(text), rejects=Rejects())


def test_blank_lines_at_the_end_are_ignored(write):
    assert read_svmlight(write(XC + "\n \n"), rejects=Rejects()).ids == ["2", "3", "4"]


BROKEN = "8 5 4\n0 1:1\nx 1:1\n0 1:nan\n0 1:1 1:2\n0 1\n0 1:inf\n0 1:-1\n1 2:1\n"


def test_broken_rows_are_skipped_counted_and_listed(write):
    rejects = Rejects()
    rows = read_svmlight(write(BROKEN), counts=True, rejects=rejects)
    assert rows.ids == ["2", "9"]
    assert rows.counts
    assert rejects.counts == {
        "malformed label": 1,
        "malformed feature": 1,
        "value that is not finite": 2,
        "feature given twice": 1,
        "negative count": 1,
    }
    where, reason, detail = rejects.listed[0]
    assert where.endswith("data.txt:3")
    assert (reason, detail) == ("malformed label", "x")
    assert [detail for _, reason, detail in rejects.listed if reason == "feature given twice"] == ["1:2"]
    assert (
        len(read_svmlight(write(BROKEN), rejects=Rejects())) == 3
    )  # a negative value is fine unless counts are declared


@pytest.mark.parametrize("n", [1, 3_000])
@pytest.mark.parametrize("end", ["", " \r", " # 8:1 8:1"])
@pytest.mark.parametrize("tail", ["", "\n0 1:1\n"])
def test_repeated_feature_is_listed(write, n, end, tail):
    line = "0,1 " + " ".join(f"{j}:1" for j in range(9, 9 + n)) + " 007:.5 7:2"
    rejects = Rejects()
    read_svmlight(write(f"1 2:1\n{line}{end}{tail}"), rejects=rejects)
    assert [tuple(why) for _, *why in rejects.listed] == [("feature given twice", "7:2")]


def test_strict_refuses_the_first_broken_row(write):
    with pytest.raises(InputError, match=r"data\.txt:3: malformed label \(x\)"):
        read_svmlight(write(BROKEN), rejects=Rejects(strict=True))


def test_more_broken_rows_than_a_batch_are_counted(write):
    rejects = Rejects()
    rows = read_svmlight(write("1 1:1\n" + "y\n" * 5000 + "1 2:1\n"), rejects=rejects)
    assert rows.ids == ["1", "5002"]
    assert rejects.counts == {"malformed label": 5000}


def test_line_longer_than_the_batch_is_read(write, monkeypatch):
    new = svmlight.allocate_batch
    monkeypatch.setattr(svmlight, "allocate_batch", lambda **sizes: new(rows=2, labels=1, features=1))
    monkeypatch.setattr(svmlight, "_double_batch", lambda b: new(2, 2 * len(b.labels), 2 * len(b.indices)))
    rows = read_svmlight(write("1,2,3 1:1 2:2 3:3 4:4\n2 5:5\n"), rejects=Rejects())
    assert rows.X.toarray().tolist() == [[0, 1, 2, 3, 4, 0], [0, 0, 0, 0, 0, 5]]
    assert rows.Y.toarray().tolist() == [[1, 1, 1], [0, 1, 0]]


def test_values_near_a_rounding_boundary_are_read_exactly(write):
    number = "1.0000000596046447753906250001"
    rows = read_svmlight(write(f"1 1:{number} 7:1\n2 3:1 2:{number}\n"), rejects=Rejects())
    assert rows.X.data.tolist() == [np.float32(float(number)), 1, np.float32(float(number)), 1]


def test_reading_rate_is_reported(write, caplog):
    steps = []

    class Recorder:
        def stage(self, name, total, unit):
            from contextlib import nullcontext

            assert (name, total, unit) == ("reading data.txt", len(XC), "bytes")
            return nullcontext(self)

        def advance(self, n=1, **figures):
            steps.append((n, figures))

    with caplog.at_level(logging.DEBUG, "wsabie"):
        read_svmlight(write(XC), progress=Recorder(), rejects=Rejects())
    assert steps[0][0] == len(XC)
    assert steps[0][1]["mb_per_s"] > 0
    assert "MB/s" in caplog.text


def test_files_of_scikit_learn_are_read_alike(tmp_path):
    rng = np.random.default_rng(0)
    X = csr_matrix(rng.normal(size=(40, 30)) * (rng.random((40, 30)) < 0.2))
    Y = csr_matrix(rng.random((40, 6)) < 0.3)
    path = tmp_path / "data.svm"
    dump_svmlight_file(X, Y, str(path), multilabel=True)
    rows = read_svmlight(path, n_features=30, rejects=Rejects())
    theirs, labels = load_svmlight_file(str(path), n_features=30, multilabel=True)
    assert np.array_equal(rows.X.toarray(), theirs.toarray().astype(np.float32))
    mine = [tuple(float(rows.label_names[j]) for j in rows.Y[i].indices) for i in range(len(rows))]
    assert mine == [tuple(sorted(row)) for row in labels]


values = st.floats(width=32, allow_nan=False, allow_infinity=False).filter(bool)
rows_of_text = st.lists(
    st.tuples(st.sets(st.integers(0, 5)), st.dictionaries(st.integers(0, 9), values)), min_size=1, max_size=6
)


@settings(deadline=None)
@given(rows=rows_of_text, shuffle=st.randoms(use_true_random=False))
def test_valid_files_are_read_exactly(tmp_path_factory, rows, shuffle):
    path = tmp_path_factory.mktemp("xc") / "a.txt"
    lines = [f"{len(rows)} 10 6"]
    for labels, features in rows:
        pairs = [f"{j}:{v!r}" for j, v in features.items()]
        shuffle.shuffle(pairs)
        lines.append(",".join(map(str, labels)) + " " + " ".join(pairs))
    path.write_text("\n".join(lines))
    got = read_svmlight(path, rejects=Rejects())
    for i, (labels, features) in enumerate(rows):
        assert set(got.Y[i].indices) == labels
        assert dict(zip(got.X[i].indices.tolist(), got.X[i].data.tolist(), strict=True)) == features


@settings(deadline=None)
@given(text=st.one_of(st.binary(max_size=80), st.text("0123456789:,. -\n#en", max_size=80).map(str.encode)))
def test_any_bytes_give_rows_or_one_sentence(tmp_path_factory, result_or_sentence, text):
    path = tmp_path_factory.mktemp("any") / "a.txt"
    path.write_bytes(text)
    rows = result_or_sentence(read_svmlight, path, rejects=Rejects())
    if rows is not None:
        assert rows.X.shape[0] == rows.Y.shape[0] == len(rows) > 0
        assert np.isfinite(rows.X.data).all()


@settings(deadline=None)
@given(
    text=st.one_of(st.binary(max_size=60), st.text("a \t\n\r\0é\ufeff\u0301", max_size=40).map(str.encode)),
    name=st.sampled_from(["labels.txt", "Yf.txt"]),
    headed=st.booleans(),
)
def test_any_bytes_give_label_names_or_one_sentence(tmp_path_factory, result_or_sentence, text, name, headed):
    folder = tmp_path_factory.mktemp("any")
    (folder / "a.txt").write_text(f"{'2 3 2' if headed else ''}\n0,1 0:1\n1 2:1\n".lstrip())
    (folder / name).write_bytes(text)
    rows = result_or_sentence(read_svmlight, folder / "a.txt", rejects=Rejects())
    if rows is not None:
        assert rows.Y.shape == (2, len(rows.label_names))
        assert len(set(rows.label_names)) == len(rows.label_names) >= 2
        assert all(label == normalise_label_name(label) and label for label in rows.label_names)


def test_only_a_size_header_fixes_the_width(write):
    for name, text, has_sizes in (("xc.txt", XC, True), ("plain.txt", XC.split("\n", 1)[1], False)):
        path = write(text, name)
        (part,) = open_unlabelled_rows(path, Rejects(), n_features=2)
        assert (read_svmlight(path, rejects=Rejects()).open_width, part.open_width) == (not has_sizes, not has_sizes)


def test_unlabelled_rows_are_as_wide_as_needed(write):
    (part,) = open_unlabelled_rows(write("0 0:1 7:2\n1 2:1\n", "rows.txt"), Rejects(), n_features=3)
    assert part.X.shape == (2, 8)
    assert part.X.toarray()[0, 7] == 2
