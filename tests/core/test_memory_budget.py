"""Shares of a budget: among threads, among processes, and when one of these is killed."""

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

from wsabie.core.memory_budget import VARIABLE, MemoryBudget, share_memory_budgets

HOLD = """
import sys
from wsabie.core.memory_budget import MemoryBudget
with MemoryBudget(lambda: 1000).share(int(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read(1)
"""


def holder(n_bytes):
    words = [sys.executable, "-c", HOLD, str(n_bytes)]
    child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout.readline() == b"held\n"
    return child


def test_threads_never_hold_more_than_the_limit():
    budget, most, lock = MemoryBudget(lambda: 100), 0, threading.Lock()

    def work(n_bytes):
        nonlocal most
        with budget.share(n_bytes), lock:
            most = max(most, budget.used)

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(work, [30, 50, 100, 7, 90] * 40))
    assert 0 < most <= 100
    assert budget.used == 0


def test_a_share_waits_for_another_process_and_for_no_dead_one():
    budget, is_done = MemoryBudget(lambda: 1000), threading.Event()
    with share_memory_budgets():
        child = holder(600)
        with budget.share(300):  # there is room for both
            pass

        def take():
            with budget.share(500):
                is_done.set()

        thread = threading.Thread(target=take)
        thread.start()
        assert not is_done.wait(0.3)
        os.kill(child.pid, signal.SIGKILL)
        thread.join(30)
        assert is_done.is_set()
        child.communicate()


def test_the_outer_file_is_shared():
    with share_memory_budgets(), MemoryBudget(lambda: 1000).share(1000):
        assert VARIABLE in os.environ
        with share_memory_budgets():  # the outer one goes on
            pass
        assert VARIABLE in os.environ
    assert VARIABLE not in os.environ
