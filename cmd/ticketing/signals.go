package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"
)

// interrupts are the signals that end a program which is waiting.
var interrupts = []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM}

// interrupted is the cause of a context that a signal ended.
type interrupted struct{ sig syscall.Signal }

// Error names the signal.
func (i interrupted) Error() string { return "ended by signal: " + i.sig.String() }

// Is makes it what a context's end is.
func (i interrupted) Is(target error) bool { return target == context.Canceled }

// interruptible returns a context that the first interrupt ends; its cause is then
// interrupted. A second one, sameSignal later, ends the program. The returned function gives the
// signals back.
func interruptible(ctx context.Context) (context.Context, func()) {
	signals := make(chan os.Signal, 1)
	catch(signals, interrupts)
	ctx, stop := cancelOn(ctx, signals)
	context.AfterFunc(ctx, func() { time.AfterFunc(sameSignal, func() { signal.Stop(signals) }) })
	return ctx, func() {
		signal.Stop(signals)
		stop()
	}
}

// sameSignal is how long after a signal the same one is no second one: timeout(1) sends
// its own to its child and to the child's group, a terminal and a script may both.
const sameSignal = 500 * time.Millisecond

// signalled is a context whose error names the signal that ended it.
type signalled struct{ context.Context }

// Err returns interrupted after a signal, else what the context says.
func (c signalled) Err() error {
	var i interrupted
	if errors.As(context.Cause(c.Context), &i) {
		return i
	}
	return c.Context.Err()
}

// cancelOn returns a context that the first interrupt among signals ends. The returned function
// stops looking at them and returns when the context will not end any more on
// their account.
func cancelOn(ctx context.Context, signals <-chan os.Signal) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case sig := <-signals:
				if slices.Contains(interrupts, sig) {
					cancel(interrupted{sig.(syscall.Signal)})
					return
				}
			case <-quit:
				return
			}
		}
	}()
	return signalled{ctx}, func() {
		close(quit)
		<-done
	}
}

// survivePipes makes a write to a pipe that nobody reads fail, where it would end the
// program. The signal is caught, not ignored: what is ignored children inherit.
func survivePipes() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// catch has signals delivered to c, except those that this process was started to
// ignore, as by nohup: catching one would end that, for its commands too.
func catch(c chan<- os.Signal, signals []os.Signal) {
	for _, s := range signals {
		if !signal.Ignored(s) {
			signal.Notify(c, s)
		}
	}
}
