import numpy as np
import pytest

from edgegym.traces import read_trace
from edgegym.traces.trie import block_trie, shared_prefixes
from tests.traces.sample import azure_lines, request, write_lines


@pytest.fixture
def trace(tmp_path):
    """Five prompts: 1-2-3 twice (the second ends in it), 1-2-4, 1-2, and 5 alone.

    Whole blocks leave out the one with the last token.
    """
    return read_trace(
        write_lines(
            tmp_path / "trace",
            [
                request(0, 4 * 512, 1, [1, 2, 3, 30]),
                request(1, 3 * 512 + 1, 1, [1, 2, 3, 31]),
                request(2, 3 * 512 + 9, 1, [1, 2, 4, 32]),
                request(3, 2 * 512 + 5, 1, [1, 2, 33]),
                request(4, 700, 1, [5, 2]),
            ],
        )
    )


def test_whole_blocks_leave_out_the_last_token(trace):
    trie = block_trie(trace, whole_blocks_only=True)
    np.testing.assert_array_equal(np.diff(trie.path_start), [3, 3, 3, 2, 1])
    # 1, 1-2, 1-2-3, 1-2-4, 5 in the order in which they appear.
    np.testing.assert_array_equal(trie.parent, [-1, 0, 1, 1, -1])
    np.testing.assert_array_equal(trie.depth_blocks, [1, 2, 3, 3, 1])
    np.testing.assert_array_equal(trie.requests, [4, 4, 2, 1, 1])
    np.testing.assert_array_equal(trie.first_request, [0, 0, 0, 2, 4])


def test_a_block_counts_only_after_the_same_beginning(trace):
    whole = block_trie(trace)
    assert whole.num_vertices == len(np.unique(trace.block_ids)) + 1  # 1-2 and 5-2


def test_shared_prefixes_are_the_ends_of_chains(trace):
    shared = shared_prefixes(block_trie(trace, whole_blocks_only=True), 512)
    # 1 alone is no shared prefix of its own: all who begin with it go on with 2.
    np.testing.assert_array_equal(shared.depth_tokens, [1024, 1536])
    np.testing.assert_array_equal(shared.parent, [-1, 0])
    np.testing.assert_array_equal(shared.requests, [4, 2])
    np.testing.assert_array_equal(shared.own_tokens, [1024, 512])
    np.testing.assert_array_equal(shared.deepest, [1, 1, 0, 0, -1])


def test_short_prompts_share_nothing(tmp_path):
    trace = read_trace(write_lines(tmp_path / "t", [request(0, 512, 1, [1])] * 3))
    shared = shared_prefixes(block_trie(trace, whole_blocks_only=True), 512)
    assert len(shared.parent) == 0
    np.testing.assert_array_equal(shared.deepest, [-1, -1, -1])


def test_deepest_is_found_by_comparing_prompts(mooncake_file):
    trace = read_trace(mooncake_file)
    trace = trace.subset(np.arange(trace.num_requests) < 400)
    shared = shared_prefixes(block_trie(trace, whole_blocks_only=True), 512)
    prompts = [
        trace.block_ids[start : start + (length - 1) // 512].tolist()
        for start, length in zip(trace.block_start[:-1], trace.input_tokens, strict=True)
    ]
    depth = np.append(shared.depth_tokens, 0)
    for r in range(0, trace.num_requests, 13):
        common = 0
        for other, prompt in enumerate(prompts):
            if other != r:
                same = [a == b for a, b in zip(prompts[r], prompt, strict=False)]
                common = max(common, same.index(False) if False in same else len(same))
        assert depth[shared.deepest[r]] == 512 * common


def test_a_trace_without_hashes_has_no_trie(tmp_path):
    trace = read_trace(write_lines(tmp_path / "azure.csv", azure_lines(3)))
    with pytest.raises(ValueError, match=r"azure\.csv: the trace has no block hashes"):
        block_trie(trace)
