"""The scenario: one frozen, validated description of a world."""

import json
import math
import os
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import yaml
from numpy.typing import NDArray
from pydantic import Field, ValidationError, ValidationInfo, field_validator, model_validator

from edgegym.files import write_text
from edgegym.world.block import Block, CountOrZero
from edgegym.world.catalogue import Catalogue, Profile, RequestType, family_names
from edgegym.world.checks import check_scenario
from edgegym.world.classes import mean_slots, sequence_bytes
from edgegym.world.demand import Demand
from edgegym.world.errors import ScenarioError, scenario_error
from edgegym.world.features import full_features
from edgegym.world.forest import Forest, Vertex
from edgegym.world.hardware import Hardware, prefill_s
from edgegym.world.nodes import NodeClass, Nodes
from edgegym.world.operations import (
    Control,
    Initial,
    Migration,
    Objective,
    Radio,
    Region,
    Telemetry,
)
from edgegym.world.overrides import apply_overrides
from edgegym.world.paths import with_absolute_paths, with_relative_paths
from edgegym.world.routing import Admission, Failures, LoadAwareRouting, Origin, Routing
from edgegym.world.serving import Cache, ProfileCache, Service
from edgegym.world.transport import Backhaul, Fetch
from edgegym.world.yaml import load_yaml

if TYPE_CHECKING:
    from edgegym.world.compiled import World
    from edgegym.world.network import TieredNetwork


class Scenario(Block):
    """One world: where nodes and requests are, what is reusable, what an agent may do.

    Immutable; derived values (hit depths, slots, densities) are computed, never stored. Lossless to
    and from YAML and JSON.

    Raises
    ------
    ScenarioError
        If a field is missing, unknown or out of range, or fields contradict each other. The message
        names the dotted path, the value and the rule.
    """

    name: str = Field(min_length=1)
    """Short name, used in tables and manifests."""
    description: str = ""
    """Why this world exists."""
    region: Region
    """The area."""
    nodes: Nodes
    """The edge nodes."""
    forest: tuple[Vertex, ...] = ()
    """Vertices of the prefix forest."""
    request_types: tuple[RequestType, ...] = Field(min_length=1)
    """What is asked."""
    profiles: tuple[Profile, ...] = Field(min_length=1)
    """What a node can hold."""
    hardware: Hardware
    """Every node's GPU, or that of the classes of nodes that do not state theirs. Its
    ``kv_bytes_per_token`` and ``block_tokens`` give vertices their default bytes on all classes."""
    radio: Radio
    """Radio latency."""
    demand: Demand
    """Arrivals in space and time."""
    routing: Routing = LoadAwareRouting()
    """How a request finds its node."""
    telemetry: Telemetry = Telemetry()
    """What the router knows of the load."""
    admission: Admission | None = None
    """When nodes take no more requests; by default never."""
    migration: Migration
    """The budget of moves."""
    backhaul: Backhaul
    """The link that carries them."""
    fetch: Fetch = Fetch()
    """Whether requests fetch missing prefixes over it."""
    service: Service
    """The law of service times."""
    cache: Cache = ProfileCache()
    """What nodes keep in memory."""
    origin: Origin | None = None
    """A distant data centre, one more candidate for every request."""
    failures: Failures | None = None
    """What fails and recovers."""
    initial: Initial
    """Start of an episode."""
    control: Control = Control()
    """Epochs."""
    objective: Objective
    """Reward and target."""
    evaluation_seeds: tuple[CountOrZero, ...] = tuple(range(10000, 10020))
    """Seeds kept for evaluation; training refuses them."""

    def __init__(self, **document: Any) -> None:
        try:
            super().__init__(**document)
        except ValidationError as error:
            raise scenario_error(error, document) from None

    @field_validator("request_types", "profiles")
    @classmethod
    def _unique_names(cls, items: tuple[Any, ...], info: ValidationInfo) -> tuple[Any, ...]:
        seen: set[str] = set()
        for item in items:
            if item.name in seen:
                raise ValueError(f"name '{item.name}' stands twice; names are unique")
            seen.add(item.name)
        return items

    @field_validator("evaluation_seeds")
    @classmethod
    def _distinct_seeds(cls, seeds: tuple[int, ...]) -> tuple[int, ...]:
        if not seeds or len(set(seeds)) < len(seeds):
            raise ValueError(f"got {list(seeds)}: give at least one seed, and each once")
        return seeds

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        check_scenario(self)
        return self

    # Names and sizes

    @property
    def profile_names(self) -> tuple[str, ...]:
        """Names of the S profiles."""
        return tuple(profile.name for profile in self.profiles)

    @property
    def type_names(self) -> tuple[str, ...]:
        """Names of the Q request types."""
        return tuple(item.name for item in self.request_types)

    @cached_property
    def family_names(self) -> tuple[str, ...]:
        """Names of the F families, in order of first appearance."""
        return family_names(self.request_types)

    @cached_property
    def catalogue(self) -> Catalogue:
        """Hit depths, bytes and holdings of the profiles."""
        gpu = self.hardware
        forest = Forest(self.forest, gpu.kv_bytes_per_token, gpu.block_tokens)
        changes = self.failures is not None or any(v.lifetime_s is not None for v in self.forest)
        return Catalogue(forest, self.request_types, self.profiles, changes)

    @cached_property
    def node_classes(self) -> tuple[NodeClass, ...]:
        """The C classes of nodes, each with its GPU unless it has none; one without classes."""
        if not self.nodes.classes:
            return (NodeClass(name="node", share=1.0, hardware=self.hardware),)
        return tuple(
            item.model_copy(update={"hardware": self.hardware})
            if item.gpu and item.hardware is None
            else item
            for item in self.nodes.classes
        )

    @cached_property
    def runtime_bytes_per_sequence(self) -> int:
        """Memory of one running sequence on ``hardware``, bytes (m_run)."""
        return sequence_bytes(self, self.hardware)

    @cached_property
    def state_bytes(self) -> tuple[int, ...]:
        """Bytes of persistent state of each profile, ``[S]`` (eq. 4)."""
        return tuple(int(size) for size in self.catalogue.holding_bytes[: len(self.profiles)])

    @cached_property
    def concurrency(self) -> tuple[int, ...]:
        """Sequences that run at once beside each profile, ``[S]`` (eq. 12).

        In a mixed fleet the mean over the nodes that the profile fits, rounded down.
        """
        return mean_slots(self)

    @cached_property
    def needs_full(self) -> bool:
        """Whether it takes the full event loop, see :mod:`edgegym.world.features`."""
        return bool(full_features(self))

    # Fleet and demand

    @property
    def mean_nodes(self) -> float:
        """Expected number of nodes."""
        fixed = self.nodes.fixed_count(self.region.area_km2)
        if fixed is not None:
            return float(fixed)
        assert self.nodes.density_per_km2 is not None
        return self.nodes.density_per_km2 * self.region.area_km2

    @property
    def density_per_km2(self) -> float:
        """Expected nodes per km²."""
        return self.mean_nodes / self.region.area_km2

    @cached_property
    def max_nodes(self) -> int:
        """Most nodes that an episode can have; array axes have this length."""
        fixed = self.nodes.fixed_count(self.region.area_km2)
        if fixed is not None:
            return fixed
        if self.nodes.max_count is not None:
            return self.nodes.max_count
        from scipy.special import pdtrik

        return max(1, math.ceil(float(pdtrik(0.9999, self.mean_nodes))))

    @property
    def fleet_memory_bytes(self) -> float:
        """Mean memory of all nodes together for state and running sequences, bytes."""
        gpus = [(item.share, item.hardware) for item in self.node_classes]
        return self.mean_nodes * sum(share * gpu.usable_bytes for share, gpu in gpus if gpu)

    @property
    def request_intensity(self) -> float:
        """Base requests per second and km², before modulations (Λ)."""
        if self.demand.request_intensity is not None:
            return self.demand.request_intensity
        assert self.demand.rate_per_node is not None
        return self.demand.rate_per_node * self.density_per_km2

    @cached_property
    def initial_mix(self) -> NDArray[np.float64]:
        """Share of nodes that start with each profile, ``[S]``, adds up to 1."""
        shares = np.array([self.initial.mix.get(name, 0.0) for name in self.profile_names])
        return shares / shares.sum()

    @cached_property
    def ttft_target_s(self) -> NDArray[np.float64]:
        """TTFT target of each request type, seconds ``[Q]``."""
        default = self.objective.ttft_target_s
        return np.array([item.ttft_target_s or default for item in self.request_types])

    def prefill_s(self, hit_tokens: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the prefill time of each request type given its hit, seconds ``[..., Q]``."""
        lengths = np.array([item.input_tokens for item in self.request_types], dtype=np.float64)
        return prefill_s(self.hardware.prefill, lengths, hit_tokens)

    @cached_property
    def decode_occupancy_s(self) -> NDArray[np.float64]:
        """Decode occupancy of each request type, seconds ``[Q]``."""
        outputs = np.array([item.output_tokens for item in self.request_types], dtype=np.float64)
        return self.hardware.decode.seconds(outputs)

    def compile(self) -> "World":
        """Return the scenario as plain arrays for compiled kernels (cached)."""
        return self._compiled

    @cached_property
    def _compiled(self) -> "World":
        from edgegym.world.compiled import compile_world

        return compile_world(self)

    def tiered_network(self) -> "TieredNetwork":
        """Return the analytic network of the scenario's long-run means.

        The mix is ``initial.mix``; popularity, load and flash crowds enter with their averages over
        time, places with their average over the region. A mixed fleet enters, as an approximation,
        with the mean figures of the nodes that each profile fits; nodes without GPU thin the
        density.
        """
        from edgegym.world.tiers import network_of

        return network_of(self)

    # Files

    def document(self) -> dict[str, Any]:
        """Return the scenario as plain mappings, lists and numbers."""
        return self.model_dump(mode="json", exclude_none=True)

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Write the scenario as JSON, whole or not at all."""
        document = with_relative_paths(self.document(), Path(path).parent)
        write_text(path, json.dumps(document, indent=2) + "\n")

    def to_yaml(self, path: str | os.PathLike[str]) -> None:
        """Write the scenario as YAML, whole or not at all."""
        document = with_relative_paths(self.document(), Path(path).parent)
        write_text(path, yaml.safe_dump(document, sort_keys=False, allow_unicode=True))

    @classmethod
    def from_json(cls, path: str | os.PathLike[str]) -> "Scenario":
        """Read a scenario from a JSON file; errors name the file and the field."""
        return cls._from_text(path, json.loads, json.JSONDecodeError)

    @classmethod
    def from_yaml(cls, path: str | os.PathLike[str]) -> "Scenario":
        """Read a scenario from a YAML file; errors name the file and the field."""
        return cls._from_text(path, load_yaml, yaml.YAMLError)

    @classmethod
    def _from_text(cls, path: Any, parse: Any, parse_error: type[Exception]) -> "Scenario":
        try:
            text = Path(path).read_text(encoding="utf-8")
        except OSError as error:
            raise ScenarioError(f"scenario file {path}: {error.strerror}") from None
        except UnicodeDecodeError as error:
            raise ScenarioError(f"scenario file {path}: not UTF-8 text ({error.reason})") from None
        try:
            document = parse(text)
        except parse_error as error:
            raise ScenarioError(f"scenario file {path}: {error}") from None
        except RecursionError:
            raise ScenarioError(f"scenario file {path}: nested too deep") from None
        if isinstance(document, dict):
            document = with_absolute_paths(document, Path(path).parent)
        return cls.from_document(document, source=f"scenario file {path}")

    @classmethod
    def from_document(cls, document: Any, source: str = "scenario") -> "Scenario":
        """Build a scenario from plain mappings; ``source`` begins the error messages."""
        if not isinstance(document, dict):
            raise ScenarioError(f"{source}: must be a mapping, got {type(document).__name__}")
        strange = [key for key in document if not isinstance(key, str)]
        if strange:
            raise ScenarioError(f"{source}: key {strange[0]!r} is not text")
        if "scenarios" in document:
            raise ScenarioError(
                f"{source}: has 'scenarios', so it is a draw of several, which environments take "
                "from a YAML file; here one scenario is needed"
            )
        try:
            return cls(**document)
        except ScenarioError as error:
            raise ScenarioError(f"{source}: {error}") from None

    def with_overrides(self, overrides: dict[str, Any]) -> "Scenario":
        """Return a copy with some fields changed.

        Parameters
        ----------
        overrides : dict
            Dotted path to value, such as ``{"demand.rate_per_node": 4.0}``. Items of lists are
            addressed by name: ``profiles.deep_1.vertices``.

        Raises
        ------
        ScenarioError
            If a path does not exist or the result is not a valid scenario.
        """
        if overrides == {}:
            return self
        document = self.document()
        absent = [name for name in Scenario.model_fields if name not in document]
        return Scenario(**apply_overrides(document, overrides, absent))

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """Return the JSON schema of scenario documents."""
        return cls.model_json_schema()
