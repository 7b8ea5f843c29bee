# SPDX-License-Identifier: BSD-3-Clause
# bash: completes hawser's programs by asking them (--help=words), so that it cannot differ from what they take.

# _hawser_words PROGRAM [COMMAND]: lines of name, argument and help, with a tab between
_hawser_words() {
	"$@" --help=words 2>/dev/null
}

_hawser() {
	local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} call name argument help list=()
	COMPREPLY=()
	call=("${COMP_WORDS[0]}")
	if [ "${call[0]##*/}" = ha ]; then
		if [ "$COMP_CWORD" = 1 ]; then
			mapfile -t list < <(_hawser_words "${call[@]}" | cut -f1)
			mapfile -t COMPREPLY < <(compgen -W "${list[*]} --help --version" -- "$word")
			return
		fi
		call+=("${COMP_WORDS[1]}")
	fi
	while IFS=$'\t' read -r name argument help; do
		if [ "$name" = "$before" ] && [[ $argument = *'|'* ]]; then
			mapfile -t COMPREPLY < <(compgen -W "${argument//|/ }" -- "$word")
			return
		fi
		list+=("$name")
	done < <(_hawser_words "${call[@]}" | sed 's/\t\t/\t-\t/')
	if [[ $word = -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "${list[*]}" -- "$word")
	fi
}

complete -o default -F _hawser ha ha-agent ha-controller ha-ina ha-switch ha-switch-xdp ha-backend hawser-exporter
