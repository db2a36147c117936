"""The container runs the service as the command line has it, and not as root; its RUN lines run in test_wheel.py."""

import json
import re
from pathlib import Path

from tests.project.test_docs import load_docs_module

from wsabie.server.launcher import ServiceOptions
from wsabie.server.routing import API

ROOT = Path(__file__).resolve().parents[2]
LINES = (ROOT / "Containerfile").read_text(encoding="utf-8").splitlines()


def instruction(name: str) -> str:
    [line] = [line for line in LINES if line.startswith(f"{name} ")]
    return line.partition(" ")[2]


def test_the_command_is_one_that_parses() -> None:
    assert json.loads(instruction("ENTRYPOINT")) == ["wsabie"]
    name, *arguments = json.loads(instruction("CMD"))
    options = load_docs_module("commands").commands()[name].make_context(name, arguments).params
    assert str(options["folder"]) == instruction("VOLUME")
    assert options["host"] == "0.0.0.0"  # noqa: S104 - the address inside the container
    assert options["tokens"] is not None


def test_the_health_check_asks_the_service() -> None:
    [address] = re.findall(r"urlopen\('([^']+)'\)", instruction("HEALTHCHECK"))
    assert address == f"http://127.0.0.1:{ServiceOptions('photos').port}{API}/health"
    assert instruction("EXPOSE") == str(ServiceOptions("photos").port)


def test_it_does_not_run_as_root() -> None:
    user, group = instruction("USER").split(":")
    assert int(user) > 999
    assert int(group) > 999


def test_compiled_kernels_lie_where_its_user_can_read_and_write() -> None:
    """numba takes a cache only from a folder that it can write, so one in site-packages would serve root alone."""
    [line] = [line for line in LINES if line.startswith("RUN ") and " demo " in line]
    assert 'NUMBA_CACHE_DIR="$PWD/cache" wsabie demo' in line
    assert line.endswith("chmod -R a+rwX cache")
    assert f"NUMBA_CACHE_DIR={instruction('WORKDIR')}/cache" in instruction("ENV").split()


def test_the_context_is_what_is_copied() -> None:
    assert instruction("COPY") == "dist dist"
    assert (ROOT / ".containerignore").read_text(encoding="utf-8") == "*\n!dist/*.whl\n"
