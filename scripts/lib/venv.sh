# shellcheck shell=bash
# The Python clients that judge our tests, in a virtual environment of their own. Sourced by scripts/setup.

VENV=$ROOT/target/venv

prepare_venv() {
  local files=() wanted
  mapfile -t files < <(find "$ROOT/crates" "$ROOT/tests" -path '*/target' -prune -o -name requirements.txt -print | sort)
  wanted=$(cat /dev/null "${files[@]}" | sha256sum)
  [ "$(cat "$VENV/.requirements" 2>/dev/null)" != "$wanted" ] || return 0

  [ -x "$VENV/bin/python" ] || python3 -m venv "$VENV"
  if [ ${#files[@]} -gt 0 ]; then
    say "installing Python packages: $(sed -e 's/#.*//' "${files[@]}" | xargs)"
    "$VENV/bin/pip" install --quiet --disable-pip-version-check "${files[@]/#/--requirement=}"
  fi
  printf '%s\n' "$wanted" >"$VENV/.requirements"
}
