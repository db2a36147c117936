"""Feature extraction on a Ray cluster of one core, and of two nodes with a core each, on this machine.

    python -m benchmarks.ray_maps [FOLDER] [--pictures 600] [--features visual-words] [--data]

The first node, the process that hands out the work and everything else of Ray's are held to one core, the second node
to another, so that what Ray itself takes is paid for. Pictures a second, one node before and after two; processor time
by who took it, and of the busier core, which is what counts where other work disturbs the clock. With --data the same
by Ray Data (`map_batches` by actors, in order). Without FOLDER the bundled emoji.
"""

import argparse
import json
import os
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from benchmarks.machine import machine
from wsabie.core.execution import SerialExecutor
from wsabie.distributed import ray_cluster
from wsabie.distributed.ray_cluster import RayExecutor
from wsabie.features.base.feature_extractor import FeatureExtractor
from wsabie.features.extractor_registry import create_extractor
from wsabie.io.data_sources import open_source
from wsabie.io.records import ItemList
from wsabie.samples import get_sample_path

BAR = 1.5  # two nodes against one
RAY_PROCESSES = (
    "gcs_server",
    "raylet",
    "dashboard",
    "monitor",
    "Agent",
)  # Ray's processes, as their command lines name them


def main() -> int:
    """Print one table, or JSON; exit 1 when the bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=get_sample_path("emoji"))
    parser.add_argument("--pictures", type=int, default=600)
    parser.add_argument("--features", default="visual-words")
    parser.add_argument("--data", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        print("one core alone; run it where there are two", file=sys.stderr)
        return 2
    source = open_source(options.folder)
    pictures = ItemList(source.path, list(islice(source, options.pictures)))
    word_options = {"n_words": 1000} if "visual-words" in options.features.split(",") else {}
    extractor = create_extractor(options.features, **word_options).fit(pictures)
    report_head = {"schema": 1, "machine": machine(), "pictures": len(pictures), "features": options.features}
    report = report_head | compare_executors(extractor, pictures, cores, options.data)
    print(json.dumps(report, indent=1) if options.json else format_report(report))
    return 0 if report["two_to_one"] >= BAR else 1


def compare_executors(extractor: FeatureExtractor, pictures: ItemList, cores: list[int], data: bool) -> dict[str, Any]:
    """Rates of each way, and their ratios."""
    os.sched_setaffinity(0, cores[:1])  # threads and processes that begin from here on stay there
    os.environ.update(ray_cluster.QUIET_VARIABLES | ray_cluster.LOOPBACK_VARIABLES)
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        run = RayExecutor(cluster.address)
        with threadpool_limits(1):  # as in a worker; two on one core would wait for each other
            in_process = rate(extractor, pictures, SerialExecutor())
        first = rate(extractor, pictures, run)
        os.sched_setaffinity(0, cores[1:2])
        second = cluster.add_node(num_cpus=1)
        os.sched_setaffinity(0, cores[:1])
        two = rate(extractor, pictures, run)
        by_data = rate(extractor, pictures, RayData(2)) if data else None
        cluster.remove_node(second)
        again = rate(extractor, pictures, run)
    finally:
        ray_cluster.disconnect()
        cluster.shutdown()
    one_rate = (first["rate"] + again["rate"]) / 2
    report = {"process": in_process, "one_node": first, "two_nodes": two, "one_node_again": again}
    if by_data is not None:
        report |= {"ray_data": by_data, "ray_data_to_two": round(by_data["rate"] / two["rate"], 3)}
    busy = (first["busier_core_s"] + again["busier_core_s"]) / 2 / two["busier_core_s"]
    ratios = {"two_to_one": round(two["rate"] / one_rate, 3), "two_to_one_by_processor": round(busy, 3)}
    return report | ratios


def rate(extractor: FeatureExtractor, pictures: ItemList, run: Any) -> dict[str, Any]:
    """Pictures a second, what was taken before the first result, and who took processor time."""
    list(extractor.iterate(ItemList(pictures.path, list(islice(pictures, 1024))), executor=run))  # all workers are up
    n_taken = 0

    def groups() -> Iterator[Any]:
        nonlocal n_taken
        for start in range(0, len(pictures.items), 16):
            n_taken += 1
            yield tuple(pictures.items[start : start + 16])

    usage_before, start_time = processor(), time.perf_counter()
    results = extractor.extract_batches(groups(), executor=run)
    next(results)
    ahead, waited = n_taken, time.perf_counter() - start_time
    for _ in results:
        pass
    seconds = time.perf_counter() - start_time
    usage_after = processor()
    spent = {part: round(usage_after[part] - usage_before[part], 2) for part in ("process", "workers", "ray")}
    busiest = max(usage_after[part] - usage_before[part] for part in usage_after if part.startswith("core"))
    figures: dict[str, Any] = {"busier_core_s": round(busiest, 2)}
    figures |= {"rate": round(len(pictures) / seconds, 1), "first_after_s": round(waited, 2), "groups_ahead": ahead}
    return figures | {"processor_s": spent, "ray_share": round(spent["ray"] / max(sum(spent.values()), 1e-9), 3)}


def processor() -> Counter[str]:
    """Seconds of processor time of this process, of the workers and the rest of Ray below it, and on each core."""
    usage, tick = resource.getrusage(resource.RUSAGE_SELF), os.sysconf("SC_CLK_TCK")
    process_seconds = usage.ru_utime + usage.ru_stime
    seconds_by_process: Counter[str] = Counter(
        {"process": process_seconds, f"core {min(os.sched_getaffinity(0))}": process_seconds}
    )
    parents: dict[int, int] = {}
    places: dict[int, int] = {}
    rows: dict[int, tuple[str, float]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = folder.joinpath("stat").read_text().rpartition(")")[2].split()
            name = folder.joinpath("cmdline").read_text(errors="replace")
            place = min(os.sched_getaffinity(int(folder.name)))
        except OSError:
            continue  # it has just ended
        parents[int(folder.name)], places[int(folder.name)] = int(words[1]), place
        rows[int(folder.name)] = (name, (int(words[11]) + int(words[12])) / tick)
    for number, (name, seconds) in rows.items():
        if number != os.getpid() and is_below(number, parents):
            seconds_by_process[
                "ray" if any(process_seconds in name for process_seconds in RAY_PROCESSES) else "workers"
            ] += seconds
            seconds_by_process[f"core {places[number]}"] += seconds
    return seconds_by_process


def is_below(number: int, parents: dict[int, int]) -> bool:
    """Return True if a process descends from this one."""
    while number > 1 and number != os.getpid():
        number = parents.get(number, 0)
    return number == os.getpid()


class RayData:
    """Maps by Ray Data: all items become a data set, actors map its batches, rows are taken in order."""

    has_persistent_workers = True

    def __init__(self, actors: int) -> None:
        self.actors = actors

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        raise NotImplementedError

    def map_with(self, function: Callable[[Any, Any], Any], shared: Any, items: Iterable[Any]) -> Iterator[Any]:
        import ray
        from ray import cloudpickle

        context = ray.data.DataContext.get_current()
        context.enable_progress_bars = False
        context.execution_options.preserve_order = True
        rows = [{"item": cloudpickle.dumps(item)} for item in items]
        actor_options = {"fn_constructor_args": (ray.put((function, shared)),), "batch_size": 1, "num_cpus": 1}
        size = ray.data.ActorPoolStrategy(size=self.actors)
        mapped = ray.data.from_items(rows, override_num_blocks=len(rows)).map_batches(
            Actor, compute=size, **actor_options
        )
        for row in mapped.iter_rows():
            yield cloudpickle.loads(row["result"])


class Actor:
    """A worker of Ray Data."""

    def __init__(self, job: Any) -> None:
        import ray

        self.function, self.shared = ray.get(job)

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        from ray import cloudpickle

        items = map(cloudpickle.loads, batch["item"])
        return {"result": [cloudpickle.dumps(self.function(self.shared, item)) for item in items]}


def format_report(report: dict[str, Any]) -> str:
    """The table."""
    lines = [
        f"{'':16}{'pictures/s':>12}{'first after':>13}{'ahead':>7}{'process':>9}{'workers':>9}{'ray':>7}{'share':>8}"
    ]
    for name in ("process", "one_node", "two_nodes", "one_node_again", "ray_data"):
        if name in report:
            figures, spent = report[name], report[name]["processor_s"]
            lines.append(
                f"{name:16}{figures['rate']:>12}{figures['first_after_s']:>12}s{figures['groups_ahead']:>7}"
                f"{spent['process']:>8}s{spent['workers']:>8}s{spent['ray']:>6}s{figures['ray_share']:>8}{figures['busier_core_s']:>8}s"
            )
    ratios = [name for name in ("two_to_one", "two_to_one_by_processor", "ray_data_to_two") if name in report]
    return "\n".join([*lines, *(f"{name}: {report[name]}" for name in ratios)])


if __name__ == "__main__":
    sys.exit(main())
