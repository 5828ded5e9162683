"""Written language as data: terms, sentences, stop words, stems. Pure; knows no index, no subject and no site."""
