#!/usr/bin/env bash
# Runs the official MCP conformance suite, every server scenario of each revision it knows. Exits
# with 1 when a scenario fails that expected-failures/<revision>.yaml does not excuse, or when one
# passes that it does excuse.
#
#   tests/conformance/run.sh target/debug/cuebook      starts it with tests/fixtures/conformance-library
#   tests/conformance/run.sh http://127.0.0.1:8400     a running server with that library
#
# The suite and the Node it needs are installed by tests/clients/setup.sh. What each check saw is
# left in target/conformance (or $CUEBOOK_CONFORMANCE_DIR), a directory a revision.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [ $# -ne 1 ]; then
  sed -n '2,10s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
export CUEBOOK_CLIENTS_DIR=${CUEBOOK_CLIENTS_DIR:-$here/../../target/clients}
export CUEBOOK_CONFORMANCE_DIR=${CUEBOOK_CONFORMANCE_DIR:-$here/../../target/conformance}
"$here/../clients/setup.sh"
exec "$CUEBOOK_CLIENTS_DIR/node/node" "$here/run.mjs" "$1"
