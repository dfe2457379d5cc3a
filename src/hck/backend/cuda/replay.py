"""A step that is taken many times, recorded and played back: a GPU waits for its commands otherwise."""

import threading

import torch

from hck.backend.repeated import Step

_FEW = 3  # steps, for which recording does not pay
_recording = threading.Lock()  # one at a time


def repeat(step: Step, times: int, device: torch.device) -> None:
    """The first are taken command by command, which also compiles them; a CUDA graph takes the others.

    Where nothing can be recorded, all are taken command by command.
    """
    first = min(times, _FEW)
    for _ in range(first):
        step()
    if times == first:
        return
    with torch.cuda.device(device):
        graph = _recorded(step)
        take = step if graph is None else graph.replay
        for _ in range(times - first):
            take()
        torch.cuda.current_stream().synchronize()  # the graph goes, and its memory


def _recorded(step: Step) -> torch.cuda.CUDAGraph | None:
    graph = torch.cuda.CUDAGraph()
    try:
        # "thread_local": other threads may use the GPU meanwhile
        with _recording, torch.cuda.graph(graph, capture_error_mode="thread_local"):
            step()
    except RuntimeError:
        return None
    return graph
