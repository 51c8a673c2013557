"""What a command does, whoever asks: the command line and the page both call it, and show it in their own way."""
