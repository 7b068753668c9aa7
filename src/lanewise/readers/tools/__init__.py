"""What other tools print: a folder for what they measure, and what several of them need."""
