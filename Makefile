# kuberewind. `make help` lists everything.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

GO       ?= go
BIN      := bin
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS  := -s -w -X github.com/kuberewind/kuberewind/internal/version.version=$(VERSION)
TOOL     := $(GO) tool -modfile=tools/go.mod
# The nested modules also build from the module proxy. None of them is part of a workspace.
export GOWORK := off

.PHONY: help
help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-20s %s\n", $$1, $$2}'

.PHONY: build
build: ## Build the programs into bin/
	@CGO_ENABLED=0 hack/watched.sh "building the programs" $(GO) build -v -trimpath -ldflags "$(LDFLAGS)" -o $(BIN)/ ./cmd/...

.PHONY: setup
setup: ## Find or install what the tests and the demo need: PostgreSQL's server binaries, psql and PgBouncer
	@hack/setup.sh $(SETUP_FOR)

.PHONY: control-plane
control-plane: ## Download kube-apiserver, etcd and kubectl into the cache, or build them if that fails (once); [INDEX=none] builds them
	@hack/build-control-plane.sh $(if $(INDEX),--index "$(INDEX)")

.PHONY: control-plane-full
control-plane-full: ## The same with scheduler, controller-manager and kwok, which are built
	@hack/build-control-plane.sh $(if $(INDEX),--index "$(INDEX)") full

OLDER := $(BIN)/previous/kube-apiserver

.PHONY: control-plane-previous
control-plane-previous: ## Build the kube-apiserver of the minor release before, for make soak (once; minutes)
	@cd test/controlplane-previous && CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=false -o $(CURDIR)/$(OLDER) \
		-ldflags "-s -w -X k8s.io/component-base/version.gitVersion=$$($(GO) list -m -f '{{.Version}}' k8s.io/kubernetes)" k8s.io/kubernetes/cmd/kube-apiserver

.PHONY: demo
demo: SETUP_FOR := demo
demo: setup control-plane build ## Record a local control plane into the embedded PostgreSQL and show what was recorded
	@hack/watched.sh "building the demo" $(GO) build -v -o $(BIN)/hack/ ./hack/demo
	@$(BIN)/hack/demo -bin $(BIN)

.PHONY: demo-silence
demo-silence: ## Run the demo, and fail if it says nothing for five seconds at any time
	@$(GO) run ./hack/silence -max 5s $(MAKE) --no-print-directory demo

.PHONY: run
run: build ## Record the cluster of your own kubeconfig, read-only, into the embedded PostgreSQL
	@hack/setup.sh server
	@$(BIN)/recorder run

# More flags of go test, for make test-times.
TESTFLAGS ?=
# The programs that the whole-system tests run, and the initial data directory of PostgreSQL. Both are made once for all packages.
PROGRAMS  := $(CURDIR)/$(BIN)/programs
DATA      := $(CURDIR)/$(BIN)/postgres
TEST      := KUBEREWIND_TEST_PROGRAMS=$(PROGRAMS) $(if $(TEST_DATABASE_URL),,KUBEREWIND_TEST_POSTGRES=$(DATA)) $(GO) test $(TESTFLAGS)
# make test runs these packages without the race detector, because it multiplies CPU time and their code starts no goroutines, or one that
# shares nothing: cmd/replay and hack/test-times forward signals, hack/demo reads a pipe, internal/controlplane/binaries watches a download. make test-more runs all of them with it. New packages run with it by default.
PLAIN     := ./apiserver/internal/clock ./apiserver/internal/review ./blame ./change ./cmd/replay ./delta ./deltafifo/spool ./evidence ./internal/bounds ./internal/clusterevents \
	./internal/config ./internal/controlplane/binaries ./internal/controlplane/objects ./internal/docs ./internal/erasure ./internal/field ./internal/filter ./internal/fold ./internal/lifecycle \
	./internal/mistyped ./internal/owner ./internal/paging ./internal/pgdata ./internal/pgtest ./internal/printers ./internal/redact ./internal/render ./internal/replay/changelog \
	./internal/replay/env ./internal/replay/snapshot ./internal/reports ./internal/retention ./internal/scene/... ./internal/succession ./internal/times ./internal/timeshift ./internal/when \
	./migrations ./patch ./hack/...
# Tests of whole systems, the longest first, and measurements. The first runs alone, because it starts three control planes at once.
SYSTEM    := ./test/system
SYSTEMS   := ./test/chaos ./test/badinput ./test/replay ./bench/... ./test/...
# The longest packages begin first.
RACED      = $(filter-out $(shell $(GO) list $(PLAIN) $(SYSTEM) $(SYSTEMS)),$(shell $(GO) list ./internal/replay ./cmd/recorder ./sink/postgres ./timeline ./history ./apiserver ./kube ./internal/embedded ./internal/rollback && $(GO) list ./...))

.PHONY: test-programs
test-programs:
	@$(GO) build -ldflags "-s -w" -o $(PROGRAMS)/ ./cmd/... ./hack/pgdata
	@$(if $(TEST_DATABASE_URL),,$(PROGRAMS)/pgdata $(DATA))

.PHONY: test
test: setup control-plane test-programs test-browser ## Run all tests but those of make test-more: packages with goroutines under the race detector, then the others and whole systems
	@failed=0; \
	$(TEST) -race -timeout 30m -p 3 $(RACED) || failed=1; \
	$(TEST) -timeout 30m $(SYSTEM) || failed=1; \
	$(TEST) -timeout 30m -p 2 $$($(GO) list $(SYSTEMS) $(PLAIN) | grep -vx "$$($(GO) list $(SYSTEM))") || failed=1; \
	exit $$failed

.PHONY: test-more
test-more: setup control-plane test-programs ## Run what make test leaves out because it takes long; see docs/developing.md
	@failed=0; \
	$(TEST) -race -timeout 30m -p 2 $(PLAIN) || failed=1; \
	$(TEST) -timeout 30m -run 'TestEveryRevision|TestARecorderThatIsStopped' ./test/system -args -writes 20000 || failed=1; \
	exit $$failed

# The output of the last make test-times, one JSON object in each line.
TIMES := $(BIN)/test-times.jsonl

REVISIONS_COMPARED ?= 200

.PHONY: test-foreign
test-foreign: setup control-plane-full test-programs ## Run test suites of Kubernetes on the API of the past, and compare it with a real kube-apiserver: every resource at [REVISIONS_COMPARED=200] random revisions (half an hour)
	@hack/watched.sh "building specs of Kubernetes' e2e" $(GO) test -C test/foreign/e2e -c -trimpath -o $(CURDIR)/$(BIN)/e2e.test .
	@$(TEST) -count 1 -timeout 60m -run TestForeignSuites -v ./test/foreign -args -suites -e2e $(CURDIR)/$(BIN)/e2e.test
	@$(TEST) -count 1 -timeout 60m -run TestThePast -v ./test/api -args -revisions $(REVISIONS_COMPARED) -resources 0 -writes 3000 -workloads

CLIENTS := $(CURDIR)/$(BIN)/clients

.PHONY: test-clients
test-clients: SETUP_FOR := clients
test-clients: setup control-plane test-programs test-browser ## Have kubectl, k9s, informers and a manager of controller-runtime work on the past (the first time some 10 minutes of CPU: k9s is built)
	@CGO_ENABLED=0 hack/watched.sh "building the controller" $(GO) build -C examples/controller -v -trimpath -ldflags "-s -w" -o $(CLIENTS)/ .
	@CGO_ENABLED=0 hack/watched.sh "building k9s" $(GO) build -C tools/k9s -v -trimpath -ldflags "-s -w" -o $(CLIENTS)/ github.com/derailed/k9s
	@$(TEST) -count 1 -timeout 20m -v ./test/clients -args -programs $(CLIENTS)
	@$(TEST) -count 1 -timeout 20m -run 'TestThePast/each_(output|cache)' ./test/api

.PHONY: test-browser
test-browser:
	@[ "$${SKIP_WEB:-}" = 1 ] || hack/setup.sh web
	@[ "$${SKIP_WEB:-}" = 1 ] || [ test/web/node_modules/.package-lock.json -nt test/web/package-lock.json ] || \
		hack/watched.sh "installing the driver of the browser" npm --prefix test/web ci --no-audit --no-fund

# The seed of test-faults and test-web. Without one, each run draws its own.
FAULTS_SEED ?= 0
FIND_FAULTS  = $(TEST) -count 1 -timeout 30m -v ./test/web/faults -args -play -seed $(FAULTS_SEED)

.PHONY: test-web
test-web: setup control-plane-full test-programs test-browser ## Check the types of the page, open its views in Chromium, compare what is drawn with SQL, and do what make test-faults does: [FAULTS_SEED=7]
	@test/web/node_modules/.bin/tsc -p web
	@$(TEST) -count 1 -timeout 30m -v ./test/web -args -all
	@$(FIND_FAULTS)

.PHONY: test-faults
test-faults: setup control-plane-full test-programs test-browser ## Break fifty workloads of a whole control plane in ten ways, and have one script find each cause on the page: [FAULTS_SEED=7] (some minutes)
	@$(FIND_FAULTS)

.PHONY: pictures
pictures: setup test-programs test-browser ## Draw the pictures of docs/timeline.md of the recorded scene, with the text that they show beside them
	@$(TEST) -count 1 -timeout 10m -v ./test/web -args -draw

.PHONY: test-times
test-times: setup control-plane ## Run all tests, uncached, and print what each package and test took, longest first: [FILE=bin/test-times.jsonl] prints an earlier run
	@$(GO) build -o $(BIN)/test-times ./hack/test-times
	@$(if $(FILE),$(BIN)/test-times table $(FILE),$(BIN)/test-times run $(TIMES) \
		$(MAKE) --no-print-directory -k test TESTFLAGS='-count=1 -json -exec "$(CURDIR)/$(BIN)/test-times exec"')

.PHONY: test-times-docs
test-times-docs: ## Write the top of the table of the last make test-times to docs/developing.md
	@$(GO) run ./hack/test-times page $(TIMES) docs/developing.md

.PHONY: race
race: setup control-plane ## Run everything, the whole-system tests too, under the race detector
	@$(GO) test -race -timeout 60m ./...

# The nested modules that have code, except test/foreign/e2e: loading its types takes minutes. They are too small to use all exclusions.
LINTED := examples/controller tools/page

.PHONY: lint
lint: ## Check style, layers, module files, the page's bundle, the sizes of types and files, and the length of sentences
	@test -z "$$(gofmt -l $$(git ls-files -- '*.go'))" || { echo "gofmt these:"; gofmt -l $$(git ls-files -- '*.go'); exit 1; }
	@$(GO) mod tidy -diff
	@$(GO) mod verify >/dev/null
	@$(GO) run -C tools/page . -check
	@$(TOOL) golangci-lint run --allow-parallel-runners ./...
	@for module in $(LINTED); do ( cd $$module && $(GO) tool -modfile=$(CURDIR)/tools/go.mod golangci-lint run --config $(CURDIR)/.golangci.yml --allow-parallel-runners ./... 2> >(grep -v 'Skipped 0 issues' >&2) ) || exit 1; done
	@$(GO) run ./hack/shape
	@$(GO) run ./hack/prose -check

.PHONY: web
web: ## Bundle the page: web/src and web/vendor become web/dist, by esbuild as a Go module
	@$(GO) run -C tools/page .

.PHONY: prose
prose: ## Measure the sentences of each text: count, median, 90th percentile, the longest three: [FILES="README.md docs/sql.md"]
	@$(GO) run ./hack/prose $(FILES)

# The part of the suite to run: numbers of measures, size, repetitions.
ONLY       ?=
SIZE       ?= middle
RUNS       ?= 5
# A recording of a real control plane, as a further data set. make bench-recording makes one.
RECORDING  ?= $(wildcard $(BIN)/bench-recording.zst)
# The folder for temporary databases and files. It must be on a disk, not in memory. Empty: the system's temporary folder.
DIR        ?=
# URL of a recorded database. Measures 13 and 15 query it instead of a generated one, and measure 14 takes it as its largest.
RECORD     ?=
# The output format: table or json.
OUTPUT     ?= table
# The file to which results are added.
RESULTS    ?= bench-results/$(SIZE).json

.PHONY: bench
bench: setup ## Measure side by side with the alternatives, and print tables: the measures that RESULTS does not have yet, or [ONLY=2,8] [SIZE=middle] [RUNS=5] [DIR=/var/tmp] (up to an hour)
	@$(GO) run -ldflags "$(LDFLAGS)" ./bench run -size $(SIZE) -rounds $(RUNS) -only "$(ONLY)" -recording "$(RECORDING)" -results $(RESULTS) $(if $(RECORD),-record "$(RECORD)") $(if $(DIR),-dir "$(DIR)")

.PHONY: bench-full
bench-full: ## The same at large sizes: 300,000 deltas, of a rebuild 3,000,000; SIZE=largest has them in measures 1, 3 and 4 too (hours, tens of GB)
	@$(MAKE) --no-print-directory bench SIZE=full

.PHONY: bench-quick
bench-quick: ## The same at a small size, to see that everything works (minutes)
	@$(MAKE) --no-print-directory bench SIZE=quick

# The duration, and the number of events in a second.
LOAD_FOR   ?= 60m
LOAD_RATE  ?= 100

.PHONY: bench-load
bench-load: setup ## Have a recorder under load and see that its memory, files, goroutines and tables stay as they are, or fail if they grow by more than the noise: [LOAD_FOR=60m] [LOAD_RATE=100]
	@$(GO) run -ldflags "$(LDFLAGS)" ./bench run -size $(SIZE) -only 12 -check -load-for $(LOAD_FOR) -load-rate $(LOAD_RATE) -results $(RESULTS) $(if $(DIR),-dir "$(DIR)")

.PHONY: bench-api
bench-api: RUNS = 15
bench-api: setup control-plane ## Measure the API of the past against a real kube-apiserver with the same 20,000 Pods, and fail if a ratio is missed by more than the noise: [SIZE=middle] [RUNS=15] [OUTPUT=table|json] (20 minutes; SIZE=full lists out of 3,000,000 deltas, too)
	@$(GO) run -ldflags "$(LDFLAGS)" ./bench run -size $(SIZE) -rounds $(RUNS) -only 14 -check -o $(OUTPUT) $(if $(RECORD),-record "$(RECORD)" )-results $(RESULTS) $(if $(DIR),-dir "$(DIR)")

.PHONY: bench-timeline
bench-timeline: setup test-browser ## Measure the timeline page, of its server and in Chromium, and fail if a limit is missed by more than the noise: [SIZE=middle] [RUNS=5] [RECORD=URL] [RECORDING=file] [OUTPUT=table|json] (half an hour; SIZE=full has 3,000,000 deltas)
	@$(GO) run -ldflags "$(LDFLAGS)" ./bench run -size $(SIZE) -rounds $(RUNS) -only 15 -check -o $(OUTPUT) -recording "$(RECORDING)" $(if $(RECORD),-record "$(RECORD)" )-results $(RESULTS) $(if $(DIR),-dir "$(DIR)")

.PHONY: bench-docs
bench-docs: ## Make bench/results/SIZE.md and its charts of the results of make bench: [SIZE=middle]
	@$(GO) run ./bench report -page bench/results/$(SIZE).md $(RESULTS)

.PHONY: bench-recording
bench-recording: control-plane-full ## Record a real control plane with workloads for ten minutes, for make bench to measure on as well
	@$(GO) run ./hack/benchdata -o $(BIN)/bench-recording.zst

# Seconds of the scene for each real second.
PACE       ?= 8

.PHONY: scene
scene: setup control-plane-full ## Play the story of a shop on a real control plane, and fail if its record answers other than the committed one: [PACE=8]
	@$(GO) run ./hack/scene -pace $(PACE) -o $(BIN)/scene
	@$(GO) test -count 1 -timeout 5m ./internal/scene/record -args -recording $(CURDIR)/$(BIN)/scene

.PHONY: scene-recording
scene-recording: control-plane-full ## Record the story of a shop anew, in ten minutes, to be committed
	@$(GO) run ./hack/scene

.PHONY: who
who: setup control-plane-full ## Compare the field managers on record with the API server's audit log while the scene and worse is played, and fail if one is wrong: [PACE=8]
	@$(GO) test -count 1 -timeout 20m -run WholeControlPlane -v ./test/who -args -live -pace $(PACE)

# The micro-benchmarks and packages to compare, and the repetitions of each.
OLD        ?= HEAD~1
NEW        ?= HEAD
BENCH      ?= .
PACKAGES   ?= ./patch,./kube,./deltafifo,./deltafifo/spool,./sink/postgres,./history,./indexer
COUNT      ?= 10

.PHONY: bench-compare
bench-compare: setup ## Compare the micro-benchmarks of two revisions, by benchstat: OLD=rev NEW=rev [PACKAGES=./patch,./kube] [BENCH=Diff] [COUNT=10]
	@$(GO) run ./bench compare -old "$(OLD)" -new "$(NEW)" -packages "$(PACKAGES)" -bench "$(BENCH)" -count $(COUNT)

.PHONY: bench-replay
bench-replay: SIZE = full
bench-replay: setup ## Measure replay on 300,000 and 3,000,000 deltas against full rows, and fail if a ratio is missed by more than the noise: [RUNS=5] (half an hour, 20 GB)
	@$(GO) run -ldflags "$(LDFLAGS)" ./bench run -size $(SIZE) -rounds $(RUNS) -only 7 -check -results $(RESULTS) $(if $(DIR),-dir "$(DIR)")

.PHONY: upstream
upstream: ## Run client-go's own tests of tools/cache on our reflector, queue and indexer: what fails must be a documented difference (minutes)
	@$(GO) run ./test/upstream

.PHONY: load
load: setup control-plane ## Measure a recorder under load (rows/s, CPU and memory), and how soon a standby takes over
	@$(GO) test -count 1 -timeout 20m -run 'TestLoad|TestAStandbyTakesOver' -v ./test/system -args -load

.PHONY: chaos
chaos: setup control-plane ## Break things for a minute: each quick kind of fault once, and print a table (part of test)
	@$(GO) test -count 1 -timeout 10m -run TestCampaign -v ./test/chaos -args $(if $(SEED),-seed $(SEED))

# Options of a soak:
#   FOR, REVISIONS, ROUNDS  the least duration, number of revisions, and rounds of faults
#   FAULTS                  the kinds of faults
#   COMPACT                 the interval of compaction of etcd
#   RATE                    writes in a second
#   AWAY                    the least time for which PostgreSQL is stopped
#   PATIENCE                the most time that the recorder may take to recover; raise it on a busy machine
FOR       ?= 0s
REVISIONS ?= 0
ROUNDS    ?= 0
FAULTS    ?= all
COMPACT   ?= 1m
RATE      ?= 100
AWAY      ?= 0s
PATIENCE  ?= 2m

.PHONY: soak
soak: setup control-plane ## Break things for as long as asked: FOR=60m REVISIONS=200000 [SEED=] [FAULTS=kind,kind] [ROUNDS=] [COMPACT=1m] [RATE=100] [AWAY=10m] [PATIENCE=2m]
	@$(GO) test -count 1 -timeout 24h -run TestCampaign -v ./test/chaos -args -for $(FOR) -revisions $(REVISIONS) -rounds $(ROUNDS) \
		-faults $(FAULTS) -compact $(COMPACT) -rate $(RATE) -away $(AWAY) -patience $(PATIENCE) $(if $(wildcard $(OLDER)),-older $(CURDIR)/$(OLDER)) $(if $(SEED),-seed $(SEED))

KILLS     ?= 20

.PHONY: quiet
quiet: setup control-plane ## Kill the recorder of a quiet cluster again and again, and fail if that leaves a gap: [COMPACT=15s] [KILLS=20] [EVENTS=5000] (minutes)
	@$(GO) test -count 1 -timeout 24h -run IsKilled -v ./test/quiet -args -kills $(KILLS) -compact $(COMPACT) -events $(or $(EVENTS),1)

RETURNS   ?= 20

.PHONY: quiet-return
quiet-return: setup control-plane ## Take the API server away for 45 s under load, and fail if its return takes more than 30 s, 2,500 requests, or a gap: [RETURNS=20] [ETCD=true] (minutes)
	@$(GO) test -count 1 -timeout 24h -run IsNotFlooded -v ./test/quiet -args -returns $(RETURNS) -etcd=$(or $(ETCD),false)

.PHONY: generate
generate: ## Write the generated parts of the documentation again
	@$(GO) run ./hack/docs

.PHONY: clean
clean: ## Remove what was built here, and the recording of make bench-recording; the caches of Go and of the control plane stay
	@rm -rf $(BIN) .demo
