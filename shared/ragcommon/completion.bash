_PROGRAM() {
    local IFS=$'\n' lines
    lines=$("$1" completion bash -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    COMPREPLY=()
    [[ $lines == :files ]] && return
    local line
    for line in $lines; do COMPREPLY+=("${line%%$'\t'*}"); done
    [[ $lines ]] || compopt +o default 2>/dev/null
}
complete -o default -F _PROGRAM PROGRAM
