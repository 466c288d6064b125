"""The words of texts: function words, content words, and the terms by which words are compared. Pure.

The stop words of the memory's index are others: fewer, as dropping a word there loses it for good.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

from ragcommon.text.rules import PART_END, UNSPACED

_WORD = re.compile(rf"[{UNSPACED}]+|[^\W_{UNSPACED}]+(?:['’.,-](?=[^\W_{UNSPACED}])[^\W_{UNSPACED}]+)*")
_PART_END = re.compile(PART_END)
_SNAKE_CASE = re.compile(r"[^\W_]+(?:_+[^\W_]+)+")
_DOTTED = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]")  # U.S. as people write US
_GROUPED = re.compile(r"[1-9]\d{0,2}(?:[.,]\d{3})+")  # 31,500 as people write 31500
_UNSPACED_RUN = re.compile(f"[{UNSPACED}]+")
# l'eau, d'Anna, qu'elle: an elided word before the one that counts.
_ELIDED = re.compile(r"(?:[cdjlmnst]|qu|jusqu|lorsqu|puisqu)['’](?=[^\W\d_]{2})", re.IGNORECASE)

# Function words, question words and pronouns.
_ENGLISH = """
a about after again all also am an and any are aren't as at be because been before being between both but
by can can't could did didn't do does doesn't doing don't down during each else even ever few for from
further get gets give given had has have having he her here hers herself him himself his how however i if
in into is isn't it its it's itself just know let's like many may me mean meant might more most much must
my myself named no nor not now of off on once one only or other others our ours out over own please same
shall she should show so some such tell than that that's the their theirs them themselves then there
there's these they this those through to too under until up us very was wasn't we were what what's when
where where's which while who who's whom whose why will with within without would you your yours exactly
say says said does anything something kind type called
"""
_GERMAN = """
wann aber alle allem allen aller alles als also am an ander andere anderen auch auf aus bei beim bis
bist da dabei dadurch dafür damit danach dann daran darauf daraus darin darum darüber das dass davon dazu
dem denen denn der deren des dessen dich diese diesem diesen dieser dieses dir doch dort du
durch ein eine einem einen einer eines er es etwas euch euer für gab gegen genau gibt gewesen hab habe
haben hatte hatten hier hin ich ihm ihn ihnen ihr ihre ihrem ihren ihrer im in indem ins ist ja jede
jedem jeden jeder jedes jener kann kein keine können könnte mehr mein meine mich mir mit muss nach
nicht nichts noch nun nur ob oder ohne sehr sein seine seinem seinen seiner seit sich sie sind so solche
soll sollte sondern sonst sowie um und uns unser unter viel viele vielen vom von vor waren warum was
weil welche welchem welchen welcher welches wem wen wenn wer werde werden wessen weshalb wie wieder wieso
wieviel will wir wird wo wobei wodurch wofür woher wohin womit woran worauf woraus worin wurde wurden
während zu zum zur zwar zwischen über bitte nenne sag zeig
bin die man war
"""
# Content words that show that a text is German.
_GERMAN_VERBS = (
    "kostet kosten kostete wiegt dauert dauerte heißt heissen hieß gehört liegt steht kommt lautet"
)
_FRENCH = """
à au aux avec ce ceci cela celle celles celui ces cet cette comment dans de des donc dont du elle elles en
est et eu eux il ils j je l la le les leur leurs lui là ma mais mes moi mon même ne ni nos notre nous n
ont ou où par pas pourquoi qu quand que quel quelle quelles quels qui quoi sa sans se ses si
sont sur ta te tes toi tu un une vos votre vous y ça c d s t m était étaient être a-t-il combien
est-ce qu'est-ce
son pour
"""
_SPANISH = """
al algo algunos ante antes como con contra cual cuál cuáles cuando cuándo cuánto cuántos cuánta de del
desde donde dónde durante el él ella ellas ellos en entre eran es esa ese eso esta está este esto
estos fue fueron ha había hay la las le les lo los más mi mis muy nada ni no nos o otro para pero por
porque qué que quien quién quiénes se ser si sí sin sobre su sus también te tiene todo tu un una uno
unos y ya cada cómo
"""
_ITALIAN = """
ai alla anche che chi ci con cosa cui da dal dalla degli dei del della delle di dove e ed erano
fu gli ha hanno i il in io l la le lei lo loro ma mi nel nella non o perché più quale quali quando
quanti quanto questa questo se si sono sta su sua sue sul sulla suo tra un una uno
"""
_DUTCH = """
aan als bij dan dat de deze dit een en er het hij hoe hun ik in is je kan maar naar niet of
om ook op te tot uit voor waar waarom wanneer wat we welke werd wie wordt ze zijn zij
"""
_PORTUGUESE = """
ao aos com como da das de do dos e é ela ele eles em entre foi foram isso isto mais mas na nas no nos
não o os ou para pela pelo por qual quais quando quantos que quem se sem ser seu sua são também um uma
"""
_EACH = (_ENGLISH, _GERMAN, _FRENCH, _SPANISH, _ITALIAN, _DUTCH, _PORTUGUESE)
_LANGUAGES = [frozenset(words.split()) for words in _EACH]
# By these a text is recognised. Function words that mean something in English say nothing alone.
_SIGNS = [language - frozenset(("bin", "die", "man", "pour", "son", "war")) for language in _LANGUAGES]
_SIGNS[1] |= frozenset(_GERMAN_VERBS.split())

# The same for Chinese and Japanese, removed from runs of characters, longest first. Single characters that
# are often part of a word are not among them, such as the 中 of 中国 and the 都 of 首都.
_FUNCTION_RUN_PARTS = """
什么时候 什么样 为什么 是什么 什么 哪些 哪个 哪一 哪里 哪儿 哪年 哪 谁的 谁 怎么样
怎么 怎样 如何 多少 多久 多大 几个 几年 是否 是不是 有没有 可以 可能 它们 他们 她们
它 他 她 我们 你们 这个 这些 这种 这里 这 那个 那些 那种 那里 那么 那 其中 的 了
吗 呢 吧 啊 是 在 与 及 被 对于 关于 请问 告诉 一个 一种 叫做 哪位 何时 何处 何
还有 但是 因为 所以 如果 です ます した する ある いる から まで より だれ どこ いつ
なに 何 どの どう なぜ は が を に で と の も へ や か
"""

# Content words that say little of what is asked: an answer puts them otherwise, or leaves them out.
_GENERAL_WORDS = """
use used using take takes taken took get getting go goes going gone went make makes made making need
needs needed want wants wanted wish happen happens happened come comes came coming become becomes became
put keep keeps kept name names named call called way thing stand stands look looks find found tell told
know known think thought work works according really already currently present presently actually today
new mean means meant show shows beginning begin began start started let set possible able kind sort type
list give gives belong include included apply deal two first last
heißt nennt machen macht gemacht gehen geht ging kommen kommt kam bedeutet zeigt zeigen braucht brauchen
neue neuer neues neuen gewählt genannt aktuell eigentlich hat hast bedeuten bedeutet bekommen bekommt
tun tut getan appelle appelait veut dire faire fait faut mettre va aller vient signifie nouveau nouvelle
llama llamaba hacer hace hizo significa quiere decir nuevo nueva poner están
"""
_FUNCTION_RUNS = re.compile("|".join(sorted(_FUNCTION_RUN_PARTS.split(), key=len, reverse=True)))


def words(text: str) -> list[str]:
    """All words in lower case. A run of characters of a script without spaces is one word."""
    return [_plain(word) for word in _WORD.findall(text)]


def content_words(text: str) -> list[str]:
    """All but the function words of its language, in order and as written.

    A word in capitals within other words is a name: NAS is not the Portuguese "nas".
    """
    written = _WORD.findall(without_elisions(text))
    function_words, has_capitals = _function_words(map(_plain, written)), text.upper() != text
    found: list[str] = []
    for word in written:
        if _UNSPACED_RUN.fullmatch(word):
            found += [part for part in _FUNCTION_RUNS.split(word) if part]
        elif _plain(word) not in function_words or (has_capitals and is_acronym(word)):
            found.append(word)
    return found


def is_acronym(word: str) -> bool:
    """Whether a word is written in several capitals, or a part of it, such as NAS, IPv6 or ISBN-13."""
    return any(part[:1].isalpha() and sum(map(str.isupper, part)) > 1 for part in word.split("-"))


def is_german(text: str) -> bool:
    """Whether a text is most likely German, where every noun has a capital."""
    return _LANGUAGES[1] in _languages(words(text))


def without_elisions(text: str) -> str:
    """Without the elided words before others: l'eau is eau."""
    return _ELIDED.sub(" ", text)


def _plain(word: str) -> str:
    return word.lower().replace("’", "'")


def _function_words(plain: Iterable[str]) -> frozenset[str]:
    return frozenset[str]().union(*_languages(plain))


def _languages(plain: Iterable[str]) -> list[frozenset[str]]:
    """The function words of the languages that most of these words are signs of."""
    known = list(plain)
    counts = [sum(word in signs for word in known) for signs in _SIGNS]
    return [language for language, count in zip(_LANGUAGES, counts, strict=True) if 0 < count == max(counts)]


def index_terms(text: str) -> list[str]:
    """The terms by which texts are compared: stems of words, and of identifiers whole and in parts.

    So retry_after and retryAfter have the same. Words with a hyphen are several, as they are often written.
    In scripts without spaces, pairs of characters.
    """
    found = [_stem(name.replace("_", "")) for name in _SNAKE_CASE.findall(text)] if "_" in text else []
    for word in _WORD.findall(without_elisions(text)):
        if _UNSPACED_RUN.fullmatch(word):
            found += [word[i : i + 2] for i in range(len(word) - 1)] or [word]
        else:
            for part in word.split("-"):
                plain = (
                    re.sub(r"[.,]", "", part) if _GROUPED.fullmatch(part) or _DOTTED.fullmatch(part) else part
                )
                found += map(_stem, (plain, *_parts(plain)))
    return found


def _parts(word: str) -> list[str]:
    """The parts of an identifier such as retryAfter; none of other words."""
    parts = [part for part in _PART_END.split(word) if len(part) > 1]
    return parts if len(parts) > 1 else []


def folded(word: str) -> str:
    """In lower case and without accents: people leave them out."""
    word = word.casefold().replace("’", "'")
    if word.isascii():
        return word
    return "".join(sign for sign in unicodedata.normalize("NFKD", word) if not unicodedata.combining(sign))


def is_general(word: str) -> bool:
    """Whether a word says little of what a question asks for."""
    return not _general_terms().isdisjoint(index_terms(word))


@functools.cache
def _general_terms() -> frozenset[str]:
    return frozenset(index_terms(_GENERAL_WORDS))


def is_unspaced(text: str) -> bool:
    """Whether most letters of a text belong to scripts without spaces."""
    return sum(map(len, _UNSPACED_RUN.findall(text))) * 2 > sum(map(str.isalpha, text))


@functools.lru_cache(20_000)
def _stem(word: str) -> str:
    return _stemmer()(folded(word).removesuffix("'s"))


@functools.cache
def _stemmer() -> Callable[[str], str]:
    """Stems as in English and then in German; names of other languages rarely change.

    Memory's stems are the English ones: words that match there match here as well.
    """
    make: Callable[[str], Any] = import_module("Stemmer").Stemmer  # a C module without type stubs
    english, german = make("english").stemWord, make("german").stemWord
    return lambda word: str(german(english(word)))
