"""Quality with pinned floors: what nexi answers on webs that do not change."""
