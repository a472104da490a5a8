import os

from django.core.wsgi import get_wsgi_application

from reviewboard.starting import or_say_why

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "reviewboard.settings")

with or_say_why():
    application = get_wsgi_application()

from reviewboard import alert_watch

alert_watch.start()
