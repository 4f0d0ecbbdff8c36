#!/usr/bin/env bash
# Makes the pictures of the README, and the screen in docs/top.md, from captures in fixtures/. It
# takes tmux, npm and chromium, which check.sh installs: what lacks them says that it was skipped.
# The same tests without WEIR_UPDATE_DOCS fail where a picture shows what is no longer so.
set -euo pipefail
cd "$(dirname "$0")/../.."
WEIR_UPDATE_DOCS=1 cargo test -p weir --features serve --test top --test page picture
