"""Which prefixes to keep together: the value of a vertex, and profiles made from a forest."""
