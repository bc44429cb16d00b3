#!/bin/sh
# Starts Redis with the password of REDISCLI_AUTH. A file holds it, because every process of the machine can read arguments.
set -eu
umask 077
CONFIG="${TMPDIR:-/tmp}/redis.conf"
printf 'requirepass %s\n' "$REDISCLI_AUTH" >"$CONFIG"
exec redis-server "$CONFIG" "$@"
