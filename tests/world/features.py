"""Random scenario documents that use what only the full event loop knows."""

from typing import Any

from hypothesis import strategies as st

from tests.world.documents import documents


def _seconds() -> st.SearchStrategy[float]:
    return st.floats(1e-3, 1e3)


def _spell() -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({"mean_up_s": _seconds(), "mean_down_s": _seconds()})


def _threshold() -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {"close_above": st.floats(1, 2), "reopen_below": st.floats(0.1, 1)}
    )


_ROUTING = st.one_of(
    st.fixed_dictionaries(
        {
            "kind": st.sampled_from(
                ["least_loaded", "power_of_two", "lmetric", "preble", "session_affinity"]
            )
        },
        optional={"candidates_per_profile": st.integers(1, 5)},
    ),
    st.fixed_dictionaries({"kind": st.just("kv_router"), "temperature": st.floats(0, 1)}),
    st.fixed_dictionaries({"kind": st.just("mooncake"), "transfer_ratio": st.floats(1, 2)}),
    st.fixed_dictionaries({"kind": st.just("cache_aware"), "match_share": st.floats(0, 1)}),
    st.fixed_dictionaries(
        {
            "kind": st.just("load_aware"),
            "margin": st.fixed_dictionaries({}, optional={"deviations": st.floats(0, 3)}),
        }
    ),
)
_ADMISSION = st.fixed_dictionaries(
    {"node": _threshold()},
    optional={
        "tier": _threshold(),
        "redirect": st.booleans(),
        "spill": st.sampled_from(["next_best", "origin", "reject"]),
    },
)
_BACKHAUL = st.fixed_dictionaries(
    {"rate_bytes_per_s": st.floats(1, 1e12), "sharing": st.just("shared")},
    optional={
        "access_bytes_per_s": st.floats(1, 1e12),
        "compression": st.floats(1, 4),
        "restore_bytes_per_s": st.floats(1, 1e12),
    },
)
_ORIGIN = st.fixed_dictionaries(
    {
        "rtt_s": st.floats(0.001, 1),
        "slots": st.integers(1, 100),
        "prefill_linear_s": st.floats(1e-6, 1e-3),
        "tpot_s": st.floats(0.001, 0.1),
    },
    optional={"affinity": st.floats(0, 1), "output_cap_tokens": st.integers(1, 10**6)},
)
_OUTAGE = st.fixed_dictionaries(
    {"begin_s": st.floats(0, 9), "end_s": st.floats(10, 20)}
    | {"what": st.just("node"), "node": st.integers(0, 2)}
)
_FAILURES = st.fixed_dictionaries(
    {"outages": st.lists(_OUTAGE, max_size=2)},
    optional={"nodes": _spell(), "backhaul": _spell(), "origin": _spell()},
)


@st.composite
def _classes(draw: st.DrawFn, hardware: dict[str, Any], tags: list[str]) -> list[dict[str, Any]]:
    """One class that serves everything, and up to two others."""
    weights = draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
    classes = [
        {"name": f"c{n}", "share": weight / sum(weights)} for n, weight in enumerate(weights)
    ]
    for item in classes[1:]:
        kind = draw(st.sampled_from(["same", "own", "mast"]))
        if kind == "mast":
            item["gpu"] = False
            continue
        if kind == "own":
            memory = draw(st.integers(10**13, 10**16))
            item["hardware"] = hardware | {"memory_bytes": memory}
        if draw(st.booleans()):
            item["offers"] = draw(st.lists(st.sampled_from(tags), unique=True))
    return classes


@st.composite
def _nodes(draw: st.DrawFn, height_km: float) -> dict[str, Any]:
    place = st.tuples(st.floats(0, 10), st.floats(0, height_km))
    layout = st.one_of(
        st.fixed_dictionaries({"kind": st.just("lattice"), "jitter": st.floats(0, 1)}),
        st.fixed_dictionaries(
            {"kind": st.just("matern"), "min_distance_km": st.floats(1e-3, 0.25 * height_km**0.5)}
        ).filter(lambda item: item["min_distance_km"] <= height_km / 2),
    )
    return draw(
        st.one_of(
            st.fixed_dictionaries(
                {"coordinates_km": st.lists(place.map(list), min_size=3, max_size=9)}
            ),
            st.fixed_dictionaries({"count": st.just(4), "layout": layout}),
            st.fixed_dictionaries({"density_per_km2": st.just(0.75), "layout": layout}),
        )
    )


@st.composite
def full_documents(draw: st.DrawFn) -> dict[str, Any]:
    """Random valid documents with some of the blocks of the full event loop."""
    document = draw(documents())
    height_km, hardware = document["region"]["height_km"], document["hardware"]
    if 0.75 * 10 * height_km >= 3 and draw(st.booleans()):
        document["nodes"] = draw(_nodes(height_km))
    elif 0.75 * 10 * height_km < 3:
        document["nodes"] = {"count": 7}
    document["nodes"]["classes"] = draw(_classes(hardware, ["a", "b"]))
    document["nodes"]["clustering"] = draw(st.floats(-1, 1))
    document["initial"]["clustering"] = draw(st.floats(-1, 1))
    for asked in document["request_types"]:
        asked["xi_factor"] = draw(st.floats(0.5, 4))
        if draw(st.booleans()):
            asked["requires"] = draw(st.sampled_from(["a", "b"]))
    for vertex in document["forest"]:
        if draw(st.booleans()):
            vertex["lifetime_s"] = draw(_seconds())
    if draw(st.booleans()):
        _add_model(document)
    blocks = {
        "routing": _ROUTING,
        "admission": _ADMISSION,
        "backhaul": _BACKHAUL,
        "fetch": st.fixed_dictionaries({"controller": st.sampled_from(["always", "joint"])}),
        "failures": _FAILURES,
    }
    document |= draw(st.fixed_dictionaries({"origin": _ORIGIN}, optional=blocks))
    if document["service"]["kind"] != "engine" and draw(st.booleans()):
        document["backhaul"]["layers"] = draw(st.integers(1, 64))
    return document


def _add_model(document: dict[str, Any]) -> None:
    """Let all trees grow from the weights of one model, which a profile holds."""
    document["forest"].append({"name": "model", "depth_tokens": 0, "bytes": 10**9, "weights": True})
    for vertex in document["forest"][:-1]:
        vertex.setdefault("parent", "model")
    everything = [vertex["name"] for vertex in document["forest"]]
    document["profiles"].append({"name": "everything", "vertices": everything})
