"""Small replay files for the two types of the plain world."""

from edgegym.world.recorded import COLUMNS


def write_requests(path, rows):
    """Write a replay file of (arrival_s, type, input_tokens, output_tokens)."""
    lines = [",".join(COLUMNS), *(",".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    return path


def replay_modulation(folder, requests=200, **fields):
    """Return a trace of even pace whose types take turns, each request of its own length."""
    path = folder / f"even-{requests}.csv"
    if not path.exists():
        rows = [
            (0.25 * k, ("chat", "code")[k % 2], 1000 + 2 * k, 1 + k % 50) for k in range(requests)
        ]
        write_requests(path, rows)
    return {"kind": "trace", "path": str(path), **fields}
