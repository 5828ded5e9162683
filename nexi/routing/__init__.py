"""Which services that need no key are asked, with which words, and how their results become one list.

`table` says what each service is good for and what its terms ask of us, `route` chooses among them by cheap features of the
question and has them asked, `fusion` merges what they answer. Who sends requests is not known here.
"""
