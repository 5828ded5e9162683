"""The commands of a team server: `admin` changes people and limits, `work` runs their questions."""
