# Commands for developers. They need Go; they look for everything else, and root installs it with apt-get.
# Nothing here names a port, a registry or a number of cores.

GO ?= go

# Modules that are not in go.work, because they need much more than the others.
alone = GOWORK=off $(GO)

# How often each test runs, and further flags of "go test": make test-race COUNT=10 TESTFLAGS=-failfast
COUNT ?= 1
TESTFLAGS ?=

# How many tests of a package share the real servers, and how many packages run side by side. Both numbers exceed two
# cores because tests wait for servers, processes and timers.
PARALLEL ?= 8
PACKAGES ?= 4

# The suites run in-process unless this holds a connect string; only test-ensemble sets it.
export MENAGERIE_TEST_SERVERS =

# The generated tests draw the same programs on every machine, so luck does not judge a change.
# RAPID_SEED=0 draws other programs each time, to search for new failures.
export RAPID_SEED ?= 1

# The tests open thousands of connections with 1.5 MB of buffers each. Collecting garbage less often saved a tenth
# of the processor time and costs some hundred MB.
export GOGC ?= 800

# A program with the race detector waits for a second before it exits, to see more; the tests start hundreds of them.
export GORACE ?= atexit_sleep_ms=50

# A package has twelve minutes each time; the longest needs seven on two cores. A package that hangs then prints its
# goroutines before .ci/run ends it. "make lint" vets, so "go test" does not.
alltests = $(GO) test -vet=off -count=$(COUNT) -timeout=$$((12 * $(COUNT)))m $(TESTFLAGS)
gotest = $(alltests) -p $(PACKAGES)

# These packages play thousands of generated programs, and every fault at every request. The race detector makes them
# five times slower: "make test" plays a part of the programs with it (-short), and all of them without it. The run
# without it has only the tests whose names contain one of the words in "generated". The run with it leaves out the tests in
# "long", which would take the longest, and the suites that use all recipes in turn, whose own suites it has. "make test-race" has these, too.
GENERATED = ./internal/follow ./internal/share ./internal/writers ./internal/zkconn ./recipes_test/... ./zkbarrier ./zklatch ./zkphaser ./zkwaitgroup
long = ^TestAny(Call|Function|In)|AnyWeather|AnyBusyOne|AnyForeign|AnyOtherSchedule|Whenever(All|TheLeader|TheProcess)
generated = Every|Any|Random|Storm|Whenever|Handshake|Acceptance(004|041|114|117)
others = $$($(GO) list work | grep -vE '/(internal/(follow|share|writers|zkconn)|recipes_test|zkbarrier|zklatch|zkphaser|zkwaitgroup|adapters|observe|$(realtime))(/|$$)')

# The tests of these packages mostly wait for processes, sockets and real servers.
realtime = bench|cmd/menagerie|docs|examples|interop|internal/testing|zktest/internal/conformance

# They play in virtual time, so they leave the processor to tests in real time. In a bubble one goroutine usually waits
# for another, and waking it on a second processor is expensive: with -cpu 1 the same plays take a quarter less processor time.
# And the race detector of Go 1.26 crashes now and then in a bubble when goroutines on two processors look at expired timers
# (compare golang/go issue 78156). It needs no second processor to see a race. So in "make test" a program whose tests play in
# virtual time has one processor.
generating = nice -n 10 $(alltests) -cpu 1

# Packages that also run on real servers.
recipes = $$($(GO) list ./recipes_test/... | grep -vE '/(faults|storm)$$')

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## compile everything; the commands go to bin
	$(GO) build -o bin/ work

# Most Java machines of the tests live for seconds, too short for the second compiler to pay off.
test test-in-process test-realtime test-interop test-ensemble: export JDK_JAVA_OPTIONS ?= -XX:TieredStopAtLevel=1 -XX:+UseSerialGC

.PHONY: test
test: compiler zookeeper network ## all tests: in-process, also with the race detector, and beside that Go's own and those on three real servers
	MENAGERIE_REQUIRE_ENSEMBLE=1 $(MAKE) -j 10 test-realtime test-interop test-page test-observe test-adapters test-databases test-generated test-generated-race test-others test-ensemble gosuite

.PHONY: test-in-process
test-in-process: test-realtime test-interop test-page test-observe test-adapters test-others test-generated test-generated-race ## all tests with the race detector, of the generated programs a part; and all of those without it

# Two targets that begin at the same time would each compile these packages.
.PHONY: race-packages
race-packages: compiler
	@$(GO) list -test -race -export $$($(GO) list work | grep -vE '/(pagetest$$|adapters/)') > /dev/null

.PHONY: test-realtime
# Four of the command's tests side by side end in half the time of two.
test-realtime: race-packages
	$(gotest) -race -parallel 4 $$($(GO) list work | grep -E '/($(realtime))(/|$$)' | grep -vE '/(pagetest$$|interop(/|$$))')
	$(alone) -C tools test -count=1 ./...

.PHONY: test-interop
test-interop: race-packages
	$(gotest) -race -parallel 4 ./interop/...

# They drive programs: with the race detector the browser's driver alone would take half a minute to compile.
.PHONY: test-page
test-page:
	$(gotest) ./cmd/menagerie/pagetest

# They mostly wait for sessions to expire. The library of SQLite is the system's: to compile it would take a minute.
.PHONY: test-databases
test-databases: compiler ## docs/fencing.md: PostgreSQL, SQLite and others refuse the writes of processes that were stopped
	@.ci/databases
	$(alone) -C examples/fencing test -vet=off -tags libsqlite3 -count=$(COUNT) -parallel $(PARALLEL) $(TESTFLAGS) .

# The race detector's build of what they depend on takes some twenty seconds of processor time.
.PHONY: test-observe
test-observe: race-packages
	$(alltests) -race -cpu 1 ./observe/zkprom ./observe/zkotel
	$(alltests) -race ./observe/zkprom/livetest

# No other test needs the libraries that they adapt. Of what is compiled here, "go vet" needs no more: so "make lint" leaves them out.
.PHONY: test-adapters
test-adapters: race-packages
	$(alltests) -race -cpu 1 ./adapters/gocron ./adapters/goose ./adapters/certmagic
	$(GO) vet -race ./adapters/gocron ./adapters/goose ./adapters/certmagic

.PHONY: test-others
test-others: race-packages
	$(alltests) -race -cpu 1 $(others)

# All tests of these two run here, and begin first: theirs take the longest.
whole = ./recipes_test/faults ./recipes_test/types

.PHONY: test-generated
test-generated: compiler
	$(generating) $(whole)
	$(generating) -run '$(generated)' $$($(GO) list $(GENERATED) | grep -vE '/recipes_test/(faults|types)$$')

.PHONY: test-generated-race
test-generated-race: race-packages
	$(generating) -race -short -skip '$(long)' $$($(GO) list $(GENERATED) | grep -vE '/recipes_test/(faults|types)$$')

.PHONY: test-unit
test-unit: ## the tests that need nothing but Go: no race detector, no ZooKeeper
	$(gotest) work

.PHONY: test-race
test-race: compiler ## all in-process tests with the race detector, and all generated programs, too: six minutes and more
	$(gotest) -race work

.PHONY: test-ensemble
test-ensemble: zookeeper ## the recipes' tests on three real ZooKeeper servers
	MENAGERIE_TEST_ENSEMBLE=3 bin/ensemble -servers 3 -- $(gotest) -parallel $(PARALLEL) $(recipes)

# How many seeds "make storm" plays, and the first of them. SEED=n alone repeats one seed and prints every step.
SEEDS ?=
SEED ?=

.PHONY: storm
storm: ## random use of all recipes under random faults: SEEDS=10000 for more than 400, SEED=n for that one
	$(GO) test -c -o bin/storm $(TESTFLAGS) ./recipes_test/storm
	cd recipes_test/storm && MENAGERIE_STORM_SEED=$(SEED) MENAGERIE_STORM_SEEDS=$(or $(SEEDS),$(if $(SEED),,400)) ../../bin/storm -test.timeout=0 $(if $(SEED),-test.v)

.PHONY: faults
faults: ## every fault at every request of every scenario, and all pairs of faults, without the race detector: some ten minutes
	MENAGERIE_FULL=1 $(GO) test -vet=off -count=1 -timeout=0 -run 'TestEvery|Acceptance.*Every|GivingUpAtAny' $(TESTFLAGS) ./recipes_test/... ./zkbarrier

# Only mutants whose names contain one of these words; by default all.
MUTANTS ?=

.PHONY: mutants
mutants: ## break the code on purpose, one patch of internal/testing/mutants at a time, and see the test go red that each names
	$(GO) run ./internal/testing/mutants $(MUTANTS)

# How many generated programs "make conformance" compares.
PROGRAMS ?= 2000

.PHONY: gosuite
gosuite: ## Go's own tests of sync, semaphore and singleflight with our types: in one session, and in three at three servers
	$(GO) run ./internal/testing/gosuite

# How long "make chaos" lasts, and the seed of its faults; the default is a new seed each time.
CHAOS ?= 3m
CHAOS_SEED ?=

.PHONY: chaos
chaos: compiler zookeeper network ## a demo on three real servers while they are killed, frozen and cut off
	MENAGERIE_REQUIRE_ENSEMBLE=1 MENAGERIE_CHAOS=$(CHAOS) MENAGERIE_CHAOS_SEED=$(CHAOS_SEED) \
		$(GO) test -race -count=$(COUNT) -timeout=1h -v -run 'TestDemoIsRightThroughChaosAmongThreeRealServers' $(TESTFLAGS) ./cmd/menagerie

# How many rounds "make leader-cuts" plays, a minute each.
ROUNDS ?= 12

.PHONY: leader-cuts
leader-cuts: zookeeper network ## the leader of three real servers is cut off while it answers holders: 12 rounds with session timeouts of 4, 10 and 15 s
	MENAGERIE_REQUIRE_ENSEMBLE=1 MENAGERIE_LEADER_CUTS=$(ROUNDS) \
		$(GO) test -count=$(COUNT) -timeout=1h -v -run 'TestALeaseEndsBeforeTheNextGrantWhenARealLeaderIsCutOff' $(TESTFLAGS) ./internal/testing/ensemble

.PHONY: examples
examples: ## run all examples, also the one that uses SQLite, which takes a minute to compile
	MENAGERIE_EXAMPLES=all $(GO) -C examples test -count=1 -v ./...

.PHONY: pictures
pictures: ## make the pictures of README.md and docs/ui.md again, in Chromium; look at them
	MENAGERIE_SCREENSHOTS=$(CURDIR)/docs/images $(GO) test -count=1 -run 'Night|Tour' ./cmd/menagerie/pagetest

# How long "make batch" lasts.
BATCH ?= 2m

.PHONY: batch
batch: zookeeper ## a batch of 64 items on 8 workers, which are killed at random, and one of shell scripts, on three real servers
	MENAGERIE_BATCH=$(BATCH) MENAGERIE_TEST_ENSEMBLE=3 bin/ensemble -servers 3 -- \
		$(GO) test -count=$(COUNT) -timeout=1h -v -run 'TestAcceptance193ABatchOfWorkersThatAreKilledAtRandomEndsWhenAllIsDone' $(TESTFLAGS) ./recipes_test/group
	MENAGERIE_BATCH=$(BATCH) MENAGERIE_REQUIRE_ENSEMBLE=1 \
		$(GO) test -count=$(COUNT) -timeout=1h -v -run 'TestABatchOfShellWorkersWhileARealServerRestarts' $(TESTFLAGS) ./cmd/menagerie

.PHONY: conformance
conformance: zookeeper ## the in-process server against a real one: every scenario and 2000 programs
	MENAGERIE_REQUIRE_ENSEMBLE=1 $(GO) -C zktest/internal/conformance test -count=$(COUNT) -timeout=$$((15 * $(COUNT)))m $(TESTFLAGS) -full -programs $(PROGRAMS)

# Flags of the program, such as a choice of kazoo's tests: KAZOO='-only test_lock'
KAZOO ?=

.PHONY: kazoosuite
kazoosuite: zookeeper ## the tests of kazoo, the Python client, on "menagerie serve" and on a real server; fails if ours is worse: ten minutes
	@.ci/apt-install pytest-3 python3-pytest python3-objgraph python3-kazoo python3-gevent python3-eventlet
	$(GO) build -o bin/ ./interop/kazoosuite ./cmd/menagerie
	bin/kazoosuite $(KAZOO)

.PHONY: bench
bench: zookeeper ## benchmarks, in-process and against one real server
	$(GO) test -run '^$$' -bench . -benchmem $(TESTFLAGS) work
	$(GO) build -o bin/menagerie ./cmd/menagerie
	bin/ensemble -servers 1 -- bin/menagerie bench
	bin/ensemble -servers 1 -- $(GO) run ./zktest/internal/speed

# The benchmarks that are compared, and how often each runs: fewer than five runs prove nothing of times.
compared = LocalHandover|RelockLingering|SharedReaders|Requests
bench-compare: RUNS ?= 8

.PHONY: bench-compare
bench-compare: bin/benchcompare ## times, requests, bytes and allocations of this revision and of the newest tag (or BASE) in turn; fails if one got worse
	bin/benchcompare -base "$(BASE)" -count $(RUNS) -run '^TestCosts$$' -bench '^Benchmark($(compared))$$' ./zksync ./zkrwmutex ./bench

# RIVALS='--peer curator --scenario contended' only prints that part; RIVALS='--write docs/benchmarks.md --render' writes the page
# from the results of the last run, which are in bench/rivals/results.
bench-page: RIVALS ?= --write docs/benchmarks.md

.PHONY: bench-page
bench-page: zookeeper ## Curator, kazoo, etcd, redsync and others beside ours; writes docs/benchmarks.md and its charts: a quarter of an hour
	$(alone) -C bench/rivals vet ./...
	$(alone) -C bench/rivals test -count=1 ./...
	$(alone) -C bench/rivals build -o ../../bin/rivals .
	bin/rivals $(RIVALS)

# "go vet" would compile the rivals' clients first, so only "make bench-page" vets that module. staticcheck would
# read all that adapters and the clients of Prometheus and OpenTelemetry depend on, for half a minute: "make lint-observe" does.
linted = $$($(GO) list work | grep -vE '/(adapters|observe|examples/service)(/|$$)')

.PHONY: lint
lint: bin/staticcheck bin/typecheck ## formatting, go vet, staticcheck, and the types for macOS and Windows
	@unformatted=$$("$$($(GO) env GOROOT)/bin/gofmt" -l .) && test -z "$$unformatted" || { echo "gofmt -w needed for:" $$unformatted >&2; exit 1; }
	$(GO) vet $$($(GO) list work | grep -v '/adapters/')
	$(alone) -C tools vet ./...
	bin/staticcheck $(linted)
	@! $(GO) list -deps ./cmd/menagerie | grep -qx testing || { echo "cmd/menagerie links package testing" >&2; exit 1; }
	bin/typecheck darwin windows
	cd bench/rivals && GOWORK=off ../../bin/typecheck "$$($(GO) env GOOS)"

.PHONY: lint-observe
lint-observe: bin/staticcheck ## staticcheck of adapters, observe and examples/service, which need other libraries: half a minute
	bin/staticcheck $$($(GO) list work | grep -E '/(adapters|observe|examples/service)(/|$$)')

# The race detector needs a C compiler to link.
.PHONY: compiler
compiler:
	@.ci/apt-install "$$($(GO) env CC | cut -d ' ' -f 1)" gcc libc6-dev || \
		{ echo "without a C compiler: make test-unit" >&2; exit 1; }

# The version that "make release" prepares. CHECK=no leaves out "make lint test", if that has just passed for this commit.
VERSION ?=
CHECK ?= yes

.PHONY: release
release: bin/release ## prepare VERSION=v0.1.0 in a clone, and print the commands that publish it: docs/releasing.md; CHECK=no if make lint test has just passed
	bin/release -version "$(VERSION)" $(if $(filter no,$(CHECK)),-check=false)

.PHONY: release-rehearsal
release-rehearsal: ## prepare a version that is made up, with archives for all systems: ten minutes
	MENAGERIE_FULL=1 $(alone) -C tools test -count=1 -timeout=1h -v -run TestThisRepositoryCanBeReleased ./release

.PHONY: zookeeper
zookeeper:
	@$(GO) build -o bin/ensemble ./internal/testing/ensemble/cmd/ensemble
	@bin/ensemble -install-only || { echo "without ZooKeeper: make test-unit" >&2; exit 1; }

# The chaos test cuts connections if it is root. Otherwise it only kills and freezes servers, and says so.
.PHONY: network
network:
	@test "$$(id -u)" != 0 || .ci/apt-install ip iproute2

# The tools are built here because "go tool" would need them in the go.mod of the root module.
bin/staticcheck: tools/go.mod tools/go.sum
	$(alone) -C tools build -o ../bin/staticcheck honnef.co/go/tools/cmd/staticcheck
	@touch $@

bin/benchcompare: tools/go.mod tools/go.sum $(wildcard tools/benchcompare/*.go)
	$(alone) -C tools build -o ../bin/benchcompare ./benchcompare
	@touch $@

bin/typecheck: tools/go.mod tools/go.sum tools/typecheck/main.go
	$(alone) -C tools build -o ../bin/typecheck ./typecheck
	@touch $@

bin/release: tools/go.mod tools/go.sum $(wildcard tools/release/*.go)
	$(alone) -C tools build -o ../bin/release ./release
	@touch $@
