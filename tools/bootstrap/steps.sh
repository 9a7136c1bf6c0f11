# steps.sh - the steps of ./bootstrap; sourced in the root of the tree.

build_packages=(gcc libc6-dev cmake ninja-build pkg-config libjansson-dev libjpeg-dev libpng-dev libwebp-dev libtiff-dev libutf8proc-dev)
test_packages=(clang-14 libclang-rt-14-dev libomp-14-dev clang-format-14 clang-tidy-14 libcmocka-dev binutils)
logs=build/bootstrap
with_tests=

die() {
  printf 'bootstrap: %s\n' "$*" >&2
  exit 1
}

# ---- packages ----

is_installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2> /dev/null)" = installed ]; }

# Without Debian's package manager nothing can be installed: what is needed must be there already.
need_tools() {
  local missing=() tool module
  for tool in cc cmake ninja pkg-config; do
    command -v "$tool" > /dev/null || missing+=("$tool")
  done
  if command -v pkg-config > /dev/null; then
    for module in jansson libjpeg libpng libwebp libtiff-4 libutf8proc; do
      pkg-config --exists "$module" || missing+=("$module (development files)")
    done
  fi
  [ ${#missing[@]} = 0 ] || die "this is no Debian, so install these yourself: $(printf '%s, ' "${missing[@]}" | sed 's/, $//')"
}

need_packages() {
  local missing=() p sudo=()
  if ! command -v apt-get > /dev/null || ! command -v dpkg-query > /dev/null; then
    need_tools
    return
  fi
  for p in "$@"; do
    is_installed "$p" || missing+=("$p")
  done
  [ ${#missing[@]} = 0 ] && return
  if [ "$(id -u)" != 0 ]; then
    command -v sudo > /dev/null || die "needs root (or sudo) to run: apt-get install ${missing[*]}"
    sudo=(sudo)
  fi
  echo "installing ${missing[*]}"
  mkdir -p $logs
  "${sudo[@]}" apt-get update -qq > $logs/packages.log 2>&1 || true # a stale foreign source is no reason to stop
  if ! "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >> $logs/packages.log 2>&1; then
    tail -n 15 $logs/packages.log >&2
    die "apt-get could not install: ${missing[*]}
Is there a network, and is this Debian 12? The whole log: $logs/packages.log"
  fi
}

# ---- building ----

# run_logged NAME COMMAND...: output goes to the log; its end is shown on failure.
run_logged() {
  local name=$1
  shift
  mkdir -p $logs
  "$@" > "$logs/$name.log" 2>&1 && return
  tail -n 40 "$logs/$name.log" >&2
  echo "the whole log: $logs/$name.log" >&2
  return 1
}

configure_and_build() { # PRESET [CMAKE OPTION...]
  local preset=$1
  shift
  run_logged "configure-$preset" cmake --preset "$preset" "$@" && run_logged "build-$preset" cmake --build --preset "$preset"
}

build_release() {
  local tests=()
  if [ -n "$with_tests" ]; then
    tests=(-DINK_BUILD_TESTS=ON)
  elif [ ! -f build/release/CMakeCache.txt ] || ! pkg-config --exists cmocka; then
    tests=(-DINK_BUILD_TESTS=OFF)
  fi
  [ -x build/release/inkstone ] || echo "building (about a minute)"
  configure_and_build release "${tests[@]}" || die "the build failed"
}

install_to() {
  local prefix=$1 sudo=()
  mkdir -p "$prefix" 2> /dev/null || true
  if [ ! -w "$prefix" ]; then
    command -v sudo > /dev/null || die "cannot write to $prefix, and there is no sudo"
    sudo=(sudo)
  fi
  run_logged install "${sudo[@]}" cmake --install build/release --prefix "$prefix" || die "the installation failed"
  if [ "$prefix" = /usr/local ] && command -v ldconfig > /dev/null; then
    "${sudo[@]}" ldconfig || true
  fi
  echo "installed in $prefix"
}

# ---- testing ----

failed=()
summary=()

stage() { # NAME COMMAND...: remembers the outcome and goes on
  local name=$1 start=$SECONDS
  shift
  if "$@"; then
    summary+=("ok      $name ($((SECONDS - start)) s)")
    echo "ok: $name ($((SECONDS - start)) s)"
  else
    summary+=("FAILED  $name ($((SECONDS - start)) s)")
    failed+=("$name")
    echo "FAILED: $name" >&2
  fi
}

run_ctest() { # NAME BUILD_FOLDER
  mkdir -p $logs
  ctest --test-dir "$2" --output-on-failure > "$logs/ctest-$1.log" 2>&1 || {
    grep -v '^ *Start ' "$logs/ctest-$1.log" | grep -vE ' Passed ' | tail -n 60 >&2
    return 1
  }
}

run_fuzzer() { # TOPIC SECONDS: new inputs go to a folder of their own; a crash leaves its input in build/bootstrap
  local topic=$1 seconds=$2
  mkdir -p "build/fuzz/corpus/$topic"
  run_logged "fuzz-$topic" "build/fuzz/fuzz/fuzz_$topic" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=4096 -print_final_stats=1 \
    -artifact_prefix="$logs/" "build/fuzz/corpus/$topic" "fuzz/seeds/$topic"
}

run_fuzzers() { # SECONDS: as many at once as there are cores
  local topics topic running=() status=0 pid
  topics=$(ls fuzz/fuzz_*.c | sed 's|.*/fuzz_||; s|\.c$||')
  for topic in $topics; do
    run_fuzzer "$topic" "$1" &
    running+=($!)
    if [ ${#running[@]} -ge "$(nproc)" ]; then
      wait "${running[0]}" || status=1
      running=("${running[@]:1}")
    fi
  done
  for pid in "${running[@]}"; do
    wait "$pid" || status=1
  done
  return $status
}

build_with_clang() {
  run_logged configure-clang cmake --preset clang && run_logged build-clang cmake --build --preset clang
}

# Cheap checks first, so that failures show early; every stage runs, the summary comes last.
run_tests() { # FULL
  local full=$1 fuzz_seconds=30
  export INK_CONF_CASES
  stage "tree" run_logged tree bash tests/check_tree.sh .
  stage "format" run_logged format bash tests/check_format.sh . clang-format-14
  [ -z "$full" ] || INK_CONF_CASES=400
  stage "release tests" run_ctest release build/release
  if configure_and_build asan; then
    INK_CONF_CASES=20
    [ -z "$full" ] || INK_CONF_CASES=60
    stage "address and undefined-behaviour sanitizer tests" run_ctest asan build/asan
  else
    stage "sanitizer build" false
  fi
  [ -z "$full" ] || fuzz_seconds=300
  if configure_and_build fuzz; then
    stage "fuzzers, $fuzz_seconds s each" run_fuzzers $fuzz_seconds
  else
    stage "fuzzer build" false
  fi
  if [ -n "$full" ]; then
    stage "clang build" build_with_clang
    stage "clang-tidy" run_logged tidy tools/bootstrap/tidy.sh build/clang
  fi
  echo
  local log
  for log in asan release; do
    echo "ctest, $log:"
    sed -n '/tests passed/,$p' "$logs/ctest-$log.log" 2> /dev/null | sed 's/^/  /'
  done
  printf '%s\n' "${summary[@]}"
  if [ ${#failed[@]} -gt 0 ]; then
    die "${#failed[@]} of ${#summary[@]} stages failed; logs in $logs/"
  fi
  echo "all ${#summary[@]} stages passed"
}
