# SPDX-License-Identifier: BSD-3-Clause
"""BGP flowspec (RFC 8955, 8956) as rules of one nft table.

update.py decodes an UPDATE of BGP, flow.py one flow specification, action.py its actions.
translate.py makes nft rules of a flow, origin.py checks whether its peer may announce it, table.py
loads the rules, helper.py joins the parts, session.py runs ExaBGP, speaker.py switches its decoder
off.
"""
