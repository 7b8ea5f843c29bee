#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The RPM packages: rpmlint finds no error, nobody is given the software NIC's libibverbs, and in a bare root they are installed, used and
# removed without a trace. That root is Debian's, with a database of rpm's own: Debian's libraries stand for Fedora's, hence --nodeps.
# Arguments: the packages, or none: then they are built.
set -euo pipefail
. "$(dirname "$(readlink -f "$0")")/bare.sh"
begin rpmbuild rpm rpmlint
in_root() { rpm --root "$bare" --dbpath /var/lib/rpm "$@"; }

# ---- the packages ----

if [ $# = 0 ]; then
	"$root/scripts/rpm" "$work/rpm" >/dev/null
	set -- "$work"/rpm/*.rpm
fi
names=(libnccl-net-ha hawser-tools hawser-softroce hawser-softcuda hawser-agent hawser-ina libhawser-gpu-devel)
[ "$(rpm -qp --qf '%{NAME} %{VERSION}\n' "$@" | sort)" = "$(printf "%s $version\n" "${names[@]}" | sort)" ] ||
	fail "the packages are $(rpm -qp --qf '%{NAME} %{VERSION}, ' "$@"), not ${names[*]}"
rpmlint --config "$root/rpm/rpmlint.toml" "$@" >"$work/rpmlint" 2>&1 || fail "rpmlint: $(grep -E ' E: |rror' "$work/rpmlint" || tail -3 "$work/rpmlint")"
! rpm -qp --provides "$@" | grep -E '^lib(ibverbs|cudart|nvidia-ml)\.so' || fail "a package provides a library in whose place ours only stands"
for file in /usr/bin/ha /usr/bin/hawser-exporter /usr/lib64/libnccl-net-ha.so /usr/lib/hawser/softroce/libsoftroce.so \
	/usr/lib64/libhawser-ina.so.0 /usr/lib64/libhawser-gpu.a /usr/lib/systemd/system/ha-agent.service; do
	[ "$(rpm -qpl "$@" | grep -cFx "$file")" = 1 ] || fail "$file is not in exactly one package"
done

# ---- in a bare root ----

bare_open
cp "$@" "$bare/packages"
echo /usr/lib64 >"$bare/etc/ld.so.conf.d/lib64.conf" # Fedora's loader looks there by itself
mkdir -p "$bare"/usr/lib64/{cmake,pkgconfig} "$bare"/usr/share/{licenses,zsh/site-functions} # Fedora's package filesystem has these
files >"$work/before"
in_root -i --nodeps "$@" >"$work/install" 2>&1 || fail "rpm -i: $(cat "$work/install")"
[ "$(in_root -qa | wc -l)" = ${#names[@]} ] || fail "installed are $(in_root -qa)"
in_root -V --nodeps "${names[@]}" >"$work/verify" || fail "rpm -V: $(cat "$work/verify")"
inside ldconfig
check_installed lib64
check_upgrade in_root -U --nodeps --replacepkgs "$@"
in_root -e --nodeps "${names[@]}" >"$work/remove" 2>&1 || fail "rpm -e: $(cat "$work/remove")"
# Debian's rpm says each time that it is not for Debian's own packages.
! grep -vE '^rpm: (RPM should not be used|However assuming)' "$work/remove" || fail "rpm -e: $(cat "$work/remove")"
check_removed
echo "${#names[@]} packages: no error by rpmlint ($(grep -c ' W: ' "$work/rpmlint" || true) warnings), installed, used and removed"
