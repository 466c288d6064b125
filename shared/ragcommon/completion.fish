function __PROGRAM_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l lines ($words[1] completion fish -- $words[2..] "$current" 2>/dev/null)
    if test "$lines" = :files
        __fish_complete_path "$current"
    else
        string join \n -- $lines
    end
end
complete -c PROGRAM -f -a '(__PROGRAM_complete)'
