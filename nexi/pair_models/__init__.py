"""Models that say whether one text supports another: one file for each way, all behind the PairModel port."""
