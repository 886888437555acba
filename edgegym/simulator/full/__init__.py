"""The event loop with everything: the second of two, for worlds that the fast one does not cover.

Both loops share the request stream, the event queue, the search grid and the way things are
counted, and agree to the bit on worlds that both can simulate. This one adds what a serving system
has: engines, LRU caches, a shared backhaul, fetching, an origin, admission, failures, and records.
"""
