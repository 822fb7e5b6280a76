function __ubiquitousctl_should_offer_completions_for_flags_or_options -a expected_commands
    set -l non_repeating_flags_or_options $argv[2..]
    set -l non_repeating_flags_or_options_absent 0
    set -l positional_index 0
    set -l commands
    __ubiquitousctl_parse_tokens
    test "$commands" = "$expected_commands"; and return $non_repeating_flags_or_options_absent
end

function __ubiquitousctl_should_offer_completions_for_positional -a expected_commands positional_index_comparison expected_positional_index
    set -l non_repeating_flags_or_options
    set -l non_repeating_flags_or_options_absent 0
    set -l positional_index 0
    set -l commands
    __ubiquitousctl_parse_tokens
    test "$commands" = "$expected_commands" -a \( "$positional_index" "$positional_index_comparison" "$expected_positional_index" \)
end

function __ubiquitousctl_parse_tokens -S
    set -l unparsed_tokens (__ubiquitousctl_tokens -pc)
    switch $unparsed_tokens[1]
    case 'ubiquitousctl'
        __ubiquitousctl_parse_subcommand 0 'version' 'h/help'
        switch $unparsed_tokens[1]
        case 'get'
            __ubiquitousctl_parse_subcommand 1 's/store=' 'bus=' 'user=' 'json' 'raw' 'type' 'fresh' 'version' 'h/help'
        case 'set'
            __ubiquitousctl_parse_subcommand -r 1 's/store=' 'bus=' 'user=' 'n/check' 'json' 'version' 'h/help'
        case 'remove'
            __ubiquitousctl_parse_subcommand -r 1 's/store=' 'bus=' 'user=' 'n/check' 'json' 'version' 'h/help'
        case 'list'
            __ubiquitousctl_parse_subcommand 0 's/store=' 'bus=' 'user=' 'json' 'keys' 'version' 'h/help'
        case 'watch'
            __ubiquitousctl_parse_subcommand -r 1 's/store=' 'bus=' 'user=' 'json' 'initial' 'version' 'h/help'
        case 'export'
            __ubiquitousctl_parse_subcommand 1 's/store=' 'bus=' 'user=' 'format=' 'version' 'h/help'
        case 'import'
            __ubiquitousctl_parse_subcommand 1 's/store=' 'bus=' 'user=' 'n/check' 'json' 'replace' 'version' 'h/help'
        case 'history'
            __ubiquitousctl_parse_subcommand 0 'version' 'h/help'
            switch $unparsed_tokens[1]
            case 'show'
                __ubiquitousctl_parse_subcommand 1 's/store=' 'bus=' 'user=' 'json' 'version' 'h/help'
            case 'trim'
                __ubiquitousctl_parse_subcommand 0 'bus=' 'user=' 'n/check' 'json' 'version' 'h/help'
            end
        case 'restore'
            __ubiquitousctl_parse_subcommand 2 's/store=' 'bus=' 'user=' 'n/check' 'json' 'version' 'h/help'
        case 'defaults'
            __ubiquitousctl_parse_subcommand -r 1 'bus=' 'user=' 'json' 'n/check' 'version' 'h/help'
        case 'stores'
            __ubiquitousctl_parse_subcommand 0 'version' 'h/help'
            switch $unparsed_tokens[1]
            case 'list'
                __ubiquitousctl_parse_subcommand 0 'bus=' 'user=' 'everybody' 'json' 'version' 'h/help'
            case 'remove'
                __ubiquitousctl_parse_subcommand 1 'bus=' 'user=' 'n/check' 'json' 'everywhere' 'version' 'h/help'
            case 'sync'
                __ubiquitousctl_parse_subcommand 2 'bus=' 'user=' 'version' 'h/help'
            end
        case 'usage'
            __ubiquitousctl_parse_subcommand 0 's/store=' 'bus=' 'user=' 'keys=' 'json' 'version' 'h/help'
        case 'synchronize'
            __ubiquitousctl_parse_subcommand 0 's/store=' 'bus=' 'user=' 'wait' 'timeout=' 'json' 'version' 'h/help'
        case 'status'
            __ubiquitousctl_parse_subcommand 0 'bus=' 'user=' 'everybody' 'json' 'version' 'h/help'
        case 'account'
            __ubiquitousctl_parse_subcommand 0 'version' 'h/help'
            switch $unparsed_tokens[1]
            case 'sign-in'
                __ubiquitousctl_parse_subcommand 1 'bus=' 'user=' 'n/check' 'json' 'login=' 'password-file=' 'token-file=' 'ca-file=' 'device-name=' 'no-create' 'bring-values' 'encrypt' 'no-encrypt' 'phrase-file=' 'version' 'h/help'
            case 'renew'
                __ubiquitousctl_parse_subcommand 0 'bus=' 'user=' 'n/check' 'json' 'login=' 'password-file=' 'token-file=' 'ca-file=' 'version' 'h/help'
            case 'switch'
                __ubiquitousctl_parse_subcommand 1 'bus=' 'user=' 'n/check' 'json' 'login=' 'password-file=' 'token-file=' 'ca-file=' 'device-name=' 'no-create' 'bring-values' 'encrypt' 'no-encrypt' 'phrase-file=' 'version' 'h/help'
            case 'sign-out'
                __ubiquitousctl_parse_subcommand 0 'bus=' 'user=' 'n/check' 'json' 'clear-values' 'version' 'h/help'
            case 'sync'
                __ubiquitousctl_parse_subcommand 0 'bus=' 'user=' 'version' 'h/help'
            case 'pause'
                __ubiquitousctl_parse_subcommand 0 'bus=' 'user=' 'n/check' 'json' 'version' 'h/help'
            case 'resume'
                __ubiquitousctl_parse_subcommand 0 'bus=' 'user=' 'n/check' 'json' 'version' 'h/help'
            case 'phrase'
                __ubiquitousctl_parse_subcommand 0 'bus=' 'user=' 'json' 'version' 'h/help'
            case 'unlock'
                __ubiquitousctl_parse_subcommand 0 'bus=' 'user=' 'n/check' 'json' 'phrase-file=' 'version' 'h/help'
            case 'resolve'
                __ubiquitousctl_parse_subcommand 1 'bus=' 'user=' 'n/check' 'json' 'version' 'h/help'
            case 'devices'
                __ubiquitousctl_parse_subcommand 0 'bus=' 'user=' 'json' 'version' 'h/help'
            case 'rename'
                __ubiquitousctl_parse_subcommand 1 'bus=' 'user=' 'n/check' 'json' 'device=' 'version' 'h/help'
            case 'forget'
                __ubiquitousctl_parse_subcommand 1 'bus=' 'user=' 'n/check' 'json' 'version' 'h/help'
            end
        case 'doctor'
            __ubiquitousctl_parse_subcommand 1 'bus=' 'user=' 'login=' 'password-file=' 'token-file=' 'ca-file=' 'json' 'version' 'h/help'
        case 'identify'
            __ubiquitousctl_parse_subcommand 0 'bus=' 'json' 'version' 'h/help'
        case 'manifest'
            __ubiquitousctl_parse_subcommand 0 'version' 'h/help'
            switch $unparsed_tokens[1]
            case 'check'
                __ubiquitousctl_parse_subcommand 1 'json' 'version' 'h/help'
            end
        case 'metrics'
            __ubiquitousctl_parse_subcommand 0 'bus=' 'version' 'h/help'
        case 'admin'
            __ubiquitousctl_parse_subcommand 0 'version' 'h/help'
            switch $unparsed_tokens[1]
            case 'backup'
                __ubiquitousctl_parse_subcommand 1 'bus=' 'version' 'h/help'
            case 'restore'
                __ubiquitousctl_parse_subcommand 1 'bus=' 'replace' 'only=+' 'as=+' 'version' 'h/help'
            case 'list'
                __ubiquitousctl_parse_subcommand 0 'bus=' 'json' 'version' 'h/help'
            case 'adopt'
                __ubiquitousctl_parse_subcommand 2 'bus=' 'n/check' 'json' 'replace' 'version' 'h/help'
            case 'delete'
                __ubiquitousctl_parse_subcommand 1 'bus=' 'n/check' 'json' 'force' 'version' 'h/help'
            end
        case 'help'
            __ubiquitousctl_parse_subcommand -r 1 'version'
        end
    end
end

function __ubiquitousctl_tokens
    if test (string split -m 1 -f 1 -- . "$FISH_VERSION") -gt 3
        commandline --tokens-raw $argv
    else
        commandline -o $argv
    end
end

function __ubiquitousctl_parse_subcommand -S -a positional_count
    argparse -s r -- $argv
    set -l option_specs $argv[2..]
    set -l is_repeating_positional $_flag_r
    set -el _flag_r
    set -a commands $unparsed_tokens[1]
    set positional_index 0
    while true
        set -e unparsed_tokens[1]
        argparse -sn "$commands" $option_specs -- $unparsed_tokens 2> /dev/null
        set unparsed_tokens $argv
        set positional_index (math $positional_index + 1)
        for non_repeating_flag_or_option in $non_repeating_flags_or_options
            if set -ql "_flag_$(string replace -a - _ -- $non_repeating_flag_or_option)"
                set non_repeating_flags_or_options_absent 1
                break
            end
        end
        test (count $unparsed_tokens) -eq 0 -o \( -z "$is_repeating_positional" -a "$positional_index" -gt "$positional_count" \) && break
    end
end

function __ubiquitousctl_complete_directories
    set -l token (commandline -t)
    string match -- '*/' $token
    set -l subdirs $token*/
    printf %s\n $subdirs
end

function __ubiquitousctl_custom_completion
    set -x SAP_SHELL fish
    set -x SAP_SHELL_VERSION $FISH_VERSION
    set -l tokens (__ubiquitousctl_tokens -p)
    if test -z "$(__ubiquitousctl_tokens -t)"
        set -l index (count (__ubiquitousctl_tokens -pc))
        set tokens $tokens[..$index] \'\' $tokens[(math $index + 1)..]
    end
    command $tokens[1] $argv $tokens
end

complete -c 'ubiquitousctl' -f
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl" version' -l 'version' -d 'Show the version.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_positional "ubiquitousctl" -eq 1' -fa 'get' -d 'Prints the value of a key.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_positional "ubiquitousctl" -eq 1' -fa 'set' -d 'Sets the value of a key.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_positional "ubiquitousctl" -eq 1' -fa 'remove' -d 'Removes keys with their values.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_positional "ubiquitousctl" -eq 1' -fa 'list' -d 'Prints all keys of a store with their values.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_positional "ubiquitousctl" -eq 1' -fa 'watch' -d 'Prints changes as they happen, until it is interrupted.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_positional "ubiquitousctl" -eq 1' -fa 'export' -d 'Writes a store\'s values to a file or to standard output.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_positional "ubiquitousctl" -eq 1' -fa 'import' -d 'Sets the values of a file, all of them or none.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_positional "ubiquitousctl" -eq 1' -fa 'history' -d 'Prints earlier values of a key, the newest first, or removes those of all keys.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_positional "ubiquitousctl" -eq 1' -fa 'restore' -d 'Makes an earlier value of a key its value again.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_positional "ubiquitousctl" -eq 1' -fa 'defaults' -d 'Reads and writes the settings of programs, in macOS\'s words.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_positional "ubiquitousctl" -eq 1' -fa 'stores' -d 'Lists the stores that hold something, forgets one, or keeps one on this device.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_positional "ubiquitousctl" -eq 1' -fa 'usage' -d 'Shows how full stores are, and their largest keys.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_positional "ubiquitousctl" -eq 1' -fa 'synchronize' -d 'Brings a store to disk, and its changes on their way to the other devices.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_positional "ubiquitousctl" -eq 1' -fa 'status' -d 'Shows the account, and how its sync is going.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_positional "ubiquitousctl" -eq 1' -fa 'account' -d 'Signs in and out, and looks after the account and its devices.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_positional "ubiquitousctl" -eq 1' -fa 'doctor' -d 'Looks for what is wrong: the bus, the service, the account and, if named, a remote.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_positional "ubiquitousctl" -eq 1' -fa 'identify' -d 'Shows whom the service takes this program for, and which stores may be opened.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_positional "ubiquitousctl" -eq 1' -fa 'manifest' -d 'Looks at manifests, by which apps declare their stores.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_positional "ubiquitousctl" -eq 1' -fa 'metrics' -d 'Prints how the accounts of all users are, for a monitoring system; for root.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_positional "ubiquitousctl" -eq 1' -fa 'admin' -d 'Backs up, moves and tidies the data of all users, for root.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_positional "ubiquitousctl" -eq 1' -fa 'help' -d 'Show subcommand help information.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl get" s store' -l 'store' -s 's' -d 'The store (default: $UBIQUITOUS_STORE_IDENTIFIER, or the app\'s own).' -rfka '(__ubiquitousctl_custom_completion ---completion get -- --store (count (__ubiquitousctl_tokens -pc)) (__ubiquitousctl_tokens -tC))'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl get" bus' -l 'bus' -d 'The bus: system, session, or an address (default: $UBIQUITOUS_STORE_BUS, or system).' -rfka 'system session'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl get" user' -l 'user' -d 'Another user, by name or number; for root.' -rfka '(getent passwd | cut -d: -f1)'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl get" json' -l 'json' -d 'Print JSON, strings in quotes included.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl get" raw' -l 'raw' -d 'Print a string or data as it is, without a newline.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl get" type' -l 'type' -d 'Print the value\'s type: string, int, float, bool, date, data, array or dict.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl get" fresh' -l 'fresh' -d 'Look for other devices\' changes first, and wait for them; fails where that can\'t be done.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_positional "ubiquitousctl get" -eq 1' -fka '(__ubiquitousctl_custom_completion ---completion get -- positional@0 (count (__ubiquitousctl_tokens -pc)) (__ubiquitousctl_tokens -tC))'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl get" version' -l 'version' -d 'Show the version.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl get" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl set" s store' -l 'store' -s 's' -d 'The store (default: $UBIQUITOUS_STORE_IDENTIFIER, or the app\'s own).' -rfka '(__ubiquitousctl_custom_completion ---completion set -- --store (count (__ubiquitousctl_tokens -pc)) (__ubiquitousctl_tokens -tC))'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl set" bus' -l 'bus' -d 'The bus: system, session, or an address (default: $UBIQUITOUS_STORE_BUS, or system).' -rfka 'system session'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl set" user' -l 'user' -d 'Another user, by name or number; for root.' -rfka '(getent passwd | cut -d: -f1)'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl set" check dry-run n' -l 'check' -l 'dry-run' -s 'n' -d 'Change nothing, and say what would change.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl set" json' -l 'json' -d 'Say what changed as JSON.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_positional "ubiquitousctl set" -ge 1' -fka '(__ubiquitousctl_custom_completion ---completion set -- positional@0 (count (__ubiquitousctl_tokens -pc)) (__ubiquitousctl_tokens -tC))'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl set" version' -l 'version' -d 'Show the version.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl set" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl remove" s store' -l 'store' -s 's' -d 'The store (default: $UBIQUITOUS_STORE_IDENTIFIER, or the app\'s own).' -rfka '(__ubiquitousctl_custom_completion ---completion remove -- --store (count (__ubiquitousctl_tokens -pc)) (__ubiquitousctl_tokens -tC))'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl remove" bus' -l 'bus' -d 'The bus: system, session, or an address (default: $UBIQUITOUS_STORE_BUS, or system).' -rfka 'system session'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl remove" user' -l 'user' -d 'Another user, by name or number; for root.' -rfka '(getent passwd | cut -d: -f1)'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl remove" check dry-run n' -l 'check' -l 'dry-run' -s 'n' -d 'Change nothing, and say what would change.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl remove" json' -l 'json' -d 'Say what changed as JSON.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_positional "ubiquitousctl remove" -ge 1' -fka '(__ubiquitousctl_custom_completion ---completion remove -- positional@0 (count (__ubiquitousctl_tokens -pc)) (__ubiquitousctl_tokens -tC))'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl remove" version' -l 'version' -d 'Show the version.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl remove" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl list" s store' -l 'store' -s 's' -d 'The store (default: $UBIQUITOUS_STORE_IDENTIFIER, or the app\'s own).' -rfka '(__ubiquitousctl_custom_completion ---completion list -- --store (count (__ubiquitousctl_tokens -pc)) (__ubiquitousctl_tokens -tC))'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl list" bus' -l 'bus' -d 'The bus: system, session, or an address (default: $UBIQUITOUS_STORE_BUS, or system).' -rfka 'system session'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl list" user' -l 'user' -d 'Another user, by name or number; for root.' -rfka '(getent passwd | cut -d: -f1)'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl list" json' -l 'json' -d 'Print an object of JSON.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl list" keys' -l 'keys' -d 'Print the keys only, one on each line.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl list" version' -l 'version' -d 'Show the version.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl list" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl watch" s store' -l 'store' -s 's' -d 'The store (default: $UBIQUITOUS_STORE_IDENTIFIER, or the app\'s own).' -rfka '(__ubiquitousctl_custom_completion ---completion watch -- --store (count (__ubiquitousctl_tokens -pc)) (__ubiquitousctl_tokens -tC))'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl watch" bus' -l 'bus' -d 'The bus: system, session, or an address (default: $UBIQUITOUS_STORE_BUS, or system).' -rfka 'system session'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl watch" user' -l 'user' -d 'Another user, by name or number; for root.' -rfka '(getent passwd | cut -d: -f1)'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl watch" json' -l 'json' -d 'Print an object of JSON for each change.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl watch" initial' -l 'initial' -d 'Print the present values first.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_positional "ubiquitousctl watch" -ge 1' -fka '(__ubiquitousctl_custom_completion ---completion watch -- positional@0 (count (__ubiquitousctl_tokens -pc)) (__ubiquitousctl_tokens -tC))'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl watch" version' -l 'version' -d 'Show the version.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl watch" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl export" s store' -l 'store' -s 's' -d 'The store (default: $UBIQUITOUS_STORE_IDENTIFIER, or the app\'s own).' -rfka '(__ubiquitousctl_custom_completion ---completion export -- --store (count (__ubiquitousctl_tokens -pc)) (__ubiquitousctl_tokens -tC))'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl export" bus' -l 'bus' -d 'The bus: system, session, or an address (default: $UBIQUITOUS_STORE_BUS, or system).' -rfka 'system session'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl export" user' -l 'user' -d 'Another user, by name or number; for root.' -rfka '(getent passwd | cut -d: -f1)'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl export" format' -l 'format' -d 'xml, binary or json (default: json for a file that is called so, else xml).' -rfka 'xml binary json'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_positional "ubiquitousctl export" -eq 1' -F
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl export" version' -l 'version' -d 'Show the version.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl export" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl import" s store' -l 'store' -s 's' -d 'The store (default: $UBIQUITOUS_STORE_IDENTIFIER, or the app\'s own).' -rfka '(__ubiquitousctl_custom_completion ---completion import -- --store (count (__ubiquitousctl_tokens -pc)) (__ubiquitousctl_tokens -tC))'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl import" bus' -l 'bus' -d 'The bus: system, session, or an address (default: $UBIQUITOUS_STORE_BUS, or system).' -rfka 'system session'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl import" user' -l 'user' -d 'Another user, by name or number; for root.' -rfka '(getent passwd | cut -d: -f1)'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl import" check dry-run n' -l 'check' -l 'dry-run' -s 'n' -d 'Change nothing, and say what would change.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl import" json' -l 'json' -d 'Say what changed as JSON.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl import" replace' -l 'replace' -d 'Remove the keys that the file doesn\'t have.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_positional "ubiquitousctl import" -eq 1' -F
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl import" version' -l 'version' -d 'Show the version.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl import" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl history" version' -l 'version' -d 'Show the version.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl history" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_positional "ubiquitousctl history" -eq 1' -fa 'show' -d 'Prints earlier values of a key, the newest first.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_positional "ubiquitousctl history" -eq 1' -fa 'trim' -d 'Removes the earlier values of all stores.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl history show" s store' -l 'store' -s 's' -d 'The store (default: $UBIQUITOUS_STORE_IDENTIFIER, or the app\'s own).' -rfka '(__ubiquitousctl_custom_completion ---completion history show -- --store (count (__ubiquitousctl_tokens -pc)) (__ubiquitousctl_tokens -tC))'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl history show" bus' -l 'bus' -d 'The bus: system, session, or an address (default: $UBIQUITOUS_STORE_BUS, or system).' -rfka 'system session'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl history show" user' -l 'user' -d 'Another user, by name or number; for root.' -rfka '(getent passwd | cut -d: -f1)'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl history show" json' -l 'json' -d 'Print an array of JSON.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_positional "ubiquitousctl history show" -eq 1' -fka '(__ubiquitousctl_custom_completion ---completion history show -- positional@0 (count (__ubiquitousctl_tokens -pc)) (__ubiquitousctl_tokens -tC))'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl history show" version' -l 'version' -d 'Show the version.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl history show" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl history trim" bus' -l 'bus' -d 'The bus: system, session, or an address (default: $UBIQUITOUS_STORE_BUS, or system).' -rfka 'system session'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl history trim" user' -l 'user' -d 'Another user, by name or number; for root.' -rfka '(getent passwd | cut -d: -f1)'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl history trim" check dry-run n' -l 'check' -l 'dry-run' -s 'n' -d 'Change nothing, and say what would change.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl history trim" json' -l 'json' -d 'Say what changed as JSON.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl history trim" version' -l 'version' -d 'Show the version.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl history trim" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl restore" s store' -l 'store' -s 's' -d 'The store (default: $UBIQUITOUS_STORE_IDENTIFIER, or the app\'s own).' -rfka '(__ubiquitousctl_custom_completion ---completion restore -- --store (count (__ubiquitousctl_tokens -pc)) (__ubiquitousctl_tokens -tC))'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl restore" bus' -l 'bus' -d 'The bus: system, session, or an address (default: $UBIQUITOUS_STORE_BUS, or system).' -rfka 'system session'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl restore" user' -l 'user' -d 'Another user, by name or number; for root.' -rfka '(getent passwd | cut -d: -f1)'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl restore" check dry-run n' -l 'check' -l 'dry-run' -s 'n' -d 'Change nothing, and say what would change.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl restore" json' -l 'json' -d 'Say what changed as JSON.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_positional "ubiquitousctl restore" -eq 1' -fka '(__ubiquitousctl_custom_completion ---completion restore -- positional@0 (count (__ubiquitousctl_tokens -pc)) (__ubiquitousctl_tokens -tC))'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_positional "ubiquitousctl restore" -eq 2' -fka '(__ubiquitousctl_custom_completion ---completion restore -- positional@1 (count (__ubiquitousctl_tokens -pc)) (__ubiquitousctl_tokens -tC))'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl restore" version' -l 'version' -d 'Show the version.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl restore" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl defaults" bus' -l 'bus' -d 'The bus: system, session, or an address (default: $UBIQUITOUS_STORE_BUS, or system).' -rfka 'system session'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl defaults" user' -l 'user' -d 'Another user, by name or number; for root.' -rfka '(getent passwd | cut -d: -f1)'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl defaults" json' -l 'json' -d 'Print values as JSON.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl defaults" check dry-run n' -l 'check' -l 'dry-run' -s 'n' -d 'Change nothing, and say what would change.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl defaults" currentHost' -o 'currentHost' -d 'Only the layer of this host.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_positional "ubiquitousctl defaults" -ge 1' -fka '(__ubiquitousctl_custom_completion ---completion defaults -- positional@0 (count (__ubiquitousctl_tokens -pc)) (__ubiquitousctl_tokens -tC))'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl defaults" version' -l 'version' -d 'Show the version.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl defaults" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl stores" version' -l 'version' -d 'Show the version.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl stores" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_positional "ubiquitousctl stores" -eq 1' -fa 'list' -d 'Lists the stores that hold something.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_positional "ubiquitousctl stores" -eq 1' -fa 'remove' -d 'Has this device forget a store, until its app opens it again.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_positional "ubiquitousctl stores" -eq 1' -fa 'sync' -d 'Says whether a store is synced with the account.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl stores list" bus' -l 'bus' -d 'The bus: system, session, or an address (default: $UBIQUITOUS_STORE_BUS, or system).' -rfka 'system session'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl stores list" user' -l 'user' -d 'Another user, by name or number; for root.' -rfka '(getent passwd | cut -d: -f1)'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl stores list" everybody' -l 'everybody' -d 'Those of every user, with whose they are; for root.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl stores list" json' -l 'json' -d 'Print an array of JSON.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl stores list" version' -l 'version' -d 'Show the version.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl stores list" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl stores remove" bus' -l 'bus' -d 'The bus: system, session, or an address (default: $UBIQUITOUS_STORE_BUS, or system).' -rfka 'system session'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl stores remove" user' -l 'user' -d 'Another user, by name or number; for root.' -rfka '(getent passwd | cut -d: -f1)'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl stores remove" check dry-run n' -l 'check' -l 'dry-run' -s 'n' -d 'Change nothing, and say what would change.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl stores remove" json' -l 'json' -d 'Say what changed as JSON.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl stores remove" everywhere' -l 'everywhere' -d 'Remove the store and its values on every device of the account.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_positional "ubiquitousctl stores remove" -eq 1' -fka '(__ubiquitousctl_custom_completion ---completion stores remove -- positional@0 (count (__ubiquitousctl_tokens -pc)) (__ubiquitousctl_tokens -tC))'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl stores remove" version' -l 'version' -d 'Show the version.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl stores remove" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl stores sync" bus' -l 'bus' -d 'The bus: system, session, or an address (default: $UBIQUITOUS_STORE_BUS, or system).' -rfka 'system session'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl stores sync" user' -l 'user' -d 'Another user, by name or number; for root.' -rfka '(getent passwd | cut -d: -f1)'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_positional "ubiquitousctl stores sync" -eq 1' -fka '(__ubiquitousctl_custom_completion ---completion stores sync -- positional@0 (count (__ubiquitousctl_tokens -pc)) (__ubiquitousctl_tokens -tC))'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_positional "ubiquitousctl stores sync" -eq 2' -fka 'on off'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl stores sync" version' -l 'version' -d 'Show the version.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl stores sync" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl usage" s store' -l 'store' -s 's' -d 'The store (default: $UBIQUITOUS_STORE_IDENTIFIER, or the app\'s own).' -rfka '(__ubiquitousctl_custom_completion ---completion usage -- --store (count (__ubiquitousctl_tokens -pc)) (__ubiquitousctl_tokens -tC))'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl usage" bus' -l 'bus' -d 'The bus: system, session, or an address (default: $UBIQUITOUS_STORE_BUS, or system).' -rfka 'system session'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl usage" user' -l 'user' -d 'Another user, by name or number; for root.' -rfka '(getent passwd | cut -d: -f1)'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl usage" keys' -l 'keys' -d 'How many of the largest keys to show for each store.' -rfka ''
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl usage" json' -l 'json' -d 'Print JSON, with the sums of all stores.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl usage" version' -l 'version' -d 'Show the version.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl usage" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl synchronize" s store' -l 'store' -s 's' -d 'The store (default: $UBIQUITOUS_STORE_IDENTIFIER, or the app\'s own).' -rfka '(__ubiquitousctl_custom_completion ---completion synchronize -- --store (count (__ubiquitousctl_tokens -pc)) (__ubiquitousctl_tokens -tC))'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl synchronize" bus' -l 'bus' -d 'The bus: system, session, or an address (default: $UBIQUITOUS_STORE_BUS, or system).' -rfka 'system session'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl synchronize" user' -l 'user' -d 'Another user, by name or number; for root.' -rfka '(getent passwd | cut -d: -f1)'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl synchronize" wait' -l 'wait' -d 'Wait for the remote.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl synchronize" timeout' -l 'timeout' -d 'How long to wait for the remote.' -rfka ''
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl synchronize" json' -l 'json' -d 'Print an object of JSON.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl synchronize" version' -l 'version' -d 'Show the version.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl synchronize" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl status" bus' -l 'bus' -d 'The bus: system, session, or an address (default: $UBIQUITOUS_STORE_BUS, or system).' -rfka 'system session'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl status" user' -l 'user' -d 'Another user, by name or number; for root.' -rfka '(getent passwd | cut -d: -f1)'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl status" everybody' -l 'everybody' -d 'The accounts of every user who has data on this device; for root.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl status" json' -l 'json' -d 'Print an object of JSON, with --everybody an array.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl status" version' -l 'version' -d 'Show the version.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl status" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account" version' -l 'version' -d 'Show the version.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_positional "ubiquitousctl account" -eq 1' -fa 'sign-in' -d 'Signs in to an account, and makes it where nothing is.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_positional "ubiquitousctl account" -eq 1' -fa 'renew' -d 'Gives the account that is signed in another password, and keeps everything else.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_positional "ubiquitousctl account" -eq 1' -fa 'switch' -d 'Goes from the account that is signed in to another one.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_positional "ubiquitousctl account" -eq 1' -fa 'sign-out' -d 'Signs out; the values stay on this device.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_positional "ubiquitousctl account" -eq 1' -fa 'sync' -d 'Syncs all stores now, and ends when that is done.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_positional "ubiquitousctl account" -eq 1' -fa 'pause' -d 'Has nothing synced until "account resume".'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_positional "ubiquitousctl account" -eq 1' -fa 'resume' -d 'Ends a pause.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_positional "ubiquitousctl account" -eq 1' -fa 'phrase' -d 'Shows the recovery phrase of the encrypted account.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_positional "ubiquitousctl account" -eq 1' -fa 'unlock' -d 'Gives an encrypted account its recovery phrase, where its key is missing on this device.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_positional "ubiquitousctl account" -eq 1' -fa 'resolve' -d 'Says which side is right, after the remote was emptied or is another account\'s.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_positional "ubiquitousctl account" -eq 1' -fa 'devices' -d 'Lists the devices of the account.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_positional "ubiquitousctl account" -eq 1' -fa 'rename' -d 'Changes what a device is called.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_positional "ubiquitousctl account" -eq 1' -fa 'forget' -d 'Takes a device that is lost, or of no use any more, off the account\'s list.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account sign-in" bus' -l 'bus' -d 'The bus: system, session, or an address (default: $UBIQUITOUS_STORE_BUS, or system).' -rfka 'system session'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account sign-in" user' -l 'user' -d 'Another user, by name or number; for root.' -rfka '(getent passwd | cut -d: -f1)'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account sign-in" check dry-run n' -l 'check' -l 'dry-run' -s 'n' -d 'Change nothing, and say what would change.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account sign-in" json' -l 'json' -d 'Say what changed as JSON.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account sign-in" login' -l 'login' -d 'Whom the server knows you as; the password is asked for.' -rfka ''
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account sign-in" password-file' -l 'password-file' -d 'Read the password from a file\'s first line; - is standard input.' -rF
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account sign-in" token-file' -l 'token-file' -d 'Read an access token from a file\'s first line; - is standard input.' -rF
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account sign-in" ca-file' -l 'ca-file' -d 'Trust these certificates for this server, in PEM.' -rF
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account sign-in" device-name' -l 'device-name' -d 'What other devices are told this one is called.' -rfka ''
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account sign-in" no-create' -l 'no-create' -d 'Make no account where none is.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account sign-in" bring-values' -l 'bring-values' -d 'Take the present values along into a new, empty account.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account sign-in" encrypt' -l 'encrypt' -d 'Encrypt a new account, or leave it in plain (default: asked at a terminal, and plain elsewhere).'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account sign-in" no-encrypt' -l 'no-encrypt' -d 'Encrypt a new account, or leave it in plain (default: asked at a terminal, and plain elsewhere).'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account sign-in" phrase-file' -l 'phrase-file' -d 'Read the recovery phrase of an encrypted account from a file; - is standard input.' -rF
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account sign-in" version' -l 'version' -d 'Show the version.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account sign-in" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account renew" bus' -l 'bus' -d 'The bus: system, session, or an address (default: $UBIQUITOUS_STORE_BUS, or system).' -rfka 'system session'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account renew" user' -l 'user' -d 'Another user, by name or number; for root.' -rfka '(getent passwd | cut -d: -f1)'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account renew" check dry-run n' -l 'check' -l 'dry-run' -s 'n' -d 'Change nothing, and say what would change.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account renew" json' -l 'json' -d 'Say what changed as JSON.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account renew" login' -l 'login' -d 'Whom the server knows you as; the password is asked for.' -rfka ''
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account renew" password-file' -l 'password-file' -d 'Read the password from a file\'s first line; - is standard input.' -rF
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account renew" token-file' -l 'token-file' -d 'Read an access token from a file\'s first line; - is standard input.' -rF
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account renew" ca-file' -l 'ca-file' -d 'Trust these certificates for this server, in PEM.' -rF
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account renew" version' -l 'version' -d 'Show the version.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account renew" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account switch" bus' -l 'bus' -d 'The bus: system, session, or an address (default: $UBIQUITOUS_STORE_BUS, or system).' -rfka 'system session'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account switch" user' -l 'user' -d 'Another user, by name or number; for root.' -rfka '(getent passwd | cut -d: -f1)'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account switch" check dry-run n' -l 'check' -l 'dry-run' -s 'n' -d 'Change nothing, and say what would change.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account switch" json' -l 'json' -d 'Say what changed as JSON.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account switch" login' -l 'login' -d 'Whom the server knows you as; the password is asked for.' -rfka ''
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account switch" password-file' -l 'password-file' -d 'Read the password from a file\'s first line; - is standard input.' -rF
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account switch" token-file' -l 'token-file' -d 'Read an access token from a file\'s first line; - is standard input.' -rF
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account switch" ca-file' -l 'ca-file' -d 'Trust these certificates for this server, in PEM.' -rF
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account switch" device-name' -l 'device-name' -d 'What other devices are told this one is called.' -rfka ''
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account switch" no-create' -l 'no-create' -d 'Make no account where none is.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account switch" bring-values' -l 'bring-values' -d 'Take the present values along into a new, empty account.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account switch" encrypt' -l 'encrypt' -d 'Encrypt a new account, or leave it in plain (default: asked at a terminal, and plain elsewhere).'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account switch" no-encrypt' -l 'no-encrypt' -d 'Encrypt a new account, or leave it in plain (default: asked at a terminal, and plain elsewhere).'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account switch" phrase-file' -l 'phrase-file' -d 'Read the recovery phrase of an encrypted account from a file; - is standard input.' -rF
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account switch" version' -l 'version' -d 'Show the version.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account switch" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account sign-out" bus' -l 'bus' -d 'The bus: system, session, or an address (default: $UBIQUITOUS_STORE_BUS, or system).' -rfka 'system session'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account sign-out" user' -l 'user' -d 'Another user, by name or number; for root.' -rfka '(getent passwd | cut -d: -f1)'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account sign-out" check dry-run n' -l 'check' -l 'dry-run' -s 'n' -d 'Change nothing, and say what would change.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account sign-out" json' -l 'json' -d 'Say what changed as JSON.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account sign-out" clear-values' -l 'clear-values' -d 'Remove the account\'s values from this device, their history included.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account sign-out" version' -l 'version' -d 'Show the version.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account sign-out" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account sync" bus' -l 'bus' -d 'The bus: system, session, or an address (default: $UBIQUITOUS_STORE_BUS, or system).' -rfka 'system session'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account sync" user' -l 'user' -d 'Another user, by name or number; for root.' -rfka '(getent passwd | cut -d: -f1)'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account sync" version' -l 'version' -d 'Show the version.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account sync" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account pause" bus' -l 'bus' -d 'The bus: system, session, or an address (default: $UBIQUITOUS_STORE_BUS, or system).' -rfka 'system session'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account pause" user' -l 'user' -d 'Another user, by name or number; for root.' -rfka '(getent passwd | cut -d: -f1)'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account pause" check dry-run n' -l 'check' -l 'dry-run' -s 'n' -d 'Change nothing, and say what would change.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account pause" json' -l 'json' -d 'Say what changed as JSON.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account pause" version' -l 'version' -d 'Show the version.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account pause" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account resume" bus' -l 'bus' -d 'The bus: system, session, or an address (default: $UBIQUITOUS_STORE_BUS, or system).' -rfka 'system session'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account resume" user' -l 'user' -d 'Another user, by name or number; for root.' -rfka '(getent passwd | cut -d: -f1)'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account resume" check dry-run n' -l 'check' -l 'dry-run' -s 'n' -d 'Change nothing, and say what would change.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account resume" json' -l 'json' -d 'Say what changed as JSON.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account resume" version' -l 'version' -d 'Show the version.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account resume" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account phrase" bus' -l 'bus' -d 'The bus: system, session, or an address (default: $UBIQUITOUS_STORE_BUS, or system).' -rfka 'system session'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account phrase" user' -l 'user' -d 'Another user, by name or number; for root.' -rfka '(getent passwd | cut -d: -f1)'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account phrase" json' -l 'json' -d 'Print an object of JSON.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account phrase" version' -l 'version' -d 'Show the version.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account phrase" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account unlock" bus' -l 'bus' -d 'The bus: system, session, or an address (default: $UBIQUITOUS_STORE_BUS, or system).' -rfka 'system session'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account unlock" user' -l 'user' -d 'Another user, by name or number; for root.' -rfka '(getent passwd | cut -d: -f1)'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account unlock" check dry-run n' -l 'check' -l 'dry-run' -s 'n' -d 'Change nothing, and say what would change.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account unlock" json' -l 'json' -d 'Say what changed as JSON.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account unlock" phrase-file' -l 'phrase-file' -d 'Read the recovery phrase from a file; - is standard input.' -rF
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account unlock" version' -l 'version' -d 'Show the version.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account unlock" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account resolve" bus' -l 'bus' -d 'The bus: system, session, or an address (default: $UBIQUITOUS_STORE_BUS, or system).' -rfka 'system session'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account resolve" user' -l 'user' -d 'Another user, by name or number; for root.' -rfka '(getent passwd | cut -d: -f1)'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account resolve" check dry-run n' -l 'check' -l 'dry-run' -s 'n' -d 'Change nothing, and say what would change.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account resolve" json' -l 'json' -d 'Say what changed as JSON.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_positional "ubiquitousctl account resolve" -eq 1' -fka 'local remote'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account resolve" version' -l 'version' -d 'Show the version.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account resolve" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account devices" bus' -l 'bus' -d 'The bus: system, session, or an address (default: $UBIQUITOUS_STORE_BUS, or system).' -rfka 'system session'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account devices" user' -l 'user' -d 'Another user, by name or number; for root.' -rfka '(getent passwd | cut -d: -f1)'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account devices" json' -l 'json' -d 'Print an array of JSON.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account devices" version' -l 'version' -d 'Show the version.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account devices" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account rename" bus' -l 'bus' -d 'The bus: system, session, or an address (default: $UBIQUITOUS_STORE_BUS, or system).' -rfka 'system session'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account rename" user' -l 'user' -d 'Another user, by name or number; for root.' -rfka '(getent passwd | cut -d: -f1)'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account rename" check dry-run n' -l 'check' -l 'dry-run' -s 'n' -d 'Change nothing, and say what would change.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account rename" json' -l 'json' -d 'Say what changed as JSON.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account rename" device' -l 'device' -d 'Which device, by name or identifier (default: this one).' -rfka '(__ubiquitousctl_custom_completion ---completion account rename -- --device (count (__ubiquitousctl_tokens -pc)) (__ubiquitousctl_tokens -tC))'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account rename" version' -l 'version' -d 'Show the version.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account rename" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account forget" bus' -l 'bus' -d 'The bus: system, session, or an address (default: $UBIQUITOUS_STORE_BUS, or system).' -rfka 'system session'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account forget" user' -l 'user' -d 'Another user, by name or number; for root.' -rfka '(getent passwd | cut -d: -f1)'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account forget" check dry-run n' -l 'check' -l 'dry-run' -s 'n' -d 'Change nothing, and say what would change.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account forget" json' -l 'json' -d 'Say what changed as JSON.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_positional "ubiquitousctl account forget" -eq 1' -fka '(__ubiquitousctl_custom_completion ---completion account forget -- positional@0 (count (__ubiquitousctl_tokens -pc)) (__ubiquitousctl_tokens -tC))'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account forget" version' -l 'version' -d 'Show the version.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl account forget" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl doctor" bus' -l 'bus' -d 'The bus: system, session, or an address (default: $UBIQUITOUS_STORE_BUS, or system).' -rfka 'system session'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl doctor" user' -l 'user' -d 'Another user, by name or number; for root.' -rfka '(getent passwd | cut -d: -f1)'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl doctor" login' -l 'login' -d 'Whom the server knows you as; the password is asked for.' -rfka ''
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl doctor" password-file' -l 'password-file' -d 'Read the password from a file\'s first line; - is standard input.' -rF
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl doctor" token-file' -l 'token-file' -d 'Read an access token from a file\'s first line; - is standard input.' -rF
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl doctor" ca-file' -l 'ca-file' -d 'Trust these certificates for this server, in PEM.' -rF
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl doctor" json' -l 'json' -d 'Print an array of JSON.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl doctor" version' -l 'version' -d 'Show the version.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl doctor" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl identify" bus' -l 'bus' -d 'The bus: system, session, or an address (default: $UBIQUITOUS_STORE_BUS, or system).' -rfka 'system session'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl identify" json' -l 'json' -d 'Print an object of JSON.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl identify" version' -l 'version' -d 'Show the version.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl identify" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl manifest" version' -l 'version' -d 'Show the version.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl manifest" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_positional "ubiquitousctl manifest" -eq 1' -fa 'check' -d 'Finds out whether the service would take a manifest, and what it declares.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl manifest check" json' -l 'json' -d 'Print an object of JSON.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_positional "ubiquitousctl manifest check" -eq 1' -fa '(for p in (string match -e -- \'*/\' (commandline -t);or printf \n)*.\'plist\';printf %s\n $p;end;__fish_complete_directories (commandline -t) \'\')'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl manifest check" version' -l 'version' -d 'Show the version.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl manifest check" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl metrics" bus' -l 'bus' -d 'The bus: system, session, or an address (default: $UBIQUITOUS_STORE_BUS, or system).' -rfka 'system session'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl metrics" version' -l 'version' -d 'Show the version.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl metrics" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl admin" version' -l 'version' -d 'Show the version.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl admin" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_positional "ubiquitousctl admin" -eq 1' -fa 'backup' -d 'Writes the data of all users to an archive, while the service runs.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_positional "ubiquitousctl admin" -eq 1' -fa 'restore' -d 'Brings users\' data back from an archive of "admin backup", on this machine or another one.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_positional "ubiquitousctl admin" -eq 1' -fa 'list' -d 'Lists the data of all users, and what was set aside.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_positional "ubiquitousctl admin" -eq 1' -fa 'adopt' -d 'Gives a user data that was set aside.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_positional "ubiquitousctl admin" -eq 1' -fa 'delete' -d 'Removes a user\'s data from this machine.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl admin backup" bus' -l 'bus' -d 'The bus: system, session, or an address (default: $UBIQUITOUS_STORE_BUS, or system).' -rfka 'system session'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_positional "ubiquitousctl admin backup" -eq 1' -F
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl admin backup" version' -l 'version' -d 'Show the version.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl admin backup" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl admin restore" bus' -l 'bus' -d 'The bus: system, session, or an address (default: $UBIQUITOUS_STORE_BUS, or system).' -rfka 'system session'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl admin restore" replace' -l 'replace' -d 'Also for users who have values or an account already, which are set aside.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl admin restore"' -l 'only' -d 'Restore this user only, by the name in the archive; repeatable.' -rfka ''
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl admin restore"' -l 'as' -d 'Give a user\'s data to the user of another name; repeatable.' -rfka ''
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_positional "ubiquitousctl admin restore" -eq 1' -F
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl admin restore" version' -l 'version' -d 'Show the version.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl admin restore" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl admin list" bus' -l 'bus' -d 'The bus: system, session, or an address (default: $UBIQUITOUS_STORE_BUS, or system).' -rfka 'system session'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl admin list" json' -l 'json' -d 'Print an array of JSON.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl admin list" version' -l 'version' -d 'Show the version.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl admin list" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl admin adopt" bus' -l 'bus' -d 'The bus: system, session, or an address (default: $UBIQUITOUS_STORE_BUS, or system).' -rfka 'system session'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl admin adopt" check dry-run n' -l 'check' -l 'dry-run' -s 'n' -d 'Change nothing, and say what would change.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl admin adopt" json' -l 'json' -d 'Say what changed as JSON.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl admin adopt" replace' -l 'replace' -d 'Also if the user has values or an account already, which are set aside.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_positional "ubiquitousctl admin adopt" -eq 1' -fka '(getent passwd | cut -d: -f1)'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl admin adopt" version' -l 'version' -d 'Show the version.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl admin adopt" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl admin delete" bus' -l 'bus' -d 'The bus: system, session, or an address (default: $UBIQUITOUS_STORE_BUS, or system).' -rfka 'system session'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl admin delete" check dry-run n' -l 'check' -l 'dry-run' -s 'n' -d 'Change nothing, and say what would change.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl admin delete" json' -l 'json' -d 'Say what changed as JSON.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl admin delete" force' -l 'force' -d 'Also if it is the data of a user of this machine.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl admin delete" version' -l 'version' -d 'Show the version.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl admin delete" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'ubiquitousctl' -n '__ubiquitousctl_should_offer_completions_for_flags_or_options "ubiquitousctl help" version' -l 'version' -d 'Show the version.'
