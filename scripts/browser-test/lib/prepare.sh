# What a browser test needs: npm packages by lockfile, and a chromium. To be read by a script that
# stands in the project's root.
[ -x "$NARROWS" ] || {
  echo "browser-test: there is no $NARROWS: build it, or name it with NARROWS" >&2
  exit 1
}
# Not there, or of another lockfile.
[ scripts/browser-test/node_modules/.package-lock.json -nt scripts/browser-test/package-lock.json ] || {
  npm ci --prefix scripts/browser-test --no-audit --no-fund --silent
  touch scripts/browser-test/node_modules/.package-lock.json
}
: "${CHROMIUM:=$(command -v chromium || true)}"
if [ -z "$CHROMIUM" ] && command -v apt-get >/dev/null; then
  root=
  [ "$(id -u)" = 0 ] || root="sudo -n"
  if $root true 2>/dev/null; then
    $root apt-get update -qq >&2
    $root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >&2
    CHROMIUM=$(command -v chromium || true)
  fi
fi
[ -n "$CHROMIUM" ] || {
  echo "browser-test: no chromium: install it, or name the program with CHROMIUM" >&2
  exit 1
}
export NARROWS CHROMIUM
