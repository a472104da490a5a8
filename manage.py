#!/usr/bin/env python
import os
import sys

from django.core.management import execute_from_command_line

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "reviewboard.settings")
    from reviewboard.starting import or_say_why

    with or_say_why():
        execute_from_command_line(sys.argv)
