#compdef tegula
# SPDX-License-Identifier: Apache-2.0
#
# Completion of tegula in zsh. Commands, options and the values of options such as "--order row|col" are
# read from the program's own help, so that they are those of the installed version.

local -a help items
help=($words[1])
(( CURRENT > 2 )) && help+=($words[2])
if [[ $PREFIX == -* ]]; then
  items=(--help ${(f)"$($help --help 2>/dev/null | sed -n 's/^  \(-.*\)/\1/p' | sed 's/   *.*//' |
    tr -s ' ,' '\n' | grep '^-')"})
  compadd -- $items
elif (( CURRENT == 2 )); then
  items=(${(f)"$($help --help 2>/dev/null | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\)  *\(.*\)/\1:\2/p')"})
  _describe command items
else
  items=(${(f)"$($help --help 2>/dev/null |
    sed -n "s/^  $words[CURRENT-1] \([a-z0-9]*|[a-z0-9|]*\).*/\1/p" | tr '|' '\n')"})
  if (( $#items )); then compadd -- $items; else _files; fi
fi
