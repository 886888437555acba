"""Tiny training runs on the two-node world."""

import io
import os
import signal
import threading
import time
from contextlib import contextmanager

import pytest
import torch
from rich.console import Console

from agents.config import TrainingConfig

TINY = """\
scenario: toy
hyperparameters: {n_steps: 20, batch_size: 20, n_epochs: 2, width: 8}
num_envs: 2
total_steps: 200
seed: 7
"""


@pytest.fixture(autouse=True)
def threads_are_restored():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture
def config_file(tmp_path):
    path = tmp_path / "tiny.yaml"
    path.write_text(TINY)
    return path


@pytest.fixture
def config(config_file):
    return TrainingConfig.from_yaml(config_file)


@pytest.fixture
def console():
    """A console that is no terminal, and remembers."""
    return Console(file=io.StringIO(), highlight=False, width=200)


@contextmanager
def ctrl_c_when(condition):
    """Send this process SIGINT, once, as soon as a condition holds."""
    over = threading.Event()

    def watch():
        while not over.is_set():
            if condition():
                os.kill(os.getpid(), signal.SIGINT)
                return
            time.sleep(0.01)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


@pytest.fixture(name="ctrl_c_when")
def ctrl_c_when_fixture():
    return ctrl_c_when
