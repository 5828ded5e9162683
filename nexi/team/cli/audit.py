"""The audit log in words: who did what to whom, for `nexi admin audit`."""

from __future__ import annotations

import re
from collections.abc import Mapping

__all__ = ["ACTIONS", "describe_action", "ids_in"]

ACTIONS: Mapping[str, str] = {
    "accept_knowledge": "accepted the knowledge base of {}",
    "add_knowledge": "added to the team's knowledge base: {}",
    "add_link": "created a sign-in link for {}",
    "add_schedule": "scheduled a question for {}",
    "add_token": "created a token: {}",
    "add_user": "added {}",
    "disable_user": "disabled {}",
    "enable_user": "enabled {}",
    "export_user": "exported the data of {}",
    "exported_by": "was shown that {} exported their data",
    "link_made_by": "was shown that {} created a sign-in link",
    "mute_knowledge": "muted the knowledge base of {}",
    "remove_knowledge": "removed from the team's knowledge base: {}",
    "remove_schedule": "removed schedule {}",
    "remove_user": "deleted {}",
    "revoke_token": "revoked token {}",
    "set_quotas": "changed the limits of {}",
    "set_role": "changed the role of {}",
    "share_knowledge": "shared a knowledge base with {}",
    "share_run": "shared run {}",
    "share_space": "shared space {}",
    "sign_in": "signed in",
    "sign_in_by_link": "signed in with a link",
    "token_made_by": "was shown that {} created a token",
}
_ID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")


def ids_in(*texts: str) -> list[str]:
    """The ids of people, tokens or spaces in some texts."""
    return sorted({match for text in texts for match in _ID.findall(text)})


def describe_action(action: str, subject: str, names: Mapping[str, str]) -> str:
    """An entry as a phrase, with the names of people in the place of their ids; someone who was deleted has only an id."""
    return ACTIONS.get(action, f"{action} {{}}").format(_ID.sub(lambda match: names.get(match[0], match[0]), subject)).strip()
