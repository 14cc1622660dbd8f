# SPDX-License-Identifier: MIT
# contrib/uzswapd.conf.example is in src/conf/conf.mk.
EXTRA_DIST += contrib/packages contrib/lib/build.sh contrib/lib/run.sh \
	contrib/quickstart contrib/run-tests .ci/run
