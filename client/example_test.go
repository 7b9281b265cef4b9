package client_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ticketing-io/ticketing/client"
)

// The first lock.
func Example() {
	addr, stop := startServer() // instead of one that runs: "127.0.0.1:5225"
	defer stop()

	broker, err := client.Connect(addr)
	if err != nil {
		panic(err)
	}
	defer broker.Close()
	ticket, err := broker.Acquire(context.Background(), "order-42", 5*time.Second, client.DefaultLease, 10*time.Second)
	if err != nil {
		panic(err)
	}
	defer ticket.Close()
	fmt.Println("holding", ticket.Key())
	// Output: holding order-42
}

// What each class of error means for the caller.
func ExampleBroker_Acquire_errors() {
	addr, stop := startServer()
	defer stop()
	broker, err := client.Connect(addr)
	if err != nil {
		panic(err)
	}
	defer broker.Close()
	ctx := context.Background()

	holder, err := broker.Acquire(ctx, "report", 0, client.DefaultLease, 0)
	if err != nil {
		panic(err)
	}
	defer holder.Close()

	_, err = broker.Acquire(ctx, "report", 0, client.DefaultLease, 0) // one immediate attempt
	switch {
	case err == nil:
		fmt.Println("got it")
	case errors.Is(err, client.ErrIndeterminate):
		// The key may be held, by nobody, until the lease ends: don't go on as if it
		// were ours, and expect the next attempt to wait for it.
		fmt.Println("not known")
	case errors.Is(err, client.ErrTimeout):
		fmt.Println("somebody else has it")
	case errors.Is(err, client.ErrBusy):
		fmt.Println("the server is busy: wait a little and try again")
	case errors.Is(err, client.ErrCancelled):
		fmt.Println("the caller gave up; nothing was sent")
	case errors.Is(err, client.ErrAuthRefused):
		fmt.Println("the client token is wrong")
	default:
		fmt.Println("bad input, or the broker is closed:", err)
	}
	// Output: somebody else has it
}

// A job that ends before its lease does: its context is the ticket's.
func ExampleTicket_Context() {
	addr, stop := startServer()
	defer stop()
	broker, err := client.Connect(addr)
	if err != nil {
		panic(err)
	}
	defer broker.Close()

	// The job needs at least two seconds; a grant with less left is given back.
	ticket, err := broker.Acquire(context.Background(), "nightly", time.Minute, client.DefaultLease, 2*time.Second)
	if err != nil {
		panic(err)
	}
	defer ticket.Close()

	job := func(ctx context.Context, fence uint64) error {
		// Pass ctx to whatever does the work, and fence to the resource that is
		// written to: it refuses a token that is not above the last one it took.
		return ctx.Err()
	}
	if err := job(ticket.Context(), ticket.Token()); err != nil {
		panic(err)
	}
	if err := ticket.Release(context.Background()); errors.Is(err, client.ErrNotCurrent) {
		fmt.Println("the lease had ended before the job did")
	} else if err != nil {
		fmt.Println("the release is not certain:", err)
	} else {
		fmt.Println("done")
	}
	// Output: done
}

// A lock that is taken here and released elsewhere.
func ExampleTicket_Detach() {
	addr, stop := startServer()
	defer stop()
	here, err := client.Connect(addr)
	if err != nil {
		panic(err)
	}
	ticket, err := here.Acquire(context.Background(), "deploy", 0, 250*time.Second, 0)
	if err != nil {
		panic(err)
	}
	key, token := ticket.Detach() // Close leaves it alone from here on
	here.Close()

	elsewhere, err := client.Connect(addr) // another process, which was told key and token
	if err != nil {
		panic(err)
	}
	defer elsewhere.Close()
	fmt.Println(elsewhere.Release(context.Background(), key, token))
	fmt.Println(errors.Is(elsewhere.Release(context.Background(), key, token), client.ErrNotCurrent))
	// Output:
	// <nil>
	// true
}
