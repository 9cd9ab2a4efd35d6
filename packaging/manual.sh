#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# manual.sh PROGRAM OUTPUT: writes the manual page tegula(1) from the texts of `tegula --help` and of
# `tegula COMMAND --help` for each command.
set -eu
program=$1 output=$2

# Help text to roff. A line of two blanks, a term, two blanks or more, and a description is an entry of
# a list; deeper lines continue it. What follows "Example:" is kept as it is. An argument is the heading
# of what follows the usage line.
to_roff() {
  awk -v heading="${1-}" '
    function escape(text) {
      gsub(/\\/, "\\e", text)
      gsub(/-/, "\\-", text)
      gsub(/`/, "\\(ga", text)
      gsub(/\047/, "\\(aq", text)
      return text ~ /^\./ ? "\\&" text : text
    }
    function verbatim(line) { printf ".RS 4\n.nf\n%s\n.fi\n.RE\n", escape(line) }
    /^Usage: / { 
      sub(/^Usage: /, "")
      verbatim($0)
      if (heading != "") print ".SH " heading
      next
    }
    /^$/ { print ".PP"; next }
    /^[A-Z][a-z]*:$/ { sub(/:$/, ""); print ".SS " $0; is_example = /^Example/; next }
    is_example && /^  / { verbatim(substr($0, 3)); next }
    /^  [^ ]/ {
      line = substr($0, 3)
      at = match(line, /   */)
      printf ".TP\n.B %s\n", escape(at > 0 ? substr(line, 1, at - 1) : line)
      if (at > 0) print escape(substr(line, at + RLENGTH))
      next
    }
    { sub(/^ +/, ""); print escape($0) }
  '
}

write_page() {
  printf '.TH TEGULA 1 "" "%s" "User Commands"\n' "$("$program" --version | head -n 1)"
  printf '.SH NAME\ntegula \\- multiply matrices on CPUs and NVIDIA GPUs\n.SH SYNOPSIS\n'
  help=$("$program" --help)
  printf '%s\n' "$help" | to_roff DESCRIPTION
  for command in $(printf '%s\n' "$help" | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p'); do
    printf '.SH TEGULA %s\n' "$(echo "$command" | tr '[:lower:]' '[:upper:]')"
    help=$("$program" "$command" --help)
    printf '%s\n' "$help" | to_roff
  done
}

write_page >"$output.new"
mv "$output.new" "$output"
