# SPDX-License-Identifier: BSD-3-Clause
# awk -v file=PATH -v header=MUTATION_H -f defects.awk TABLE SOURCE: SOURCE with the table's changes for PATH.
# White space does not count where a change is looked for, so that the source may be formatted anew.

function fail(text)
{
	print file ": " text > "/dev/stderr"
	failed = 1
	exit 1
}

function without_space(text)
{
	gsub(/[ \t\n]/, "", text)
	return text
}

# A change begins with its first line marked - behind anything else.
FNR == NR && /^in / { here = $2 == file; last = ""; next }
FNR == NR && here && /^-/ {
	if (last != "-")
		n++
	old[n] = old[n] without_space(substr($0, 2))
	last = "-"
	next
}
FNR == NR && here && /^\+/ { new[n] = new[n] substr($0, 2) "\n"; last = "+"; next }
FNR == NR { last = ""; next }
{ source = source $0 "\n" }

END {
	if (failed)
		exit 1
	if (!n)
		fail("the table has no change for it")
	# squeezed: the source without white space; at[i]: where its character i stands in the source.
	length_of_source = length(source)
	m = 0
	for (i = 1; i <= length_of_source; i++) {
		c = substr(source, i, 1)
		if (c != " " && c != "\t" && c != "\n") {
			at[++m] = i
			kept[m] = c
		}
	}
	squeezed = without_space(source)
	for (k = 1; k <= n; k++) {
		first = index(squeezed, old[k])
		if (!first && ENVIRON["HA_DEFECTS_SKIP"]) { # scripts/mutate has changed that line
			begin[k] = 0
			continue
		}
		if (!first)
			fail("this code is not there any more; mend the table: " old[k])
		if (index(substr(squeezed, first + 1), old[k]))
			fail("this code is there more than once; give the table more of it: " old[k])
		begin[k] = at[first]
		end[k] = at[first + length(old[k]) - 1]
	}
	printf "#include \"%s\"\n#line 1 \"%s\"\n", header, file
	done = 0
	while (done < length_of_source) {
		next_one = 0
		for (k = 1; k <= n; k++)
			if (begin[k] > done && (!next_one || begin[k] < begin[next_one]))
				next_one = k
		if (!next_one) {
			printf "%s", substr(source, done + 1)
			break
		}
		before = substr(source, done + 1, begin[next_one] - done - 1)
		replaced = new[next_one]
		sub(/\n$/, "", replaced)
		printf "%s%s", before, replaced
		done = end[next_one]
	}
}
