/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parse PCI configuration space. The octets come from a device, so each offset is checked
 * before use, and the walk through the capabilities ends even if they form a loop.
 */
#include "ctl/doctor/pci.h"

#include <errno.h>
#include <string.h>

#define STATUS           0x06
#define STATUS_CAP_LIST  0x10
#define CAP_POINTER      0x34
#define CAP_FIRST        0x40 /* lowest offset of a capability */
#define CAP_MAX          48   /* capabilities that fit; more of them form a loop */
#define CAP_ID_EXPRESS   0x10
#define EXPRESS_BYTES    0x14
#define DEVICE_CAP       0x04
#define DEVICE_CAP_TAG   (1u << 5)
#define DEVICE_CTL       0x08
#define DEVICE_CTL_TAG   (1u << 8)
#define DEVICE_CTL_READ  12 /* shift of three bits; size is 128 octets << value */
#define LINK_CAP         0x0c
#define LINK_STATUS      0x12
#define LINK_SPEED(word) ((word)&0xf)
#define LINK_WIDTH(word) ((word) >> 4 & 0x3f)

static uint32_t
get_le16(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8;
}

static uint32_t
get_le32(const uint8_t *p)
{
	return get_le16(p) | get_le16(p + 2) << 16;
}

/* Find a capability. Returns its offset, or -errno. */
static int
capability_find(const uint8_t *config, size_t len, uint8_t id)
{
	size_t at;

	if ((get_le16(config + STATUS) & STATUS_CAP_LIST) == 0)
		return -ENOENT;
	at = config[CAP_POINTER] & 0xfcu;
	for (unsigned int i = 0; i < CAP_MAX && at != 0; i++) {
		if (at < CAP_FIRST)
			return -EPROTO;
		if (at + 2 > len)
			return -ENODATA;
		if (config[at] == id)
			return (int)at;
		at = config[at + 1] & 0xfcu;
	}
	return at == 0 ? -ENOENT : -EPROTO;
}

int
pci_express_parse(const uint8_t *config, size_t len, struct pci_express *out)
{
	const uint8_t *cap;
	uint32_t ctl;
	int at;

	if (len < CAP_FIRST)
		return -ENODATA;
	if (get_le32(config) == UINT32_MAX)
		return -ENODEV;
	if (len > PCI_CONFIG_BYTES)
		len = PCI_CONFIG_BYTES; /* then extended capabilities follow: not read */
	at = capability_find(config, len, CAP_ID_EXPRESS);
	if (at < 0)
		return at;
	if ((size_t)at + EXPRESS_BYTES > len)
		return len < PCI_CONFIG_BYTES ? -ENODATA : -EPROTO;
	cap = config + at;
	ctl = get_le16(cap + DEVICE_CTL);
	*out = (struct pci_express){
		.speed = LINK_SPEED(get_le16(cap + LINK_STATUS)),
		.speed_max = LINK_SPEED(get_le32(cap + LINK_CAP)),
		.width = LINK_WIDTH(get_le16(cap + LINK_STATUS)),
		.width_max = LINK_WIDTH(get_le32(cap + LINK_CAP)),
		.tag_able = (get_le32(cap + DEVICE_CAP) & DEVICE_CAP_TAG) != 0,
		.tag_on = (ctl & DEVICE_CTL_TAG) != 0,
		.read_bytes = 128u << (ctl >> DEVICE_CTL_READ & 7),
	};
	return 0;
}

double
pci_gbit_per_s(unsigned int speed, unsigned int width)
{
	/* Line coding: 8b/10b up to generation 2, then 128b/130b, then flits. */
	static const double lane[] = {0,
				      2,
				      4,
				      8 * 128.0 / 130,
				      16 * 128.0 / 130,
				      32 * 128.0 / 130,
				      64 * 242.0 / 256};

	return speed < sizeof(lane) / sizeof(lane[0]) ? lane[speed] * width : 0;
}
