#!/usr/bin/env bash
# Installs Debian's Chromium for the tests of the report, where that is possible. Where it is not, those
# tests are skipped and say why: nothing here fails a build.
set -u
command -v chromium >/dev/null 2>&1 && exit 0
[ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 || exit 0
export DEBIAN_FRONTEND=noninteractive
install="apt-get install --yes --no-install-recommends chromium"
timeout 300 $install >/dev/null 2>&1 ||
  { timeout 120 apt-get update && timeout 300 $install; } >/dev/null 2>&1 ||
  echo "Chromium could not be installed: the tests of the report in a browser will be skipped."
exit 0
