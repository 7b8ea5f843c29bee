# SPDX-License-Identifier: BSD-3-Clause
"""Two unequal rails under each policy: what goes over which, counted on the wire, and how much comes through.

    a  rail0 ==20 Mbit/s=== rail0  b    tc tbf at both ends, in the proportion 400 : 234; one fused device; all data both ways
       rail1 ==11.7 Mbit/s= rail1
       mgmt  -------------- mgmt

With weights by hand and with ha-agent's hints each rail's part is the weight within 1 %. Adaptive finds the proportion by itself:
it moves more than an equal split and more than the best rail alone, with a rail at a tenth of its rate too, and afterwards again.
"""
import time

SET = "long"
RATES = (20.0, 11.7)  # Mbit/s
SUM = sum(RATES) / 8  # MB/s
SETTLE_S, MEASURE_S = 2, 4
# What waits in front of a rail may take longer than the usual time-out of 67 ms, and on a busy host the agent longer than 2 s: nothing is
# lost here, and nobody shall think so.
LONG_TIMEOUTS = {"HA_NCCL_FORCE_IB_TIMEOUT": 18, "HA_NCCL_AGENT_STALE_MS": 60000}
SLACK = 0.01
IN_FLIGHT = 64 * 4096  # bytes that a queue pair of rdma_rxe has out at most


def limit(lab, rates):
    for machine in lab.machines:
        for rail, rate in enumerate(rates):
            machine.rate(rail, rate)
    lab.say("rails of %s Mbit/s" % (rates,))


def report_shares(lab, what, before, after, **more):
    """rail1's part of what both machines sent in between, MB/s of one machine, with headers, and how many bytes it were."""
    sent = [sum(b[rail] - a[rail] for a, b in zip(before, after)) for rail in (1, 2)]
    rate = sum(sent) / sum((b[0] - a[0]) / 1e9 for a, b in zip(before, after)) / 1e6
    part = sent[1] / max(1, sum(sent))
    lab.sample("shares", {"what": what, "rail1": round(part, 4), "mb_s": round(rate, 3), "mb": round(sum(sent) / 1e6, 1), **more})
    lab.say("%s: rail1 has %.4f of %.1f MB, %.2f MB/s of %.2f" % (what, part, sum(sent) / 1e6, rate, SUM))
    return part, rate, sum(sent)


def measure(lab, what):
    """What moves now, MB/s."""
    time.sleep(SETTLE_S)
    before = [m.sent() for m in lab.machines]
    time.sleep(MEASURE_S)
    return report_shares(lab, what, before, [m.sent() for m in lab.machines])[1]


def flow(lab, policy, **settings):
    return lab.traffic("sendrecv", "1M", "--dev", "0+1", HA_NCCL_POLICY=policy, **LONG_TIMEOUTS, **settings)


def one(lab, policy, weight, advised=False, **settings):
    """A whole job, because what waits in front of a rail at one moment is more than 1 % of what goes over it in seconds; with an agent from
    when its first hints are followed. What had to be sent again is in no proportion."""
    before, again = [m.sent() for m in lab.machines], lab.sent_again((0, 1))["sent_again"]
    job = flow(lab, policy, **settings)
    if advised:
        job.wait_event("advice", count=len(lab.machines), cause="followed")
        before = [m.sent() for m in lab.machines]
    rate = measure(lab, policy)
    lab.survived(job)
    again = lab.sent_again((0, 1))["sent_again"] - again
    part, _, sent = report_shares(lab, policy + ", the whole job", before, [m.sent() for m in lab.machines], weight=weight, again=again)
    lab.must(abs(part - weight) <= SLACK + again * IN_FLIGHT / sent, "%s: rail1 has %.4f, not %.4f (sent again %d times)" % (policy, part, weight, again))
    return rate


def agent(lab):
    daemons = [m.start_command("exec /hawser/ha-agent --metrics none") for m in lab.machines]
    time.sleep(1)
    for hint in (378, 128, 1024):
        for machine in lab.machines:
            machine.run("/hawser/ha agent set '*' '*' %d" % hint)
        one(lab, "agent", hint / 1024, advised=True)
    for daemon in daemons:
        daemon.kill(15)
        lab.must(daemon.wait(20) == 0, "the agent ends well: %s" % daemon.output[-300:])


def slowed(lab, policy):
    """Before, with rail0 at a tenth, and afterwards."""
    job, rates = flow(lab, policy), []
    for what, tenth in (("", 1), (", rail0 at a tenth", 0.1), (", rail0 mended", 1)):
        limit(lab, (RATES[0] * tenth, RATES[1]))
        time.sleep(SETTLE_S)  # what waited for the slow rail is through
        rates.append(measure(lab, policy + what))
    lab.survived(job)
    return rates


def run(lab):
    limit(lab, RATES)
    static = one(lab, "static", 378 / 1024, HA_NCCL_WEIGHTS="646,378")
    single = one(lab, "primary", 0.0)
    agent(lab)
    equal, adaptive = slowed(lab, "topology"), slowed(lab, "adaptive")
    ratios = {"to equal split": adaptive[0] / equal[0], "to the best rail": adaptive[0] / single, "to the rails' sum": adaptive[0] / SUM,
              "to equal split, a rail at a tenth": adaptive[1] / equal[1], "mended, to before": adaptive[2] / adaptive[0]}
    lab.measure(ratios={k: round(v, 3) for k, v in ratios.items()})
    lab.say("adaptive: %s" % ratios)
    if static < 0.9 * SUM:
        lab.say("the host is too slow for these rails: nothing is said about the ratios")
        return
    lab.must(ratios["to equal split"] > 1.15 and ratios["to the best rail"] > 1.3, "adaptive moves more: %s" % ratios)
    lab.must(ratios["to equal split, a rail at a tenth"] > 1.5, "adaptive leaves a slow rail alone: %s" % ratios)
    lab.must(ratios["mended, to before"] > 0.85, "adaptive comes back: %s" % ratios)
