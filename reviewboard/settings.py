"""Settings. All that differs between installations comes from the environment (docs/operate.md, "Settings")."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import environ
from django.utils.csp import CSP
from kombu import Exchange, Queue

from reviewboard import logs, mailers
from reviewboard.environment import read
from reviewboard.sso import setup as sso

BASE_DIR = Path(__file__).resolve().parent.parent
env = environ.Env()
ENVIRONMENT = read(env, BASE_DIR)

REVIEWBOARD_VAR = ENVIRONMENT.var
#: Set by `manage.py demo` only: sign-in links, the strip, and a model that obeys.
REVIEWBOARD_DEMO = env.bool("REVIEWBOARD_DEMO", default=False) and ENVIRONMENT.is_local
#: What this process is, shown in pg_stat_activity: web, worker, ticker, sender.
ROLE = env.str("REVIEWBOARD_ROLE", default="command")

SECRET_KEY = ENVIRONMENT.secret_key
SECRET_KEY_FALLBACKS = env.list("SECRET_KEY_FALLBACKS", default=[])
DEBUG = env.bool("DEBUG", default=False)
ALLOWED_HOSTS = list(ENVIRONMENT.hosts)
CSRF_TRUSTED_ORIGINS = env.list("CSRF_TRUSTED_ORIGINS", default=[])

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_htmx",
    "axes",
    "queue_core",
    "reviewboard",
]

MIDDLEWARE = [
    "reviewboard.client_address.ClientAddressMiddleware",
    "reviewboard.form_charset.FormCharsetMiddleware",
    "reviewboard.api.middleware.ApiMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "django.middleware.csp.ContentSecurityPolicyMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "reviewboard.reader.ReaderMiddleware",
    "reviewboard.live.LiveMiddleware",
    "reviewboard.unsent.UnsentMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    # Last, as it asks: it answers a sign-in that is locked out.
    "axes.middleware.AxesMiddleware",
]

ROOT_URLCONF = "reviewboard.urls"
WSGI_APPLICATION = "reviewboard.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                *(["reviewboard.demo.strip.demo_strip"] if REVIEWBOARD_DEMO else []),
            ]
        },
    }
]

# --- Database -------------------------------------------------------------------------------------------------------


def _database() -> dict[str, Any]:
    """A pool that names its cause within seconds, and sessions that hold no lock for longer than anybody waits."""
    named: dict[str, Any] = dict(env.db_url_config(ENVIRONMENT.database_url))
    limits = "-c statement_timeout=30000 -c idle_in_transaction_session_timeout=30000 -c TimeZone=UTC"
    # The queue's own statements are prepared, and planned once for all values (queue_core.prepared).
    planning = "-c plan_cache_mode=force_generic_plan"
    options = {
        "connect_timeout": 5,
        "application_name": f"reviewboard {ROLE}",
        "options": f"{limits} {planning}",
        "prepare_threshold": 0,
        "pool": {"min_size": 1, "max_size": env.int("DATABASE_POOL", default=10), "timeout": 5},
    }
    return {
        **named,
        "ENGINE": "django.db.backends.postgresql",
        "OPTIONS": {**options, **named.get("OPTIONS", {})},
        # The pool keeps connections; keeping them twice is refused by Django. It looks whether one still lives before
        # it is given out: after a failover each page would else meet one that died in the pool.
        "CONN_MAX_AGE": 0,
        "CONN_HEALTH_CHECKS": True,
    }


DATABASES = {"default": _database()}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# --- People ---------------------------------------------------------------------------------------------------------

AUTH_USER_MODEL = "reviewboard.Person"
LOGIN_URL = "sign_in"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = None
PASSWORD_HASHERS = [
    "django.contrib.auth.hashers.Argon2PasswordHasher",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]
AUTHENTICATION_BACKENDS = ["axes.backends.AxesStandaloneBackend", "django.contrib.auth.backends.ModelBackend"]
# By name and address together: a stranger who guesses must not be able to lock the person out, too.
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_CLIENT_IP_CALLABLE = "reviewboard.lockout.place"
AXES_FAILURE_LIMIT = 8
AXES_COOLOFF_TIME = timedelta(minutes=15)
AXES_RESET_ON_SUCCESS = True
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False
AXES_LOCKOUT_CALLABLE = "reviewboard.lockout.answer"
AXES_SENSITIVE_PARAMETERS = ["password", "csrfmiddlewaretoken"]
# Our audit and the admin of people are where it is seen and undone.
AXES_ENABLE_ADMIN = AXES_VERBOSE = False
AXES_DISABLE_ACCESS_LOG = True
# The demo's links. Each opens once (a sign-in makes older ones void), and not after half a day.
SESAME_ONE_TIME = True
SESAME_MAX_AGE = 12 * 3600

# --- Single sign-on -------------------------------------------------------------------------------------------------

#: None where it is not configured; then nothing of its packages is loaded, nor are their tables made.
SIGN_ON = sso.read(env)
if SIGN_ON is not None:
    INSTALLED_APPS += sso.APPS
    MIDDLEWARE = sso.middleware_with(MIDDLEWARE)
    globals().update(sso.settings_of(SIGN_ON))

# --- What a browser is told -----------------------------------------------------------------------------------------

SECURE_CSP = {
    "default-src": [CSP.NONE],
    "script-src": [CSP.SELF],
    "style-src": [CSP.SELF],
    "img-src": [CSP.SELF, "data:"],
    "font-src": [CSP.SELF],
    "connect-src": [CSP.SELF],
    "form-action": [CSP.SELF],
    "frame-ancestors": [CSP.NONE],
    "base-uri": [CSP.NONE],
}
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"
SESSION_COOKIE_NAME = "reviewboard_session"
SESSION_COOKIE_AGE = 12 * 3600
SESSION_COOKIE_HTTPONLY = True
# Read by the page's script at each request, since a sign-in in another tab changes it.
CSRF_COOKIE_HTTPONLY = False
CSRF_FAILURE_VIEW = "reviewboard.views.errors.csrf_failure"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = not ENVIRONMENT.is_local
SECURE_HSTS_SECONDS = 0 if ENVIRONMENT.is_local else 365 * 24 * 3600
# Only a proxy that sets this header itself may be trusted with it (deploy/).
BEHIND_PROXY = env.bool("BEHIND_PROXY", default=False)
#: Those whose X-Forwarded-For is believed, when behind one.
TRUSTED_PROXIES = env.list("TRUSTED_PROXIES", default=["127.0.0.0/8", "::1/128"])
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if BEHIND_PROXY else None
SECURE_SSL_REDIRECT = BEHIND_PROXY and not ENVIRONMENT.is_local

# --- Words and times ------------------------------------------------------------------------------------------------

USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("zh-hans", "简体中文")]
LOCALE_PATHS = [BASE_DIR / "reviewboard" / "locale"]

# --- Mail -----------------------------------------------------------------------------------------------------------

#: smtp+tls://user:password@host:587. Without it nobody gets mail about alerts; the board and webhooks have them still.
EMAIL_URL = env.str("EMAIL_URL", default="")
MAILERS = mailers.mailers_of(EMAIL_URL)
DEFAULT_FROM_EMAIL = SERVER_EMAIL = env.str("EMAIL_FROM", default="reviewboard@localhost")
#: Where people open the site, for the links in mail.
PUBLIC_URL = env.str("PUBLIC_URL", default="").rstrip("/")
QUEUE_CORE_ALERT_MAIL = "reviewboard.alert_mail.send" if EMAIL_URL else ""

# --- Files ----------------------------------------------------------------------------------------------------------

STATIC_URL = "static/"
STATIC_ROOT = REVIEWBOARD_VAR / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if DEBUG
        else "whitenoise.storage.CompressedManifestStaticFilesStorage"
    },
}

# --- Metrics --------------------------------------------------------------------------------------------------------

#: Empty: there is no /metrics. Else whoever sends it as a bearer token reads the lanes' figures.
METRICS_TOKEN = env.str("METRICS_TOKEN", default="")

# --- Logs -----------------------------------------------------------------------------------------------------------

LOGGING = logs.configure(env.str("LOG_LEVEL", default="INFO").upper())

# --- Workers --------------------------------------------------------------------------------------------------------

CELERY_BROKER_URL = ENVIRONMENT.broker_url
CELERY_ENABLE_UTC = True
CELERY_TIMEZONE = "UTC"
CELERY_TASK_IGNORE_RESULT = True
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_SEND_TASK_EVENTS = False
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
# A message only wakes, and its task is right any number of times.
CELERY_TASK_ACKS_LATE = True
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
# A page that wakes a worker must not wait for a broker that is gone.
CELERY_BROKER_CONNECTION_TIMEOUT = 3

_QUEUE_TYPE = {"x-queue-type": "quorum"} if ENVIRONMENT.has_amqp else {}


def _exchange(name: str) -> Exchange:
    """On Redis the exchange without a name, which needs no binding: bindings are keys there, and are gone from a broker
    that is emptied, after which nothing sent would arrive. RabbitMQ keeps them; its quorum queues ask for a topic."""
    return Exchange(name, type="topic") if ENVIRONMENT.has_amqp else Exchange("", type="direct")


CELERY_TASK_QUEUES = [
    Queue(name, _exchange(name), routing_key=name, queue_arguments=_QUEUE_TYPE)
    for name in ("drain", "ticks", "deliveries", "people")
]
CELERY_TASK_DEFAULT_QUEUE = "drain"
CELERY_TASK_DEFAULT_EXCHANGE = _exchange("drain").name
CELERY_TASK_DEFAULT_EXCHANGE_TYPE = _exchange("drain").type
CELERY_TASK_DEFAULT_ROUTING_KEY = "drain"
# Ticks sweep, brake and wake: they do not stand in line behind a backlog.
CELERY_TASK_ROUTES = {
    "queue_core.tasks.tick": {"queue": "ticks"},
    "queue_core.tasks.health": {"queue": "ticks"},
    "queue_core.tasks.relay": {"queue": "ticks"},
    # A consumer that hangs stands in the way of neither ticks nor calls.
    "queue_core.tasks.deliver": {"queue": "deliveries"},
    # What people ask for on thousands of jobs: neither calls nor ticks wait for it, nor it for them.
    "queue_core.tasks.bulk": {"queue": "people"},
    "queue_core.tasks.watch": {"queue": "ticks"},
}
# Dropped unread at last, but by the clock of the worker, which may be minutes off (queue_core.wakeups.EXPIRES_AFTER).
CELERY_BEAT_SCHEDULE = {
    "tick": {"task": "queue_core.tasks.tick", "schedule": 1.0, "options": {"expires": 900}},
    "health": {"task": "queue_core.tasks.health", "schedule": 10.0, "options": {"expires": 900}},
    # On the drainers' queue: a model that hangs must keep no tick waiting.
    "ask_known": {"task": "queue_core.tasks.ask_known", "schedule": 10.0, "options": {"expires": 900}},
    "watch": {"task": "queue_core.tasks.watch", "schedule": 5.0, "options": {"expires": 900}},
}
CELERY_BEAT_SCHEDULE_FILENAME = str(REVIEWBOARD_VAR / "beat-schedule")
CELERY_WORKER_DETECT_QUORUM_QUEUES = ENVIRONMENT.has_amqp
CELERY_BROKER_TRANSPORT_OPTIONS: dict[str, Any] = (
    {"confirm_publish": True}
    if ENVIRONMENT.has_amqp
    else {
        # After a killed worker its message is another's this many seconds later: by default it is an hour, and looked
        # for every 100 seconds.
        "visibility_timeout": 120,
        "unacked_restore_interval": 1,
        "unacked_restore_throttle": 1,
        "socket_connect_timeout": 3,
        "socket_timeout": 30,
        "health_check_interval": 10,
    }
)

#: Networks of consumers inside, beside the public ones: "10.20.0.0/16,192.168.7.9/32". Plain http is for these alone.
QUEUE_CORE_ALLOWED_NETWORKS = env.list("WEBHOOK_ALLOWED_NETWORKS", default=[])
#: A model that obeys is offered where it is part of the demo, and nowhere else.
QUEUE_CORE_CONNECTIONS = {"demo": "reviewboard.demo.connection.build"} if REVIEWBOARD_DEMO else {}
