/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * frame_header: the Ethernet header of a packet that leaves by the fast path. frame_x86.h
 * writes it with vectors, frame_plain.h without. frame_decl.h describes the functions.
 */
#ifndef FWD_FRAME_HEADER_H
#define FWD_FRAME_HEADER_H

#ifdef __x86_64__
#include "fwd/frame_x86.h"
#else
#include "fwd/frame_plain.h"
#endif

#endif
