#!/bin/sh
# Find Chromium for the browser tests; on Debian and Ubuntu, as root, install it.
set -eu

for name in chromium chromium-browser google-chrome; do
  if command -v "$name" >/dev/null 2>&1; then exit 0; fi
done
if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" -eq 0 ]; then
  echo "Installing Chromium for the browser tests ..."
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null
  exit 0
fi
echo "The browser tests need Chromium: install it (on Debian: sudo apt-get install chromium) and run this again." >&2
exit 1
