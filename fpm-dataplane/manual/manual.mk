# Manual pages. Included by ../../Makefile.

man: all ## write the manual pages of the programs and of the configuration file to build/man/
	@$(MAKE) --no-print-directory deps DEPS_ALL="$(PKGS_MAN)"
	@$(PY) fpm-dataplane/manual/man.py $(O) build/man "$(VERSION)"

.PHONY: man
