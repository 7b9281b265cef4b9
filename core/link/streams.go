package link

import "net"

// enter counts a stream from another side in, as a stranger. When there are as many
// streams as may be, the oldest stranger gives way: it no longer counts then. It
// returns nil when there is no place, or the link is closed. The caller has to call
// l.wg.Done when it is done with a stranger.
func (l *Link) enter(raw net.Conn) *Conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.others >= MaxStreams {
		if oldest := l.strangers.Front(); oldest != nil {
			l.drop(oldest.Value.(*Conn))
		}
	}
	if l.closed || l.others >= MaxStreams {
		return nil
	}
	c := &Conn{Conn: raw, raw: raw, link: l, incoming: true}
	c.stranger = l.strangers.PushBack(c)
	l.open[c] = struct{}{}
	l.others++
	l.wg.Add(1)
	return c
}

// know notes who a stranger is, or returns the answer by which it is refused. After
// it the stream can't be displaced any more.
func (l *Link) know(c *Conn, kind Kind, peer Identity) (answer, string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.open[c]; !ok {
		return answerRefused, "it gave way to others"
	}
	switch {
	case kind == Raft && l.cut:
		return answerRefused, "raft streams are cut"
	case l.listeners[kind] == nil:
		return answerRefused, "no stream of its kind is served now"
	case kind == Control && l.controls >= MaxControl:
		return answerRefused, "too many control streams"
	}
	l.strangers.Remove(c.stranger)
	c.stranger, c.kind, c.peer = nil, kind, peer
	if kind == Control {
		l.controls++
	}
	return answerOK, ""
}

// deliver hands a stream to whoever accepts its kind, or closes it when nobody does
// any more.
func (l *Link) deliver(c *Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.open[c]; !ok {
		return // cut, dropped or closed since
	}
	if ln := l.listeners[c.kind]; ln != nil {
		select {
		case ln.queue <- c:
			return
		default: // full of streams that were dropped since
		}
	}
	l.drop(c)
}

// leave counts a stream that was dialed in, before anything is said on it, or returns
// why there may be none.
func (l *Link) leave(raw net.Conn, kind Kind, wantID string) (*Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.barred(kind); err != nil {
		return nil, err
	}
	c := &Conn{Conn: raw, raw: raw, link: l, kind: kind, peer: Identity{ID: wantID}}
	l.open[c] = struct{}{}
	return c, nil
}

// barred returns why there may be no new stream from this side. The lock is held.
func (l *Link) barred(kind Kind) error {
	switch {
	case l.closed:
		return ErrClosed
	case kind == Raft && l.cut:
		return ErrCut
	}
	return nil
}

// forget counts a stream out, once.
func (l *Link) forget(c *Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.out(c)
}

// drop counts a stream out and closes it at once. The lock is held.
func (l *Link) drop(c *Conn) {
	l.out(c)
	c.raw.Close()
}

func (l *Link) dropAll(which func(*Conn) bool) {
	for c := range l.open {
		if which(c) {
			l.drop(c)
		}
	}
}

func (l *Link) out(c *Conn) {
	if _, ok := l.open[c]; !ok {
		return
	}
	delete(l.open, c)
	if c.stranger != nil {
		l.strangers.Remove(c.stranger)
		c.stranger = nil
	}
	if !c.incoming {
		return
	}
	l.others--
	if c.kind == Control {
		l.controls--
	}
}
