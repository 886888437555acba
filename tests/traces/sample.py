"""Small traces of the two public formats, and where the real ones may lie."""

import gzip
import json
from pathlib import Path

import numpy as np

DATA = Path(__file__).parents[2].parent / "shared" / "data"
REAL_MOONCAKE = [
    path
    for name in ("mooncake_synthetic.jsonl.gz", "mooncake_conversation.jsonl.gz")
    if (path := DATA / name).is_file()
]
REAL_AZURE = [
    path
    for name in ("azure_llm_code.csv.gz", "azure_llm_conv.csv.gz")
    if (path := DATA / name).is_file()
]

ROOTS = {1: 0.49, 12: 0.37, 5: 0.14}
"""Blocks of the system prompts in the written trace, and the shares of requests that they draw."""


def request(timestamp, input_length, output_length, hash_ids):
    """Return one line of a Mooncake trace."""
    return json.dumps(
        {
            "timestamp": timestamp,
            "input_length": input_length,
            "output_length": output_length,
            "hash_ids": hash_ids,
        }
    )


def write_lines(path, lines, compressed=False):
    """Write a text file, gzipped if asked."""
    data = ("\n".join(lines) + "\n").encode()
    path.write_bytes(gzip.compress(data, mtime=0) if compressed else data)
    return path


def mooncake_lines(requests=300, seed=0):
    """Return a trace of three system prompts, each followed by sessions that grow turn by turn."""
    rng = np.random.default_rng(seed)
    roots = {}
    sessions = {depth: [] for depth in ROOTS}
    fresh = 0
    lines = []
    time_ms = 0
    for _ in range(requests):
        depth = int(rng.choice(list(ROOTS), p=list(ROOTS.values())))
        if depth not in roots:
            roots[depth] = list(range(fresh, fresh + depth))
            fresh += depth
        if not sessions[depth] or rng.random() < 0.4:
            sessions[depth].append(list(roots[depth]))
        session = sessions[depth][rng.integers(len(sessions[depth]))]
        grown = int(rng.integers(1, 6))
        session.extend(range(fresh, fresh + grown))
        fresh += grown
        # The last block is only begun: its hash is never seen again.
        tail = int(rng.integers(1, 512))
        lines.append(
            request(
                time_ms, 512 * len(session) + tail, int(rng.integers(1, 400)), [*session, fresh]
            )
        )
        fresh += 1
        time_ms += int(rng.exponential(200))
    return lines


def azure_lines(requests=200, seed=0):
    """Return an Azure trace of prompts of 100 to 3000 tokens."""
    rng = np.random.default_rng(seed)
    lines = ["TIMESTAMP,ContextTokens,GeneratedTokens"]
    for k in range(requests):
        lines.append(
            f"2023-11-16 18:{k // 60:02d}:{k % 60:02d}.{rng.integers(10**7):07d},"
            f"{rng.integers(100, 3000)},{rng.integers(1, 500)}"
        )
    return lines
