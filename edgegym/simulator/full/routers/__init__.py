"""Rules that choose among a few candidates: one file each, and the dispatcher.

A rule gets the table of candidates, one row each in the order of node indices, and returns the row
it takes. Of equal candidates it takes the first, that is the one with the lower index. What it
knows of load are the router's numbers: n, the requests of a node as last reported (live: in flight,
queued and active), with what the router has sent since where it predicts.
"""
