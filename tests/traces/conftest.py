import pytest

from tests.traces.sample import REAL_AZURE, REAL_MOONCAKE, azure_lines, mooncake_lines, write_lines


@pytest.fixture(params=["written", *REAL_MOONCAKE], ids=lambda value: getattr(value, "name", value))
def mooncake_file(request, tmp_path):
    """A written trace, and each real one that is at hand."""
    if request.param != "written":
        return request.param
    return write_lines(tmp_path / "small.jsonl.gz", mooncake_lines(), compressed=True)


@pytest.fixture(params=["written", *REAL_AZURE], ids=lambda value: getattr(value, "name", value))
def azure_file(request, tmp_path):
    """A written trace, and each real one that is at hand."""
    if request.param != "written":
        return request.param
    return write_lines(tmp_path / "small.csv", azure_lines())
