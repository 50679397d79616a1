"""Sign-in to the console by a provider of OpenID Connect."""
