"""What a question expects of its answer."""

from __future__ import annotations

import pytest

from ragchat.offline.answer_types import answer_type


@pytest.mark.parametrize(
    ("question", "yes", "no"),
    [
        ("How many people live in Oslo?", "About 700,000 people.", "Many people."),
        ("Wie viele Inseln gibt es?", "Es gibt sieben.", "Es gibt Inseln."),
        ("有多少个国家？", "九个国家。", "很大的国家。"),
        ("When was it founded?", "It was founded in 1848.", "It was founded by monks."),
        ("When is the fee due?", "On 1 April.", "It is 640 euros."),
        ("When does it warn?", "It warns 12 days ahead.", "It warns 12 users."),
        ("Wann war das?", "Im 17. Jahrhundert.", "Lange her."),
        ("What does a ticket cost?", "Five pounds, or £4 online.", "It is dear."),
        ("Combien ça coûte ?", "12 euros.", "Trop cher."),
        ("How long does it take?", "About two hours.", "It takes long."),
        ("Wie lange dauert es?", "Drei Wochen.", "Sehr lange."),
        ("How old is she?", "She is nine years old.", "Lessons are nine pounds a week."),
        ("How old is she?", "The winner was Anna, 34.", "She has 3 dogs."),
        ("What does it cost?", "It was 1,840 with fitting.", "It has 1840 parts."),
        ("What does it cost?", "They are 12 each.", "They are 12."),
        ("How deep is the pond?", "It is two metres deep.", "There are 12 fish."),
        ("How heavy is it?", "It has 4.2 kilos.", "It is number 4."),
        ("What is the temperature?", "At 140 °C.", "Wait 140 seconds."),
        ("In which year did it open?", "It opened in 1998.", "After three nights."),
        ("What are the opening hours?", "Daily from 10 to 14.", "Ask the depot."),
        ("Who invented it?", "It was Nikola Tesla.", "It was an inventor."),
        ("Where is it?", "It is in Norway.", "It is cold."),
        ("How old is she?", "She is nine years old.", "She leaves in three years."),
        ("How old is it?", "Two hundred years old.", "Wet for two hundred years."),
        ("What does it cost?", "It was 1,840.", "It reaches 1,280 °C and holds 1,000 litres."),
        ("Since when has she taught?", "Since 2019.", "On Tuesday evenings."),
        ("Seit wann?", "Seit zehn Jahren.", "Am Dienstag."),
        ("What is the code of the shed?", "It is 4711-x.", "It is changed twice a year."),
        ("wifi password?", 'It is "Thistle".', "It is on the fridge."),
        ("What is the e-mail address of Ida?", "ida@example.org", "Ida moved to Oslo."),
        ("phone number of the vet?", "Call 01632 960 412.", "Call the vet before 12."),
        (
            "What is the name of the bank?",
            "He worked at it, the Alder Savings Bank.",
            "He worked there in May.",
        ),
        ("What is the ship called?", "She sailed on the *Constance*.", "The ship sank near Port Ellory."),
        ("What is the name of his aunt?", "My aunt Rosa played.", "Dear Piers, my aunt played."),
        ("¿Cómo se llama el perro?", "El perro se llama Toby.", "El perro ladra."),
        ("Wie heißt der Meister?", "Der Meister heißt Horst.", "Der Schlüssel liegt beim Meister."),
    ],
)
def test_the_kind_of_thing_asked_for_is_recognised(question: str, yes: str, no: str) -> None:
    expected = answer_type(question)
    assert expected is not None
    assert any(expected.values_in(yes))
    assert not any(expected.values_in(no))


def test_a_question_that_asks_for_anything_expects_nothing() -> None:
    assert answer_type("Explain photosynthesis.") is None
