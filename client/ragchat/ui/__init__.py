"""The terminal: what a person types and sees. Answers are made in `turn`.

Start with `chat`. The modules here are what the chat and its slash commands share: `context` above all. They
import `prompt` and `render`, which import neither each other nor them, but for the styles in `render.style`;
`slash` imports them, and `chat` all of these.
"""
