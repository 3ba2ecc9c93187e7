#!/usr/bin/env bash
# Sends what schemathesis makes of the API's own description to a real server; see run.py.
#
#   tests/api/run.sh PATH/TO/cuebook
#
# Needs python3, 3.11 or newer, with venv. What else it needs is installed into target/api.
set -euo pipefail

cuebook=$(realpath "${1:?usage: tests/api/run.sh PATH/TO/cuebook}")
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dir=$here/../../target/api
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)

want=$(sha256sum <"$here/requirements.txt")
if [ "$(cat "$dir/installed" 2>/dev/null)" != "$want" ]; then
  rm -f "$dir/installed"
  python3 -m venv --clear "$dir/venv"
  "$dir/venv/bin/pip" install --quiet --disable-pip-version-check --requirement "$here/requirements.txt"
  echo "$want" >"$dir/installed"
fi
cd "$dir"
exec "$dir/venv/bin/python" "$here/run.py" "$cuebook"
