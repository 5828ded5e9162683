"""What every part that talks over a network shares: loopback addresses, certificates, retries, rates, the circuit breaker."""
