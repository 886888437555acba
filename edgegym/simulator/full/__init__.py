"""The event loop with all features: engines, caches, fetches, origin, failures, records."""
