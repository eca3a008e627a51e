/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Find virtual services of IPVS, the load balancer of the kernel; keepalived may have set
 * them up. The module of IPVS translates the answers of the servers at hook forward,
 * without a chain of nf_tables or iptables. [warn]
 */
#include <stdio.h>
#include <string.h>

#include "warn/impl.h"

/* The services of the thread's namespace. The file exists only if the module is loaded. */
#define SERVICES "/proc/thread-self/net/ip_vs"

void
ipvs_read(struct warn *w, FILE *services)
{
	static const char *const proto[] = {"TCP ", "UDP ", "SCTP ", "FWM "};
	char line[256], where[64];
	unsigned int n = 0;

	while (fgets(line, sizeof(line), services) != NULL)
		for (unsigned int i = 0; i < sizeof(proto) / sizeof(proto[0]); i++)
			n += strncmp(line, proto[i], strlen(proto[i])) == 0;
	if (n == 0)
		return;
	snprintf(where, sizeof(where), "%u virtual service%s of IPVS", n,
		 n == 1 ? "" : "s");
	list_add(
		&w->list, WARNING_NAT, where,
		"Linux distributes connections to servers, and translates the addresses of "
		"the answers in transit.",
		"Packets to addresses of the router are distributed, by the kernel. "
		"Answers "
		"of the servers keep their addresses.");
}

void
ipvs_scan(struct warn *w)
{
	FILE *services = fopen(SERVICES, "re");

	if (services == NULL)
		return;
	ipvs_read(w, services);
	fclose(services);
}
