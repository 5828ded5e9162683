"""The loopback rig: an offline web, a scripted model server, and the scorer. For tests, benches and evals; never shipped."""
