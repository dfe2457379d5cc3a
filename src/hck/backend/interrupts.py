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
from concurrent.futures import Future, wait
from contextvars import copy_context
from functools import partial, wraps
from queue import SimpleQueue
from typing import ParamSpec, TypeVar

import torch

Given = ParamSpec("Given")
Result = TypeVar("Result")

_GLANCE = 0.2  # seconds: on Windows, a thread that waits without a limit cannot be interrupted
_PATIENCE = 0.5  # seconds that the end of the process waits for work that nobody needs
_MOST = 32  # threads that do such work, most of them for nobody

_local = threading.local()
_unwanted: set[Future] = set()


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


class Workers:
    """Threads, started when they are needed, that do not keep the process from ending."""

    def __init__(self, most: int, name: str, start: Callable[[], object] = int) -> None:
        self.most, self.name, self.start = most, name, start
        self.jobs: SimpleQueue[tuple[Future, Callable[[], object]]] = SimpleQueue()
        self.idle, self.count = threading.Semaphore(0), 0
        self.growing = threading.Lock()

    def submit(self, work: Callable[[], Result]) -> "Future[Result]":
        """Let a thread do some work."""
        future: Future[Result] = Future()
        self.jobs.put((future, work))
        if not self.idle.acquire(blocking=False):
            with self.growing:
                if self.count < self.most:
                    self.count += 1
                    name = f"{self.name}-{self.count}"
                    threading.Thread(target=self._serve, name=name, daemon=True).start()
        return future

    def _serve(self) -> None:
        self.start()
        while True:
            self._next()
            self.idle.release()

    def _next(self) -> None:
        future, work = self.jobs.get()
        if not future.set_running_or_notify_cancel():
            return
        try:
            result = work()
        except BaseException as error:  # the business of whoever waits for it
            future.set_exception(error)
        else:
            future.set_result(result)


def result_of(future: "Future[Result]") -> Result:
    """Wait for work; that can be interrupted, and then there is no other error in its place."""
    over = threading.Lock()
    over.acquire()
    future.add_done_callback(lambda _: over.release())
    while not over.acquire(timeout=_GLANCE):
        pass
    return future.result()


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
        future = _helpers().submit(partial(copy_context().run, ticket.run, call))
        try:
            return result_of(future)
        except BaseException:
            if not future.done():
                ticket.wanted = False
                _unwanted.add(future)
                future.add_done_callback(_unwanted.discard)
            raise

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
    if wait(list(_unwanted), timeout=_PATIENCE).not_done:
        gc.freeze()
