# Debian package and container image. Included by ../../Makefile.

deps-deb:
	@$(MAKE) --no-print-directory deps DEPS_ALL="$(PKGS_BUILD) $(PKGS_DEB)"

deb: deps-deb ## build a Debian package of the daemon, its supervisor and fpmctl in build/deb/
	@fpm-dataplane/dist/deb.sh "$(VERSION)"

test-deb: deb ## install, run, upgrade and purge the package in a clean Debian root; commands of README and quick start there
	@$(MAKE) --no-print-directory deps DEPS_ALL="python3-pytest debootstrap lintian"
	@tests/lib/debian_root.sh $(CURDIR)/build/deb-root bookworm >build/deb-root.log 2>&1 || \
		{ tail -20 build/deb-root.log; exit 1; }
	@DEB=$$(ls $(CURDIR)/build/deb/fpm-dataplane_*.deb) DEB_ROOT=$(CURDIR)/build/deb-root \
		$(PY) -m pytest --no-header -p no:cacheprovider --basetemp=build/pytest-deb \
		-rs tests/package/test_deb.py tests/package/test_newcomer.py

# Unpack the package, because its installation would start a service. Without Prometheus the tests
# skip.
# Debian 13 has promtool in a package of its own.
PROMETHEUS := build/prometheus
prometheus: ## unpack Debian's Prometheus in build/prometheus, for the tests of the metrics page
	@[ -x $(PROMETHEUS)/usr/bin/promtool ] || { mkdir -p $(PROMETHEUS) && cd $(PROMETHEUS) && \
		apt-get -o APT::Sandbox::User=root download prometheus \
		$$(apt-cache depends prometheus | awk '$$2 == "promtool" {print $$2}') >/dev/null && \
		for deb in *.deb; do dpkg-deb -x $$deb . || exit 1; done; }

# Use the engine that answers. Podman's own image format has no health checks.
CONTAINERS = $(eval CONTAINERS := $$(firstword $$(foreach c,docker podman,\
	$$(shell $$(c) info >/dev/null 2>&1 && echo $$(c)))))$(CONTAINERS)
# For a machine that reaches no registry of images.
base-image: ## make the base image of the container image with podman from Debian's packages (SUITE=trixie)
	@tests/lib/base_image.sh $(CURDIR)/build/base-root $(or $(SUITE),bookworm)

image: ## build the container image fpm-dataplane with docker or podman (SUITE=trixie: of Debian 13)
	@[ -n "$(CONTAINERS)" ] || { echo "image: neither docker nor podman answers here"; exit 1; }
	@$(CONTAINERS) build $(if $(filter podman,$(CONTAINERS)),--format docker) --network host \
		--build-arg VERSION="$(VERSION)" --build-arg SUITE=$(or $(SUITE),bookworm) -f docker/Dockerfile -t fpm-dataplane .

test-image: ## test packets through two routers in containers, and the labs of compose and containerlab (podman)
	@if [ -n "$(CONTAINERS)" ]; then \
	tests/lib/image.sh $(CONTAINERS) $(or $(SUITE),bookworm) $(MAKE) --no-print-directory; \
	else echo "test-image: skipped: neither docker nor podman answers here"; fi

test-image-run:
	@$(MAKE) --no-print-directory deps DEPS_ALL="python3-pytest ethtool iproute2"
	@$(MAKE) --no-print-directory prometheus || true
	@IMAGE=localhost/fpm-dataplane VERSION="$(VERSION)" SUITE=$(or $(SUITE),bookworm) $(PY) -m pytest --no-header -p no:cacheprovider -rs \
		--basetemp=build/pytest-image $(addprefix tests/package/test_,image.py compose.py compose_four.py containerlab.py)

.PHONY: deb deps-deb test-deb prometheus base-image image test-image test-image-run
