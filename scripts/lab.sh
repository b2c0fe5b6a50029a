#!/bin/sh
# Run a notebook once without a screen as a self-check, then open JupyterLab on a copy of it.
# The copy and its neighbours stand in .work/, which git ignores; one that is there is kept.
# Usage: VENV=.venv sh scripts/lab.sh notebooks/01_quickstart.ipynb
set -eu

notebook=$1
work=.work
bin=$(cd "${VENV:-.venv}/bin" && pwd)
trial=$(mktemp -d)
trap 'rm -rf "$trial"' EXIT

echo "Checking $notebook: running it once, on the model of this machine ..."
if ! AGENT_MAGICS_STORE="$trial/ledger.db" AGENT_MAGICS_MODEL=embedded \
    "$bin/python" -m nbconvert --to notebook --execute "$notebook" \
    --output-dir "$trial" >"$trial/log" 2>&1; then
  tail -n 20 "$trial/log" >&2
  echo "The quickstart did not run; the lines above say why." >&2
  exit 1
fi
echo "The quickstart ran: a model answered, a slot was derived, the ledger kept it all."

mkdir -p "$work"
for file in "$(dirname "$notebook")"/*; do
  case $(basename "$file") in conftest.py | sanitize.cfg) continue ;; esac  # the tests' own
  [ -f "$file" ] || continue
  copy=$work/$(basename "$file")
  if [ ! -e "$copy" ]; then
    cp "$file" "$copy"
  elif ! cmp -s "$file" "$copy"; then
    echo "$copy is kept as you left it; delete it to begin anew."
  fi
done

has_screen() {
  [ -z "${CI:-}" ] || return 1
  [ "$(uname)" = Darwin ] || [ -n "${DISPLAY:-}${WAYLAND_DISPLAY:-}${WSL_DISTRO_NAME:-}" ]
}

# JupyterLab opens nothing in a folder that begins with a dot, unless it is started in it.
if has_screen; then
  rm -rf "$trial"
  trap - EXIT
  cd "$work"
  exec "$bin/jupyter" lab "$(basename "$notebook")"
fi
echo "There is no screen here, so JupyterLab was not opened. To open it:"
echo "    cd $work && $bin/jupyter lab $(basename "$notebook")"
echo "or see the conversation in this terminal: make demo"
