"""What both programs know about text: `rules` of Markdown's lines and of words, `places` in documents."""
