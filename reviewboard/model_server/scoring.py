"""What the stand-in thinks of a text: by words, or exactly as a mark in the text says."""

import hashlib
import re

#: `[[p=0.73]]` in a text is its probability of being bad; `[[refuse]]` and `[[reject]]` say what becomes of it.
MARK = re.compile(r"\[\[(?:p=(?P<score>[01](?:\.[0-9]+)?)|(?P<word>refuse|reject))\]\]")
BAD = re.compile(r"\b(bad|idiot|stupid|moron|scum|kill|hate)\w*", re.IGNORECASE)
GREY = re.compile(r"\b(grey|damn|crap|ugly|shut up)\b", re.IGNORECASE)


def probability(text: str) -> float:
    """From 0 to 1, how bad a text is. The same for the same text."""
    for mark in MARK.finditer(text):
        if mark["score"]:
            return min(float(mark["score"]), 1.0)
    jitter = hashlib.sha256(text.encode("utf-8", "replace")).digest()[0] / 255 * 0.04
    if BAD.search(text):
        return 0.94 + jitter
    return (0.58 if GREY.search(text) else 0.02) + jitter


def is_marked(text: str, word: str) -> bool:
    return any(mark["word"] == word for mark in MARK.finditer(text))
