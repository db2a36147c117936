"""Photos a second of the packaged network beside ONNX Runtime alone: `python -m benchmarks.encoder_rate`.

Both run the network on all cores: ONNX Runtime on batches of prepared pictures, with a thread a core; the extractor
from file to row, with a process a core. Segments of both alternate, so that other work on the machine meets both alike,
and the ratio is the median over rounds. Pictures of 256 x 256 as BMP, whose decoding is nearly free, show what the
extractor adds to the network. `--batches` compares batches in a session of one thread, as a process of the extractor
has it, and stops. Photos of 12 megapixels show it with decoding, beside 1 / (seconds of decoding a photo on
all cores + seconds of the network). Memory is the proportional set size of all processes.
"""

import argparse
import io
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from benchmarks.machine import describe_machine, verdict
from wsabie.core.execution import ProcessExecutor
from wsabie.core.machine import count_available_cores
from wsabie.features.extractor_registry import create_extractor
from wsabie.features.extractors.onnx_encoders import MAX_ENLARGEMENT, find_network
from wsabie.features.images.image_decoder import decode_image
from wsabie.io.records import Item, ItemList

SIDE, BATCH = 224, 16
N_FILES, MANY = 40, 50_000
CORES = count_available_cores()


def make_pictures(width: int, height: int, form: str) -> list[bytes]:
    """Return random pictures with some noise, as files."""
    draw, contents = np.random.default_rng(0), []
    for _ in range(N_FILES):
        small = Image.fromarray(draw.integers(0, 256, (height // 32, width // 32, 3), np.uint8))
        file = io.BytesIO()
        pixels = np.asarray(small.resize((width, height), Image.Resampling.BICUBIC)).astype(np.int16)
        pixels += draw.integers(-8, 9, pixels.shape, np.int16)
        Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(file, form, quality=90)
        contents.append(file.getvalue())
    return contents


def run_network(batch: int, threads: int = CORES) -> Iterator[int]:
    """Yield 1 for each picture that ONNX Runtime has run the network on, without end."""
    from onnxruntime import InferenceSession, SessionOptions

    options = SessionOptions()
    options.intra_op_num_threads = threads
    session = InferenceSession(find_network(), options, providers=["CPUExecutionProvider"])
    pictures = np.random.default_rng(0).normal(size=(batch, 3, SIDE, SIDE)).astype(np.float32)
    while True:
        session.run(["features"], {"pictures": pictures})
        yield from [1] * batch


def extract_rows(files: list[Any], n_rows: int = MANY) -> Iterator[int]:
    """Yield 1 for each row of the extractor; files are taken in turn."""
    encoder = create_extractor("lite0")
    items = ItemList(Path(), [Item(str(number), files[number % len(files)], ()) for number in range(n_rows)])
    return (1 for _ in encoder.iterate(items, executor=ProcessExecutor(CORES, local_seconds=0)))


def decode(size: int, content: Path) -> int:
    """Decode a picture as the extractor does; return its bytes."""
    return decode_image(content, size=size).nbytes


def decode_files(files: list[Any]) -> Iterator[int]:
    """Yield 1 for each photo that is decoded on all cores."""
    executor = ProcessExecutor(CORES, local_seconds=0)
    photos = (files[number % len(files)] for number in range(MANY))
    return (1 for _ in executor.map_with(decode, MAX_ENLARGEMENT * SIDE, photos))


def measure_rounds(streams: dict[str, Iterator[int]], n_rounds: int, seconds: float) -> list[dict[str, float]]:
    """Return photos a second of each stream in each round; what it has made while others ran does not count."""
    rounds = []
    for _ in range(n_rounds):
        rates = {}
        for name, stream in streams.items():
            sum(islice(stream, 3 * BATCH * CORES))
            start, n_photos = time.perf_counter(), 0
            while time.perf_counter() < start + seconds:
                n_photos += sum(islice(stream, BATCH))
            rates[name] = n_photos / (time.perf_counter() - start)
            time.sleep(1)  # until the batches in flight are done
        rounds.append(rates)
    return rounds


def show_ratio(
    title: str, rounds: list[dict[str, float]], bound: Callable[[dict[str, float]], float], bar: float
) -> None:
    """Print median rates, and the ratio of the extractor to a bound that the other rates of its round give."""
    medians = {name: statistics.median(rates[name] for rates in rounds) for name in rounds[0]}
    ratios = sorted(rates["extractor"] / bound(rates) for rates in rounds)
    figures = ", ".join(f"{name} {rate:.1f}" for name, rate in medians.items())
    ratio = statistics.median(ratios)
    spread = f"{ratios[0]:.2f} to {ratios[-1]:.2f}"
    print(f"{title}: photos/s of {figures}; ratio {ratio:.2f} ({spread}), {verdict(ratio, least=bar)}", flush=True)


def read_tree_bytes() -> int:
    """Return the proportional set size of this process and those below it."""
    parents: dict[str, str] = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[file.parent.name] = file.read_text().rpartition(")")[2].split()[1]
        except OSError:
            continue
    tree = {str(os.getpid())}
    while more := {child for child, parent in parents.items() if parent in tree} - tree:
        tree |= more
    total = 0
    for process in tree:
        try:
            lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))
    return total


def measure_memory(files: list[Any], n_photos: int) -> None:
    """Print the seconds and the highest memory of an extraction."""
    peak, done = [0], threading.Event()

    def watch() -> None:
        while not done.wait(0.5):
            peak[0] = max(peak[0], read_tree_bytes())

    thread, start = threading.Thread(target=watch), time.perf_counter()
    thread.start()
    n_rows = sum(extract_rows(files, n_photos))
    done.set()
    thread.join()
    gigabytes = peak[0] / 1e9
    seconds = time.perf_counter() - start
    print(f"{n_rows:,} photos of 12 megapixels: {seconds:.0f} s, {gigabytes:.2f} GB, {verdict(gigabytes, most=1.5)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=BATCH, help="pictures that ONNX Runtime alone takes at once")
    parser.add_argument("--batches", type=int, nargs="+", help="sizes to compare in a session of one thread")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=4, help="of a segment")
    parser.add_argument("--photos", type=int, default=1000, help="of 12 megapixels, whose memory is measured")
    options = parser.parse_args()
    print(describe_machine(), flush=True)
    if options.batches:
        streams = {f"batches of {batch}": run_network(batch, 1) for batch in options.batches}
        rounds = measure_rounds(streams, options.rounds, options.seconds)
        for name in streams:
            rates = sorted(rates[name] for rates in rounds)
            print(f"{name}: {statistics.median(rates):.0f} photos/s ({rates[0]:.0f} to {rates[-1]:.0f})")
        return
    small = make_pictures(256, 256, "BMP")
    streams = {"ONNX Runtime": run_network(options.batch), "extractor": extract_rows(small)}
    rounds = measure_rounds(streams, options.rounds, options.seconds)
    show_ratio("small pictures", rounds, lambda rates: rates["ONNX Runtime"], 0.85)
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"{number}.jpg" for number in range(N_FILES)]
        for file, content in zip(files, make_pictures(4000, 3000, "JPEG"), strict=True):
            file.write_bytes(content)
        streams["decoding"] = decode_files(files)
        streams["extractor"] = extract_rows(files)
        rounds = measure_rounds(streams, options.rounds, options.seconds)
        show_ratio("12 megapixels", rounds, lambda rates: 1 / (1 / rates["decoding"] + 1 / rates["ONNX Runtime"]), 0.75)
        del streams
        measure_memory(files, options.photos)


if __name__ == "__main__":
    main()
