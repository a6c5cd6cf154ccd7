# shellcheck shell=bash
# Clients that people use beside curl, git, node and pip, which the Debian image has: Debian's own packages, as a layer on it.
# Sourced by scripts/setup. A recipe that changes gets a new tag in lib/common.sh.

CLIENT_PACKAGES=(npm python3-requests python3-httpx python3-h2 python3-grpcio python3-websockets)
# Debian 12 keeps a current cargo under another name; the one called cargo is too old for today's registries.
CARGO_PACKAGES=(cargo-web cargo)

# Whatever of them the Debian image does not have, unpacked over it. No script of theirs needs to run.
clients_tree() {
  local tree=$1 packages=("${CLIENT_PACKAGES[@]}") place=$CACHE/clients log=$CACHE/clients.log package
  apt-cache show npm >/dev/null 2>&1 || as_root apt-get update -qq
  for package in "${CARGO_PACKAGES[@]}"; do
    if apt-cache show "$package" >/dev/null 2>&1; then
      packages+=("$package")
      break
    fi
  done
  say "fetching ${packages[*]} and what they need (about 200 MB, only once)"
  mkdir -p "$place/archives/partial"
  tar -xf "$(archive_of "$DEBIAN_IMAGE")" -C "$place" --strip-components=4 ./var/lib/dpkg/status
  as_root apt-get -y -qq --no-install-recommends --download-only -o "Dir::State::status=$place/status" \
    -o "Dir::Cache::archives=$place/archives" -o APT::Sandbox::User=root install "${packages[@]}" >"$log" 2>&1 ||
    { tail -n 20 "$log" >&2; die "apt-get could not fetch them (whole log: $log)"; }

  for package in "$place"/archives/*.deb; do
    is_for_building "$(basename "$package")" || dpkg-deb --extract "$package" "$tree"
  done
  # The image has these as links into /usr.
  for package in bin lib lib64 sbin; do
    [ ! -d "$tree/$package" ] || { cp -al "$tree/$package/." "$tree/usr/$package/" && rm -rf "${tree:?}/$package"; }
  done
  rm -rf "$tree"/usr/share/{doc,man,locale}
  as_root rm -rf "$place"
}

# Compilers and what is for them: 300 MB that nothing here uses.
is_for_building() {
  case ${1%%_*} in
    *-dev | gcc* | cpp* | binutils* | lib?san* | libubsan*) true ;;
    *) false ;;
  esac
}
