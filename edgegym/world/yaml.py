"""YAML as people write it: 1e12 is a number, and a key that stands twice is a mistake."""

import re
from typing import Any

import yaml


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader with YAML 1.2 numbers and without silent duplicates."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Return a mapping; refuse a key that stands twice."""
        seen = set()
        for key_node, _ in node.value:
            if isinstance(key_node, yaml.ScalarNode):
                if key_node.value in seen and key_node.value != "<<":
                    raise yaml.constructor.ConstructorError(
                        problem=f"key '{key_node.value}' stands twice in one mapping",
                        problem_mark=key_node.start_mark,
                    )
                seen.add(key_node.value)
        return super().construct_mapping(node, deep=deep)


# YAML 1.1, which PyYAML follows, takes 1e12 and 1.5e3 for text.
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9][0-9_]*)[eE][-+]?[0-9]+$"),
    list("-+0123456789."),
)


def load_yaml(text: str) -> Any:
    """Return the plain mappings, lists, numbers and texts of a YAML document.

    Parameters
    ----------
    text : str
        One document.

    Raises
    ------
    yaml.YAMLError
        If it is not YAML, or a key stands twice in a mapping.
    """
    return yaml.load(text, Loader=_Loader)
