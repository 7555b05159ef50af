_hooktrail() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} cmd= i
    local words="--config --state --json --color --help"
    case $prev in
    --color) COMPREPLY=($(compgen -W 'auto always never' -- "$cur")); return ;;
    --contract) COMPREPLY=($(compgen -W 'sre' -- "$cur")); return ;;
    --source) COMPREPLY=($(compgen -W 'journals kafka' -- "$cur")); return ;;
    --config|--hooks|--secrets|--record|--appinsights|--state|--key-dir)
        COMPREPLY=($(compgen -f -- "$cur")); return ;;
    completion) COMPREPLY=($(compgen -W 'bash zsh fish' -- "$cur")); return ;;
    esac
    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
        --config|--state|--color) i=$((i + 1)) ;;
        -*) ;;
        *) cmd=${COMP_WORDS[i]}; break ;;
        esac
    done
    case $cmd in
    ''|help) words="run trace why status tail check dispatch verify deadletter token config collect ship serve completion version help $words" ;;
    trace) words="--from --to --limit --all $words" ;;
    why) words="--call --thread --tool --event --at $words" ;;
    tail) words="--follow --lines --thread $words" ;;
    check) words="--hooks --contract --secrets $words" ;;
    dispatch) words="--hooks --contract --secrets --record --appinsights $words" ;;
    verify) words="--key-dir --record $words" ;;
    deadletter) words="list show retry drop --all --sink $words" ;;
    token) words="create list revoke --scopes --expires $words" ;;
    config) words="--get $words" ;;
    ship) words="--once --source $words" ;;
    esac
    COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o default -F _hooktrail hooktrail
