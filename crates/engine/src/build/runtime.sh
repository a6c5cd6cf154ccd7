#!/bin/sh
# Stands before the OCI runtime of a build. Gives every step the variables of CORDON_BUILD_ENV, which no option of the
# engine does without leaving them in the image, and notes the name of the step that runs.
set -eu

bundle='' before=''
for word do
    case $before in --bundle | -b) bundle=$word ;; esac
    case $word in --bundle=*) bundle=${word#--bundle=} ;; esac
    before=$word
done

if [ -n "$bundle" ]; then
    # The environment stands before the directory, whatever else does: inside a string the quotes would be escaped.
    if ! grep -q '"env":\["[^]]' "$bundle/config.json" || ! grep -q '\],"cwd":"' "$bundle/config.json"; then
        echo 'the step cannot be given the variables of the door' >&2
        exit 125
    fi
    sed -i "s|],\"cwd\":\"|,$CORDON_BUILD_ENV&|" "$bundle/config.json"
    printf '%s' "$before" >"$CORDON_BUILD_STEP"
fi
exec "$CORDON_BUILD_RUNTIME" "$@"
