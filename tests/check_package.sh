#!/usr/bin/env bash
# check_package.sh SOURCE BUILD CMAKE CC: what `cmake --install` puts down can be used: the program runs, and a program of a
# user's builds against it by pkg-config (shared and static) and by the CMake package (both), and runs.
set -euo pipefail
source=$1 build=$2 cmake=$3 cc=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix="$work/a prefix"
image=$source/models/mini/golden/01.png
fail() { echo "check_package: $*" >&2; exit 1; }

"$cmake" --install "$build" --prefix "$prefix" > "$work/install.log" || { cat "$work/install.log"; fail "install failed"; }
expected=$("$prefix/bin/inkstone" read "$image")
[ -n "$expected" ] || fail "the installed program reads nothing"
for file in bin/inkstone include/inkstone/inkstone.h include/inkstone/base.h share/man/man1/inkstone.1 share/doc/inkstone/LICENSE; do
  [ -s "$prefix/$file" ] || fail "$file is not installed"
done
pc=$(find "$prefix" -name inkstone.pc)
libdir=$(dirname "$(dirname "$pc")")

program=$source/examples/read.c
export PKG_CONFIG_PATH
PKG_CONFIG_PATH=$(dirname "$pc")
[ "$(pkg-config --modversion inkstone)" = "$("$prefix/bin/inkstone" --version | cut -d' ' -f2)" ] || fail "versions differ"

# The prefix has a space: pkg-config escapes it for a shell.
eval "\"$cc\" -Wall -Werror -o \"$work/shared\" \"$program\" $(pkg-config --cflags --libs inkstone) -Wl,-rpath,\"$libdir\""
mkdir "$work/static-only"
cp "$libdir/libinkstone.a" "$work/static-only/"
eval "\"$cc\" -Wall -Werror -o \"$work/static\" \"$program\" $(pkg-config --cflags inkstone) -L\"$work/static-only\" $(pkg-config --libs --static inkstone | sed 's/-L[^ ]*\\ [^ ]*//')"

mkdir "$work/user"
cat > "$work/user/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.25)
project(user C)
find_package(inkstone 0.1 REQUIRED)
add_executable(with_shared "$program")
target_link_libraries(with_shared inkstone::inkstone)
if(NOT inkstone_static_FOUND)
  message(FATAL_ERROR "inkstone::static is missing")
endif()
add_executable(with_static "$program")
target_link_libraries(with_static inkstone::static)
END
"$cmake" -G Ninja -S "$work/user" -B "$work/user/build" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_COMPILER="$cc" > "$work/user.log" 2>&1 &&
  "$cmake" --build "$work/user/build" >> "$work/user.log" 2>&1 || { cat "$work/user.log"; fail "the CMake package cannot be used"; }

for built in "$work/shared" "$work/static" "$work/user/build/with_shared" "$work/user/build/with_static"; do
  got=$("$built" "$image") || fail "$(basename "$built") fails"
  [ "$got" = "$expected" ] || fail "$(basename "$built") reads '$got', expected '$expected'"
done
for built in "$work/static" "$work/user/build/with_static"; do
  if ldd "$built" | grep -q libinkstone; then
    fail "$(basename "$built") needs the shared library"
  fi
done
echo "program, pkg-config shared and static, CMake package shared and static: all read '$expected'"
