"""What keeps a server from starting, as one sentence that says what to do."""

import errno


class ServiceFault(Exception):
    """Shown to a person at a terminal without a traceback. Plain English: no settings are loaded yet."""


def of_folder(folder: object, error: OSError) -> ServiceFault:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return ServiceFault(f"The disk that holds {folder} is full. Free some space and start again.")
    return ServiceFault(
        f"The folder {folder} cannot be written ({error.strerror}). "
        "Give yourself the right to write there, or set REVIEWBOARD_VAR to a folder of your own."
    )


def of_log(server: str, said: str, log: object, *, is_nobody: bool = False) -> ServiceFault:
    """From what a server wrote before it ended."""
    if "No space left on device" in said:
        return ServiceFault(f"{server} did not start: the disk is full. Free some space and start again.")
    if "Permission denied" in said and is_nobody:
        return ServiceFault(
            f"{server} did not start: this container lets root run it only as the user nobody, who may not read all "
            "it needs. Start as an ordinary user, or from a folder that everybody may enter. "
            f"All of it: {log}"
        )
    lines = [line for line in said.strip().splitlines() if line.strip()]
    last = next((line for line in reversed(lines) if "FATAL" in line or "rror" in line), lines[-1] if lines else "")
    return ServiceFault(f"{server} did not start: {last.strip() or 'it said nothing'}. All of it: {log}")
