"""Content words, in several languages."""

from __future__ import annotations

import unicodedata

import pytest

from ragchat.grounding.words import content_words, index_terms, is_acronym, is_general, is_german, is_unspaced


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("What is the capital of France?", ["capital", "France"]),
        ("Wie hoch ist der Eiffelturm?", ["hoch", "Eiffelturm"]),
        ("Où se trouve la tour Eiffel ?", ["trouve", "tour", "Eiffel"]),
        ("¿Cuándo nació Cervantes?", ["nació", "Cervantes"]),
        ("中国的首都是哪里？", ["中国", "首都"]),
        ("Hoeveel weken van tevoren moet ik opzeggen?", ["weken", "tevoren", "opzeggen"]),
        ("Ate que horas posso fazer mudança?", ["horas", "mudança"]),
        ("Dove trovo quello vecchio?", ["trovo", "vecchio"]),
        ("Jakimi klawiszami mogę wyłączyć serwer?", ["klawiszami", "wyłączyć", "serwer"]),
        ("Vilka dagar är biblioteket öppet?", ["dagar", "biblioteket", "öppet"]),
        ("Какая температура нужна для чая?", ["температура", "нужна", "чая"]),
        ("Πότε αδειάζει ο κάδος του χαρτιού;", ["αδειάζει", "κάδος", "χαρτιού"]),
        ("ποιος εχει το εφεδρικο κλειδι", ["εφεδρικο", "κλειδι"]),
        ("Kâğıt kutusu ne zaman boşaltılır?", ["Kâğıt", "kutusu", "boşaltılır"]),
        ("كم يجب أن يكون ضغط الغلاية؟", ["ضغط", "الغلاية"]),
        ("מתי מתרוקן פח הנייר?", ["מתרוקן", "פח", "הנייר"]),
        ("फ्रिज की कीमत क्या है?", ["फ्रिज", "कीमत"]),
        ("예비 열쇠는 누가 가지고 있나요?", ["예비", "열쇠는", "가지고"]),
        ("予備の鍵は誰が持っていますか？", ["予備", "鍵", "持ってい"]),
        ("冰箱多少钱？", ["冰箱"]),
        ("Use numpy 2.4 in snake_case, don't", ["Use", "numpy", "2.4", "snake", "case"]),
        ("Whats wrong, why wont my pump start, it won't and I've tried", ["wrong", "pump", "start", "tried"]),
        ("La pompe dont le moteur est bruyant", ["pompe", "moteur", "bruyant"]),
        ("A-7,Cordless drill,5,Shelf B2", ["A-7", "Cordless", "drill", "5", "Shelf", "B2"]),
        ("It weighs 1,200.5 kg, or 3,5 t", ["weighs", "1,200.5", "kg", "3,5", "t"]),
        ("why?", []),
        ("", []),
    ],
)
def test_what_a_text_is_about(text: str, content: list[str]) -> None:
    assert content_words(text) == content


@pytest.mark.parametrize(
    "text",
    [
        *("min voltage", "mine depth", "end date", "dog food brand", "van insurance cost", "fur coat price"),
        *("pod memory limit", "Sam phone number", "hans phone number", "Dell laptop", "vitamin e dose"),
        *("door colour", "per diem", "hay price", "word count", "state tax", "go version"),
        *("font size", "kimi phone number", "bao buns recipe"),
    ],
)
def test_keywords_of_an_english_question_are_no_function_words_of_another_language(text: str) -> None:
    assert content_words(text) == text.split()


@pytest.mark.parametrize("name", ["Sam", "Hans", "Ned", "Dell"])
def test_a_name_is_kept_though_it_is_a_function_word_elsewhere(name: str) -> None:
    assert name in content_words(f"Wann kam {name}?")


def test_forms_of_a_word_are_one_term() -> None:
    assert index_terms("connected connections") == index_terms("connect connection")
    assert index_terms("Tesla's") == index_terms("Tesla")
    assert index_terms("Häuser") == index_terms("häuser")


@pytest.mark.parametrize(
    ("word", "form", "other"),
    [
        ("note", "notes", "not"),
        ("owner", "owned", "own"),
        ("offers", "offered", "off"),
        ("due", "dues", "du"),
        ("Seite", "Seiten", "seit"),
        ("Sicherheit", "sicher", "sich"),
        ("nächste", "nächsten", "nach"),
        ("schön", "schöne", "schon"),
        ("UPS", "ups", "up"),
        ("founded", "founder", "found"),
    ],
)
def test_a_word_is_no_function_word_with_the_same_stem(word: str, form: str, other: str) -> None:
    assert index_terms(word) == index_terms(form) != index_terms(other)
    assert not is_general(word)
    assert index_terms("wars") == index_terms("war")
    assert index_terms("Kinder") == index_terms("Kind")


@pytest.mark.parametrize(
    "text", ["Schlüssel für die Käferöle", "l'été, qu'Éva", "กุญแจสำรอง", "दरवाज़े की कीमत"]
)
def test_combining_marks_belong_to_their_words(text: str) -> None:
    assert index_terms(unicodedata.normalize("NFD", text)) == index_terms(text)


def test_the_dotless_i_of_turkish_is_an_i() -> None:
    assert index_terms("Işık Hanım, kâğıt") == index_terms("IŞIK HANIM, kagit")
    assert index_terms("İstanbul") == index_terms("istanbul")


def test_vowel_signs_do_not_end_a_word() -> None:
    assert content_words("कीमत किताब") == ["कीमत", "किताब"]
    assert content_words("مُدَرِّسٌ جديد") == ["مُدَرِّسٌ", "جديد"]


def test_unspaced_text_is_compared_by_pairs() -> None:
    assert index_terms("中国首都") == ["中国", "国首", "首都"]


def test_identifiers_are_compared_whole_and_in_parts() -> None:
    assert index_terms("retryAfter") == ["retryaft", "retri", "aft"]
    assert index_terms("HTTPServer")[1:] == index_terms("http server")
    assert index_terms("iPhone") == ["iphon"]


def test_numbers_with_a_comma_between_them_may_be_two_cells() -> None:
    assert index_terms("24,6.42") == ["24", "6.42", "24,6.42"]


def test_a_whole_number_with_a_decimal_holds_the_number() -> None:
    assert {"10"} < {*index_terms("a depth of 10.0 m")}
    assert "10.0" not in index_terms("a depth of 10 m")
    assert "2" not in index_terms("version 2.10, 2.05 and v2.0.1")


def test_the_forms_of_an_identifier_share_their_terms() -> None:
    assert set(index_terms("retryAfter")) == set(index_terms("retry_after"))


def test_a_function_word_that_means_something_in_english_depends_on_the_words_beside_it() -> None:
    assert content_words("Did the fish die in the war?") == ["fish", "die", "war"]
    assert content_words("Wann war die Wahl?") == ["Wahl"]


def test_scripts_without_spaces_are_recognised() -> None:
    assert is_unspaced("2019年呢?")
    assert not is_unspaced("What does 首都 mean in English?")


def test_words_come_without_what_is_elided_before_them() -> None:
    assert content_words("Quelle est l'altitude d’Annecy ?") == ["altitude", "Annecy"]


def test_accents_and_case_make_no_difference() -> None:
    assert index_terms("Élevé") == index_terms("eleve")


def test_general_words_are_known_in_all_their_forms() -> None:
    assert is_general("making")
    assert not is_general("boiler")


def test_a_number_is_the_same_with_and_without_marks_between_its_thousands() -> None:
    assert index_terms("31,500") == index_terms("31.500") == index_terms("31500")
    assert index_terms("1.2") != index_terms("12")
    assert index_terms("0.125") != index_terms("0125")


def test_a_date_has_its_day_month_and_year_however_it_is_written() -> None:
    assert set(index_terms("21.08.2023")) == set(index_terms("2023-08-21")) == {"21", "month 8", "2023"}
    assert set(index_terms("1.8.2023")) == set(index_terms("01.08.2023")) == {"1", "month 8", "2023"}
    assert set(index_terms("the 21st of August, 2023")) >= {"21", "month 8", "2023"}
    assert index_terms("4th") == index_terms("4") != index_terms("4thly")
    assert "2023" in index_terms("Date: 1.8.2023,")
    assert index_terms("21.13.2023") == ["21.13.2023"]


@pytest.mark.parametrize(
    "word", ["February", "feb", "Februar", "février", "2026-02-03", "2026-02", "03.02.2026"]
)
def test_the_name_of_a_month_and_a_date_in_numbers_share_its_month(word: str) -> None:
    assert "month 2" in index_terms(word)
    assert "month 2" not in index_terms("March 2026-03-02, 02.03.2026, 2.2 and 2026-02x")


def test_words_with_a_hyphen_are_their_parts_however_they_are_joined() -> None:
    assert index_terms("NASA-Gruppe") == index_terms("NASA Gruppe")
    assert index_terms("24-10") == index_terms("24–10")


def test_letters_with_full_stops_are_one_acronym() -> None:
    assert index_terms("the U.S. economy") == index_terms("the US economy")


@pytest.mark.parametrize(
    ("word", "expected"),
    [("NAS", True), ("IPv6", True), ("ISBN-13", True), ("Folk-Metal", False), ("Anna", False), ("-", False)],
)
def test_acronyms_have_several_capitals_together(word: str, *, expected: bool) -> None:
    assert is_acronym(word) is expected


def test_an_acronym_is_no_function_word() -> None:
    assert content_words("Is the NAS on?") == ["NAS"]


def test_german_is_recognised_by_its_function_words() -> None:
    assert is_german("Wie heißt die Hauptstadt von Norwegen?")
    assert not is_german("Who was in Berlin?")


def test_names_with_dots_are_compared_whole_and_in_parts() -> None:
    assert {"trav"} < set(index_terms("engine.Traverse(cmd)"))
    assert {"falcon", "exampl"} < set(index_terms("falcon.example.org:8443"))
    assert "2" not in index_terms("v1.2.3")
    assert "50" not in index_terms("10.50")


def test_a_word_is_general_only_if_all_its_parts_are() -> None:
    assert is_general("name")
    assert not is_general("name.zone")
