#!/usr/bin/env bash
# The checks of the Python package: style, types, tests on a demo, and a wheel and an sdist in empty environments. Then the tests
# without a demo on every other version of Python on this machine. Run `npm ci` and `npm run build` in the root before it.
#   PYTHON: the Python of the first part, 3.10 or newer. Default: python3.
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONDONTWRITEBYTECODE=1

"${PYTHON:-python3}" -m venv "$work/dev"
"$work/dev/bin/python" -m pip install --quiet ".[dev]"
"$work/dev/bin/ruff" check .
"$work/dev/bin/ruff" format --check .
"$work/dev/bin/mypy"
"$work/dev/bin/python" -m pytest -p no:cacheprovider

first=$("$work/dev/bin/python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
for version in 3.10 3.11 3.12 3.13 3.14; do
  [ "$version" = "$first" ] && continue
  found=$(ls -d "${PYENV_ROOT:-$HOME/.pyenv}/versions/$version".*/bin/python 2>/dev/null | tail -n 1 || true)
  found=${found:-$(command -v "python$version" || true)}
  if [ -z "$found" ] || ! "$found" -c 'import ensurepip, venv' 2>/dev/null; then
    echo "Python $version is not on this machine: SKIPPED" >&2
    continue
  fi
  "$found" -m venv "$work/$version"
  "$work/$version/bin/python" -m pip install --quiet ".[pandas,polars,websocket,archive]" pytest standardwebhooks
  "$work/$version/bin/python" -m pytest -p no:cacheprovider --quiet -m "not demo"
done
