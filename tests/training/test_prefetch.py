"""Reading ahead: two items at most, errors come through, threads end."""

import threading
import time
from collections.abc import Iterator

import pytest

from wsabie.training.prefetch import prefetch


def test_two_items_are_there_and_no_more() -> None:
    alive, most = set(), 0

    class Block:
        def __init__(self, number: int) -> None:
            nonlocal most
            alive.add(number)
            most = max(most, len(alive))
            self.number = number

        def __del__(self) -> None:
            alive.discard(self.number)

    for block in prefetch(Block(i) for i in range(9)):
        time.sleep(0.002)
        assert block.number in alive
    assert most == 2


def test_the_next_item_is_made_meanwhile() -> None:
    thread_ids: list[int] = []

    def items() -> Iterator[int]:
        for i in range(3):
            thread_ids.append(threading.get_ident())
            yield i

    for i in prefetch(items()):
        deadline = time.monotonic() + 5
        while len(thread_ids) < min(i + 2, 3) and time.monotonic() < deadline:
            time.sleep(0.001)
        assert len(thread_ids) == min(i + 2, 3)
    assert threading.get_ident() not in thread_ids


def test_an_error_comes_through_and_the_thread_ends() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise OSError("disk")

    n_threads = threading.active_count()
    with pytest.raises(OSError, match="disk"):
        list(prefetch(items()))
    assert threading.active_count() == n_threads
    for _ in prefetch(iter(range(100))):
        break
    deadline = time.monotonic() + 5
    while threading.active_count() > n_threads and time.monotonic() < deadline:
        time.sleep(0.001)
    assert threading.active_count() == n_threads
