#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# help_texts_test.sh PROGRAM PACKAGING MANUAL: checks that the manual page and the completions of bash and zsh
# have every command and every long option of the program's help texts. Completion must run no program of
# the current folder and no text that was typed.
set -eu
program=$1 packaging=$2 manual=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ln -s "$program" "$work/tegula"
PATH=$work:$PATH

commands=$(tegula --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p')
options_of() { # COMMAND, or nothing
  tegula "$@" --help | grep '^  -' | sed 's/^\(  -[^ ].*[^ ]\)   *.*/\1/' | grep -o -- '--[a-z][a-z0-9-]*' | sort -u
}
test "$(echo "$commands" | wc -l)" -ge 8
test "$(options_of mm | wc -l)" -ge 8

# expect NAME WORDS FILE: checks that each of WORDS is a line of FILE.
expect() {
  for word in $2; do
    grep -qxF -e "$word" "$3" || { echo "$1 lacks $word:"; cat "$3"; exit 1; }
  done
}

echo "== two blanks between an option and its text"
# Before the two blanks are names of options, and one word for a value: "-o, --output FILE", "--order row|col".
for command in $commands; do
  if tegula "$command" --help | grep '^  -' |
    grep -vE '^  --?[a-z0-9-]+(, --?[a-z0-9-]+)*( [A-Za-z|.]+)?(  |$)'; then
    echo "$command: no two blanks before the text"
    exit 1
  fi
done

echo "== manual page"
sed 's/\\-/-/g' "$manual" >"$work/manual"
for command in $commands; do
  grep -q "^\.SH TEGULA $(echo "$command" | tr '[:lower:]' '[:upper:]')\$" "$work/manual" ||
    { echo "the manual lacks $command"; exit 1; }
  for option in $(options_of "$command"); do
    grep -q -e "^\.B.*$option" "$work/manual" || { echo "the manual lacks $option"; exit 1; }
  done
done
if command -v groff >/dev/null; then
  groff -man -ww -z "$manual" 2>"$work/warnings"
  test ! -s "$work/warnings" || { cat "$work/warnings"; exit 1; }
fi

# Asks for completions in an untrusted folder with a program named tegula. None of the words may run anything.
mkdir "$work/untrusted"
printf '#!/bin/sh\ntouch "%s/ran"\n' "$work" >"$work/untrusted/tegula"
chmod +x "$work/untrusted/tegula"
run_nothing() {
  # shellcheck disable=SC2016 # the words stay as they are
  for option in "-x'//;1e touch ran;#" '-x//;1e touch ran;#' '-$(touch ran)' '-`touch ran`' '-x$(touch ran)' '-a[$(touch ran)]'; do
    (
      cd "$work/untrusted"
      PROGRAM=./tegula ask mm "$option" ""
      PROGRAM=./tegula ask mm "$option"
      PROGRAM=./tegula ask "$option" -
      PROGRAM=$work/untrusted/tegula ask mm --
      PATH=.:$PATH ask mm --
      PATH=:$PATH ask mm "$option" ""
    )
    for place in "$work" "$work/untrusted"; do
      if [ -e "$place/ran" ]; then echo "TAB has run something ($option)"; exit 1; fi
    done
  done
}

if command -v bash >/dev/null; then
  echo "== bash"
  cat >"$work/ask.bash" <<'EOF'
source "$1"
shift
COMP_WORDS=("${PROGRAM-tegula}" "$@") COMP_CWORD=$#
previous=${COMP_WORDS[COMP_CWORD - 1]}
_tegula "${COMP_WORDS[0]}" "${COMP_WORDS[COMP_CWORD]}" "$previous"
printf '%s\n' "${COMPREPLY[@]}"
EOF
  ask() { bash "$work/ask.bash" "$packaging/completion.bash" "$@" >"$work/answer"; }
  ask ""
  expect bash "$commands" "$work/answer"
  ask --
  expect bash "--help --version" "$work/answer"
  for command in $commands; do
    ask "$command" --
    expect "bash: $command" "$(options_of "$command") --help" "$work/answer"
  done
  ask bench --activation ""
  expect "bash: --activation" "relu gelu silu" "$work/answer"
  ask mm A
  test -z "$(cat "$work/answer")" # bash completes names of files then
  run_nothing
fi

if command -v zsh >/dev/null; then
  echo "== zsh"
  cat >"$work/ask.zsh" <<'EOF'
compadd() { shift; print -l -- $@ }
_describe() { print -l -- ${${(P)2}%%:*} }
_files() { print FILES }
completion=$1
shift
words=(${PROGRAM-tegula} "$@") CURRENT=$(( $# + 1 )) PREFIX=$words[-1]
source $completion
EOF
  ask() { zsh -f "$work/ask.zsh" "$packaging/completion.zsh" "$@" >"$work/answer"; }
  ask ""
  expect zsh "$commands" "$work/answer"
  ask --
  expect zsh "--help --version" "$work/answer"
  for command in $commands; do
    ask "$command" --
    expect "zsh: $command" "$(options_of "$command") --help" "$work/answer"
  done
  ask bench --activation ""
  expect "zsh: --activation" "relu gelu silu" "$work/answer"
  ask mm A
  expect "zsh: files" FILES "$work/answer"
  run_nothing
fi
