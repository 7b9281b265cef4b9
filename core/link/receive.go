package link

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// Bounds of the pause after a failed accept: without one a node that is out of file
// descriptors would spin, with a long one it would stay away after they are back.
const (
	acceptPauseMin = 5 * time.Millisecond
	acceptPauseMax = time.Second
)

// accept takes connections from others until the link is closed.
func (l *Link) accept() {
	var failures int
	pause := acceptPauseMin
	for {
		raw, err := l.incoming.Accept()
		switch {
		case err == nil:
			if failures > 0 {
				l.cfg.Logger.Info("taking streams from other nodes again", "failed_accepts", failures)
			}
			failures, pause = 0, acceptPauseMin
			l.admit(raw)
			continue
		case l.ctx.Err() != nil:
			return
		}
		if failures++; failures == 1 {
			l.cfg.Logger.Error("can't accept a stream from another node; those that are open stay",
				"error", err, "retry_at_most_every", acceptPauseMax)
		}
		select {
		case <-time.After(pause):
		case <-l.ctx.Done():
			return
		}
		pause = min(2*pause, acceptPauseMax)
	}
}

// admit takes a connection on, or closes it at once when there are too many.
func (l *Link) admit(raw net.Conn) {
	c := l.enter(raw)
	if c == nil {
		l.log.refused(raw.RemoteAddr(), reasonFull, nil)
		raw.Close()
		return
	}
	go func() {
		defer l.wg.Done()
		l.receive(c)
	}()
}

// receive finds out who is there, and hands the stream on or closes it.
func (l *Link) receive(c *Conn) {
	c.raw.SetDeadline(time.Now().Add(HandshakeTimeout))
	if err := l.welcome(c); err != nil {
		c.abort()
		if l.ctx.Err() == nil {
			l.log.refused(c.raw.RemoteAddr(), reasonOf(err), err)
		}
		return
	}
	c.negotiated()
	l.cfg.Logger.Debug("stream taken", "kind", c.kind.String(), "peer", c.peer.String(), "remote", c.raw.RemoteAddr())
	l.deliver(c)
}

// welcome does the listening side's part of the hello. Its error says why there is no
// stream; the other side was told as far as it may know.
func (l *Link) welcome(c *Conn) error {
	proved, err := l.secure(c)
	if err != nil {
		return err
	}
	if err := l.say(c, answerOK); err != nil {
		return err
	}
	h, err := readHello(c)
	if err != nil {
		return err
	}
	answer, why := l.judge(c, h, proved)
	if err := l.say(c, answer); err != nil {
		return err
	}
	if answer != answerOK {
		return &refusal{answer, why}
	}
	return nil
}

// secure negotiates TLS and returns who the certificate proves to be there, or
// without TLS nil.
func (l *Link) secure(c *Conn) (proved *Identity, err error) {
	secret := l.secret.Load()
	if secret == nil {
		if !l.cfg.Insecure && !loopback(c.raw.RemoteAddr()) {
			l.say(c, answerRefused) // the reason counts, not whether it arrives
			return nil, &refusal{answerRefused, "it comes from another machine, and there is no TLS; set the nodes' certificates"}
		}
		return nil, nil
	}
	proved = &Identity{}
	conn := tls.Server(c.raw, secret.server(proved))
	if err := conn.HandshakeContext(l.ctx); err != nil {
		var plain tls.RecordHeaderError
		switch {
		case errors.As(err, &plain):
			return nil, fmt.Errorf("%w: it does not speak TLS: %w", errUnproved, err)
		case isAlert(err):
			return nil, &refusal{answerRefused, "it does not trust this node's certificate, or wants another node: " + err.Error()}
		case broken(err):
			return nil, err
		}
		return nil, fmt.Errorf("%w: %w", errUnproved, err)
	}
	c.Conn = conn
	return proved, nil
}

// say writes a hello of the listening side.
func (l *Link) say(c *Conn, a answer) error {
	h := hello{version: version, code: byte(a)}
	if a == answerOK {
		h.id = l.cfg.NodeID
	}
	return c.say(h)
}

// judge decides on a hello, and why.
func (l *Link) judge(c *Conn, h hello, proved *Identity) (answer, string) {
	kind, peer := Kind(h.code), Identity{ID: h.id, Operator: h.id == ""}
	if proved != nil {
		if proved.Operator && h.id != "" || !proved.Operator && h.id != proved.ID {
			return answerRefused, fmt.Sprintf("it says that it is %q, its certificate is that of %s", h.id, *proved)
		}
		peer = *proved
	}
	switch {
	case h.version < oldestVersion || h.version > version:
		return answerVersion, fmt.Sprintf("it speaks version %d of the link", h.version)
	case kind != Raft && kind != Control:
		return answerRefused, "it wants a stream of " + kind.String()
	case kind == Raft && peer.Operator:
		return answerRefused, "it wants a raft stream, which only a node may"
	case !peer.Operator && l.cfg.Refuse(peer.ID):
		return answerRemoved, peer.String() + " was removed from the cluster"
	case h.want != "" && h.want != l.cfg.NodeID:
		return answerWrongNode, fmt.Sprintf("it wants node %q", h.want)
	case h.want == "" && kind == Raft:
		return answerRefused, "it wants a raft stream to no node in particular"
	}
	return l.know(c, kind, peer)
}

// refusal is an answer that the other side got, and why.
type refusal struct {
	answer answer
	why    string
}

func (r *refusal) Error() string { return r.why }

// errUnproved: there was no certificate that says who is there.
var errUnproved = errors.New("no certificate of a node or operator of this cluster")

// broken tells whether an error is one of the connection alone.
func broken(err error) bool {
	var op net.Error
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &op)
}
