# Manual pages, and the manual as HTML. Included by ../../Makefile.

man: all ## write the manual pages of the programs and of the configuration file to build/man/
	@$(MAKE) --no-print-directory deps DEPS_ALL="$(PKGS_MAN)"
	@$(PY) fpm-dataplane/manual/man.py $(O) build/man "$(VERSION)"

book: ## write the manual and the pages for developers as HTML to build/book/ (index.html)
	@$(MAKE) --no-print-directory deps DEPS_ALL="$(PKGS_BOOK)"
	@$(PY) fpm-dataplane/manual/book.py build/book

.PHONY: man book
