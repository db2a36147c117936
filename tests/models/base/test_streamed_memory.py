"""Memory of training on shards does not grow with the number of rows."""

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

TRAINED = """
    import json, sys, threading, time
    from pathlib import Path
    import numpy as np
    sys.path.insert(0, {tests!r})
    from wsabie.models.joint_embedding.estimator import Wsabie
    from wsabie.io.shards.sharded_table import open_shards
    from wsabie.storage.column_files import ColumnTable, ListColumn
    from wsabie.io.shards.shard_folder import write_manifest, write_shard
    from wsabie.io.shards.sharded_table import ShardStatistics
    from wsabie.models.base import training_rows

    def anonymous():
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("RssAnon:"))

    n, width, per_row, labels, size = {n}, 5000, 100, 200, 1 << 14
    folder, rng = Path({folder!r}), np.random.default_rng(0)
    folder.mkdir()
    seen, files = ShardStatistics(width, labels, False), []
    for number in range(n // size):
        y = rng.integers(0, labels, size).astype(np.uint16)
        words = np.sort(rng.integers(0, width // per_row, (size, per_row)) + np.arange(0, width, width // per_row), 1)
        words[:, :10] = y[:, None] * 10 % 500 + np.arange(10)
        words.sort(1)
        x = ListColumn(np.arange(0, size * per_row + 1, per_row), {{
            "indices": words.ravel().astype(np.uint16), "values": np.ones(size * per_row, np.uint8)}})
        numbers = {{"id": np.arange(number * size, (number + 1) * size, dtype=np.uint64)}}
        columns = ColumnTable(numbers, {{"x": x, "y": ListColumn(np.arange(size + 1), {{"labels": y}})}})
        files.append(write_shard(folder, number, n // size, columns))
        seen.add(columns)
    more = {{"counts": True, "augment": 0, "extractor_fingerprint": None, "source": "", "seed": 0, "values": "uint8"}}
    names = {{"label_names": [str(i) for i in range(labels)], "feature_names": None}}
    write_manifest(folder, seen.compute_facts() | more, files, names, seen.arrays())
    rows = open_shards(folder)
    some = rows.read_first(100)
    Wsabie(dim=8, epochs=1, threads=2).fit(some.X, some.Y)
    before, peak, done = anonymous(), 0, threading.Event()
    def watch():
        global peak
        while not done.is_set():
            peak = max(peak, anonymous())
            time.sleep(0.003)
    watcher = threading.Thread(target=watch)
    watcher.start()
    training_rows.ROWS_PER_BLOCK, training_rows.NONZEROS_PER_BLOCK = {block}, 1 << 30
    model = Wsabie(dim=8, epochs=1, threads=2).fit(rows)
    done.set()
    watcher.join()
    print(json.dumps([model.history_[0].pairs, peak - before, 8 * seen.nonzeros]))
"""


def trained(folder: Path, n: int, block: int) -> tuple[int, float]:
    """Pairs of an epoch, and by how much the memory grew, as a share of what the rows would take in it."""
    tests = str(Path(__file__).parents[2])
    code = textwrap.dedent(TRAINED.format(tests=tests, folder=str(folder), n=n, block=block))
    process = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    pairs, grown, data = json.loads(process.stdout)
    return pairs, grown / data


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
@pytest.mark.parametrize(("block", "least", "most"), [(1 << 14, 0.0, 0.5), (1 << 18, 0.9, 2.0)])
def test_memory_is_that_of_two_blocks(tmp_path: Path, block: int, least: float, most: float) -> None:
    """A quarter of a million rows are 210 MB; two blocks of 16,384 are an eighth of that, and compiled code is more."""
    pairs, share = trained(tmp_path / "shards", 1 << 18, block)
    assert pairs == 1 << 18
    assert least < share < most, share
