"""A package, so that no dependency that installs its own `tests` can stand in front of it."""
