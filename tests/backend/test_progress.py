"""What is said while something takes long, and to whom."""

import gc
import logging

from hck.backend.collector import collector_paused
from hck.backend.progress import asked, say


def test_the_log_is_told_unless_somebody_asked(capsys, caplog):
    caplog.set_level(logging.INFO, "hck")
    say("[one]")
    with asked(False):
        say("[two]")
    with asked(True), asked(True):
        say("[three]")
    say("[four]")
    assert [record.getMessage() for record in caplog.records] == ["[one]", "[two]", "[four]"]
    assert capsys.readouterr().out == "[three]\n"


def test_the_collector_goes_on_when_the_last_is_done():
    assert gc.isenabled()
    with collector_paused():
        with collector_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
    gc.disable()
    try:
        with collector_paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
