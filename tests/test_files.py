"""Files that are complete or absent, and folders that can be written to."""

import pytest

from edgegym.files import make_folder, write_text


def test_a_text_replaces_the_file_that_is_there(tmp_path):
    path = tmp_path / "new" / "a.txt"
    for text in ("first", "second"):
        write_text(path, text)
        assert path.read_text() == text
    assert list(path.parent.iterdir()) == [path]


def test_a_folder_in_its_place_is_named(tmp_path):
    path = tmp_path / "a.txt"
    path.mkdir()
    with pytest.raises(IsADirectoryError, match="is a folder, not a file") as caught:
        write_text(path, "text")
    assert caught.value.filename == str(path)
    assert list(tmp_path.iterdir()) == [path]


def test_errors_name_the_target_and_not_the_temporary_file(tmp_path, monkeypatch):
    def fail(*_, **__):
        raise OSError(28, "No space left on device", ".a-x0x0.txt")

    monkeypatch.setattr("tempfile.mkstemp", fail)
    with pytest.raises(OSError, match="No space left") as caught:
        write_text(tmp_path / "a.txt", "text")
    assert caught.value.filename == str(tmp_path / "a.txt")


def test_a_folder_is_made_and_left_empty(tmp_path):
    for _ in range(2):
        make_folder(tmp_path / "a" / "b")
    assert list((tmp_path / "a" / "b").iterdir()) == []


def test_a_folder_that_takes_no_files_is_refused(tmp_path, monkeypatch):
    def fail(*_, **__):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("tempfile.TemporaryFile", fail)
    with pytest.raises(OSError, match=r"files can't be written to it \(Read-only") as caught:
        make_folder(tmp_path)
    assert caught.value.filename == str(tmp_path)
