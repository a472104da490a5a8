"""Whether this worker was asked to stop, known in every process of it.

Celery tells only its main process; the pool's children learn nothing until they are killed. One shared byte, made
before the pool forks, lets a child stop claiming and give back what it has not called (a deploy leaves no lease to
run out).
"""

import mmap

_flag = mmap.mmap(-1, 1)


def begin() -> None:
    """Said by the main process, from its signal handler: one byte, no lock."""
    _flag[0] = 1


def reset() -> None:
    """A worker that starts is not stopping."""
    _flag[0] = 0


def is_stopping() -> bool:
    return _flag[0] == 1
