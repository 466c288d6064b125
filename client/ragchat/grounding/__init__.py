"""What passages hold of a question, and of a model's answer: used by cards, models and research alike.

Start with `evidence`: it compares a question with passages, piece by piece, and judges whether they answer
it. `facts` checks the numbers, names and dates of an answer. Imports nothing of `turn` or `offline`.
"""
