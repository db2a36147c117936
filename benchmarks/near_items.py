"""Items near to a point among 100,000: `python -m benchmarks.near_items [--items 100000] [--dim 100]`.

Through the collection, that is with a look at which items are still there; random points.
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
from sqlalchemy import insert

from benchmarks.machine import describe_machine
from wsabie.collection.db import tables
from wsabie.collection.db.database import begin_write
from wsabie.collection.folder.collection import Collection, create_collection
from wsabie.collection.registry import item_index


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--dim", type=int, default=100)
    options = parser.parse_args()
    print(describe_machine())
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as place, create_collection(Path(place) / "collection") as collection:
        fill_collection(collection, options.items, rng.normal(size=(options.items, options.dim)).astype(np.float32))
        start = time.perf_counter()
        item_index.find_similar_items(collection, 5)
        print(f"the first search, which opens the table: {1000 * (time.perf_counter() - start):.0f} ms")
        for similarity in ("cosine", "dot"):
            times = []
            for query in rng.normal(size=(100, options.dim)):
                start = time.perf_counter()
                item_index.find_nearest_items(collection, [query], similarity=similarity)
                times.append(1000 * (time.perf_counter() - start))
            print(f"{similarity}: median {np.median(times):.1f} ms, least {min(times):.1f} ms")


def fill_collection(collection: Collection, n: int, table: np.ndarray) -> None:
    """Items, a model in use, and their points."""
    items = [
        {"id": i, "root_id": 1, "path": str(i), "folder": "", "hash": f"{i:032x}", "state": "present", "added_at": ""}
        for i in range(1, n + 1)
    ]
    model = {
        "id": 1,
        "folder": "m",
        "created_at": "",
        "method": "full",
        "last_entry_id": 0,
        "in_use": True,
        "is_removed": False,
    }
    with begin_write(collection.engine) as connection:
        connection.execute(insert(tables.items), items)
        connection.execute(insert(tables.models), [model | {"facts": {}, "figures": {}}])
    embeddings = item_index.ItemEmbeddings(np.arange(1, n + 1), np.arange(n, dtype=np.uint64), table)
    item_index.save_item_embeddings(collection.models / "m", embeddings)


if __name__ == "__main__":
    main()
