#!/usr/bin/env bash
# Shows that real MCP clients can list, fill in, render and be told of changes by a real Cuebook.
# Installs the clients when they are missing, starts servers on temporary data directories, runs
# every check and prints `ok` or `FAIL` for each; exits with 1 when one failed.
#
#   tests/clients/run.sh target/debug/cuebook               every client
#   tests/clients/run.sh target/debug/cuebook opencode      only the files of checks/ named so
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [ $# -eq 0 ]; then
  sed -n '2,7s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
export CUEBOOK_CLIENTS_DIR=${CUEBOOK_CLIENTS_DIR:-$here/../../target/clients}
"$here/setup.sh"
exec "$CUEBOOK_CLIENTS_DIR/node/node" "$here/run.mjs" "$@"
