"""What people read: numbers, odds, releases and cards in plain words, for summaries, commands and reports."""
