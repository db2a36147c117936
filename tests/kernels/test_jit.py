"""Compiled = not compiled, and the cache on disk follows an edit of any kernel source."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wsabie
from candidate_problems import fast_pool, pooled
from passes import Outcome, fast_block, fast_owpc, fast_sequential
from strategies import (
    Problem,
    label_rows,
    make_problem,
    make_step_config,
    random_space,
    sparse_rows,
    weighted,
    with_sketches,
)
from wsabie.kernels.compiler import compute_sources_checksum
from wsabie.training.kernel_threads import KernelThreads
from wsabie.training.samplers import SamplerConfig, create_sampler

PACKAGE = Path(wsabie.__file__).parent


def run_python(script: str, *arguments: str, path: Path = PACKAGE.parent, **variables: str) -> str:
    """Standard output of a script in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(path), str(Path(__file__).parents[1])])}
    process = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env={**environment, **variables},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    return process.stdout


def small_problem(similarity: Any, *, dense: bool) -> Problem:
    """Twelve rows with every kind of pair; the same in every process."""
    rng = np.random.default_rng(4)
    X, Y = sparse_rows(12, 9, 0.4, rng), label_rows(12, 30, 0.1, 0.1, rng)
    space = random_space(9, 30, similarity, rng, biased=True)
    config = make_step_config(30, max_norm_rows=1.2, max_norm_labels=1.2, learning_rate_bias=0.1)
    return make_problem(space, X.toarray() if dense else X, Y, config)


def outcomes() -> dict[str, Outcome]:
    """Return the outcomes of both passes for each similarity, and for dense rows."""
    problems = {name: small_problem(name, dense=False) for name in ("dot", "euclidean", "cosine")}
    problems["dense"] = small_problem("dot", dense=True)
    problems["sketched"] = with_sketches(problems["dot"])[1]
    problems |= vary_problem(problems["dot"])
    results = {
        f"{name} {run.__name__}": run(problem)
        for name, problem in problems.items()
        for run in (fast_sequential, fast_block)
    }
    return results | {"exact ranks": fast_owpc(problems["dot"])} | with_pools()


def with_pools() -> dict[str, Outcome]:
    """Items among their like in one table, and dense items for free vectors, with drawn negatives and without."""
    results = {}
    for negatives in (0, 9):
        rng = np.random.default_rng(4)
        items, Y = sparse_rows(12, 9, 0.4, rng), label_rows(12, 12, 0.2, 0, rng)
        for name, queries, candidates in (("like", items, items), ("free", np.arange(12) % 5, items.toarray())):
            problem = pooled(queries, candidates, Y, "dot", rng, negatives, max_norm_rows=1.2)
            results[f"{name} {negatives}"] = fast_pool(problem).outcome
    return results


def vary_problem(problem: Problem) -> dict[str, Problem]:
    """The same rows with weights, other samplers and every variant of the step."""
    variants = {
        name: weighted(problem, with_embedding=name == "both", rng=np.random.default_rng(1))
        for name in ("weights", "both")
    }
    for name in ("frequency", "adaptive", "full-sort"):
        sampling = create_sampler(SamplerConfig(name), problem.space, np.arange(30), 1)  # type: ignore[arg-type]
        with KernelThreads(1) as threads:
            sampling.refresh(problem.space, threads)
        variants[name] = problem._replace(sampler=sampling.per_thread[0])
    decay = dict.fromkeys(("decay_rows", "decay_labels", "decay_weights"), np.float32(0.9))
    places = np.float32([0.3, 0.6, 1])
    variants["variants"] = problem._replace(
        config=problem.config._replace(logistic=True, rank_sample=7, order_statistic_cdf=places, **decay)
    )
    variants["counted"] = problem._replace(config=problem.config._replace(rank_sample=-1))
    return variants


PURE = """
import sys, numba, numpy as np
sys.path.insert(0, sys.argv[2])
from test_jit import outcomes
assert numba.config.DISABLE_JIT
with np.errstate(over="ignore"):
    found = outcomes()
arrays = {f"{name}/{field}": value for name, out in found.items() for field, value in out._asdict().items()}
np.savez(sys.argv[1], **{name: array for name, array in arrays.items() if array is not None})
"""


def test_compiled_and_interpreted_kernels_agree(tmp_path: Path) -> None:
    run_python(PURE, str(tmp_path / "pure.npz"), str(Path(__file__).parent), NUMBA_DISABLE_JIT="1")
    with np.load(tmp_path / "pure.npz") as pure:
        results = outcomes()
        assert {name.split("/")[0] for name in pure.files} == set(results)
        for name, out in results.items():
            np.testing.assert_array_equal(out.counters, pure[f"{name}/counters"])
            fields = [field for field, value in out._asdict().items() if value is not None]
            assert len(fields) >= 4
            for field in fields:
                np.testing.assert_allclose(getattr(out, field), pure[f"{name}/{field}"], rtol=1e-4, atol=1e-5)


ENCODE = """
import json, numpy as np
from wsabie.kernels.embedding.towers import DenseTower, encode_rows
tower = DenseTower(np.full((1, 16), 3, np.float32), np.ones((1, 1), np.float32))
out = np.zeros((1, 16), np.float32)
encode_rows(tower, 0, 1, out, (None,))
print(json.dumps({"value": float(out[0, 0]), "hits": sum(encode_rows.stats.cache_hits.values())}))
"""


def test_an_edited_leaf_is_seen_in_spite_of_the_cache(tmp_path: Path) -> None:
    """The entry point lies in another file than the leaf, which is all that numba itself looks at."""
    package = tmp_path / "wsabie"
    for part in ("__init__.py", "__init__.pyi", "core", "kernels"):
        source = PACKAGE / part
        if source.is_dir():
            shutil.copytree(source, package / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            package.mkdir(exist_ok=True)
            shutil.copy(source, package / part)
    environment = {"path": tmp_path, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}

    def encode() -> Any:
        return json.loads(run_python(ENCODE, **environment))  # type: ignore[arg-type]

    assert encode() == {"value": 3, "hits": 0}
    assert encode() == {"value": 3, "hits": 1}
    leaf = package / "kernels" / "simd" / "vector_registers.py"
    original = leaf.read_text()
    leaf.write_text(
        original.replace("builder.fadd(builder.fmul(a, b, flags=_FUSED), c", "builder.fsub(c, builder.fmul(a, b)")
    )
    assert leaf.read_text() != original
    assert encode() == {"value": -3, "hits": 0}
    leaf.write_text(original)
    assert encode() == {"value": 3, "hits": 1}
    assert len(list((tmp_path / "cache").rglob("*encode_rows*.nbi"))) == 2, "neither version reads the other's index"


@pytest.mark.parametrize("name", ["vectors.py", "training/warp.py", "training/sequential_loop.py"])
def test_checksum_covers_files_in_all_folders(tmp_path: Path, name: str) -> None:
    (tmp_path / "training").mkdir()
    for file in ("vectors.py", "training/warp.py"):
        (tmp_path / file).write_text("x = 1\n")
    checksum = compute_sources_checksum(tmp_path)
    assert compute_sources_checksum(tmp_path) == checksum
    (tmp_path / name).write_text("x = 2\n")
    assert compute_sources_checksum(tmp_path) != checksum


def test_checksum_sees_a_file_renamed(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    checksum = compute_sources_checksum(tmp_path)
    (tmp_path / "a.py").rename(tmp_path / "b.py")
    assert compute_sources_checksum(tmp_path) != checksum


COMPILE_AT_ONCE = """
import numpy as np
from wsabie.kernels.training.delta_compression import join_deltas
table, total = np.zeros((2, 3), np.float32), np.ones((2, 3), np.float32)
print("ready", flush=True)
input()
join_deltas(table, np.float32(1), total, np.ones(2, np.float32), np.zeros(3))
print(sum(join_deltas.stats.cache_misses.values()), float(table[0, 0]) > 0)
"""


def test_processes_that_need_a_kernel_at_once_compile_it_once(tmp_path: Path) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", COMPILE_AT_ONCE],
            env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    results = sorted(process.communicate(timeout=120)[0] for process in processes)
    assert results == ["0 True\n", "0 True\n", "1 True\n"]
