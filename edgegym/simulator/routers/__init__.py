"""Routing rules: one file each, and the dispatcher that switches between them.

A rule is a pair of functions: ``score`` rates a node (least wins, ties to the lower index), and
``least_beyond_radio`` bounds from below what any node's score has beyond its radio latency, which
lets the search stop. A score never falls when the radio latency grows.
"""
