# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# Completion of tegula in bash. Commands, options and the values of options such as "--order row|col" are
# read from the program's own help, so that they are those of the installed version.

# The options in the lines that `tegula COMMAND --help` begins with two blanks: "-o, --output FILE".
_tegula_options() {
  "$@" --help 2>/dev/null | sed -n 's/^  \(-.*\)/\1/p' | sed 's/   *.*//' | tr -s ' ,' '\n' | grep '^-'
}

# The values of an option, where its help has them as "--order row|col".
_tegula_values() {
  local option=$1
  shift
  "$@" --help 2>/dev/null | sed -n "s/^  $option \([a-z0-9]*|[a-z0-9|]*\).*/\1/p" | tr '|' '\n'
}

_tegula() {
  local word=$2 previous=$3 words=""
  local help=("${COMP_WORDS[0]}")
  COMPREPLY=()
  if [ "$COMP_CWORD" -gt 1 ]; then help+=("${COMP_WORDS[1]}"); fi
  if [[ $word == -* ]]; then
    words="$(_tegula_options "${help[@]}") --help"
  elif [ "$COMP_CWORD" -eq 1 ]; then
    words=$("${help[@]}" --help 2>/dev/null | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p')
  elif [[ $previous == -* ]]; then
    words=$(_tegula_values "$previous" "${help[@]}")
  fi
  # Without a match bash completes names of files.
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}

complete -o default -F _tegula tegula
