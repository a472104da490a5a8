"""One notice as mail, in the language and the zone of the person who gets it."""

from django.conf import settings
from django.core.mail import EmailMessage
from django.urls import reverse
from django.utils import timezone, translation
from django.utils.translation import gettext as _

from queue_core.models import AlertEpisode, AlertNotice
from queue_core.states import AlertPhase
from reviewboard.alert_text import about, over_sentence, sentence, url_of
from reviewboard.models import Person
from reviewboard.reader import LANGUAGES, zone_of


def send(notice: AlertNotice) -> str:
    """Send it and return "", or why this person gets none. Raises what the mail server's library raises."""
    person = notice.person
    if not isinstance(person, Person) or not person.is_active or not person.email:
        return "the person gets no mail any more"
    language = person.language if person.language in LANGUAGES else settings.LANGUAGE_CODE
    with translation.override(language), timezone.override(zone_of(person)):
        message = EmailMessage(
            subject=_subject(notice),
            body=_body(notice),
            to=[person.email],
            # So that a mail program knows the second copy of a try whose end nobody knows.
            headers={"Message-ID": f"<{notice.key}@reviewboard>", "Auto-Submitted": "auto-generated"},
        )
    message.send()
    return ""


def _subject(notice: AlertNotice) -> str:
    episode = notice.episode
    values = {"about": about(episode), "what": episode.get_kind_display()}
    if notice.phase == AlertPhase.OVER:
        return _("[Reviewboard] %(about)s: over: %(what)s") % values
    return _("[Reviewboard] %(about)s: %(what)s") % values


def _body(notice: AlertNotice) -> str:
    episode = notice.episode
    lines = [over_sentence(episode) if notice.phase == AlertPhase.OVER else sentence(episode), ""]
    lines += _links(episode)
    lines.append(
        _("Times are in %(zone)s. Which mail you get is set in the admin.")
        % {"zone": timezone.get_current_timezone_name()}
    )
    return "\n".join(lines)


def _links(episode: AlertEpisode) -> list[str]:
    """Where something can be done; nothing where nobody said what the site is called."""
    if not settings.PUBLIC_URL:
        return []
    return [f"{settings.PUBLIC_URL}{url_of(episode)}", f"{settings.PUBLIC_URL}{reverse('alerts')}", ""]
