package server

import "time"

// Observer is told of connections. Its methods are called from the connections'
// goroutines, must not block, and may be called from several at once.
type Observer interface {
	// ConnectionOpened: a connection was accepted, before its handshake.
	ConnectionOpened()
	// ConnectionClosed: it has ended. Every one that was opened ends once.
	ConnectionClosed(reason CloseReason, lasted time.Duration)
	// AcceptFailed: no connection could be accepted, for want of file descriptors
	// for example. The server goes on.
	AcceptFailed(err error)
}

// nobody observes nothing.
type nobody struct{}

func (nobody) ConnectionOpened()                           {}
func (nobody) ConnectionClosed(CloseReason, time.Duration) {}
func (nobody) AcceptFailed(error)                          {}
