# The jobs that a change must pass. Those that take long run side by side, because most of their tests wait.
# It is make that starts them: what a shell starts in the background ignores Ctrl-C for ever, and so would the commands of the tests.
.PHONY: all lint shared test ensemble interop page observe adapters
all: test ensemble interop page observe adapters

# Each job decides for itself how much of it runs side by side.
alone = MAKEFLAGS= MAKELEVEL=

lint:
	$(alone) .ci/lint

# What several jobs need is installed and compiled once.
shared: lint
	$(alone) .ci/make compiler zookeeper network race-packages

test ensemble interop page observe adapters: shared
	$(alone) .ci/$@
