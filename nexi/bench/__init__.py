"""`nexi bench`: asks a file of questions and scores the answers.

It reads the questions, asks the app, and saves a row for each answer. The file says which answers are right.
"""
