"""HTTP clients, and what the environment says to them: proxies and certificates.

One function makes every client, so that this machine is never asked through a proxy, and a variable that cannot be used is
named instead of failing somewhere in a library.
"""
