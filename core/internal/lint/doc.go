// Package lint holds the project's house rules as tests: who may import whom, what
// the pure packages keep away from, how packages, files and tests are written, and
// that gofmt, vet, staticcheck and shellcheck find nothing. Each rule is a function
// that returns what breaks it, and has a test of its own with a sample that does.
package lint
