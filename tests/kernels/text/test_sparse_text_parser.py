"""The sparse-text kernel against its slow twin, and against Python's own number parsing."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference.sparse_text_parser import parse_line

from uncompiled_runs import run_with_and_without_compiler
from wsabie.kernels.text import sparse_text_parser
from wsabie.kernels.text.sparse_text_parser import RowLimits, allocate_batch, parse_lines

FREE = RowLimits(2**31, -1, False, False)
PROMISED = RowLimits(50, 9, True, True)


def parse_all(text: bytes, limits: RowLimits, rows: int = 100, labels: int = 100, features: int = 100):
    """Every line's (reason or None, labels, features), through as many calls as the batch needs."""
    buffer = np.frombuffer(text if text.endswith(b"\n") else text + b"\n", np.uint8)
    lines, at = [], 0
    batch = allocate_batch(rows, labels, features, bad=2, ambiguous=2)
    while at < len(buffer):
        end = parse_lines(buffer, at, limits, batch)
        if end == at:
            batch = allocate_batch(*(2 * len(a) for a in (batch.row_lines, batch.labels, batch.indices)), ambiguous=99)
            continue
        lines += lines_of(batch, buffer)
        at = end
    return lines


def lines_of(batch, buffer):
    lines = [(None, [], {}) for _ in range(batch.used[sparse_text_parser.LINES])]
    for line, reason, _ in batch.bad[: batch.used[sparse_text_parser.BAD]].tolist():
        lines[line] = (reason, [], {})
    ambiguous = batch.ambiguous[: batch.used[sparse_text_parser.AMBIGUOUS]].tolist()
    labels_end = np.cumsum(batch.label_counts[: batch.used[sparse_text_parser.ROWS]])
    features_end = np.cumsum(batch.feature_counts[: batch.used[sparse_text_parser.ROWS]])
    for row in range(batch.used[sparse_text_parser.ROWS]):
        label_span = slice(labels_end[row] - batch.label_counts[row], labels_end[row])
        its = slice(features_end[row] - batch.feature_counts[row], features_end[row])
        features = dict(zip(batch.indices[its].tolist(), batch.values[its], strict=True))
        for where, number, at in ambiguous:
            if where == row:
                token = buffer[at : at + 400].tobytes().split()[0].partition(b":")[2]
                features[number] = np.float32(float(token))
        assert list(features) == sorted(features)
        lines[batch.row_lines[row]] = (sparse_text_parser.ACCEPTED, batch.labels[label_span].tolist(), features)
    return lines


def test_one_line_by_hand():
    assert parse_all(b"3,1 7:.5 2:1e1\n", PROMISED) == [(sparse_text_parser.ACCEPTED, [3, 1], {2: 10.0, 7: 0.5})]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"x 1:1", sparse_text_parser.BAD_LABEL),
        (b"1,,2 1:1", sparse_text_parser.BAD_LABEL),
        (b"-1 1:1", sparse_text_parser.BAD_LABEL),
        (b"9 1:1", sparse_text_parser.LABEL_RANGE),
        (b"1 50:1", sparse_text_parser.FEATURE_RANGE),
        (b"1 99999999999999999999:1", sparse_text_parser.BAD_FEATURE),
        (b"1 -3:1", sparse_text_parser.BAD_FEATURE),
        (b"1 3", sparse_text_parser.BAD_FEATURE),
        (b"1 3:", sparse_text_parser.BAD_FEATURE),
        (b"1 3:1e", sparse_text_parser.BAD_FEATURE),
        (b"1 3:1x", sparse_text_parser.BAD_FEATURE),
        (b"1 3:1:2", sparse_text_parser.BAD_FEATURE),
        (b"1 3: 2", sparse_text_parser.BAD_FEATURE),
        (b"1 3:1_0", sparse_text_parser.BAD_FEATURE),
        (b"1 3:0x10", sparse_text_parser.BAD_FEATURE),
        (b"1 3:nan", sparse_text_parser.NOT_FINITE),
        (b"1 3:-Infinity", sparse_text_parser.NOT_FINITE),
        (b"1 3:1e39", sparse_text_parser.NOT_FINITE),
        (b"1 3:-1", sparse_text_parser.NEGATIVE),
        (b"1 3:1 3:2", sparse_text_parser.REPEATED),
        (b"1 4:1 3:2 4:1", sparse_text_parser.REPEATED),
        (b"8 49:1", sparse_text_parser.ACCEPTED),
        (b"+8 3:-0", sparse_text_parser.ACCEPTED),
        (b"", sparse_text_parser.ACCEPTED),
        (b" 3:1\t4:2 \r", sparse_text_parser.ACCEPTED),
        (b"3:1 4:2 # why", sparse_text_parser.ACCEPTED),
    ],
)
def test_reasons(line, reason):
    [line_result] = parse_all(line + b"\n", PROMISED)
    assert line_result[0] == reason
    assert line_result == tuple(parse_line(line, PROMISED))


def test_blank_and_comment_lines_are_no_rows_without_a_header():
    assert [f[0] for f in parse_all(b"\n  \n# all\n-1 3:1\n", FREE)] == [None, None, None, sparse_text_parser.ACCEPTED]


pieces = st.sampled_from(
    [*"0123456789:, \t\r#+-.exnaif", " ", " ", "1:1 ", "3:.5 ", "2,7 ", "49:2 ", "50:1 ", "nan", "inf", "1e-3"]
)
texts = st.lists(st.lists(pieces, max_size=12).map("".join), max_size=8).map(lambda rows: "\n".join(rows).encode())


@settings(max_examples=300, deadline=None)
@given(text=texts, limits=st.sampled_from([FREE, PROMISED]))
def test_equals_the_slow_twin(text, limits):
    lines = text.removesuffix(b"\n").split(b"\n")
    assert parse_all(text, limits, 2, 3, 4) == [tuple(parse_line(line, limits)) for line in lines]


@settings(max_examples=200, deadline=None)
@given(text=st.binary(max_size=60))
def test_any_bytes_give_one_verdict_a_line(text):
    lines = text.removesuffix(b"\n").split(b"\n")
    assert parse_all(text, FREE) == [tuple(parse_line(line, FREE)) for line in lines]


numbers = st.one_of(
    st.floats(width=32, allow_nan=False, allow_infinity=False).map(repr),
    st.floats(allow_nan=False, allow_infinity=False, max_value=3e38, min_value=-3e38).map(repr),
    st.decimals(min_value=-1000, max_value=1000, allow_nan=False, places=25).map(str),
    st.integers(-(10**30), 10**30).map(str),
    st.tuples(st.integers(0, 10**22), st.integers(-80, 15)).map(lambda p: f"{p[0]}e{p[1]}"),
    st.integers(1, 2**30).map(lambda i: f"{i}.{'0' * 30}1"),
)


@settings(max_examples=500, deadline=None)
@given(token=numbers)
def test_numbers_are_pythons(token):
    expected = np.float32(float(token))
    [(reason, _, features)] = parse_all(f"1 5:{token}\n".encode(), FREE)
    assert reason == sparse_text_parser.ACCEPTED
    assert features.get(5, np.float32(0)) == expected


@settings(max_examples=100, deadline=None)
@given(bits=st.integers(0x0080_0000, 0x7F00_0000), nudge=st.sampled_from([-1, 0, 1]))
def test_rounding_boundaries_are_left_to_python(bits, nudge):
    low = float(np.uint32(bits).view(np.float32))
    high = float(np.uint32(bits + 1).view(np.float32))
    middle = float(np.nextafter((low + high) / 2, nudge * np.inf)) if nudge else (low + high) / 2
    [(_, _, features)] = parse_all(f"1 5:{middle!r}\n".encode(), FREE)
    assert features.get(5, np.float32(0)) == np.float32(middle)


def test_a_token_near_a_boundary_is_handed_back():
    buffer = np.frombuffer(b"1 5:1.0000000596046447753906250001 6:1.00000005\n", np.uint8)
    batch = allocate_batch(5, 5, 5)
    parse_lines(buffer, 0, FREE, batch)
    assert batch.ambiguous[: batch.used[sparse_text_parser.AMBIGUOUS]].tolist() == [[0, 5, 2]]


def test_rows_come_sorted_whatever_their_order():
    order = np.random.default_rng(0).permutation(5000)
    line = b"1 " + b" ".join(b"%d:%d" % (j, j + 1) for j in order)
    [(reason, _, features)] = parse_all(line, FREE)
    assert reason == sparse_text_parser.ACCEPTED
    assert features == {j: j + 1 for j in range(5000)}


def test_a_full_batch_stops_before_the_line_that_does_not_fit():
    buffer = np.frombuffer(b"1 1:1 2:2\n2 1:1 2:2\n", np.uint8)
    batch = allocate_batch(rows=5, labels=5, features=3)
    assert parse_lines(buffer, 0, FREE, batch) == 10
    assert batch.used.tolist() == [1, 1, 1, 2, 0, 0]
    assert parse_lines(buffer, 0, FREE, allocate_batch(rows=5, labels=5, features=1)) == 0


def test_the_same_without_compilation():
    code = (
        "import numpy as np\n"
        "from wsabie.kernels.text.sparse_text_parser import RowLimits, allocate_batch, parse_lines\n"
        "b = allocate_batch(9, 9, 9)\n"
        "t = np.frombuffer(b'1,2 7:.25 3:1e-3 4:123456789012345678901e-10\\nx\\n 1:nan\\n', np.uint8)\n"
        "end = parse_lines(t, 0, RowLimits(9, 9, True, False), b)\n"
        "n = b.used[3]\n"
        "print(end, b.used.tolist(), b.indices[:n].tolist(), b.values[:n].tolist(), b.bad[:2].tolist())"
    )
    printed = run_with_and_without_compiler(code)
    assert printed[0] == printed[1]
    assert printed[0].startswith("54 [3, 1, 2, 3, 2, 0] [3, 4, 7]")
