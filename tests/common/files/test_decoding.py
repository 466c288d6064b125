"""What text is in some bytes."""

from __future__ import annotations

import random

import pytest

from ragcommon.files.decoding import EmptyText, NotText, decode

FOREIGN = [
    ("買い物リスト：牛乳、パン、卵", "cp932"),
    ("会議は木曜日の午前十時に始まります。場所は三階です。", "euc_jis_2004"),
    ("会议将于星期四上午十点开始。地点是三楼的大会议室。", "gb18030"),
    ("會議將於星期四上午十點開始。地點是三樓的大會議室。", "big5hkscs"),
    ("회의는 목요일 오전 열 시에 시작합니다. 장소는 삼 층입니다.", "cp949"),
    ("Совещание начнётся в четверг в десять часов утра.", "cp1251"),
    ("Совещание начнётся в четверг в десять часов утра.", "koi8_r"),
    ("Η συνάντηση αρχίζει την Πέμπτη στις δέκα το πρωί.", "cp1253"),
    ("Zażółć gęślą jaźń. Spotkanie odbędzie się w środę.", "cp1250"),
    ("Zażółć gęślą jaźń. Spotkanie odbędzie się w środę.", "iso8859_2"),
    ("Příliš žluťoučký kůň úpěl ďábelské ódy.", "cp1250"),
    ("Az ülés időpontja csütörtök délelőtt, a tűzoltók fölött.", "cp1250"),
    ("Toplantı çarşamba günü saat onda. Lütfen sözleşmeyi getirin, şirket müdürü bekliyor.", "cp1254"),
    ("Die Müllers wohnen in der Bäckerstraße 5. Übergabe am 3. März, Größe: 12 qm.", "cp850"),
    ("Die Gäste kommen um fünf. Größe 38. Süßes Brötchen.", "mac_roman"),
    ("Résumé de la réunion. Le café à Orléans coûte 12 euros, l’hôtel est complet.", "mac_roman"),
    ("Mötet börjar på lördag i Göteborg, på översta våningen.", "mac_roman"),
    ("El año que viene será mejor.", "cp850"),
    ("Привет", "cp1251"),
    ("会议延期。", "gb18030"),
    ("Die Prüfung beginnt um zehn Uhr.\n", "utf-16-le"),
    ("Die Prüfung beginnt um zehn Uhr.\n", "utf-16-be"),
    ("Совещание начнётся в четверг в десять часов утра.\n", "utf-16-le"),
]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("Zürich".encode(), ("Zürich", "utf-8")),
        (b"\xef\xbb\xbfmark", ("mark", "utf-8")),
        ("Zürich".encode("utf-16"), ("Zürich", "utf-16-le")),
        (b"\xfe\xff" + "Zürich".encode("utf-16-be"), ("Zürich", "utf-16-be")),
        ("Zürich".encode("utf-32"), ("Zürich", "utf-32-le")),
        ("“Zürich”".encode("cp1252"), ("“Zürich”", "cp1252")),
        (b"caf\xe9 \x81", ("café \x81", "latin-1")),
        *((text.encode(encoding), (text, encoding)) for text, encoding in FOREIGN),
        ("Zürich, Genève".encode() + b" caf\xe9", ("Zürich, Genève caf\ufffd", "utf-8")),
        ("Zürich".encode() + b", Gen\xe8ve, caf\xe9", ("ZÃ¼rich, Genève, café", "cp1252")),
        (b"a\r\nb\rc\n", ("a\nb\nc\n", "utf-8")),
    ],
)
def test_text_is_read_in_the_encoding_it_has(data: bytes, expected: tuple[str, str]) -> None:
    assert decode(data)[:2] == expected


@pytest.mark.parametrize(
    "text",
    [
        "Die Müllers wohnen in der Bäckerstraße 5, 12 m² groß; Übergabe bei François am 3. März, 40 €.",
        "L’élève a reçu où il fallait la clé du cœur, « déjà » là-haut, à Noël, naïve et sûre.",
        "¿Dónde está el niño? El 1.º de año, pingüinos y corazón; ¡qué alegría!",
        "As informações estão à disposição; três irmãos vêm amanhã, às dez, ao café.",
        "Perché il caffè è così caro? La città è là; più tardi José e Søren, lunedì.",
        "Mødet er på rådhuset; æbler, øl og blåbær. Én gang på Ærø.",
        "De coëfficiënt van België; één reünie, café’s en ideeën.",
        "It’s 20 °C ± 2 – “fine”, © 2019.",
        "The price is 5 € per m².",
        "Það er þörf á að ræða ýmislegt í október; fjórtán ár síðan.",
        "Perché è già così: è là.",
        "È già così",
        "Été à l'île d'Oléron.",
        "Åh ja, på Ærø.",
        "Å är en å.",
        "5 m² à 3 €",
        "½ cup – ¼ tsp",
        "22,3 °C\n21,9 °C\n23,0 °C\n",
    ],
)
def test_western_languages_are_read_as_windows_1252(text: str) -> None:
    assert decode(text.encode("cp1252")) == (text, "cp1252", True)


@pytest.mark.parametrize(("text", "encoding"), [*FOREIGN, ("Zürich ist schön.", "cp1252")])
def test_only_an_encoding_that_the_file_does_not_state_is_guessed(text: str, encoding: str) -> None:
    assert decode(text.encode(encoding)).is_guessed
    assert not decode(text.encode()).is_guessed
    assert not decode(text.encode("utf-16")).is_guessed


@pytest.mark.parametrize("first", range(0x80, 0xFF, 9))
def test_bytes_without_a_language_are_text_of_a_guessed_encoding(first: int) -> None:
    data = bytes(random.Random(first).choices([*range(first, 0x100), *b" aeiou\n"], k=20_000))
    text, encoding, is_guessed = decode(data)
    assert is_guessed
    assert text.encode(encoding) == data


def test_a_text_says_whether_its_encoding_is_uncertain() -> None:
    assert decode("Zürich".encode()).note == ""
    assert decode("Zürich".encode("cp1252")).note == "is not UTF-8; it was read as cp1252"
    damaged = "Zürich, Genève, Köln".encode() + b" \xe9"
    assert decode(damaged).note == "has bytes that are not UTF-8; they are read as \ufffd"


def test_a_long_text_is_read_whole_in_the_encoding_of_its_beginning() -> None:
    text = "会議は木曜日の午前十時に始まります。" * 2_000
    assert decode(text.encode("cp932")).text == text
    text = "会议将于星期四上午十点开始。" * 2_000
    assert decode(text.encode("gb18030")).text == text


@pytest.mark.parametrize(
    "data", [b"\x00\x01\x02", b"ELF\x00rest", bytes(range(1, 32)) * 9, b"x" * 100 + b"\0"]
)
def test_what_is_not_text_is_refused(data: bytes) -> None:
    with pytest.raises(NotText, match="is not text"):
        decode(data)


@pytest.mark.parametrize("data", [b"", b" \n\t\n", b"\xef\xbb\xbf\n"])
def test_what_holds_only_white_space_is_empty(data: bytes) -> None:
    with pytest.raises(EmptyText, match="is empty"):
        decode(data)
