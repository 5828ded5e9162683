"""The five specifications as tables of requirements, and the tests that no other suite has."""
