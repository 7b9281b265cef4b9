// Package admin is a node's HTTP server for those who watch and run it: metrics and health.
// It has no credentials and no TLS, so it listens on loopback only, and there it answers only
// those who asked for this machine by name.
package admin
