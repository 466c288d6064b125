"""Answers without a model: the best sentences of the passages, quoted.

Start with `answer`. A passage is cut into blocks (`layout`), and these into units that can be quoted
(`structure`, with `sentences`, `code` and `records`). `windows` chooses the units to quote; `evidence` judges
what they hold of a question, `answer_types` what a question expects, `mail` whether it is about a mail.

`requests` recognizes questions for more than one fact; `lists`, `outline` and `places` answer them.
`small_talk` replies to greetings. `words` finds the content words of a text, also for the turn's follow-up
questions. All of it is pure but for reading the packaged replies.
"""
