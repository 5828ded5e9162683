"""Anyone's questions, asked one after the other, with their answers scored: `nexi bench`.

A door beside the command line: it reads a file of questions, asks the app, and keeps a row for each answer. It decides nothing
about an answer; what is right is what the file says is right.
"""
