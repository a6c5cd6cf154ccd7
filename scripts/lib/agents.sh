# shellcheck shell=bash
# The real agents, from npm, as a layer on the Debian image. Sourced by scripts/setup.
# A recipe that changes gets a new tag in lib/common.sh.

AGENT_PACKAGES=(@anthropic-ai/claude-code@2.1.197 @openai/codex@0.166.0 @google/gemini-cli@0.61.0)
# Gemini CLI asks for a newer Node than Debian has.
AGENT_NODE=22.23.3

# Where the packages are on this machine, and in the image.
AGENTS_CACHE=$CACHE/agents
AGENTS_PLACE=opt/agents

agents_tree() {
  local tree=$1 arch modules programs=$1/usr/local/bin
  arch=$(node -p process.arch)
  install_agents "$arch"

  mkdir -p "$tree/$AGENTS_PLACE" "$programs"
  cp -al "$AGENTS_CACHE/node_modules" "$tree/$AGENTS_PLACE/"
  modules=/$AGENTS_PLACE/node_modules
  # Talking to Codex by voice, and what is for building with Node: 100 MB that nobody uses here.
  rm -rf "$tree$modules"/@openai/codex-linux-*/vendor/*/codex-resources/voice \
    "$tree$modules"/node-linux-*/{include,lib,share}

  ln -s "$modules/node-linux-$arch/bin/node" "$programs/node"
  ln -s "$modules/@anthropic-ai/claude-code-linux-$arch/claude" "$programs/claude"
  ln -s "$modules/@google/gemini-cli/bundle/gemini.js" "$programs/gemini"
  # The package's own starter is a Node program that runs this one.
  ln -s "$(cd "$tree" && printf '/%s' "$AGENTS_PLACE"/node_modules/@openai/codex-linux-"$arch"/vendor/*/bin/codex)" "$programs/codex"
  chmod 755 "$tree$modules/@google/gemini-cli/bundle/gemini.js"
}

# The programs come ready in their packages; no script of theirs needs to run here.
install_agents() {
  local packages=("${AGENT_PACKAGES[@]}" "node-linux-$1@$AGENT_NODE") log=$CACHE/npm.log
  [ "$(cat "$AGENTS_CACHE/.packages" 2>/dev/null)" != "${packages[*]}" ] || return 0
  say "installing the agents from npm: ${packages[*]} (about 250 MB, only once)"
  rm -rf "$AGENTS_CACHE"
  mkdir -p "$AGENTS_CACHE"
  npm install --prefix "$AGENTS_CACHE" --no-save --no-package-lock --ignore-scripts --no-audit --no-fund --loglevel=error \
    "${packages[@]}" >"$log" 2>&1 ||
    { tail -n 20 "$log" >&2; die "npm could not install them (whole log: $log)"; }
  printf '%s\n' "${packages[*]}" >"$AGENTS_CACHE/.packages"
}
