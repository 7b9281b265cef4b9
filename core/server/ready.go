package server

import (
	"net"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ticketing-io/ticketing/core/lock"
	"github.com/ticketing-io/ticketing/core/wire"
)

// awaitReady waits for the ready frame, which a node of a cluster holds back until it
// knows its leader (docs/PROTOCOL.md, section 1). It reads meanwhile, to notice that
// the peer closes, as long as what it reads fits in one buffer: nothing of it is
// decoded. It returns that, behind rest.
func (c *conn) awaitReady(rest []byte) []byte {
	early := make([]byte, len(rest), len(rest)+wire.ReadBuffer)
	copy(early, rest)
	for c.watch() && len(early) < cap(early) {
		n, err := c.stream.Read(early[len(early):cap(early)])
		early = early[:len(early)+n]
		if err != nil {
			c.noteReadError(err) // nothing to note when it is Leader's deadline
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.ready && !c.ending {
		c.room.Wait()
	}
	c.watching = false
	if !c.ending {
		c.nc.SetReadDeadline(time.Time{})
	}
	return early
}

// watch says whether the ready frame has still to be waited for. From here on a read
// returns when it is there.
func (c *conn) watch() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watching = !c.ready && !c.ending
	return c.watching
}

// holder returns who holds what a connection is granted: the name of its client token,
// if that has one, and where it comes from. It is for people, and cut to fit.
func holder(client string, remote net.Addr) string {
	text := remote.String()
	if client != "" {
		text = client + " @ " + text
	}
	text = strings.ToValidUTF8(text, "?")
	if len(text) <= lock.MaxHolder {
		return text
	}
	end := lock.MaxHolder
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}
