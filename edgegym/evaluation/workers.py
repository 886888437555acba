"""Episodes played in spawned processes.

The workers never run the user's script again, as spawned processes otherwise do: ``compare`` works
without ``if __name__ == "__main__":``, in a notebook, and in code read from standard input.
"""

import multiprocessing
import os
import pickle
import pickletools
import signal
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from types import ModuleType
from typing import TYPE_CHECKING

from edgegym.evaluation.contestants import Contestant, world_of_contestant
from edgegym.evaluation.episode import Decider, Episode, play

if TYPE_CHECKING:
    from edgegym.envs.placement import PlacementEnv
    from edgegym.world.scenario import Scenario

_THREADS = ("MKL_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
_JOIN_S = 5.0


@dataclass(frozen=True)
class Job:
    """One episode to play."""

    label: str
    """Whose."""
    seed: int
    """Seed of the reset."""


class Stage:
    """Where episodes are played: an environment for each world, and the policies that have played.

    Parameters
    ----------
    scenario : Scenario
        The world.
    observe_clock : bool
        Whether the environment observes the clock.
    """

    def __init__(self, scenario: "Scenario", observe_clock: bool) -> None:
        self._scenario = scenario
        self._observe_clock = observe_clock
        self._envs: list[PlacementEnv] = []
        self._playing: dict[str, tuple[PlacementEnv, Decider]] = {}

    def play(self, job: Job, contestant: Contestant) -> Episode:
        """Play one episode; the contestant's policy is made once."""
        if job.label not in self._playing:
            env = self._env_of(world_of_contestant(contestant, self._scenario))
            self._playing[job.label] = (env, contestant.decider(env))
        return play(*self._playing[job.label], job.seed)

    def _env_of(self, scenario: "Scenario") -> "PlacementEnv":
        from edgegym.envs.placement import PlacementEnv

        for env in self._envs:
            if env.scenario == scenario:
                return env
        self._envs.append(PlacementEnv(scenario, observe_clock=self._observe_clock))
        return self._envs[-1]


def travels(contestant: Contestant) -> bytes | None:
    """Return a contestant as bytes that another process can read, or None if there are none.

    What the user's script or notebook defines does not travel: workers don't run it.
    """
    try:
        payload = pickle.dumps(contestant)
    except (AttributeError, TypeError, pickle.PicklingError):
        return None
    for _, argument, _ in pickletools.genops(payload):
        if isinstance(argument, str) and argument.split(" ")[0] == "__main__":
            return None
    return payload


def can_spawn() -> bool:
    """Return whether this process may start others (multiprocessing's daemons may not)."""
    return not multiprocessing.current_process().daemon


def play_in_workers(
    jobs: Sequence[Job],
    payloads: dict[str, bytes],
    scenario: "Scenario",
    observe_clock: bool,
    workers: int,
) -> Iterator[tuple[Job, Episode]]:
    """Play episodes in spawned processes and yield them as they end.

    Parameters
    ----------
    jobs : sequence of Job
        The episodes, started in this order.
    payloads : dict
        Contestants by label, as :func:`travels` gives them.
    scenario : Scenario
        The world.
    observe_clock : bool
        Whether the environments observe the clock.
    workers : int
        Number of processes.

    Yields
    ------
    Job, Episode
        In the order in which they end.

    Raises
    ------
    Exception
        What a worker raised, with its traceback as a note. All workers are stopped, as they are
        when the caller is interrupted or stops to iterate.
    RuntimeError
        If a worker dies.
    """
    queue = list(reversed(jobs))
    processes: list[BaseProcess] = []
    links: dict[Connection, int] = {}
    playing: dict[Connection, Job] = {}
    try:
        for _ in range(workers):
            process, link = _start(payloads, scenario, observe_clock)
            links[link] = len(processes)
            processes.append(process)
        for link in links:
            _next_job(link, queue, playing)
        while playing:
            for link in wait(list(playing)):
                assert isinstance(link, Connection)
                job = playing.pop(link)
                episode = _receive(link, job, processes[links[link]])
                _next_job(link, queue, playing)
                yield job, episode
    finally:
        for process in processes:
            process.terminate()
        for link in links:
            link.close()
        for process in processes:
            process.join(_JOIN_S)


def _next_job(link: Connection, queue: list[Job], playing: dict[Connection, Job]) -> None:
    if queue:
        playing[link] = queue.pop()
        try:
            link.send(playing[link])
        except BrokenPipeError:
            return  # the worker is dead: receiving from it will say so


def _receive(link: Connection, job: Job, process: BaseProcess) -> Episode:
    try:
        result = link.recv()
    except (EOFError, ConnectionResetError):
        process.join(_JOIN_S)
        raise RuntimeError(
            f"a worker process died (exit code {process.exitcode}) while '{job.label}' played "
            f"seed {job.seed}; a lack of memory is the usual reason: try fewer workers"
        ) from None
    if isinstance(result, Exception):
        raise result
    return result


def _start(
    payloads: dict[str, bytes], scenario: "Scenario", observe_clock: bool
) -> tuple[BaseProcess, Connection]:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(
        target=_work, args=(theirs, payloads, scenario, observe_clock), daemon=True
    )
    with _blank_main_module(), _one_thread_each(), _interrupts_held_back():
        process.start()
    theirs.close()
    return process, ours


@contextmanager
def _blank_main_module() -> Iterator[None]:
    """Hide the user's script from a process that starts, so that it is not run again there."""
    script = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = script


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Start processes whose linear algebra does not compete for the same cores."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Start processes that an interrupt of the terminal does not reach: their parent stops them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # when first started it lets interrupts through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _ignore_interrupts() -> None:
    """Take over from the hold of :func:`_interrupts_held_back`."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _work(
    link: Connection, payloads: dict[str, bytes], scenario: "Scenario", observe_clock: bool
) -> None:
    """Play what the parent asks for until it hangs up."""
    _ignore_interrupts()
    stage: Stage | None = None
    contestants: dict[str, Contestant] = {}
    while True:
        try:
            job: Job = link.recv()
        except EOFError:
            return
        try:
            if stage is None:
                stage = Stage(scenario, observe_clock)
            if job.label not in contestants:
                contestants[job.label] = pickle.loads(payloads[job.label])
            result: Episode | Exception = stage.play(job, contestants[job.label])
        except Exception as error:  # whatever a user's policy raises belongs to the parent
            result = _portable(error, job)
        link.send(result)


def _portable(error: Exception, job: Job) -> Exception:
    """Return the error with its traceback as a note, in a form that can be sent."""
    text = "".join(traceback.format_exception(error))
    try:
        copy = pickle.loads(pickle.dumps(error))
    except Exception:  # users' exceptions may refuse in any way
        copy = RuntimeError(f"{type(error).__name__}: {error}")
    copy.add_note(f"in a worker process, while '{job.label}' played seed {job.seed}:\n{text}")
    return copy
