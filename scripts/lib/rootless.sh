# shellcheck shell=bash
# The unprivileged user on whose behalf rootless podman is tested. Sourced by scripts/setup.

# What a user namespace needs to hold the ids of an ordinary image.
SUBORDINATE_IDS=65536

prepare_rootless_user() {
  if ! id "$TEST_USER" >/dev/null 2>&1; then
    say "adding the user $TEST_USER"
    as_root useradd --create-home --shell /bin/bash "$TEST_USER"
  fi
  grep -q "^$TEST_USER:" /etc/subuid 2>/dev/null || add_subordinate_ids uid
  grep -q "^$TEST_USER:" /etc/subgid 2>/dev/null || add_subordinate_ids gid

  # logind makes this for people who log in; nobody logs in as the test user.
  local uid
  uid=$(id -u "$TEST_USER")
  [ -d "/run/user/$uid" ] || as_root install -d -o "$TEST_USER" -g "$TEST_USER" -m 0700 "/run/user/$uid"
  prepare_rootless_storage
  prepare_rootless_network
}

# Networks of rootless podman need a tunnel device. udev lets everybody use it; where there is no udev, the
# test user alone gets it.
prepare_rootless_network() {
  as_rootless test -w /dev/net/tun && return
  as_root chgrp "$TEST_USER" /dev/net/tun
  as_root chmod 0660 /dev/net/tun
}

# Without /dev/fuse podman takes vfs, which copies the whole image for every container; the kernel's overlay does not.
prepare_rootless_storage() {
  local config=.config/containers/storage.conf
  # shellcheck disable=SC2016 # the inner shell expands it
  as_rootless sh -c 'cd && { [ -f "$1" ] || { mkdir -p "${1%/*}" && printf "[storage]\ndriver = \"overlay\"\n" >"$1"; }; }' \
    sh "$config"
}

add_subordinate_ids() {
  local kind=$1 first
  first=$(awk -F: '{ end = $2 + $3; if (end > max) max = end } END { print (max > 100000 ? max : 100000) }' \
    "/etc/sub$kind" 2>/dev/null || echo 100000)
  as_root usermod "--add-sub${kind}s" "$first-$((first + SUBORDINATE_IDS - 1))" "$TEST_USER"
}
