"""Judges one's own answers: cases, saved from turns or read from a script, are asked again and compared.

`cases` makes them, `judging` asks and judges them, `runs` compares two runs, `store` keeps both. `replaying`
compares the answers to one question, `stale` finds answers whose documents have changed since.
"""
