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
// docs/CLIENT.md is what the library promises, docs/PROTOCOL.md is the wire, and
// DESIGN.md beside this file is why it is built this way.
package client
