# Devices on this machine, for scripts: each is a private bus with a service on it. To be sourced, with the directory of
# the built service in $programs. Everything ends with the script, and nothing is left behind.
# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0

service=org.example.UbiquitousStore
manager=/org/example/UbiquitousStore
account=$manager/v1/u$(id -u)

work=$(mktemp -d)
pids=
cleanup() {
    trap - EXIT INT TERM
    # In reverse order, so that a device ends before the bus that it is on.
    last_first=
    for pid in $pids; do last_first="$pid $last_first"; done
    for pid in $last_first; do
        kill "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# manifest IDENTIFIER: declares an app to the devices that are started from now on.
manifest() {
    mkdir -p "$work/manifests"
    cat >"$work/manifests/$1.plist" <<PLIST
<?xml version="1.0" encoding="UTF-8"?>
<plist version="1.0"><dict>
<key>com.apple.developer.ubiquity-kvstore-identifier</key><string>$1</string>
<key>application-identifier</key><string>$1</string>
</dict></plist>
PLIST
    chmod 644 "$work/manifests/$1.plist"
}

# bus NAME: starts a private bus, which stands for that of another machine.
bus() {
    mkdir -p "$work/$1/state" "$work/$1/run"
    cat >"$work/$1/bus.conf" <<CONF
<busconfig><listen>unix:path=$work/$1/bus</listen><auth>EXTERNAL</auth>
<policy context="default"><allow send_destination="*"/><allow receive_sender="*"/><allow own="*"/></policy></busconfig>
CONF
    dbus-daemon --config-file="$work/$1/bus.conf" --nofork --nopidfile 2>"$work/$1/bus.log" &
    pids="$pids $!"
    for _ in $(seq 100); do [ -S "$work/$1/bus" ] && return; sleep 0.02; done
    echo "The private bus did not come up." >&2
    exit 1
}

# device NAME: starts a service on the bus of that name.
device() {
    RUNTIME_DIRECTORY=$work/$1/run "$programs/ubiquitous-stored" --bus "unix:path=$work/$1/bus" --state-directory "$work/$1/state" \
        --manifest-directory "$work/manifests" --device-name "$1" --log-level warning &
    eval "$1=$!"
    pids="$pids $!"
    for _ in $(seq 200); do
        busctl --address="unix:path=$work/$1/bus" status $service >/dev/null 2>&1 && return
        sleep 0.02
    done
    echo "The service did not come up." >&2
    exit 1
}

# until_done NAME PATH INTERFACE PROPERTY VALUE: waits until a property has a value.
until_done() {
    for _ in $(seq 300); do
        [ "$(busctl --address="unix:path=$work/$1/bus" get-property $service "$2" "$3" "$4" 2>/dev/null)" = "$5" ] && return
        sleep 0.02
    done
    echo "$4 did not become $5 on the $1." >&2
    exit 1
}

# sign_in NAME: signs a device in to the folder that the devices share, and waits for the account's values.
sign_in() {
    [ -d "$work/folder" ] || mkdir -m 700 "$work/folder"
    on "$1" call $service "$account" $service.Account SignIn 'sa{sv}' "folder://$work/folder" 0
    until_done "$1" "$account" $service.Account InitialSyncDone "b true"
}
