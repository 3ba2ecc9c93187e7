#!/usr/bin/env bash
# Commits to a bare repository, by its path, a prompt without arguments that says TEXT.
#
#   tests/clients/publish.sh REPOSITORY NAME TEXT
set -euo pipefail

repository=$1 name=$2 text=$3
clone=$(mktemp -d)
trap 'rm -rf "$clone"' EXIT
export GIT_CONFIG_NOSYSTEM=1 HOME=$clone
export GIT_AUTHOR_NAME="Client checks" GIT_AUTHOR_EMAIL=checks@example.com
export GIT_COMMITTER_NAME=$GIT_AUTHOR_NAME GIT_COMMITTER_EMAIL=$GIT_AUTHOR_EMAIL

git clone --quiet "$repository" "$clone/library"
cd "$clone/library"
printf -- '---\ndescription: Arrived while the client was connected\n---\n%s\n' "$text" >"prompts/review/$name.md"
git add --all
git commit --quiet --message "Say \"$text\" in $name"
git push --quiet origin main
