"""What every part that talks over a network shares: loopback addresses, certificates, retry-after, the circuit breaker."""
