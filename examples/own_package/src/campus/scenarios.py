"""The campus, from its YAML file, and a variant that is made in code."""

from importlib.resources import as_file, files

from edgegym import Scenario


def campus() -> Scenario:
    """Return the scenario that ``campus.yaml`` describes."""
    with as_file(files("campus") / "campus.yaml") as path:
        return Scenario.from_yaml(path)


def exam_week() -> Scenario:
    """Return the same campus when most requests are for the tutor."""
    return campus().with_overrides(
        {
            "name": "exam-week",
            "description": "The campus when most requests are for the tutor.",
            "request_types.0.share": 0.3,
            "request_types.1.share": 0.7,
        }
    )
