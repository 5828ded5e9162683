"""`nexi bench`: asks a file of questions and scores the answers, which the file has too."""
