#!/usr/bin/python3 -IS
"""Stands in for Apple's `container`: keeps containers as files, and processes of this host as their insides.

What its options mean, what it prints and how it ends follows the program's version 1.2. Files in the home
directory make it behave in other ways:

  down        the service does not run
  version     what the service says of its version
  images      the images of the store, one a line
  registry    the images that can be pulled
  attached    networks that a container is on, whatever was asked for
  on-run      what the shell does before `run` does anything
  no-start    what `run` says, and fails
  no-delete   `delete` does nothing, and says this
"""
import json
import os
import signal
import sys
import time

HOME = "@HOME@"
STATE = os.path.join(HOME, "containers")
os.makedirs(STATE, exist_ok=True)
IMAGE_ENV = ["PATH=/usr/local/bin:/usr/bin:/bin", "FROM_IMAGE=image"]
FLAGS = {"--interactive", "--rm", "--init", "--no-dns", "--read-only", "--all", "--force", "--quiet"}


def knob(name):
    try:
        with open(os.path.join(HOME, name)) as file:
            return file.read()
    except FileNotFoundError:
        return None


def fail(message, code=1):
    sys.stderr.write(f"Error: {message}\n")
    sys.exit(code)


def path_of(name):
    return os.path.join(STATE, name + ".json")


def load(name):
    try:
        with open(path_of(name)) as file:
            return json.load(file)
    except (FileNotFoundError, json.JSONDecodeError):
        return None


def save(name, state):
    temporary = os.path.join(HOME, f"state-{os.getpid()}")
    with open(temporary, "w") as file:
        json.dump(state, file)
    os.replace(temporary, path_of(name))


class locked:
    """While it is held, nobody else changes a container."""

    def __enter__(self):
        import fcntl
        self.file = open(os.path.join(HOME, "lock"), "w")
        fcntl.flock(self.file, fcntl.LOCK_EX)

    def __exit__(self, *_):
        self.file.close()


def parse(words):
    """Options up to the first word that is none; the rest is as it is."""
    options, at = {}, 0
    while at < len(words) and words[at].startswith("-"):
        if words[at] in FLAGS:
            options.setdefault(words[at], []).append("")
            at += 1
        else:
            options.setdefault(words[at], []).append(words[at + 1])
            at += 2
    return options, words[at:]


def inside(name):
    """The variable by which whatever runs in a container is known, as by its machine."""
    return f"STAND_IN_MACHINE={HOME}/{name}"


def kill(name):
    """Kills all that runs in a container, wherever it has gone."""
    wanted = os.fsencode(inside(name))
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                found = wanted in file.read().split(b"\0")
            if found:
                os.kill(int(pid), signal.SIGKILL)
        except OSError:
            pass


def become(argv, environment, directory):
    """As the kernel starts a program: variables as they are, twice where they are given twice."""
    import ctypes
    os.chdir(directory)
    libc = ctypes.CDLL(None, use_errno=True)
    words = (ctypes.c_char_p * (len(argv) + 1))(*[os.fsencode(word) for word in argv], None)
    pairs = (ctypes.c_char_p * (len(environment) + 1))(*[os.fsencode(pair) for pair in environment], None)
    libc.execve(os.fsencode(argv[0]), words, pairs)
    os._exit(127)


def mapped(state, directory):
    """Where on this host a directory of the container is."""
    for source, target in state["volumes"]:
        if directory == target or directory.startswith(target + "/"):
            return source + directory[len(target):]
    return directory


def system_status():
    if knob("down") is not None:
        print(json.dumps({"status": "unregistered", "appRoot": "", "installRoot": "", "apiServerVersion": ""}))
        sys.exit(1)
    said = knob("version") or "container-apiserver version 1.2.2 (build: release, commit: af405ff)"
    print(json.dumps({"status": "running", "appRoot": "/", "installRoot": "/", "apiServerVersion": said}))


def image(words):
    options, rest = parse(words[1:])
    store = (knob("images") or "").split()
    if words[0] == "inspect":
        if rest[0] not in store:
            fail(f"notFound: \"image not found: {rest[0]}\"")
        print(json.dumps([{"name": rest[0]}]))
    elif words[0] == "pull":
        if rest[0] not in (knob("registry") or "").split():
            fail("internalError: \"failed to resolve reference\"")
        with open(os.path.join(HOME, "images"), "a") as file:
            file.write(rest[0] + "\n")


def listing():
    listed = []
    for entry in sorted(os.listdir(STATE)):
        state = load(entry[: -len(".json")])
        if state is None:
            continue
        if "odd" in state:
            listed.append(state)
            continue
        networks = [{"network": name, "hostname": state["id"]} for name in state["networks"]]
        listed.append({
            "id": state["id"],
            "configuration": {"id": state["id"], "labels": state["labels"], "networks": networks},
            "status": {"state": state["state"], "networks": networks, "startedDate": 0},
        })
    print(json.dumps(listed))


def run(words):
    options, rest = parse(words)
    name = options["--name"][0]
    os.system(knob("on-run") or "")
    if knob("no-start") is not None:
        fail(knob("no-start"))
    if load(name) is not None:
        fail(f"exists: \"container with id {name} already exists\"")
    asked = options.get("--network", ["default"])
    networks = [] if asked == ["none"] else asked
    attached = knob("attached")
    volumes = [volume.split(":")[:2] for volume in options.get("--volume", [])]
    state = {
        "id": name, "state": "running", "execs": [], "volumes": volumes,
        "labels": dict(label.split("=") for label in options.get("--label", [])),
        "networks": networks if attached is None else attached.split(),
    }
    into, out_of = os.pipe()
    alive, ended = os.pipe()
    if os.fork() == 0:
        # The service: it outlives the client, and removes the container when its first process ends.
        os.setsid()
        os.close(out_of)
        os.close(alive)
        first = os.fork()
        if first == 0:
            os.setsid()
            os.close(ended)
            os.dup2(into, 0)
            os.close(into)
            command = [options["--entrypoint"][0]] + rest[1:]
            become(command, IMAGE_ENV + [inside(name)], mapped(state, options["--workdir"][0]))
        os.close(into)
        state["pid"] = first
        with locked():
            save(name, state)
        for stream in (0, 1, 2):
            os.close(stream)
        os.waitpid(first, 0)
        with locked():
            kill(name)
            if os.path.exists(path_of(name)):
                os.remove(path_of(name))
        os._exit(0)
    os.close(into)
    os.close(ended)

    def pump():
        while True:
            data = os.read(0, 4096)
            if not data:
                break
            os.write(out_of, data)
        os.close(out_of)

    import threading
    threading.Thread(target=pump, daemon=True).start()
    os.read(alive, 1)
    sys.stdout.flush()
    os._exit(0)


def execute(words):
    options, rest = parse(words)
    name, command = rest[0], rest[1:]
    state = load(name)
    if state is None:
        fail(f"notFound: \"get failed: container {name} not found\"")
    if state["state"] != "running":
        fail(f"invalidState: \"container {name} is not running\"")
    environment = IMAGE_ENV + [inside(name)]
    for pair in options.get("--env", []):
        if "=" in pair:
            environment.append(pair)
        elif pair in os.environ:
            environment.append(f"{pair}={os.environ[pair]}")
    directory = mapped(state, options["--workdir"][0])
    if not os.path.isdir(directory):
        fail(f"internalError: \"failed to exec process: chdir {directory}\"")
    pid = os.fork()
    if pid == 0:
        os.setsid()
        if "--interactive" not in options:
            null = os.open("/dev/null", os.O_RDONLY)
            os.dup2(null, 0)
        become(command, environment, directory)
    with locked():
        now = load(name)
        if now is None:
            kill(name)
        else:
            now["execs"].append(pid)
            save(name, now)
    _, status = os.waitpid(pid, 0)
    sys.exit(os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))


def delete(words):
    options, rest = parse(words)
    name = rest[0]
    if knob("no-delete") is not None:
        fail(knob("no-delete"))
    state = load(name)
    if state is None:
        fail("internalError: \"failed to delete container\"")
    if state["state"] == "running" and "--force" not in options:
        fail("invalidState: \"container is running\"")
    kill(name)
    if state.get("pid"):
        # The service removes it once its first process is reaped.
        for _ in range(500):
            if not os.path.exists(path_of(name)):
                break
            time.sleep(0.02)
    elif os.path.exists(path_of(name)):
        os.remove(path_of(name))
    print(name)


def main():
    words = sys.argv[1:]
    if words[0] == "--settle":
        return
    with open(os.path.join(HOME, "calls", f"{time.time_ns()}-{os.getpid()}"), "wb") as file:
        file.write(b"".join(os.fsencode(word) + b"\0" for word in words))
    verb, rest = words[0], words[1:]
    if verb != "system" and knob("down") is not None:
        fail("interrupted: \"XPC connection error: Connection invalid\"")
    if verb == "system":
        system_status()
    elif verb == "image":
        image(rest)
    elif verb == "list":
        listing()
    elif verb == "run":
        run(rest)
    elif verb == "exec":
        execute(rest)
    elif verb == "delete":
        delete(rest)
    else:
        fail(f"Plugin 'container-{verb}' not found.", 64)


main()
