"""Knowledge in Qdrant, for those who outgrow one file: `store` is the port, `points` what is kept, `filters` what is asked."""

from nexi.stores.qdrant.store import QdrantStore

__all__ = ["QdrantStore"]
