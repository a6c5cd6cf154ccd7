# shellcheck shell=bash
# Debian packages: finds what is missing, says so, installs it. Sourced by scripts/setup.

# Each entry is a package, or package:command where the command from anywhere else will do.
DEMO_PACKAGES=(
  podman:podman runc:runc uidmap:newuidmap netavark slirp4netns:slirp4netns fuse-overlayfs:fuse-overlayfs
  gcc:cc libc6-dev busybox-static curl:curl openssl:openssl python3:python3 ca-certificates
)
TEST_PACKAGES=(
  docker.io:dockerd docker-cli:docker iptables:iptables debootstrap:debootstrap shellcheck:shellcheck
  bind9-dnsutils:dig nghttp2-client:nghttp git:git iproute2:ip nodejs:node npm:npm valgrind:valgrind g++:g++
  runsc:runsc
)
# Releases before these existed do without them.
MAYBE_UNKNOWN=(netavark docker-cli)

install_packages() {
  local missing=()
  mapfile -t missing < <(missing_packages "$@")
  [ ${#missing[@]} -gt 0 ] || return 0
  command -v apt-get >/dev/null || die "no apt-get here; please install: ${missing[*]}"

  as_root apt-get update -qq
  mapfile -t missing < <(known_packages "${missing[@]}")
  [ ${#missing[@]} -gt 0 ] || return 0
  say "installing Debian packages: ${missing[*]}"
  as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "${missing[@]}" >"$CACHE/apt.log" 2>&1 ||
    { tail -n 20 "$CACHE/apt.log" >&2; die "apt-get could not install them (whole log: $CACHE/apt.log)"; }
}

missing_packages() {
  local entry package installed
  installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "${@%%:*}" 2>/dev/null || true)
  for entry in "$@"; do
    package=${entry%%:*}
    if [[ $entry == *:* ]] && have "${entry#*:}"; then continue; fi
    grep -qxF "installed $package" <<<"$installed" || printf '%s\n' "$package"
  done
}

# Administrators' programs are off an ordinary user's PATH.
have() { PATH=$PATH:/usr/sbin:/sbin command -v "$1" >/dev/null; }

known_packages() {
  local package
  for package in "$@"; do
    if [[ " ${MAYBE_UNKNOWN[*]} " == *" $package "* ]] && ! apt-cache show "$package" >/dev/null 2>&1; then
      say "this release has no $package; going on without it"
    else
      printf '%s\n' "$package"
    fi
  done
}

# A venv needs ensurepip, which Debian ships apart from Python itself.
install_venv_support() {
  python3 -c 'import ensurepip, venv' 2>/dev/null || install_packages python3-venv
}
