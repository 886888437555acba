import gzip
import json
import time

import numpy as np
import pytest

from edgegym.traces import TraceError, read_trace
from tests.traces.sample import azure_lines, mooncake_lines, request, write_lines

GOOD = request(10, 600, 5, [1, 2])
HEADER = "TIMESTAMP,ContextTokens,GeneratedTokens"
ROW = "2023-11-16 18:17:03.9799600,4808,10"


def test_mooncake_columns(tmp_path):
    lines = [
        request(1000, 1024, 3, [7, 8]),
        request(1000, 1, 0, [9]),
        request(2500.5, 1025, 4, [7, 8, 10]),
    ]
    trace = read_trace(write_lines(tmp_path / "trace", lines))
    assert trace.source_format == "mooncake"
    np.testing.assert_allclose(trace.arrival_s, [0.0, 0.0, 1.5005])
    np.testing.assert_array_equal(trace.input_tokens, [1024, 1, 1025])
    np.testing.assert_array_equal(trace.output_tokens, [3, 0, 4])
    np.testing.assert_array_equal(trace.block_ids, [7, 8, 9, 7, 8, 10])
    np.testing.assert_array_equal(trace.block_start, [0, 2, 3, 6])
    assert trace.rate_per_s == pytest.approx(2 / 1.5005)


def test_azure_columns(tmp_path):
    lines = [HEADER, ROW, "2023-11-16 18:17:04.9799609,3180,0", "2023-11-17 18:17:03.97996,1,2"]
    trace = read_trace(write_lines(tmp_path / "trace", lines))
    assert trace.source_format == "azure"
    np.testing.assert_allclose(trace.arrival_s, [0.0, 1.0, 86400.0])
    np.testing.assert_array_equal(trace.input_tokens, [4808, 3180, 1])
    np.testing.assert_array_equal(trace.output_tokens, [10, 0, 2])
    assert trace.block_ids is None


def test_azure_newer_timestamps_with_zone_windows_newlines_and_byte_order_mark(tmp_path):
    path = tmp_path / "trace"
    rows = [HEADER, "2024-05-10 00:00:00.009930+00:00,1,2", "2024-05-10 00:00:01.009930+00:00,1,2"]
    path.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(rows).encode())
    np.testing.assert_allclose(read_trace(path).arrival_s, [0.0, 1.0])


@pytest.mark.parametrize("lines", [mooncake_lines(20), azure_lines(20)])
def test_compression_is_seen_in_the_content_not_in_the_name(tmp_path, lines):
    plain = read_trace(write_lines(tmp_path / "plain.gz", lines))
    packed = read_trace(write_lines(tmp_path / "packed.txt", lines, compressed=True))
    np.testing.assert_array_equal(plain.arrival_s, packed.arrival_s)
    np.testing.assert_array_equal(plain.input_tokens, packed.input_tokens)


def test_real_and_written_files_are_read_fast(mooncake_file):
    start = time.perf_counter()
    trace = read_trace(mooncake_file)
    # Two seconds for 23,000 requests, with a floor for a busy machine.
    assert time.perf_counter() - start < max(1.0, 2.0 * trace.num_requests / 23_000)
    assert trace.num_requests == len(trace.block_start) - 1
    assert trace.block_start[-1] == len(trace.block_ids)


def without(key):
    return json.dumps({k: v for k, v in json.loads(GOOD).items() if k != key})


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ("{not json", "not JSON"),
        ("[1, 2]", "a JSON list, not an object"),
        (GOOD[:-5], "not JSON"),
        (without("hash_ids"), "key 'hash_ids' is missing"),
        (without("output_length"), "key 'output_length' is missing"),
        (request(-1, 600, 5, [1, 2]), "timestamp = -1: must be"),
        (request("now", 600, 5, [1, 2]), "timestamp = 'now': must be"),
        (GOOD.replace("10,", "NaN,"), "timestamp = nan: must be"),
        (request(9, 600, 5, [1, 2]), r"timestamp = 9: earlier than .* \(10\)"),
        (request(10, 0, 5, []), "input_length = 0: must be"),
        (request(10, True, 5, [1]), "input_length = True: must be"),
        (request(10, 600.5, 5, [1, 2]), "input_length = 600.5: must be"),
        (request(10, 10**30, 5, [1, 2]), "input_length = 1000000000000000000000000000000: must be"),
        (request(10, 600, -5, [1, 2]), "output_length = -5: must be"),
        (request(10, 600, 5, [1]), "hash_ids has 1 entries for input_length = 600: .* 2"),
        (request(10, 512, 5, [1, 2]), "hash_ids has 2 entries for input_length = 512: .* 1"),
        (request(10, 600, 5, "ab"), "hash_ids is a str"),
        (request(10, 600, 5, [1, "b"]), r"hash_ids\[1\] = 'b': must be"),
        (request(10, 600, 5, [-1, 2]), r"hash_ids\[0\] = -1: must be"),
        (request(10, 600, 5, [10**99, 2]), rf"hash_ids\[0\] = 10+\.\.\.0+: .* 0 to {2**53}"),
    ],
)
def test_bad_mooncake_line_is_named(tmp_path, bad, message):
    path = write_lines(tmp_path / "trace.jsonl", [GOOD, "", bad, GOOD])
    with pytest.raises(TraceError, match=rf"trace\.jsonl, line 3: {message}"):
        read_trace(path)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ("2023-11-16 18:17:03.9799600,4808", "2 columns; a request has 3"),
        ("yesterday,4808,10", "TIMESTAMP = 'yesterday': must be YYYY-MM-DD"),
        ("2023-11-16,4808,10", "TIMESTAMP = '2023-11-16': must be YYYY-MM-DD"),
        ("2023-13-16 18:17:03.9,4808,10", "TIMESTAMP = '2023-13-16 18:17:03.9': no such time"),
        ("2023-11-16 18:17:02.9,4808,10", "TIMESTAMP = '2023-11-16 18:17:02.9': earlier than"),
        ("2023-11-16 18:17:04.9Z,4808,10", "with and without a time zone"),
        ("2023-11-16 18:17:04.9,0,10", "ContextTokens = '0': must be an integer, at least 1"),
        ("2023-11-16 18:17:04.9,-4,10", "ContextTokens = '-4': must be an integer"),
        ("2023-11-16 18:17:04.9,4.5,10", "ContextTokens = '4.5': must be an integer"),
        ("2023-11-16 18:17:04.9,4,", "GeneratedTokens = '': must be an integer, at least 0"),
    ],
)
def test_bad_azure_line_is_named(tmp_path, bad, message):
    path = write_lines(tmp_path / "trace.csv", [HEADER, ROW, bad])
    with pytest.raises(TraceError, match=rf"trace\.csv, line 3: .*{message}"):
        read_trace(path)


@pytest.mark.parametrize(
    "first", ["TIMESTAMP,Context,Generated", "time;tokens", "[", "<html>", "42", "x" * 500]
)
def test_unknown_format_says_what_is_understood(tmp_path, first):
    path = write_lines(tmp_path / "trace", [first, ROW])
    with pytest.raises(TraceError, match=r"line 1: unknown trace format .*Mooncake.*Azure") as info:
        read_trace(path)
    assert len(str(info.value)) < 500


@pytest.mark.parametrize("content", [b"", b"\n  \n", gzip.compress(b"", mtime=0)])
def test_empty_file(tmp_path, content):
    path = tmp_path / "trace"
    path.write_bytes(content)
    with pytest.raises(TraceError, match="trace: the file is empty"):
        read_trace(path)


def test_header_alone(tmp_path):
    with pytest.raises(TraceError, match="no request after the header"):
        read_trace(write_lines(tmp_path / "trace", [HEADER]))


@pytest.mark.parametrize("damage", ["cut", "flipped", "tail"])
def test_damaged_gzip(tmp_path, damage):
    packed = bytearray(gzip.compress(("\n".join(mooncake_lines(200)) + "\n").encode()))
    if damage == "cut":
        packed = packed[: len(packed) // 2]
    elif damage == "flipped":
        packed[len(packed) // 2] ^= 0xFF
    else:
        packed += b"rubbish after the stream"
    path = tmp_path / "trace.gz"
    path.write_bytes(packed)
    with pytest.raises(TraceError, match=r"trace\.gz, line \d+: "):
        read_trace(path)


def test_not_text(tmp_path):
    path = tmp_path / "trace"
    path.write_bytes(GOOD.encode() + b"\n\xff\xfe{}\n")
    with pytest.raises(TraceError, match="line 2: not UTF-8 text"):
        read_trace(path)


def test_missing_file_and_folder(tmp_path):
    with pytest.raises(TraceError, match="absent: can't be read: No such file"):
        read_trace(tmp_path / "absent")
    with pytest.raises(TraceError, match="can't be read: Is a directory"):
        read_trace(tmp_path)
