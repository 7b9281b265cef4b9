# What a developer types. CI types the same (.ci/run).

SHELL := bash
.SHELLFLAGS := -euo pipefail -c

# What cluster is told besides: -fresh, or what bin/devcluster -help lists.
ARGS ?=
# How long each fuzz target runs.
FUZZTIME ?= 10s
# Where build puts the program.
BIN ?= bin/ticketing

# Modules besides the one here, each with its own go.mod.
nested := $(sort $(patsubst ./%/go.mod,%,$(shell find . -mindepth 2 -name go.mod -not -path '*/testdata/*' -not -path '*/node_modules/*')))
# Those that have tests: the others would only download and compile much.
tested := $(foreach m,$(nested),$(if $(shell find $(m) -name '*_test.go' -print -quit),$(m)))

.PHONY: help run cluster build test race sim fuzz lint bench bench-cluster

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: build ## start a server on this machine, for this machine only
	exec $(BIN) serve

cluster: build ## start a cluster of three nodes on this machine; ARGS=-fresh forgets its data
	CGO_ENABLED=0 go build -trimpath -o bin/devcluster ./cmd/devcluster
	exec bin/devcluster -program $(BIN) $(ARGS)

build: ## compile the program to bin/ticketing
	CGO_ENABLED=0 go build -trimpath -o $(BIN) ./cmd/ticketing

# The tag e2e adds the tests of whole clusters of processes, which take minutes.
test: ## all tests of all modules, those of whole clusters (tag e2e) too: some minutes
	go test -tags e2e ./...
	for m in $(tested); do (cd "$$m" && go test ./...); done

# The rules of lint find no races, so it is left out.
race: ## the tests with the race detector
	go test -race $$(go list ./... | grep -v /core/internal/lint)

# What a failing run did is kept whole in HISTORIES: a seed does not repeat raft's timers.
sim: ## RUNS (100) clusters in fake time that everything happens to, beginning with SEED
	SEED=$(SEED) RUNS=$(or $(RUNS),100) HISTORIES=$(HISTORIES) go test -count=1 -v -timeout 1h -run '^TestSimulations$$' ./core/coretest

fuzz: ## every fuzz target, FUZZTIME (10s) each
	for f in $$(grep -rlE '^func Fuzz' --include='*_test.go' .); do \
	  for target in $$(sed -nE 's/^func (Fuzz[A-Za-z0-9_]*)\(.*/\1/p' "$$f"); do \
	    echo "== $$target in $${f%/*}"; \
	    (cd "$${f%/*}" && go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) .); \
	  done; \
	done

lint: ## the house rules, gofmt, vet, staticcheck and shellcheck
	go test -count=1 ./core/internal/lint

bench: ## speed and memory, beside an echo server and Redis; takes a while
	cmd/peers/bench.sh

bench-cluster: ## the same of three nodes, beside three of etcd; takes a while
	cmd/peers/cluster.sh
