"""Which services that need no key are asked, with which words, and how their results become one list. Pure.

`table` says what each service is good for and what its terms ask of us, `route` chooses among them by cheap features of the
question, `fusion` merges what they answer. Who sends requests, and what happens when a service fails, is not known here.
"""
