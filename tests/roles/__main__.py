"""Prints the page: uv run python -m tests.roles > docs/rights.md"""

import os
import sys

import django

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "reviewboard.settings")
    django.setup()
    # The tables are made of models.
    from tests.roles.printed import as_markdown

    sys.stdout.write(as_markdown())
