"""Whether passages answer a question and support an answer; shared by cards, models and research.

Start with `evidence`, which compares a question with passages piece by piece; `judging` decides whether they
answer it. `citations` and `facts` check an answer against its passages; `highlight` finds
the significant words of a question in quotations. Does not import `turn` or `offline`.
"""
