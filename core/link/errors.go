package link

import "errors"

// Why there is no stream, for errors.Is.
var (
	// ErrRemoved: the other side says that this node was removed from the cluster.
	ErrRemoved = errors.New("this node was removed from the cluster")
	// ErrWrongNode: at that address is another node than the wanted one.
	ErrWrongNode = errors.New("another node is at that address")
	// ErrVersion: the two sides share no version of the link.
	ErrVersion = errors.New("the two sides speak different versions of the link")
	// ErrRefused: the other side takes no stream of this kind from this side: it does
	// not trust the certificate, has too many streams, is cut off or not ready.
	ErrRefused = errors.New("the other side refused the stream")
	// ErrUntrusted: the other side has no certificate that makes it a node of this
	// cluster, or does not speak TLS at all.
	ErrUntrusted = errors.New("the other side is not proved to be a node of this cluster")
	// ErrInsecure: without TLS a stream may only go to a loopback address.
	ErrInsecure = errors.New("plain TCP to another machine")
	// ErrCut: this side's raft streams are cut (Link.Cut).
	ErrCut = errors.New("raft streams are cut")
	// ErrClosed: the link was closed.
	ErrClosed = errors.New("link closed")
)
