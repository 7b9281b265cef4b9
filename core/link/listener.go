package link

import "net"

// listener is the one open listener of a kind of streams.
type listener struct {
	link  *Link
	kind  Kind
	queue chan *Conn    // said hello, not accepted yet; room for all there can be
	done  chan struct{} // closed with the listener, under link.mu
}

// Raft returns the listener of the raft streams from other nodes; each conn of it is
// a *Conn. While it is not there or closed such streams are refused. It may be closed
// and then asked for anew; closing it closes the streams nobody accepted, and leaves
// the others open.
func (l *Link) Raft() net.Listener { return l.listener(Raft) }

// Control is like Raft, for control streams.
func (l *Link) Control() net.Listener { return l.listener(Control) }

func (l *Link) listener(kind Kind) net.Listener {
	l.mu.Lock()
	defer l.mu.Unlock()
	if open := l.listeners[kind]; open != nil {
		return open
	}
	ln := &listener{link: l, kind: kind, queue: make(chan *Conn, MaxStreams), done: make(chan struct{})}
	if l.closed {
		close(ln.done)
		return ln
	}
	l.listeners[kind] = ln
	return ln
}

// Accept returns the next stream. Its error is net.ErrClosed when listener or link
// are closed.
func (ln *listener) Accept() (net.Conn, error) {
	select {
	case <-ln.done: // also when streams are left in the queue
		return nil, net.ErrClosed
	default:
	}
	select {
	case c := <-ln.queue:
		return c, nil
	case <-ln.done:
		return nil, net.ErrClosed
	}
}

// Close is idempotent.
func (ln *listener) Close() error {
	ln.link.mu.Lock()
	defer ln.link.mu.Unlock()
	ln.link.endListener(ln)
	return nil
}

// Addr returns the link's address.
func (ln *listener) Addr() net.Addr { return ln.link.Addr() }

// endListener is Close with the lock held.
func (l *Link) endListener(ln *listener) {
	if l.listeners[ln.kind] != ln {
		return
	}
	delete(l.listeners, ln.kind)
	close(ln.done)
	l.dropQueued(ln)
}

// dropQueued closes the streams nobody accepted.
func (l *Link) dropQueued(ln *listener) {
	for {
		select {
		case c := <-ln.queue:
			l.drop(c)
		default:
			return
		}
	}
}
