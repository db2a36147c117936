"""Errors where there is no cluster."""

import re
import socket
import sys

import pytest

from wsabie.core.errors import InputError
from wsabie.distributed import ray_cluster as module
from wsabie.distributed.ray_cluster import connect, disconnect

ray = pytest.importorskip("ray", reason="ray is needed for work on many machines (extra wsabie[ray])")


@pytest.fixture(autouse=True)
def without_connection(monkeypatch):
    """Simulate a process that is connected to nothing."""
    monkeypatch.setattr(module, "_address", None)
    monkeypatch.setattr(ray, "is_initialized", lambda: False)


@pytest.mark.parametrize("address", ["", "here", "host:", ":1", "host:x", "host:70000", "ray://host:1", "auto"])
def test_invalid_address_is_refused(address):
    with pytest.raises(
        InputError, match=re.escape(f"`ray={address!r}` is not the address of a Ray cluster; give HOST:PORT")
    ):
        connect(address)


def test_unreachable_cluster_is_reported_at_once():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))  # and does not listen
        port = listener.getsockname()[1]
        with pytest.raises(InputError, match=rf"no Ray cluster can be reached at 127.0.0.1:{port} .*ray start --head"):
            connect(f"127.0.0.1:{port}")
    disconnect()  # nothing


def test_something_else_that_listens_is_no_cluster(monkeypatch):
    monkeypatch.setattr(module, "HANDSHAKE_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as listener, pytest.raises(InputError, match="is not a Ray cluster"):
        connect(f"127.0.0.1:{listener.getsockname()[1]}")


def test_a_cluster_that_wants_a_token_says_so(monkeypatch):
    def refuse(address: str) -> None:
        raise ray.exceptions.AuthenticationError("InvalidAuthToken")

    monkeypatch.setattr(ray._raylet, "GcsClient", refuse)
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        pytest.raises(InputError, match="export RAY_AUTH_MODE=token"),
    ):
        connect(f"127.0.0.1:{listener.getsockname()[1]}")


def test_without_ray_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r"cannot be imported here .*; run: pip install 'wsabie\[ray\]'"):
        connect("local")
