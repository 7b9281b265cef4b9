package wire

import (
	"bytes"
	"encoding/binary"
)

// Header lengths in bytes, by op: what a decoder skips before it looks for the
// newline. A negative one marks a byte that begins no frame.
const (
	acquireHeader = 1 + 1 + 8 // wait, lease, owner
	tokenHeader   = 8
	ownerHeader   = 8
	grantHeader   = 8 + 8 // token, owner
	noOp          = -1
)

func requestHeader(op Op) int {
	switch op {
	case OpAcquire:
		return acquireHeader
	case OpRelease:
		return tokenHeader
	}
	return noOp
}

func replyHeader(op Op) int {
	switch op {
	case OpAcquire:
		return grantHeader
	case OpTimeout, OpBusy:
		return ownerHeader
	case OpRelease, OpNotCurrent:
		return tokenHeader
	case OpMoved, OpLeader, OpError:
		return 0
	}
	return noOp
}

// framer cuts a stream of bytes into frames. It keeps a copy of the frame that
// has begun and not ended, at most MaxFrame bytes, and borrows the rest.
type framer struct {
	data []byte // what was fed and not yet looked at; the caller's memory
	err  error  // the first fault; nothing is decoded after it
	n    int    // bytes of part that are in use
	part [MaxFrame]byte
}

// feed hands the next bytes over; after a fault they are dropped.
func (f *framer) feed(data []byte) {
	if f.err == nil {
		f.data = data
	}
}

// next returns the next frame without its newline, which is empty for an empty
// frame. It returns false when more bytes are needed, or after a fault. The
// frame is valid until the next call of next or feed.
func (f *framer) next(header func(Op) int) ([]byte, bool) {
	if f.err != nil {
		return nil, false
	}
	if f.n > 0 {
		return f.resume(header)
	}
	frame, used, err := cut(f.data, header)
	if err != nil {
		f.fail(err)
		return nil, false
	}
	if used == 0 {
		f.n = copy(f.part[:], f.data)
		f.data = nil
		return nil, false
	}
	f.data = f.data[used:]
	return frame, true
}

// resume goes on with the frame whose beginning is kept in part.
func (f *framer) resume(header func(Op) int) ([]byte, bool) {
	var joined [MaxFrame + 1]byte
	n := copy(joined[:], f.part[:f.n])
	n += copy(joined[n:], f.data)
	frame, used, err := cut(joined[:n], header)
	if err != nil {
		f.fail(err)
		return nil, false
	}
	if used == 0 {
		f.n = copy(f.part[:], joined[:n])
		f.data = nil
		return nil, false
	}
	f.data = f.data[used-f.n:]
	f.n = 0
	return f.part[:copy(f.part[:], frame)], true
}

// fail keeps the first fault and lets the caller's memory go: after a fault a
// session lingers, and its buffer may be in use elsewhere.
func (f *framer) fail(err error) {
	f.err = err
	f.data = nil
}

// cut finds the first frame of data. It returns how many bytes the frame takes
// with its newline, or 0 when it has not ended yet.
func cut(data []byte, header func(Op) int) (frame []byte, used int, err error) {
	if len(data) == 0 {
		return nil, 0, nil
	}
	if data[0] == '\n' {
		return nil, 1, nil
	}
	h := header(Op(data[0]))
	if h == noOp {
		return nil, 0, BadOp
	}
	text := 1 + h
	if len(data) <= text {
		return nil, 0, nil
	}
	// The newline may be the byte right behind the longest frame, not later.
	end := bytes.IndexByte(data[text:min(len(data), MaxFrame+1)], '\n')
	if end >= 0 {
		return data[:text+end], text + end + 1, nil
	}
	if len(data) > MaxFrame {
		return nil, 0, LineTooLong
	}
	return nil, 0, nil
}

// RequestDecoder cuts the bytes of one session into requests, whatever pieces
// they come in. Its zero value is ready for the first byte behind the digest.
//
//	dec.Feed(buf[:n])
//	for req, ok := dec.Next(); ok; req, ok = dec.Next() {
//		...
//	}
//	if err := dec.Err(); err != nil { ... }
type RequestDecoder struct{ f framer }

// Feed hands the next bytes of the stream over, after Next has returned false.
// The decoder reads data until then and keeps no reference to it afterwards.
func (d *RequestDecoder) Feed(data []byte) { d.f.feed(data) }

// Next returns the next whole request. It returns false when more bytes are
// needed, or after a fault, which Err then tells. Empty frames are skipped.
// Nothing but the key is allocated.
func (d *RequestDecoder) Next() (Request, bool) {
	for {
		frame, ok := d.f.next(requestHeader)
		if !ok {
			return Request{}, false
		}
		if len(frame) == 0 {
			continue
		}
		req, err := parseRequest(frame)
		if err != nil {
			d.f.fail(err)
			return Request{}, false
		}
		return req, true
	}
}

// Err returns the Reason of the first fault, or nil. After a fault the decoder
// returns no more requests.
func (d *RequestDecoder) Err() error { return d.f.err }

// Partial says whether a frame has begun and not ended: an end of the stream now
// is a BadRequest, and the frame's 5 s run (section 2, Errors).
func (d *RequestDecoder) Partial() bool { return d.f.n > 0 }

// parseRequest checks the fields in wire order: lease, key.
func parseRequest(frame []byte) (Request, error) {
	var req Request
	req.Op = Op(frame[0])
	var key []byte
	if req.Op == OpAcquire {
		req.Wait, req.Lease = frame[1], frame[2]
		req.Owner = binary.BigEndian.Uint64(frame[3:])
		if req.Lease < MinLease || req.Lease > MaxLease {
			return Request{}, BadLease
		}
		key = frame[1+acquireHeader:]
	} else {
		req.Token = binary.BigEndian.Uint64(frame[1:])
		key = frame[1+tokenHeader:]
	}
	req.Key = string(key)
	if !ValidKey(req.Key) {
		return Request{}, BadKey
	}
	return req, nil
}

// ReplyDecoder cuts the bytes of one session into replies, whatever pieces they
// come in. Its zero value is ready for the first byte behind the challenge line,
// the ready frame. It is used like a RequestDecoder.
type ReplyDecoder struct{ f framer }

// Feed hands the next bytes of the stream over, after Next has returned false.
// The decoder reads data until then and keeps no reference to it afterwards.
func (d *ReplyDecoder) Feed(data []byte) { d.f.feed(data) }

// Next returns the next whole reply; an empty frame is one with OpEmpty. It
// returns false when more bytes are needed, or after a fault, which Err then
// tells. Nothing but the text is allocated.
func (d *ReplyDecoder) Next() (Reply, bool) {
	frame, ok := d.f.next(replyHeader)
	if !ok {
		return Reply{}, false
	}
	reply, err := parseReply(frame)
	if err != nil {
		d.f.fail(err)
		return Reply{}, false
	}
	return reply, true
}

// Err returns the Reason of the first fault, or nil: the server broke the
// protocol, and what the session asked for and got no answer to is unknown.
func (d *ReplyDecoder) Err() error { return d.f.err }

// Partial says whether a frame has begun and not ended.
func (d *ReplyDecoder) Partial() bool { return d.f.n > 0 }

func parseReply(frame []byte) (Reply, error) {
	if len(frame) == 0 {
		return Reply{Op: OpEmpty}, nil
	}
	r := Reply{Op: Op(frame[0])}
	text := frame[1+replyHeader(r.Op):]
	switch r.Op {
	case OpAcquire:
		r.Token = binary.BigEndian.Uint64(frame[1:])
		r.Owner = binary.BigEndian.Uint64(frame[9:])
	case OpTimeout, OpBusy:
		r.Owner = binary.BigEndian.Uint64(frame[1:])
	case OpRelease, OpNotCurrent:
		r.Token = binary.BigEndian.Uint64(frame[1:])
	default:
		if len(text) == 0 {
			return Reply{}, BadText
		}
		r.Text = string(text)
		return r, nil
	}
	// Token 0 is never granted, so nothing can be released by it either.
	if r.Token == 0 && (r.Op == OpAcquire || r.Op == OpRelease) {
		return Reply{}, BadToken
	}
	r.Text = string(text)
	if !ValidKey(r.Text) {
		return Reply{}, BadKey
	}
	return r, nil
}
