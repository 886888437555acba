"""Routing rules: one file each, and the dispatcher that switches between them.

A rule is a pair of functions: ``score`` rates a node (least wins, ties to the lower index), and
``least_score`` bounds from below the score of any node at a given radio latency, which lets the
search stop.
"""
