/* SPDX-License-Identifier: BSD-3-Clause */
/* fpmctl doctor: checks of the CPUs that forward, and of the clock. */
#include <stdio.h>
#include <string.h>

#include "ctl/doctor/exam.h"
#include "ctl/doctor/parse.h"
#include "ctl/json_row.h"
#include "ctl/text.h"

#define CPU_DIR   "/sys/devices/system/cpu"
#define CLOCK_DIR "/sys/devices/system/clocksource/clocksource0"
#define LIST_SIZE 256

static bool
cpus_are_untold(struct exam *e)
{
	return exam_no_daemon(e, ": forwarding CPUs unknown");
}

static void
node_count(struct exam *e, const char *name, void *n)
{
	unsigned int node;

	*(unsigned int *)n += sscanf(name, "node%u", &node) == 1;
}

/*
 * List a CPU for each queue of a port: the forwarding CPUs of its NUMA node in turn. "":
 * none.
 */
static void
cores_near(const struct exam *e, int node, size_t n_queue, char *text, size_t size)
{
	unsigned int cpu[CPU_SETSIZE], n_cpu = 0;
	size_t n = 0;

	for (unsigned int c = 0; c < CPU_SETSIZE; c++)
		if (CPU_ISSET(c, &e->cpus) && exam_cpu_node(e, c) == node)
			cpu[n_cpu++] = c;
	text[0] = '\0';
	for (size_t q = 0; q < n_queue && n_cpu > 0 && n < size; q++)
		n += (size_t)snprintf(text + n, size - n, "%s%u", q > 0 ? "," : "",
				      cpu[q % n_cpu]);
}

static void
port_check_node(struct exam *e, const json_t *port)
{
	int node = (int)row_int(port, "node");
	char list[LIST_SIZE], near[LIST_SIZE];
	const json_t *cpu;
	cpu_set_t far;
	size_t i;

	if (!row_has(port, "node")) {
		finding_add(e, VERDICT_NA, row_str(port, "name"), "the device has no node");
		return;
	}
	CPU_ZERO(&far);
	json_array_foreach (json_object_get(port, "cpus"), i, cpu) {
		long long n = json_is_integer(cpu) ? json_integer_value(cpu) : -1;

		if (n >= 0 && n < CPU_SETSIZE && exam_cpu_node(e, (unsigned int)n) != node)
			CPU_SET((size_t)n, &far);
	}
	if (CPU_COUNT(&far) == 0) {
		finding_add(e, VERDICT_OK, row_str(port, "name"), "node %d, as its CPUs",
			    node);
		return;
	}
	exam_read(e, near, sizeof(near), "/sys/devices/system/node/node%d/cpulist", node);
	finding_add(e, VERDICT_WARN, row_str(port, "name"),
		    "node %d, but CPUs %s of another node serve it", node,
		    cpulist_text(&far, list, sizeof(list)));
	cores_near(e, node, json_array_size(json_object_get(port, "cpus")), list,
		   sizeof(list));
	finding_cost(e,
		     "Each packet crosses between the sockets, often twice. CPUs of node "
		     "%d: %s. To change it for good, set `cores:` in the configuration, "
		     "globally and for this port%s",
		     node, near, list[0] != '\0' ? "; until the next start:" : ", then:");
	if (list[0] != '\0')
		finding_fix(e, "fpmctl port set %s cores %s", row_str(port, "name"), list);
	else
		finding_fix(e, "fpmctl restart");
}

void
check_numa(struct exam *e)
{
	unsigned int n = 0;
	const json_t *port;
	size_t i;

	exam_folder(e, "/sys/devices/system/node", node_count, &n);
	if (n <= 1) {
		finding_add(e, VERDICT_OK, "", "one node");
		return;
	}
	if (cpus_are_untold(e))
		return;
	json_array_foreach (e->ports, i, port)
		port_check_node(e, port);
}

void
check_isolation(struct exam *e)
{
	char text[LIST_SIZE], list[LIST_SIZE], words[3 * LIST_SIZE + 64];
	cpu_set_t isolated, shared, all;

	if (cpus_are_untold(e))
		return;
	exam_read(e, text, sizeof(text), CPU_DIR "/isolated");
	(void)cpulist_parse(text, &isolated);
	CPU_OR(&all, &isolated, &e->cpus);
	CPU_AND(&isolated, &isolated, &e->cpus);
	CPU_XOR(&shared, &isolated, &e->cpus);
	cpulist_text(&shared, list, sizeof(list));
	if (CPU_COUNT(&shared) == 0) {
		finding_add(e, VERDICT_OK, "", "isolated: all forwarding CPUs, %s",
			    cpulist_text(&isolated, list, sizeof(list)));
		return;
	}
	finding_add(e, VERDICT_WARN, "", "forwarding CPUs that are not isolated: %s", list);
	finding_cost(e, "Other programs, timers and interrupts also run there: losses at "
			"high load, packets late by milliseconds.");
	/* The kernel obeys the first of two such lists, and the words go to the front. */
	cpulist_text(&all, list, sizeof(list));
	snprintf(words, sizeof(words),
		 "isolcpus=managed_irq,domain,%s nohz_full=%s rcu_nocbs=%s", list, list,
		 list);
	finding_fix_kernel_words(e, words);
}

void
check_governor(struct exam *e)
{
	char governor[64], list[LIST_SIZE];
	unsigned int told = 0;
	cpu_set_t slow;

	if (cpus_are_untold(e))
		return;
	CPU_ZERO(&slow);
	for (unsigned int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &e->cpus) ||
		    exam_read(e, governor, sizeof(governor),
			      CPU_DIR "/cpu%u/cpufreq/scaling_governor", cpu) <= 0)
			continue;
		told++;
		if (strcmp(governor, "performance") != 0)
			CPU_SET(cpu, &slow);
	}
	cpulist_text(&slow, list, sizeof(list));
	if (told == 0) {
		finding_add(e, VERDICT_NA, "", "the kernel does not set it (VM, firmware)");
	} else if (CPU_COUNT(&slow) == 0) {
		finding_add(e, VERDICT_OK, "", "performance");
	} else {
		finding_add(e, VERDICT_WARN, "", "not performance on CPUs %s", list);
		finding_cost(e, "An idle core begins a burst of packets at a fraction of "
				"its clock rate.");
		finding_fix(e, "cpupower -c %s frequency-set -g performance", list);
	}
}

/* Check the hardware threads that share a core with a forwarding CPU. */
static void
cpu_check_smt(struct exam *e, unsigned int cpu, const cpu_set_t *isolated,
	      unsigned int *n_alone)
{
	char text[LIST_SIZE], subject[32];
	cpu_set_t siblings, also;

	exam_read(e, text, sizeof(text), CPU_DIR "/cpu%u/topology/thread_siblings_list",
		  cpu);
	if (cpulist_parse(text, &siblings) < 0)
		CPU_ZERO(&siblings);
	CPU_CLR(cpu, &siblings);
	snprintf(subject, sizeof(subject), "cpu %u", cpu);
	CPU_AND(&also, &siblings, &e->cpus);
	if (CPU_COUNT(&siblings) == 0) {
		++*n_alone;
	} else if (CPU_COUNT(&also) > 0) {
		finding_add(e, VERDICT_WARN, subject,
			    "shares its core with forwarding CPU %s",
			    cpulist_text(&also, text, sizeof(text)));
		finding_cost(e,
			     "Two CPUs of one core forward about as much as one and a half "
			     "cores. Configure `cores:` on separate cores, then:");
		finding_fix(e, "fpmctl restart");
	} else {
		CPU_AND(&also, &siblings, isolated);
		if (CPU_EQUAL(&also, &siblings)) {
			finding_add(e, VERDICT_OK, subject, "its sibling %s is isolated",
				    cpulist_text(&siblings, text, sizeof(text)));
			return;
		}
		finding_add(e, VERDICT_WARN, subject,
			    "shares its core with CPU %s, which is not isolated",
			    cpulist_text(&siblings, text, sizeof(text)));
		finding_cost(e, "Other work there takes up to half of the core's "
				"forwarding rate at any moment.");
		for (unsigned int i = 0; i < CPU_SETSIZE; i++)
			if (CPU_ISSET(i, &siblings))
				finding_fix(e, "echo 0 > " CPU_DIR "/cpu%u/online", i);
	}
}

void
check_smt(struct exam *e)
{
	unsigned int n_alone = 0;
	cpu_set_t isolated;
	char text[LIST_SIZE];

	if (cpus_are_untold(e))
		return;
	exam_read(e, text, sizeof(text), CPU_DIR "/isolated");
	(void)cpulist_parse(text, &isolated);
	for (unsigned int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &e->cpus))
			cpu_check_smt(e, cpu, &isolated, &n_alone);
	if (n_alone > 0)
		finding_add(e, VERDICT_OK, "", "%u forwarding CPU%s %s core alone", n_alone,
			    text_plural(n_alone),
			    text_noun(n_alone, "has its", "have their"));
}

void
check_clock(struct exam *e)
{
	static char cpuinfo[8192]; /* enough for the first CPU */
	char source[64];
	bool constant, nonstop;

	exam_read(e, cpuinfo, sizeof(cpuinfo), "/proc/cpuinfo");
	if (has_word(cpuinfo, "Features")) { /* x86-64 has flags */
		finding_add(e, VERDICT_OK, "", "the counter of arm64 is always steady");
		return;
	}
	constant = has_word(cpuinfo, "constant_tsc");
	nonstop = has_word(cpuinfo, "nonstop_tsc");
	if (!constant || !nonstop) {
		finding_add(e, VERDICT_WARN, "", "the TSC %s",
			    !constant ? "follows the clock rate" : "stops in deep sleep");
		finding_cost(
			e, "Forwarders measure time with the TSC, so the rates of policers "
			   "and of ICMP errors, and `show cycles`, are wrong. A "
			   "VM needs the CPU's own flags (host-passthrough).");
		return;
	}
	if (exam_read(e, source, sizeof(source), CLOCK_DIR "/current_clocksource") <= 0 ||
	    strcmp(source, "tsc") == 0 || strcmp(source, "kvm-clock") == 0 ||
	    strcmp(source, "hyperv_clocksource_tsc_page") == 0) {
		finding_add(e, VERDICT_OK, "", "steady TSC; the kernel's clock is %s",
			    source[0] != '\0' ? source : "unknown");
		return;
	}
	finding_add(e, VERDICT_WARN, "", "the kernel's clock is %s, not the TSC", source);
	finding_cost(e, "Each reading of the clock costs a microsecond, in FRR too. The "
			"kernel log has the reason (dmesg | grep -i tsc).");
	finding_fix(e, "echo tsc > " CLOCK_DIR "/current_clocksource");
}
