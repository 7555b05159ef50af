complete -c hooktrail -l config -r
complete -c hooktrail -l state -r
complete -c hooktrail -l json
complete -c hooktrail -l color -x -a 'auto always never'
complete -c hooktrail -l help
complete -c hooktrail -f -n '__fish_seen_subcommand_from completion' -a 'bash zsh fish'
complete -c hooktrail -f -n __fish_use_subcommand -a run -d 'Run collect, ship and serve on this machine'
complete -c hooktrail -f -n __fish_use_subcommand -a trace -d 'Show a thread\'s hooks and tool calls as a timeline'
complete -c hooktrail -n '__fish_seen_subcommand_from trace' -l from -r
complete -c hooktrail -n '__fish_seen_subcommand_from trace' -l to -r
complete -c hooktrail -n '__fish_seen_subcommand_from trace' -l limit -r
complete -c hooktrail -n '__fish_seen_subcommand_from trace' -l all
complete -c hooktrail -f -n __fish_use_subcommand -a why -d 'Say why a hook did or did not fire'
complete -c hooktrail -n '__fish_seen_subcommand_from why' -l call -r
complete -c hooktrail -n '__fish_seen_subcommand_from why' -l thread -r
complete -c hooktrail -n '__fish_seen_subcommand_from why' -l tool -r
complete -c hooktrail -n '__fish_seen_subcommand_from why' -l event -r
complete -c hooktrail -n '__fish_seen_subcommand_from why' -l at -r
complete -c hooktrail -f -n __fish_use_subcommand -a status -d 'Show what runs, what is stored and what waits'
complete -c hooktrail -f -n __fish_use_subcommand -a tail -d 'Print records as they are written'
complete -c hooktrail -n '__fish_seen_subcommand_from tail' -l follow
complete -c hooktrail -n '__fish_seen_subcommand_from tail' -l lines -r
complete -c hooktrail -n '__fish_seen_subcommand_from tail' -l thread -r
complete -c hooktrail -f -n __fish_use_subcommand -a check -d 'Check hook files before they are used'
complete -c hooktrail -n '__fish_seen_subcommand_from check' -l hooks -r
complete -c hooktrail -n '__fish_seen_subcommand_from check' -l contract -x -a 'sre'
complete -c hooktrail -n '__fish_seen_subcommand_from check' -l secrets -r
complete -c hooktrail -f -n __fish_use_subcommand -a dispatch -d 'Run one dispatch without a daemon'
complete -c hooktrail -n '__fish_seen_subcommand_from dispatch' -l hooks -r
complete -c hooktrail -n '__fish_seen_subcommand_from dispatch' -l contract -x -a 'sre'
complete -c hooktrail -n '__fish_seen_subcommand_from dispatch' -l secrets -r
complete -c hooktrail -n '__fish_seen_subcommand_from dispatch' -l record -r
complete -c hooktrail -n '__fish_seen_subcommand_from dispatch' -l appinsights -r
complete -c hooktrail -f -n __fish_use_subcommand -a verify -d 'Prove that journals are whole and unchanged'
complete -c hooktrail -n '__fish_seen_subcommand_from verify' -l key-dir -r
complete -c hooktrail -n '__fish_seen_subcommand_from verify' -l record -r
complete -c hooktrail -f -n __fish_use_subcommand -a deadletter -d 'Show and send again what a sink refused'
complete -c hooktrail -n '__fish_seen_subcommand_from deadletter' -f -a list
complete -c hooktrail -n '__fish_seen_subcommand_from deadletter' -f -a show
complete -c hooktrail -n '__fish_seen_subcommand_from deadletter' -f -a retry
complete -c hooktrail -n '__fish_seen_subcommand_from deadletter' -f -a drop
complete -c hooktrail -n '__fish_seen_subcommand_from deadletter' -l all
complete -c hooktrail -n '__fish_seen_subcommand_from deadletter' -l sink -r
complete -c hooktrail -f -n __fish_use_subcommand -a token -d 'Make, list and revoke access tokens'
complete -c hooktrail -n '__fish_seen_subcommand_from token' -f -a create
complete -c hooktrail -n '__fish_seen_subcommand_from token' -f -a list
complete -c hooktrail -n '__fish_seen_subcommand_from token' -f -a revoke
complete -c hooktrail -n '__fish_seen_subcommand_from token' -l scopes -r
complete -c hooktrail -n '__fish_seen_subcommand_from token' -l expires -r
complete -c hooktrail -f -n __fish_use_subcommand -a config -d 'Print the effective configuration'
complete -c hooktrail -n '__fish_seen_subcommand_from config' -l get -r
complete -c hooktrail -f -n __fish_use_subcommand -a collect -d 'Run hooks and record them (a daemon)'
complete -c hooktrail -f -n __fish_use_subcommand -a ship -d 'Deliver records to the sinks (a daemon)'
complete -c hooktrail -n '__fish_seen_subcommand_from ship' -l once
complete -c hooktrail -n '__fish_seen_subcommand_from ship' -l source -x -a 'journals kafka'
complete -c hooktrail -f -n __fish_use_subcommand -a serve -d 'Answer questions over HTTP (a daemon)'
complete -c hooktrail -f -n __fish_use_subcommand -a completion -d 'Print a completion script for bash, zsh or fish'
complete -c hooktrail -f -n __fish_use_subcommand -a version -d 'Print the version'
complete -c hooktrail -f -n __fish_use_subcommand -a help -d 'Explain a command'
