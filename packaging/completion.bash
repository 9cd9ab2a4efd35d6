# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# Completion of tegula in bash. Commands, options and the values of options such as "--order row|col" are
# read from the help of the program that PATH finds, so that they are those of the installed version.
# Only that program is run: neither ./tegula of the current folder nor another path in the command line. What
# was typed is compared with the help as text, and is never a part of a script.

# What `tegula --help` or `tegula COMMAND --help` prints. $1: the command; nothing else is passed on.
_tegula_help() {
  local program
  program=$(type -P tegula)
  if [[ $program != /* ]]; then return; fi
  if [[ ${1-} =~ ^[a-z]+$ ]]; then "$program" "$1" --help 2>/dev/null; else "$program" --help 2>/dev/null; fi
}

# The words that fit, of the help in the standard input: the commands; the options of the lines that begin
# with two blanks, "  -o, --output FILE"; or the values of option $2.
_tegula_words() { # commands, options, or values OPTION
  local kind=$1 option=${2-} line is_command="" word
  while IFS= read -r line; do
    case $line in
      Commands:) is_command=1 ;;
      "") is_command="" ;;
    esac
    if [[ $kind = commands && -n $is_command && $line =~ ^\ \ ([a-z]+)\  ]]; then
      echo "${BASH_REMATCH[1]}"
    elif [[ $kind = options && $line = "  -"* ]]; then
      line=${line#  }
      line=${line%%  *}
      for word in ${line//,/ }; do if [[ $word = -* ]]; then echo "$word"; fi; done
    elif [[ $kind = values && $line = "  $option "* ]]; then
      line=${line#"  $option "}
      line=${line%% *}
      if [[ $line =~ ^[a-z0-9]+(\|[a-z0-9]+)+$ ]]; then echo "${line//|/$'\n'}"; fi
    fi
  done
}

_tegula() {
  local word=$2 previous=$3 command="" words="" candidate
  COMPREPLY=()
  if [ "$COMP_CWORD" -gt 1 ]; then command=${COMP_WORDS[1]}; fi
  if [[ $word == -* ]]; then
    words="$(_tegula_help "$command" | _tegula_words options) --help"
  elif [ "$COMP_CWORD" -eq 1 ]; then
    words=$(_tegula_help | _tegula_words commands)
  elif [[ $previous == -* ]]; then
    words=$(_tegula_help "$command" | _tegula_words values "$previous")
  fi
  # Without a match bash completes names of files.
  for candidate in $words; do
    if [[ $candidate == "$word"* ]]; then COMPREPLY+=("$candidate"); fi
  done
}

complete -o default -F _tegula tegula
