#compdef PROGRAM
_PROGRAM() {
    local -a lines candidates
    local line
    lines=("${(@f)$("$words[1]" completion zsh -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ $lines[1] == :files ]]; then
        _files
        return
    fi
    for line in $lines; do
        candidates+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
    done
    _describe 'PROGRAM' candidates
}
if [[ $funcstack[1] == _PROGRAM ]]; then
    _PROGRAM "$@"
else
    (( $+functions[compdef] )) || { autoload -Uz compinit && compinit; }
    compdef _PROGRAM PROGRAM
fi
