"""Where commands write, and what they print of names that are not theirs."""

import os
import stat

import pandas as pd
import pytest

from hck.backend.files import regular, replacing


@pytest.fixture
def model(hck, files):
    code, _, said = hck("fit", "train.csv", "--target", "price", "--out", "model", "--fit-time", "fast")
    assert code == 0, said
    return files / "model"


def test_a_link_is_followed_and_permissions_stay(tmp_path):
    (tmp_path / "real").write_text("old")
    (tmp_path / "real").chmod(0o600)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "dangling").symlink_to(tmp_path / "later")
    for name in ("link", "dangling"):
        with replacing(tmp_path / name) as draft:
            draft.write_text("new")
        assert (tmp_path / name).is_symlink()
        assert (tmp_path / name).read_text() == "new"
    assert stat.S_IMODE((tmp_path / "real").stat().st_mode) == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dangling", "later", "link", "real"]


def test_what_is_not_a_regular_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "through").symlink_to("/dev/null")
    for name in ("fifo", "loop", "through", "/dev/null", "/dev/full", "."):
        with pytest.raises(OSError), replacing(tmp_path / name):
            raise AssertionError("not reached")
    assert stat.S_ISFIFO((tmp_path / "fifo").stat().st_mode)


def test_the_standard_output(tmp_path, capsysbinary):
    assert regular(tmp_path / "x") == tmp_path / "x"
    for name in ("-", "/dev/stdout"):
        with replacing(type(tmp_path)(name)) as draft:
            draft.write_bytes(b"\x89text")
    assert capsysbinary.readouterr().out == b"\x89text" * 2


def test_commands_keep_devices_and_links(hck, model, tmp_path):
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "kept.csv").write_text("old")
    (tmp_path / "link.csv").symlink_to(tmp_path / "kept.csv")
    for arguments in (
        ("predict", "model", "new.csv"),
        ("report", "model", "--data", "test.csv"),
        ("compare", "train.csv", "--target", "price"),
        ("demo",),
    ):
        for where in ("fifo", "/dev/null"):
            code, _, said = hck(*arguments, "--out", where, "--force")
            assert code == 1
            assert "not a regular file" in said
            assert said.count("\n") == 1
    assert stat.S_ISFIFO((tmp_path / "fifo").stat().st_mode)
    assert hck("predict", "model", "new.csv", "--out", "link.csv", "--force")[0] == 0
    assert (tmp_path / "link.csv").is_symlink()
    assert len(pd.read_csv(tmp_path / "kept.csv")) == 100
    for where in ("-", "/dev/stdout"):
        code, printed, _ = hck("predict", "model", "new.csv", "--out", where)
        assert code == 0
        assert len(printed.splitlines()) == 101
        assert printed.startswith("prediction")


@pytest.mark.parametrize("name", ["[/bold]", "\x1b[31m[red]\x07$x^$<script>"])
def test_names_from_files_are_not_markup(hck, table, tmp_path, name):
    frame = table(120, 0).rename(columns={"price": name, "a": f"a{name}"}).drop(columns="kind")
    frame.to_csv(tmp_path / "data.csv", index=False)
    code, printed, said = hck("fit", "data.csv", "--target", name, "--out", "m[b]", "--fit-time", "fast")
    assert code == 0, said
    assert "\x1b" not in printed
    assert "\x07" not in printed
    code, printed, _ = hck("info", "m[b]")
    assert code == 0
    assert "m[b]" in printed
    assert "\x1b" not in printed
    if name.isprintable():
        assert name in printed
    quick = "--methods", "nystrom", "--rank", 8
    for command in (("evaluate", "m[b]", "data.csv"), ("compare", "data.csv", "--target", name, *quick)):
        code, printed, said = hck(*command)
        assert code == 0, said
        assert "\x1b" not in printed + said
    assert hck("report", "m[b]", "--data", "data.csv", "--out", "page.html")[0] == 0
    page = (tmp_path / "page.html").read_text()
    assert "\x1b" not in page
    assert "<script" not in page
    code, _, said = hck("predict", "m[b]", f"{name.replace('/', '')}.csv", "--out", "x")
    assert code == 1
    assert "\x1b" not in said
    assert said.count("\n") == 1
