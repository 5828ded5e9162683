"""What every part that talks over a network shares: addresses of this machine, and later limits and retries."""
