"""The same queue in other simulators: M/M/9, one node with nine slots.

ciw and SimPy are general tools that edgegym does not need: the extra ``bench`` installs them.
"""

import heapq
import random
import statistics
import time
from collections import deque
from collections.abc import Callable
from importlib.util import find_spec

SLOTS = 9


def mmc_with_heap(arrival_rate: float, service_rate: float, requests: int, seed: int) -> float:
    """Simulate M/M/9 with a heap of events in plain Python.

    Parameters
    ----------
    arrival_rate, service_rate : float
        Requests per second that come, and that one slot serves.
    requests : int
        How many are served.
    seed : int
        Seed of the random numbers.

    Returns
    -------
    float
        Mean wait in seconds.
    """
    rng = random.Random(seed)
    events = [(rng.expovariate(arrival_rate), True)]
    queue: deque[float] = deque()
    busy, begun, waited_s = 0, 0, 0.0
    while begun < requests:
        now, arrives = heapq.heappop(events)
        if arrives:
            queue.append(now)
            heapq.heappush(events, (now + rng.expovariate(arrival_rate), True))
        else:
            busy -= 1
        if queue and busy < SLOTS:
            busy, begun = busy + 1, begun + 1
            waited_s += now - queue.popleft()
            heapq.heappush(events, (now + rng.expovariate(service_rate), False))
    return waited_s / requests


def mmc_with_simpy(arrival_rate: float, service_rate: float, requests: int, seed: int) -> float:
    """Simulate M/M/9 with SimPy; arguments and result as of :func:`mmc_with_heap`."""
    import simpy  # pyright: ignore[reportMissingImports]

    rng = random.Random(seed)
    environment = simpy.Environment()
    slots = simpy.Resource(environment, capacity=SLOTS)
    waits_s: list[float] = []
    finished = environment.event()

    def serve():
        arrived = environment.now
        with slots.request() as slot:
            yield slot
            waits_s.append(environment.now - arrived)
            if len(waits_s) == requests:
                finished.succeed()
            yield environment.timeout(rng.expovariate(service_rate))

    def arrive():
        while True:
            yield environment.timeout(rng.expovariate(arrival_rate))
            environment.process(serve())

    environment.process(arrive())
    environment.run(until=finished)
    return statistics.fmean(waits_s)


def mmc_with_ciw(arrival_rate: float, service_rate: float, requests: int, seed: int) -> float:
    """Simulate M/M/9 with ciw; arguments and result as of :func:`mmc_with_heap`."""
    import ciw  # pyright: ignore[reportMissingImports]
    from ciw.dists import Exponential  # pyright: ignore[reportMissingImports]

    network = ciw.create_network(
        arrival_distributions=[Exponential(rate=arrival_rate)],
        service_distributions=[Exponential(rate=service_rate)],
        number_of_servers=[SLOTS],
    )
    ciw.seed(seed)
    simulation = ciw.Simulation(network)
    simulation.simulate_until_max_customers(requests, method="Finish")
    return statistics.fmean(record.waiting_time for record in simulation.get_all_records())


_SIMULATE: dict[str, Callable[[float, float, int, int], float]] = {
    "ciw": mmc_with_ciw,
    "simpy": mmc_with_simpy,
    "plain Python": mmc_with_heap,
}


def peer_requests_per_s(
    arrival_rate: float, service_rate: float, requests: int, repeats: int
) -> dict[str, float | None]:
    """Measure the other simulators.

    Parameters
    ----------
    arrival_rate, service_rate : float
        Requests per second that come, and that one slot serves.
    requests, repeats : int
        Requests of a run, and how many runs of each.

    Returns
    -------
    dict
        Median requests per second by name; None where the simulator is not installed.
    """
    rates: dict[str, float | None] = {}
    for name, simulate in _SIMULATE.items():
        if name != "plain Python" and find_spec(name) is None:
            rates[name] = None
            continue
        seconds = []
        for seed in range(repeats):
            begin = time.perf_counter()
            simulate(arrival_rate, service_rate, requests, seed)
            seconds.append(time.perf_counter() - begin)
        rates[name] = requests / statistics.median(seconds)
    return rates
