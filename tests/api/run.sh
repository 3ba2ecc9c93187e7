#!/usr/bin/env bash
# Sends what schemathesis makes of the API's own description to a real server, and fails on an answer that is a fault of
# the server or is not in the description: another status, another content type, another shape.
#
#   tests/api/run.sh PATH/TO/cuebook
#
# Every operation is asked, as an admin, with a fixed seed and a bounded number of examples, one after another: it takes
# about two minutes at most. It is the only admin, which nobody can disable; should its token be revoked on the way, this
# fails at the end, since every answer after that would have said nothing. Needs python3 (3.11 or newer) with venv.
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

data=$(mktemp -d)
server=
end() {
  if [ -n "$server" ]; then
    kill "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
  fi
  rm -rf "$data"
}
trap end EXIT

export CUEBOOK_ACCESS_ENABLED=true CUEBOOK_DATA_DIR=$data/data
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
url=http://127.0.0.1:$port
"$cuebook" serve --listen "127.0.0.1:$port" >"$data/out" 2>"$data/log" &
server=$!
for _ in $(seq 300); do
  if curl --silent --fail --output /dev/null "$url/readyz"; then break; fi
  kill -0 "$server" 2>/dev/null || { cat "$data/out" "$data/log" >&2; exit 1; }
  sleep 0.1
done
"$cuebook" access add-person root --admin >/dev/null
# the first line is the token
token=$("$cuebook" token create root --label api | sed -n 1p)

ask() { curl --silent --show-error --fail --header "Authorization: Bearer $token" "$@"; }

# something to find under names that the description gives as examples
base=$(ask "$url/readyz" | python3 -c 'import json, sys; print(json.load(sys.stdin)["tip"])')
path=prompts/sre/incident-triage-of-this-test.md
before=$'---\ndescription: Triage\n---\nLook.\n'
after=$'---\ndescription: Triage\n---\nLook twice.\n'
body() {
  python3 -c 'import json, sys; a = sys.argv; print(json.dumps({"base": a[1], a[2]: a[3], "files": {a[4]: a[5]}}))' "$base" "$@"
}
base=$(ask --json "$(body message Begin "$path" "$before")" "$url/api/v1/changes" |
  python3 -c 'import json, sys; print(json.load(sys.stdin)["commit"])')
ask --output /dev/null --json "$(body title Propose "$path" "$after")" "$url/api/v1/proposals"

status=0
(cd "$dir" && "$dir/venv/bin/schemathesis" --config-file "$here/schemathesis.toml" run "$url/api/v1/openapi.json" \
  --header "Authorization: Bearer $token" \
  --checks not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance \
  --phases examples,coverage,fuzzing --mode all --max-examples 12 --seed 7 --generation-deterministic \
  --generation-database none --workers 1 --max-time 110 --request-timeout 20 --continue-on-failure --no-color) || status=$?

if ! ask --output /dev/null "$url/api/v1/access/me"; then
  echo "the token of this run was revoked on the way: what came after it was not looked at" >&2
  exit 1
fi
if grep -q ' ERROR ' "$data/log"; then
  echo "the server logged:" >&2
  grep ' ERROR ' "$data/log" | head -20 >&2
fi
exit "$status"
