"""The version of the package, which is that of the server."""

VERSION = "0.1.0"
