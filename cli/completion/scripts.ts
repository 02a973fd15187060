// The completion scripts of the shells. A script sends the words of the line to `box __complete`, which prints the
// candidates: one per line, with a tab before the description, and `:files` if local files are candidates too.

export const SHELLS = ['bash', 'zsh', 'fish'] as const
export type Shell = (typeof SHELLS)[number]

/** This text is in the first line of each script. `box uninstall` deletes only files that contain it. */
export const SCRIPT_MARKER = 'Completion of the box command of Boxwood'

export const SCRIPTS: Record<Shell, string> = {
  // bash splits words at ':', '=' and '@' too, and replaces only the part after the last of them; that part includes '@'.
  bash: `# ${SCRIPT_MARKER} for bash.
_box() {
  local words word candidate hidden
  read -ra words <<<"\${COMP_LINE:0:COMP_POINT}"
  [[ \${COMP_LINE:0:COMP_POINT} == *[[:space:]] ]] && words+=('')
  while [[ \${#words[@]} -gt 0 && \${words[0]} != "\${COMP_WORDS[0]}" ]]; do words=("\${words[@]:1}"); done
  word=\${words[-1]}
  hidden=\${word%"\${word##*[:=]}"}
  [[ $word == *@* ]] && hidden=\${word%"$2"}
  COMPREPLY=()
  while IFS=$'\\t' read -r candidate _; do
    if [[ $candidate == :files ]]; then
      local IFS=$'\\n'
      local files=($(compgen -f -- "$word"))
      [[ \${#COMPREPLY[@]} -eq 0 ]] && compopt -o filenames
      COMPREPLY+=("\${files[@]}")
    else
      [[ $candidate == *: ]] && compopt -o nospace
      COMPREPLY+=("\${candidate#"$hidden"}")
    fi
  done < <("\${words[0]/#\\~/$HOME}" __complete -- "\${words[@]:1}" 2>/dev/null)
}
complete -F _box box
`,
  zsh: `#compdef box
# ${SCRIPT_MARKER} for zsh.
_box() {
  local line
  local -a entries prefixes
  while IFS= read -r line; do
    if [[ $line == :files ]]; then
      _files
    else
      local value=\${line%%$'\\t'*} description=\${line#*$'\\t'}
      local entry=\${value//:/\\\\:}:$description
      if [[ $value == *: ]]; then prefixes+=("$entry"); else entries+=("$entry"); fi
    fi
  done < <("\${(Q)words[1]/#\\~/$HOME}" __complete -- "\${(@Q)words[2,CURRENT]}" 2>/dev/null)
  (( $#entries )) && _describe box entries
  (( $#prefixes )) && _describe box prefixes -S ''
}
# An autoloaded file is the body of the function; otherwise the file was sourced.
if [[ $funcstack[1] == _box ]]; then
  _box "$@"
else
  (( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
  compdef _box box
fi
`,
  fish: `# ${SCRIPT_MARKER} for fish.
function __box_complete
  set -l words (commandline -opc) (commandline -ct)
  while string match -qr '^\\\\w+=' -- $words[1]
    set -e words[1]
  end
  set -l command (string replace -r '^~' $HOME -- $words[1])
  set -e words[1]
  for line in ($command __complete -- $words 2>/dev/null)
    if test "$line" = :files
      __fish_complete_path (commandline -ct)
    else
      echo $line
    end
  end
end
complete -c box -f -a '(__box_complete)'
`,
}
