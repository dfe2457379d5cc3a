"""Long work that can be interrupted.

Python answers Ctrl-C in the main thread alone, and there only when a call of compiled code is over, which may
take minutes. So long work is done by another thread for which the main one waits, and it can be interrupted
while it does. Work that nobody waits for any more ends at its next step (`Ticket.check`); imports and
compilation go on to their end, since half of them would leave the process broken.
"""

import atexit
import gc
import threading
from collections.abc import Callable
from contextvars import copy_context
from functools import partial, wraps
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Generic, ParamSpec, TypeVar

import torch

Given = ParamSpec("Given")
Result = TypeVar("Result")

_GLANCE = 0.2  # seconds: on Windows, a thread that waits without a limit cannot be interrupted
_PATIENCE = 0.5  # seconds that the end of the process waits for work that nobody needs
_MOST = 32  # threads that do such work, most of them for nobody

_local = threading.local()
_unwanted: "set[Errand]" = set()


class Abandoned(BaseException):
    """Ends work that nobody waits for."""


class Ticket:
    """Whether somebody waits for some work, and for what it is a part of."""

    def __init__(self) -> None:
        self.wanted, self.whole = True, current()

    def check(self) -> None:
        """Raise an error in work for which nobody waits."""
        if not self.wanted:
            raise Abandoned
        if self.whole is not None:
            self.whole.check()

    def run(self, work: Callable[[], Result]) -> Result:
        """Do work of this ticket in the present thread."""
        before, _local.ticket = current(), self
        try:
            self.check()
            return work()
        finally:
            _local.ticket = before


def current() -> Ticket | None:
    """The ticket of the work that this thread does, if it does it for another."""
    return getattr(_local, "ticket", None)


def check_wanted() -> None:
    """Raise an error in work for which nobody waits."""
    ticket = current()
    if ticket is not None:
        ticket.check()


class Errand(Generic[Result]):
    """Work that a thread does for another, which waits for it.

    Like a future of `concurrent.futures`, but with locks of the interpreter itself: those that are made in
    Python stay locked for good if Ctrl-C comes while they change hands.
    """

    def __init__(self, work: Callable[[], Result]) -> None:
        self.work: Callable[[], Result] | None = work
        self.done = False
        self._error: BaseException | None = None
        self._result: Result
        self._over = threading.Lock()
        self._over.acquire()

    def run(self) -> None:
        """Do it, unless it was cancelled."""
        work, self.work = self.work, None
        try:
            if work is not None:
                self._result = work()
        except BaseException as error:  # the business of whoever waits for it
            self._error = error
        finally:
            self.done = True
            _unwanted.discard(self)
            self._over.release()

    def cancel(self) -> None:
        """Do not begin with it."""
        self.work = None

    def wait(self, seconds: float) -> None:
        """Until it is done, or some time is over."""
        if not self.done and self._over.acquire(timeout=seconds):
            self._over.release()

    def result(self) -> Result:
        """What came of it, when it is done; or its error."""
        try:
            if self._error is not None:
                raise self._error
            return self._result
        finally:
            del self  # or the error would know the errand that knows the error


class Workers:
    """Threads, started when they are needed, that do not keep the process from ending."""

    def __init__(self, most: int, name: str, start: Callable[[], object] = int) -> None:
        self.most, self.name, self.start = most, name, start
        self.jobs: SimpleQueue[Errand] = SimpleQueue()
        self.idle: SimpleQueue[None] = SimpleQueue()  # as long as there are threads that have come to an end
        self.started: SimpleQueue[None] = SimpleQueue()
        self.growing, self.count = threading.Lock(), 0

    def submit(self, work: Callable[[], Result]) -> Errand[Result]:
        """Let a thread do some work."""
        errand = Errand(work)
        self.jobs.put(errand)
        try:
            self.idle.get_nowait()
        except Empty:
            self._grow()
        return errand

    def fill(self) -> None:
        """Start all threads, and wait until they have."""
        for _ in range(self.most):
            self._grow()
        for _ in range(self.most):
            while True:
                try:
                    self.started.get(timeout=_GLANCE)
                    break
                except Empty:
                    pass

    def _grow(self) -> None:
        with self.growing:
            if self.count < self.most:
                self.count += 1
                name = f"{self.name}-{self.count}"
                threading.Thread(target=self._serve, name=name, daemon=True).start()

    def _serve(self) -> None:
        self.start()
        self.started.put(None)
        while True:
            self.jobs.get().run()
            self.idle.put(None)


def result_of(errand: Errand[Result]) -> Result:
    """Wait for work; that can be interrupted."""
    try:
        while not errand.done:
            errand.wait(_GLANCE)
        return errand.result()
    finally:
        del errand


def interruptible(
    work: Callable[Given, Result], light: Callable[..., bool] | None = None
) -> Callable[Given, Result]:
    """Long work, done by another thread if the main one asks for it, so that this can be interrupted.

    It must not set anything that outlives it. `light` says of its arguments that it takes no time, so that
    the main thread does it itself: another one has to fetch memory that is warm in the main one. With a GPU,
    whose work goes on beside the main thread anyway, it stays there: streams and devices that users have
    chosen are those of a thread.
    """

    @wraps(work)
    def waited(*given: Given.args, **named: Given.kwargs) -> Result:
        aside = threading.current_thread() is not threading.main_thread() or torch.cuda.is_initialized()
        if aside or (light is not None and light(*given, **named)):
            return work(*given, **named)
        ticket, settings = Ticket(), TorchSettings()
        call = partial(settings.run, partial(work, *given, **named))
        errand = _helpers().submit(partial(copy_context().run, ticket.run, call))
        try:
            return result_of(errand)
        except BaseException:
            if not errand.done:
                ticket.wanted = False
                _unwanted.add(errand)
                if errand.done:  # by now
                    _unwanted.discard(errand)
            raise
        finally:
            del errand

    return waited


def interruptible_unless(
    light: Callable[..., bool],
) -> Callable[[Callable[Given, Result]], Callable[Given, Result]]:
    """`interruptible` as a decorator, for work that may be light."""
    return lambda work: interruptible(work, light)


class TorchSettings:
    """What torch keeps for each thread."""

    def __init__(self) -> None:
        self.threads = torch.get_num_threads()
        self.grad, self.inference = torch.is_grad_enabled(), torch.is_inference_mode_enabled()

    def run(self, work: Callable[[], Result]) -> Result:
        """Work as in the thread that had these settings."""
        if torch.get_num_threads() != self.threads:
            torch.set_num_threads(self.threads)
        with torch.inference_mode(self.inference), torch.set_grad_enabled(self.grad):
            return work()


_made: list[Workers] = []


def _helpers() -> Workers:
    if not _made:
        _made.append(Workers(_MOST, "hck-work"))
    return _made[0]


def forget_threads() -> None:
    """In a forked process, which has none of them."""
    _made.clear()
    _unwanted.clear()
    _local.ticket = None


@atexit.register
def _wait_for_the_unwanted() -> None:
    """Compiled code that runs while the process is taken down might crash it.

    What still runs then takes its time from that, of which most is spent on searching all objects for cycles.
    Nobody needs those any more: frozen objects are not searched.
    """
    end, unwanted = monotonic() + _PATIENCE, list(_unwanted)
    for errand in unwanted:
        errand.wait(max(0.0, end - monotonic()))
    if not all(errand.done for errand in unwanted):
        gc.freeze()
