from queue_core import roles

ROLES = (roles.VIEWER, roles.REVIEWER, roles.SPECIALIST, roles.LEAD, roles.ADMINISTRATOR)
