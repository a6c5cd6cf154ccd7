# shellcheck shell=bash
# The docker daemon: started by hand where no service manager does it. Sourced by scripts/setup.

DOCKER_PID=/run/cordon-test-dockerd.pid
DOCKER_LOG=$CACHE/dockerd.log
DOCKER_START_SECONDS=30

start_docker() {
  ! docker_answers || return 0
  if [ -d /run/systemd/system ]; then
    say "starting docker's service"
    as_root systemctl start docker || die "systemctl start docker failed; see journalctl -u docker"
  else
    say "starting dockerd (log: $DOCKER_LOG; end it with scripts/setup stop)"
    # A session of its own: neither Ctrl-C nor the end of make reaches it.
    as_root setsid dockerd --pidfile "$DOCKER_PID" >"$DOCKER_LOG" 2>&1 </dev/null &
  fi
  wait_for_docker
}

wait_for_docker() {
  local deadline=$((SECONDS + DOCKER_START_SECONDS))
  until docker_answers; do
    [ "$SECONDS" -lt "$deadline" ] || {
      [ ! -f "$DOCKER_LOG" ] || tail -n 20 "$DOCKER_LOG" >&2
      die "docker does not answer after $DOCKER_START_SECONDS s"
    }
    sleep 0.2
  done
}

docker_answers() { as_root docker version >/dev/null 2>&1; }

stop_docker() {
  local pid
  [ -f "$DOCKER_PID" ] || return 0
  pid=$(as_root cat "$DOCKER_PID")
  # The pid may have gone to another program since.
  if [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = dockerd ]; then
    say "ending dockerd ($pid)"
    as_root kill "$pid"
    while [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = dockerd ] && [ -e "/proc/$pid/exe" ]; do sleep 0.2; done
  fi
  as_root rm -f "$DOCKER_PID"
}
