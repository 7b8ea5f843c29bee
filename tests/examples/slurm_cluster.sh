# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# A Slurm cluster of two nodes on this machine, n1 and n2, sourced inside `unshare --mount --net --uts --pid` by test_slurm.sh:
# its addresses, host names, ports and processes are its own, and end with that namespace. $work is its folder.
cluster=$work/cluster

cluster_names() {
	hostname n1
	ip link set lo up
	ip address add 10.77.0.1/32 dev lo
	ip address add 10.77.0.2/32 dev lo
	printf '%s\n' '127.0.0.1 localhost' '10.77.0.1 n1' '10.77.0.2 n2' >"$cluster/hosts"
	mount --bind "$cluster/hosts" /etc/hosts
}

# cluster_configure PROLOG TASK_PROLOG
cluster_configure() {
	cat >"$cluster/slurm.conf" <<-END
		ClusterName=test
		SlurmctldHost=n1
		SlurmUser=root
		AuthInfo=socket=$cluster/munge/socket
		StateSaveLocation=$cluster/state
		SlurmdSpoolDir=$cluster/spool.%n
		SlurmctldPidFile=$cluster/slurmctld.pid
		SlurmdPidFile=$cluster/slurmd.%n.pid
		SlurmctldLogFile=$cluster/log/slurmctld
		SlurmdLogFile=$cluster/log/slurmd.%n
		MailProg=/bin/true
		ProctrackType=proctrack/linuxproc
		TaskPlugin=task/none
		SelectType=select/cons_tres
		SlurmdParameters=config_overrides
		ReturnToService=2
		GresTypes=gpu
		Prolog=$1
		PrologFlags=Alloc
		TaskProlog=$2
		NodeName=n1 Port=6818 CPUs=8 Gres=gpu:8
		NodeName=n2 Port=6819 CPUs=8 Gres=gpu:8
		PartitionName=all Nodes=n1,n2 Default=YES State=UP
	END
	touch "$cluster"/gpu{0..7} # files in the place of devices: nothing opens them
	echo "NodeName=n[1-2] Name=gpu File=$cluster/gpu[0-7]" >"$cluster/gres.conf"
	export SLURM_CONF=$cluster/slurm.conf
}

# Until a command succeeds: what must come, comes in seconds, and only a hang takes ten minutes.
await() {
	local i
	for i in $(seq 1200); do
		! "$@" >/dev/null 2>&1 || return 0
		sleep 0.5
	done
	return 1
}

node_is() { # NODE STATE
	[ "$(sinfo -h -n "$1" -o %T)" = "$2" ]
}

# cluster_open PROLOG TASK_PROLOG
cluster_open() {
	mkdir "$cluster" "$cluster"/{munge,state,log,spool.n1,spool.n2}
	cluster_names
	cluster_configure "$@"
	(umask 077 && head -c 128 /dev/urandom >"$cluster/munge/key")
	chmod 755 "$work" "$cluster" "$cluster/munge"
	munged --force --key-file="$cluster/munge/key" --socket="$cluster/munge/socket" --pid-file="$cluster/munge/pid" \
		--log-file="$cluster/munge/log" --seed-file="$cluster/munge/seed" >"$work/out" 2>&1 || fail "munged"
	slurmctld -D >"$cluster/log/slurmctld.out" 2>&1 &
	pids+=($!)
	slurmd -D -N n1 >"$cluster/log/n1.out" 2>&1 &
	pids+=($!)
	unshare --uts sh -c 'hostname n2; exec slurmd -D -N n2' >"$cluster/log/n2.out" 2>&1 &
	pids+=($!)
	await node_is n1 idle && await node_is n2 idle || {
		tail -n 5 "$cluster"/log/* >"$work/out"
		fail "Slurm's nodes do not come up"
	}
}
