"""Run a program without root's name, since PostgreSQL refuses to run with it: unprivileged.py WAY PROGRAM ARGUMENT...

namespace   a user namespace in which root is called nobody. Files stay root's, so a 0700 folder needs no change.
nobody      really that user, where a container forbids namespaces. Then nobody must be able to read all it needs.

A program of its own, and not a `preexec_fn`: forking with a hook is unsafe in a process that has threads.
"""

import os
import sys

NOBODY = 65534


def enter_namespace() -> None:
    os.unshare(os.CLONE_NEWUSER)
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{NOBODY} 0 1")
    _write("/proc/self/gid_map", f"{NOBODY} 0 1")


def become_nobody() -> None:
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)


def _write(path: str, text: str) -> None:
    file = os.open(path, os.O_WRONLY)
    try:
        os.write(file, text.encode())
    finally:
        os.close(file)


if __name__ == "__main__":
    {"namespace": enter_namespace, "nobody": become_nobody}[sys.argv[1]]()
    os.execv(sys.argv[2], sys.argv[2:])  # noqa: S606  the point of this file
