"""HTTP: `nexi serve` and its contracts, over one `Nexi` that all requests share."""
