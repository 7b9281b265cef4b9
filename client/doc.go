// Package client is the Go client library of Ticketing, a TCP lock server with
// leases and fencing tokens.
//
// A lease can't be renewed. It lasts at most 250 s, so work that takes longer
// can't be guarded by one ticket: cut it into steps, each under a lock of its own.
//
// A process makes one [Broker] at its start and shares it. [Broker.Acquire] gives
// a [Ticket]: one grant of one key, until it is released or its lease ends.
//
//	broker, err := client.Connect("127.0.0.1:5225")
//	if err != nil { ... }
//	defer broker.Close()
//	ticket, err := broker.Acquire(ctx, "order-42", 5*time.Second, client.DefaultLease, 10*time.Second)
//	if err != nil { ... }
//	defer ticket.Close()
//	// the critical section, until ticket.Context() ends
//
// The lock alone guards nothing when its holder stalls past the lease's end. What
// does is the token ([Ticket.Token]): the resource that is written to refuses a
// token that is not greater than the last one it took (docs/CLIENT.md, section 5).
// Tokens of a plain single server rise over its restarts only in practice;
// [Ticket.Domain] tells whose they are.
//
// An address must lead to one server, always the same. Several single servers are not
// one lock: each of them grants the key. Behind one name, or one balancer, for two of
// them, a broker's sessions land on either, and the client can't see it. (Two configured
// addresses of single servers it does see, and refuses to serve.) A cluster's nodes are
// given by an address each.
//
// What an error of Acquire says about the lock:
//
//	certainly not acquired      ErrTimeout ErrBusy ErrCancelled ErrClosed ErrAuthRefused
//	                            and every refused input
//	given back, or being so     ErrInsufficientLease, when less than the budget was left
//	may be held, by no ticket   ErrIndeterminate: don't enter the critical section;
//	                            the lease's end frees the key at the latest
//
// A cancel of an acquire that was sent closes its session, since only that ends the
// server's waiter, and makes up to 15 other acquires on it indeterminate: bound an
// acquire by its wait, and cancel only what nobody needs any longer.
//
// # Traces
//
// With a tracer provider ([Config.TracerProvider], or else OpenTelemetry's global one)
// each call of Acquire and Release makes a span, client.acquire or client.release, below
// the one in its context. Without one it makes none, and costs no allocation. Children
// say where the time went; there is one for each thing that the call came to:
//
//	place   for a place among the pending requests (Config.MaxPending)
//	dial    for a connection that can take it: none is open, or the leader is not known
//	queue   for the broker's writer
//	write   until the system took its bytes
//	reply   for the answer: an acquire's wait for the lock is in here
//
// They are the last attempt's; ticketing.attempts says how many there were, where there
// was more than one. A span is an error when the outcome is not known, or when no server
// could be asked; busy and timeout are answers, not errors.
//
// The wire has no room for a trace's id, so the server's spans are in traces of their
// own. Both sides have the attributes ticketing.key, ticketing.owner and, of a grant,
// ticketing.token. Look for the token: no other grant has it. Owners are counted by each
// broker from 1, so an acquire without a grant is found by owner, key and time.
//
// docs/CLIENT.md is what the library promises, docs/PROTOCOL.md is the wire, and
// DESIGN.md beside this file is why it is built this way.
package client
