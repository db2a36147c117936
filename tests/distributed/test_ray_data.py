"""Ray Data maps a `BatchAnnotator` over a data set, and finds what one process finds."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import wsabie
from wsabie.io.data_sources import open_source
from wsabie.io.formats.parquet_rows import write_parquet_rows
from wsabie.io.records import ItemList
from wsabie.models.annotators import Annotator
from wsabie.models.batch_annotator import BatchAnnotator
from wsabie.samples import get_sample_path

ray = pytest.importorskip("ray", reason="ray is needed for work on many machines (extra wsabie[ray])")
pytest.importorskip("ray.data", reason="Ray Data has needs of its own: pip install 'ray[data]'")


@pytest.fixture
def in_order() -> Iterator[None]:
    """Blocks come as they were read."""
    options = ray.data.DataContext.get_current().execution_options
    old_order, options.preserve_order = options.preserve_order, True
    yield
    options.preserve_order = old_order


def test_a_data_set_is_annotated_as_in_one_process(nodes, in_order: None, tmp_path: Path) -> None:
    source = open_source(get_sample_path("emoji"))
    pictures = ItemList(source.path, list(source)[400:490], "pictures")
    rows = wsabie.VisualWords(n_words=60).fit(pictures).transform(pictures)
    model = wsabie.Wsabie(dim=16, epochs=5, threads=1).fit(rows.X, rows.Y, label_names=rows.label_names)
    Annotator(model).save(tmp_path / "model")
    write_parquet_rows(rows, tmp_path / "rows.parquet")
    pool = ray.data.ActorPoolStrategy(size=1)  # the other core is for reading: with both taken Ray Data waits for ever
    batches = ray.data.read_parquet(str(tmp_path / "rows.parquet"), override_num_blocks=4).map_batches(
        BatchAnnotator, fn_constructor_args=(str(tmp_path / "model"), 3), batch_format="pyarrow", compute=pool
    )
    remote = pa.concat_tables(batches.iter_batches(batch_format="pyarrow", batch_size=None))
    local = BatchAnnotator(tmp_path / "model", 3)(pq.read_table(tmp_path / "rows.parquet"))
    for name in ("id", "predicted_labels", "predicted_scores", "rejected"):
        assert remote[name].to_pylist() == local[name].to_pylist()
