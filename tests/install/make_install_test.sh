#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# make_install_test.sh SOURCE BUILD: tests `make install` and `make uninstall` with PREFIX and DESTDIR, from a
# build folder that was configured with another prefix, and their messages about the loader.
set -eu
source=$1 build=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() { echo "$*"; exit 1; }

# A replacement of ldconfig. It searches one folder, and knows the library if the file "known" exists.
searched=$work/ours/lib
mkdir "$work/bin"
cat >"$work/bin/ldconfig" <<EOF
#!/bin/sh
case \$* in
-p) test ! -e $work/known || echo "	libtegula.so.0 (libc6,x86-64) => $searched/libtegula.so.0" ;;
*) echo "$searched: (from somewhere)" ;;
esac
EOF
chmod +x "$work/bin/ldconfig"

# tegula_make TARGET VARIABLE=VALUE...: runs make with the replacement of ldconfig.
tegula_make() {
  PATH=$work/bin:$PATH make -C "$source" BUILD="$build" "$@" >"$work/log" 2>&1
}

files() { (cd "$1" && find . -type f -o -type l | sort); }

echo "== PREFIX, after a configuration with another"
cmake -S "$source" -B "$build" -DCMAKE_INSTALL_PREFIX="$work/configured" -DCMAKE_INSTALL_LIBDIR=lib \
  >/dev/null
tegula_make install PREFIX="$work/ours" || { cat "$work/log"; exit 1; }
test ! -e "$work/configured" || fail "installed to the configured prefix"
for file in bin/tegula lib/libtegula.so include/tegula/tegula.h; do
  test -e "$work/ours/$file" || fail "not installed: $file"
done
grep -q '^Run ldconfig' "$work/log" || fail "nothing is said of ldconfig"
touch "$work/known"
tegula_make install PREFIX="$work/ours"
if grep -q 'ldconfig\|rpath' "$work/log"; then fail "something is said though the library is known"; fi

echo "== a prefix that the loader does not search, with a blank, and one that is relative"
tegula_make install PREFIX="$work/with blank"
grep -q "rpath.*$work/with blank/lib" "$work/log" || fail "nothing is said of the rpath"
"$work/with blank/bin/tegula" --version
(cd "$source" && realpath --relative-to=. "$work/relative") >"$work/path"
tegula_make install PREFIX="$(cat "$work/path")"
test "$(files "$work/relative")" = "$(files "$work/ours")" || fail "the relative prefix has other files"

echo "== the configured prefix"
tegula_make install
test "$(files "$work/configured")" = "$(files "$work/ours")" || fail "the prefixes have other files"

echo "== DESTDIR"
tegula_make install PREFIX=/usr DESTDIR="$work/stage"
test "$(files "$work/stage/usr")" = "$(files "$work/ours")" || fail "DESTDIR has other files"
if grep -q 'ldconfig\|rpath' "$work/log"; then fail "ldconfig is of no use in DESTDIR"; fi

echo "== uninstall removes what was installed, and nothing else"
touch "$work/ours/lib/libother.so" "$work/ours/include/tegula/mine.h"
tegula_make uninstall PREFIX="$work/ours"
test "$(files "$work/ours" | tr '\n' ' ')" = "./include/tegula/mine.h ./lib/libother.so " ||
  fail "left: $(files "$work/ours")"
tegula_make uninstall PREFIX=/usr DESTDIR="$work/stage"
tegula_make uninstall PREFIX="$work/with blank"
tegula_make uninstall
for prefix in stage configured "with blank"; do
  test -z "$(files "$work/$prefix")" || fail "left: $(files "$work/$prefix")"
  test -z "$(find "$work/$prefix" -name tegula)" || fail "left: $(find "$work/$prefix" -name tegula)"
done
test -e "$work/relative/bin/tegula" || fail "another prefix was uninstalled"
tegula_make uninstall PREFIX="$work/relative"

echo "== nothing to uninstall"
if tegula_make uninstall PREFIX="$work/ours"; then fail "uninstalled twice"; fi
grep -q 'Nothing was installed' "$work/log" || { cat "$work/log"; exit 1; }
