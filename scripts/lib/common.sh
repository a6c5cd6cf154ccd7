# shellcheck shell=bash
# What every script here shares: paths, messages, privileges. Sourced, never run.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/cordon-test
TEST_USER=cordon-test

DEMO_IMAGE=localhost/cordon-demo:1
BUSYBOX_IMAGE=localhost/cordon-test-busybox:1
SCRATCH_IMAGE=localhost/cordon-test-scratch:1
DEBIAN_IMAGE=localhost/cordon-test-debian:1
AGENTS_IMAGE=localhost/cordon-test-agents:1
CLIENTS_IMAGE=localhost/cordon-test-clients:1
export ROOT CACHE TEST_USER DEMO_IMAGE BUSYBOX_IMAGE SCRATCH_IMAGE DEBIAN_IMAGE AGENTS_IMAGE CLIENTS_IMAGE

say() { printf '%s\n' "setup: $*" >&2; }

die() {
  printf '%s\n' "error: $*" >&2
  exit 1
}

as_root() { "$ROOT/scripts/as-root" "$@"; }
as_rootless() { "$ROOT/scripts/as-rootless" "$@"; }

# What plain `podman run` needs on this machine, one word per line; nothing on most.
# Some hosts may not raise resource limits, and crun refuses hybrid cgroups.
podman_flags() {
  local image=$1 runtime=(--runtime runc) limits processes
  # podman lowers its own process limit to pid_max before it starts anything.
  processes=$(printf '%s\n' "$(ulimit -Hu)" "$(</proc/sys/kernel/pid_max)" | sort -n | sed -n '/^[0-9]/{p;q}')
  limits=(--ulimit "nofile=$(ulimit -Hn)" --ulimit "nproc=$processes")
  if podman_starts "$image"; then
    return
  elif podman_starts "$image" "${limits[@]}"; then
    printf '%s\n' "${limits[@]}"
  elif podman_starts "$image" "${runtime[@]}"; then
    printf '%s\n' "${runtime[@]}"
  elif podman_starts "$image" "${runtime[@]}" "${limits[@]}"; then
    printf '%s\n' "${runtime[@]}" "${limits[@]}"
  else
    as_root podman run --rm --network none "${runtime[@]}" "${limits[@]}" "$image" true >&2 || true
    die "podman cannot start a container here (its words are above)"
  fi
}

podman_starts() {
  local image=$1
  shift
  as_root podman run --rm --network none "$@" "$image" true >/dev/null 2>&1
}
