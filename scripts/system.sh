#!/bin/sh
# Find a program that the tests need; on Debian and Ubuntu, as root, install its package.
# Usage: sh scripts/system.sh WHAT PACKAGE COMMAND...   (any of the commands will do)
set -eu

what=$1
package=$2
shift 2
for name in "$@"; do
  if command -v "$name" >/dev/null 2>&1; then exit 0; fi
done
if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" -eq 0 ]; then
  echo "Installing $what for the tests ..."
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package" >/dev/null
  exit 0
fi
echo "The tests need $what: install it (on Debian: sudo apt-get install $package) and run this again." >&2
exit 1
