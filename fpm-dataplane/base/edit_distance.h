/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * edit_distance: similarity of two words, for "did you mean".
 *                                                            [any thread, no side effects]
 */
#ifndef BASE_EDIT_DISTANCE_H
#define BASE_EDIT_DISTANCE_H

#define EDIT_WORD_MAX 32 /* longest word that is compared, in octets */

/*
 * Count the letters to add, drop or change until one word equals the other (Levenshtein's
 * distance). Returns EDIT_WORD_MAX when one of the words is longer than that.
 */
unsigned int edit_distance(const char *a, const char *b);

#endif
