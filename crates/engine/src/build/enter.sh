# shellcheck shell=sh
# Runs a build in the network namespace that it was put into: enter.sh RESOLVER HOSTS RUNTIME COMMAND...
#
# Standard input is the thread that the build hangs on. When it ends, whoever wanted the build is gone: its step is
# killed, so that the engine sees a failed build and clears up behind it, which it does not when it is killed itself.
set -eu

resolver=$1 hosts=$2 runtime=$3
shift 3

if [ "$(tail -n +3 /proc/self/net/dev | cut -d: -f1 | tr -d ' ')" != lo ]; then
    echo 'the build has not been put behind the door: there are interfaces beside loopback' >&2
    exit 125
fi
mount --bind "$resolver" /etc/resolv.conf
mount --bind "$hosts" /etc/hosts

CORDON_BUILD_STEP=$(mktemp)
export CORDON_BUILD_STEP CORDON_BUILD_RUNTIME="$runtime"

exec 3<&0 </dev/null
"$@" 3<&- &
build=$!
{
    read -r _ <&3 || :
    while kill -0 "$build" 2>/dev/null; do
        step=$(cat "$CORDON_BUILD_STEP")
        [ -z "$step" ] || "$runtime" kill "$step" KILL >/dev/null 2>&1 || :
        sleep 0.2
    done
    rm -f "$CORDON_BUILD_STEP"
} >/dev/null 2>&1 &
watch=$!
exec 3<&-

status=0
wait "$build" || status=$?
kill "$watch" 2>/dev/null || :
rm -f "$CORDON_BUILD_STEP"
exit "$status"
