# shellcheck shell=bash
# Base images without a registry: made from Debian packages, kept as archives in the cache, imported into each engine.
# Sourced by scripts/setup. A recipe that changes gets a new tag in lib/common.sh.

DEBIAN_CONTENT=ca-certificates,curl,git,python3,python3-venv,bind9-dnsutils,iproute2,openssl,nodejs
IMAGE_PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

# Where images are kept.
own_podman() { podman "$@"; }
root_podman() { as_root podman "$@"; }
root_docker() { as_root docker "$@"; }
rootless_podman() { as_rootless podman "$@"; }

have_images() {
  local store=$1 image present absent=()
  shift
  present=$("$store" images --format '{{.Repository}}:{{.Tag}}')
  for image in "$@"; do
    grep -qxF "$image" <<<"$present" || absent+=("$image")
  done
  for image in "${absent[@]}"; do
    say "adding $image to ${store/_/ }"
    import_image "$store" "$image"
  done
}

import_image() {
  local store=$1 image=$2 archive shell='["/bin/sh"]'
  case $image in
    "$AGENTS_IMAGE" | "$CLIENTS_IMAGE")
      add_layer "$store" "$image"
      return
      ;;
  esac
  archive=$(archive_of "$image")
  [ -f "$archive" ] || make_archive "$image" "$archive"
  [ "$image" != "$SCRATCH_IMAGE" ] || shell='["/probe"]'
  "$store" import --change "ENV PATH=$IMAGE_PATH" --change "CMD $shell" - "$image" <"$archive" >/dev/null 2>"$CACHE/import.log" ||
    { cat "$CACHE/import.log" >&2; die "cannot import $archive"; }
}

# A layer on the Debian image, copied into a container that is never started, and committed: that takes no registry and
# no network.
add_layer() {
  local store=$1 image=$2 archive container
  archive=$(archive_of "$image")
  [ -f "$archive" ] || make_archive "$image" "$archive"
  container=$("$store" create "$DEBIAN_IMAGE" true)
  "$store" cp - "$container:/" <"$archive" &&
    "$store" commit "$container" "$image" >/dev/null 2>"$CACHE/import.log" ||
    { cat "$CACHE/import.log" >&2; "$store" rm "$container" >/dev/null; die "cannot add $archive"; }
  "$store" rm "$container" >/dev/null
}

archive_of() {
  local name=${1#localhost/}
  printf '%s\n' "$CACHE/${name/:/-}.tar"
}

make_archive() (
  image=$1 archive=$2 as_owner=()
  # Only a whole system has files of other owners, which only root can keep.
  pack=(tar --owner=0 --group=0)
  if [ "$image" = "$DEBIAN_IMAGE" ]; then
    as_owner=(as_root)
    pack=(as_root tar --numeric-owner)
  fi
  tree=$(mktemp -d "$CACHE/tree.XXXXXX")
  trap '"${as_owner[@]}" rm -rf "$tree"' EXIT
  chmod 755 "$tree"
  case $image in
    "$BUSYBOX_IMAGE") busybox_tree "$tree" ;;
    "$DEMO_IMAGE")
      busybox_tree "$tree"
      add_program "$tree" curl
      ;;
    "$SCRATCH_IMAGE") scratch_tree "$tree" ;;
    "$DEBIAN_IMAGE") debian_tree "$tree" ;;
    "$AGENTS_IMAGE") agents_tree "$tree" ;;
    "$CLIENTS_IMAGE") clients_tree "$tree" ;;
    *) die "no recipe for $image" ;;
  esac
  # Renamed when whole, so that an interrupted run leaves no half archive behind.
  "${pack[@]}" -C "$tree" -c . >"$archive.part"
  mv "$archive.part" "$archive"
)

busybox_tree() {
  local tree=$1 applet
  mkdir -p "$tree"/{bin,etc,root,tmp,usr/bin,workspace}
  chmod 1777 "$tree/tmp"
  cp "$(busybox_program)" "$tree/bin/busybox"
  for applet in $("$tree/bin/busybox" --list); do
    [ "$applet" = busybox ] || ln -s busybox "$tree/bin/$applet"
  done
  printf 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n' >"$tree/etc/passwd"
  printf 'root:x:0:\nnogroup:x:65534:\n' >"$tree/etc/group"
}

busybox_program() {
  dpkg-query -L busybox-static | grep -m 1 '/bin/busybox$'
}

# Copies one of this machine's programs with the libraries it loads.
add_program() {
  local tree=$1 program library
  program=$(command -v "$2")
  install -D "$program" "$tree/usr/bin/$2"
  for library in $(ldd "$program" | grep -o '/[^ ]*'); do
    install -D "$(readlink -f "$library")" "$tree$library"
  done
}

scratch_tree() {
  rustc --edition 2024 -O -D warnings -C target-feature=+crt-static -C panic=abort -C strip=symbols \
    -o "$1/probe" "$ROOT/scripts/images/probe.rs"
}

debian_tree() {
  local tree=$1 codename mirror components=main log=$CACHE/debootstrap.log
  codename=$(. /etc/os-release && printf '%s' "$VERSION_CODENAME")
  mirror=$(mirror_of "$codename")
  [ -n "$mirror" ] || { as_root apt-get update -qq; mirror=$(mirror_of "$codename"); }
  [ -n "$mirror" ] || die "apt knows no package source for $codename"
  if grep -qx 'ID=ubuntu' /etc/os-release; then components=main,universe; fi

  say "building a $codename tree from its packages (about two minutes, only once)"
  as_root debootstrap --variant=minbase --components="$components" --include="$DEBIAN_CONTENT" \
    "$codename" "$tree" "$mirror" >"$log" 2>&1 ||
    { tail -n 20 "$log" >&2; die "debootstrap failed (whole log: $log)"; }
  # shellcheck disable=SC2016 # the inner shell expands it
  as_root sh -c 'cd "$1" && rm -rf var/cache/apt/* var/lib/apt/lists/* usr/share/doc/* usr/share/man/* usr/share/locale/*' \
    sh "$tree"
}

# Where this machine itself gets its packages from.
mirror_of() {
  # shellcheck disable=SC2016 # apt's own placeholders
  apt-get indextargets --format '$(CODENAME) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' |
    awk -v codename="$1" '$1 == codename && $2 == "main" { print $3; exit }'
}
