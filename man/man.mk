# SPDX-License-Identifier: MIT
# The other pages are listed where what they describe is built: src/conf/conf.mk, src/ctl/ctl.mk.
dist_man_MANS += man/uzswapd.8
