#compdef tegula
# SPDX-License-Identifier: Apache-2.0
#
# Completion of tegula in zsh. Commands, options and the values of options such as "--order row|col" are
# read from the help of the program that PATH finds, so that they are those of the installed version.
# Only that program is run: neither ./tegula of the current folder nor another path in the command line. What
# was typed is compared with the help as text, and is never a part of a script.

local program=$(whence -p tegula) option=$words[CURRENT-1] line text
local -a help items
[[ $program == /* ]] || program=true
help=($program)
(( CURRENT > 2 )) && [[ $words[2] =~ '^[a-z]+$' ]] && help+=($words[2])
text=$($help --help 2>/dev/null)
if [[ $PREFIX == -* ]]; then
  items=(--help)
  for line in ${(M)${(f)text}:#  -*}; do
    line=${${line#  }%%  *}
    items+=(${(M)=${line//,/ }:#-*})
  done
  compadd -- $items
elif (( CURRENT == 2 )); then
  for line in ${(f)${${text#*Commands:$'\n'}%%$'\n\n'*}}; do
    [[ $line =~ '^  ([a-z]+) +(.*)$' ]] && items+=("$match[1]:$match[2]")
  done
  _describe command items
else
  for line in ${(f)text}; do
    [[ ${line[1,$(( $#option + 3 ))]} == "  $option " ]] || continue
    line=${${line[$(( $#option + 4 )),-1]}%% *}
    [[ $line =~ '^[a-z0-9]+(\|[a-z0-9]+)+$' ]] && items=(${(s:|:)line})
  done
  if (( $#items )); then compadd -- $items; else _files; fi
fi
