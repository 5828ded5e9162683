"""Knowledge in Qdrant, for those who outgrow one file: `store` is the port, `points` what is kept and asked."""

from nexi.errors import StoreError
from nexi.install import install_command

try:
    from nexi.stores.qdrant.store import QdrantStore
except ModuleNotFoundError as missing:
    if (missing.name or "").partition(".")[0] != "qdrant_client":
        raise
    raise StoreError(
        "Qdrant needs a part of nexi that is not installed",
        cause="qdrant-client is missing",
        fix=f"Install it with: {install_command('qdrant')}; or unset QDRANT_URL",
    ) from None

__all__ = ["QdrantStore"]
