"""Questions about a mail itself, which its header answers. Pure."""

from __future__ import annotations

import functools

from ragchat.offline.words import index_terms

_FIELDS = """
subject sender recipient recipients author addressee cc
betreff absender empfänger verfasser objet expéditeur destinataire auteur asunto remitente destinatario autor
"""
_MAILS = """
mail mails email emails e-mail e-mails message messages letter letters
brief briefe nachricht nachrichten courriel courriels lettre lettres
correo correos carta cartas mensaje mensajes
"""
_SENT = """
date write writes wrote written send sends sent receive receives received addressed answered replied
schreibt schrieb geschrieben sendet gesendet schickte geschickt bekam erhielt erhalten datum
écrit envoyé reçu escribió envió recibió fecha
"""


def asks_for_header(terms: frozenset[str]) -> bool:
    """Whether a question with these terms asks who wrote a mail, to whom, when, or on which subject."""
    fields, mails, sent = _terms_of(_FIELDS), _terms_of(_MAILS), _terms_of(_SENT)
    return bool(terms & fields) or bool(terms & mails and terms & sent)


@functools.cache
def _terms_of(words: str) -> frozenset[str]:
    return frozenset(index_terms(words))
