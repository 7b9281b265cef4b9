// Package link joins the nodes of a cluster, and operators to them: one listener for
// streams of two kinds, raft's and control's, mutual TLS with the cluster's own CA,
// and a hello by which both sides say who they are. What goes over a stream is
// nothing to it. DESIGN.md argues its choices.
package link
