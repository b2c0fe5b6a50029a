#!/bin/sh
# Run a command that needs Node. Without Node it is left out, for the package works all the same; where
# AGENT_MAGICS_REQUIRE_NODE is set (CI sets it) that is an error.
# Usage: sh scripts/with_node.sh COMMAND...
set -eu

if command -v node >/dev/null 2>&1; then exec "$@"; fi
echo "Node is not on the PATH: what needs it is left out ($*)." >&2
test -z "${AGENT_MAGICS_REQUIRE_NODE:-}"
