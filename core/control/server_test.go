package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ticketing-io/ticketing/core/link"
)

var exampleStatus = Status{
	Self: peerOf("a"), Role: Leader, Ready: true, Leader: peerOf("a"), Term: 7, Voters: []string{"a", "b", "c"},
	Disk: HasState, List: "4f1d", LastTerm: 6, Last: 1203, Commit: 1202, Applied: 1201,
	Held: 42, Token: 1<<63 + 1, Reign: 3, Time: time.Hour, Quiet: time.Minute, Supports: 2, Level: 1,
}

var exampleMembers = []Member{
	{Peer: peerOf("a"), Voter: true, Leader: true, Reachable: true, Applied: 1201, Level: 2, Healthy: time.Hour},
	{Peer: peerOf("b"), Why: "it does not answer", Applied: 1000, Lag: 201, Level: 1},
}

// ask asks a client for everything that there is.
func ask(ctx context.Context, c *Client) map[string]error {
	_, members := c.Members(ctx)
	return map[string]error{
		"members":  members,
		"add":      c.Add(ctx, peerOf("d")),
		"remove":   c.Remove(ctx, "b"),
		"promote":  c.Promote(ctx, "d"),
		"transfer": c.Transfer(ctx, ""),
		"save":     c.SaveSnapshot(ctx, io.Discard),
		"restore":  c.RestoreSnapshot(ctx, strings.NewReader("file"), true),
	}
}

var allCalls = []string{"members", "add {ID:d Raft:d:5226 Client:d:5225 Admin:d:5280}", "remove b", "promote d", `transfer ""`, "save", "restore, waive true"}

// Whichever node is asked, the leader does it, and the asker gets its answer.
func TestAnyNodeCanBeAsked(t *testing.T) {
	for _, node := range []string{"a", "b"} {
		inFakeTime(t, func(t *testing.T, n *network) {
			leader, follower := n.member("a", "a"), n.member("b", "a")
			leader.status, leader.members, leader.snapshot = exampleStatus, exampleMembers, []byte("state")
			c := n.operator(node)
			if list, err := c.Members(t.Context()); err != nil || !reflect.DeepEqual(list, exampleMembers) {
				t.Errorf("members: %+v, %v", list, err)
			}
			var saved bytes.Buffer
			if err := c.SaveSnapshot(t.Context(), &saved); err != nil || saved.String() != "state" {
				t.Errorf("saved %q, %v", saved.String(), err)
			}
			leader.asked = nil
			for what, err := range ask(t.Context(), c) {
				if err != nil {
					t.Errorf("%s: %v", what, err)
				}
			}
			if got := leader.calls(); !slices.Equal(got, allCalls) {
				t.Errorf("the leader was asked %q", got)
			}
			if got := follower.calls(); got != nil {
				t.Errorf("the follower was asked %q", got)
			}
			if string(leader.restored) != "file" {
				t.Errorf("restored %q", leader.restored)
			}
			want := "by=\"operator alice\""
			if node == "b" {
				want = "by=\"operator alice at node b\""
			}
			if got := strings.Count(leader.log.String(), want); got != 7 {
				t.Errorf("%d lines with %s, want one for each change and two for each snapshot saved:\n%s", got, want, leader.log)
			}
		})
	}
}

// A status is the node's own, whoever leads.
func TestStatusIsOfTheNodeThatIsAsked(t *testing.T) {
	inFakeTime(t, func(t *testing.T, n *network) {
		n.member("a", "a").status = exampleStatus
		n.member("b", "a")
		if s, err := n.operator("a").Status(t.Context()); err != nil || !reflect.DeepEqual(s, exampleStatus) {
			t.Errorf("got %+v, %v", s, err)
		}
		if s, err := n.operator("b").Status(t.Context()); err != nil || s.Self.ID != "b" || s.Role != Follower {
			t.Errorf("got %+v, %v", s, err)
		}
	})
}

// What goes over the wire is read by nodes of other versions and by scripts.
func TestWhatIsSaidKeepsItsForm(t *testing.T) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetIndent("", "  ")
	for _, v := range []any{exampleStatus, Status{}, exampleMembers, Ask(peerOf("a")), Refuse("Do this.", "not that: %w", io.EOF), transfer{"b"}} {
		if err := enc.Encode(v); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/form.json")
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("testdata/form.json differs; got\n%s", b.String())
	}
}

// An error keeps its class, its words and its leader, over one hop or two.
func TestErrorsArriveAsTheyWereMeant(t *testing.T) {
	for _, sent := range []*Error{
		Refuse("Do this.", "no"), Ask(peerOf("c")), Ask(Peer{}), Doubt("Look.", "perhaps"), {Class: "new", Text: "of a newer version"},
	} {
		for _, node := range []string{"a", "b"} {
			t.Run(string(sent.Class)+" from "+node, func(t *testing.T) {
				inFakeTime(t, func(t *testing.T, n *network) {
					n.member("a", "a").err = sent
					n.member("b", "a")
					for what, err := range ask(t.Context(), n.operator(node)) {
						want := sent.Class
						reading := what == "members" || what == "save"
						switch {
						case want != Refused && want != Elsewhere && reading:
							want = Elsewhere // nothing can have happened
						case want == "new":
							want = Unknown
						}
						got := is(t, err, want)
						if got.Text != sent.Text || got.Todo != sent.Todo || got.Leader != sent.Leader {
							t.Errorf("%s: got %+v, want %+v", what, got, sent)
						}
					}
				})
			})
		}
	}
}

// An error that does not say whether anything happened may mean that it did.
func TestAnErrorWithoutClassIsUnknown(t *testing.T) {
	inFakeTime(t, func(t *testing.T, n *network) {
		n.member("a", "a").err = errors.New("disk")
		if e := is(t, n.operator("a").Promote(t.Context(), "d"), Unknown); e.Text != "disk" {
			t.Errorf("got %q", e.Text)
		}
	})
}

// Two nodes that each hold the other for the leader don't send a request to and fro.
func TestARequestIsPassedOnOnce(t *testing.T) {
	inFakeTime(t, func(t *testing.T, n *network) {
		n.member("a", "b").status.Leader = peerOf("b")
		n.member("b", "a").status = Status{Self: peerOf("b"), Role: Follower, Leader: peerOf("a")}
		e := is(t, n.operator("a").Promote(t.Context(), "d"), Elsewhere)
		if e.Leader != peerOf("a") {
			t.Errorf("got %+v", e)
		}
		if got, want := n.dialed(), []string{"a:5226 a", "b:5226 b"}; !slices.Equal(got, want) {
			t.Errorf("dialled %q, want %q", got, want)
		}
	})
}

// A node that was elected, and does not serve yet, names nobody else.
func TestALeaderThatDoesNotServeYet(t *testing.T) {
	inFakeTime(t, func(t *testing.T, n *network) {
		n.member("a", "a").err = Ask(peerOf("a"))
		if e := is(t, n.operator("a").Promote(t.Context(), "d"), Elsewhere); e.Leader.ID != "" || e.Text != "node a was elected, and does not serve yet" {
			t.Errorf("got %+v", e)
		}
	})
}

func TestWithoutALeaderNothingIsDone(t *testing.T) {
	inFakeTime(t, func(t *testing.T, n *network) {
		m := n.member("a", "")
		for what, err := range ask(t.Context(), n.operator("a")) {
			if e := is(t, err, Elsewhere); e.Text != "no leader is known" || errors.Is(err, ErrUnreachable) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if m.calls() != nil {
			t.Errorf("asked %q", m.calls())
		}
	})
}

// A node that can't be asked has done nothing, and why is kept.
func TestANodeThatCannotBeReached(t *testing.T) {
	inFakeTime(t, func(t *testing.T, n *network) {
		c := n.operator("nowhere")
		for what, err := range ask(t.Context(), c) {
			is(t, err, Elsewhere)
			if !errors.Is(err, ErrUnreachable) || !errors.Is(err, errNobody) {
				t.Errorf("%s: %v", what, err)
			}
		}
		n.member("b", "gone")
		err := n.operator("b").Promote(t.Context(), "d")
		if e := is(t, err, Elsewhere); errors.Is(err, ErrUnreachable) || e.Text != "node gone at gone:5226 can't be reached: nobody listens" {
			t.Errorf("a leader out of reach: %v", err)
		}
	})
}

// A node that takes too long leaves a change in doubt; of reading nothing can have
// come.
func TestANodeThatDoesNotAnswerInTime(t *testing.T) {
	for _, node := range []string{"a", "b"} {
		inFakeTime(t, func(t *testing.T, n *network) {
			n.member("a", "a").hold = make(chan struct{})
			n.member("b", "a")
			c := n.operator(node)
			start := time.Now()
			is(t, c.Promote(t.Context(), "d"), Unknown)
			_, err := c.Members(t.Context())
			is(t, err, Elsewhere)
			if took := time.Since(start); took > 2*AnswerTime {
				t.Errorf("took %v", took)
			}
			synctest.Wait()
		})
	}
}

// A connection that ends while the answer is awaited leaves a change in doubt.
func TestAConnectionThatEndsWithoutAnAnswer(t *testing.T) {
	inFakeTime(t, func(t *testing.T, n *network) {
		l := n.listen("a:5226")
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = c.Read(make([]byte, 10))
				c.Close()
			}
		}()
		defer l.Close()
		for what, err := range ask(t.Context(), n.operator("a")) {
			want := Unknown
			if what == "members" || what == "save" {
				want = Elsewhere
			}
			if is(t, err, want); errors.Is(err, ErrUnreachable) {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}

// Whoever is not a node of this kind is not believed.
func TestAStrangersAnswer(t *testing.T) {
	for _, status := range []int{http.StatusOK, http.StatusNotFound, http.StatusFound} {
		inFakeTime(t, func(t *testing.T, n *network) {
			l := n.listen("a:5226")
			server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(status)
				fmt.Fprint(w, "<html>"+strings.Repeat("x", maxAnswer))
			})}
			go server.Serve(l)
			defer server.Close()
			c := n.operator("a")
			_, err := c.Members(t.Context())
			is(t, err, Elsewhere)
			if err := c.Promote(t.Context(), "d"); status != http.StatusOK {
				is(t, err, Unknown)
			}
		})
	}
}

// raw sends a request as it stands and returns the answer.
func raw(t *testing.T, n *network, method, path, body string) (int, string) {
	t.Helper()
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return n.dialer(link.Identity{ID: "alice", Operator: true})(ctx, "a:5226", "")
		},
		DisableKeepAlives: true,
	}
	req, err := http.NewRequestWithContext(t.Context(), method, "http://a"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	res, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(data)
}

// A request that is not understood is refused, and the node is not asked.
func TestRequestsThatAreNotUnderstood(t *testing.T) {
	inFakeTime(t, func(t *testing.T, n *network) {
		m := n.member("a", "a")
		for _, test := range []struct{ method, path, body string }{
			{"POST", "/members", ""},
			{"POST", "/members", "{"},
			{"POST", "/members", `{"id":5}`},
			{"POST", "/members", `{"id":"d","zone":"x"}`},
			{"POST", "/members", `{"id":"` + strings.Repeat("x", maxRequest) + `"}`},
			{"POST", "/leader", "[]"},
			{"POST", "/snapshot?quiet-period=no", "file"},
			{"POST", "/snapshot?force", "file"},
			{"PUT", "/members", "{}"},
			{"DELETE", "/members/", ""},
			{"GET", "/", ""},
			{"GET", "/keys", ""},
		} {
			status, body := raw(t, n, test.method, test.path, test.body)
			var e Error
			if err := json.Unmarshal([]byte(body), &e); err != nil || status != http.StatusConflict || e.Class != Refused || e.Text == "" {
				t.Errorf("%s %s %.20s: %d %s", test.method, test.path, test.body, status, body)
			}
		}
		if m.calls() != nil {
			t.Errorf("asked %q", m.calls())
		}
	})
}

// A node that stops lets what is under way end, up to its deadline.
func TestCloseWaitsForRequests(t *testing.T) {
	for _, patient := range []bool{true, false} {
		inFakeTime(t, func(t *testing.T, n *network) {
			m := n.member("a", "a")
			m.hold = make(chan struct{})
			done := make(chan error, 1)
			go func() { done <- n.operator("a").Promote(context.Background(), "d") }()
			synctest.Wait()
			if patient {
				time.AfterFunc(time.Second, func() { close(m.hold) })
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			if err := m.server.Close(ctx); (err == nil) != patient {
				t.Errorf("patient %v: %v", patient, err)
			}
			if err := <-done; patient && err != nil {
				t.Error(err)
			} else if !patient {
				is(t, err, Unknown)
			}
		})
	}
}

// Nodes ask each other often, over one connection; a change has one of its own, and
// at most so many clients are remembered.
func TestConnectionsAreKept(t *testing.T) {
	inFakeTime(t, func(t *testing.T, n *network) {
		n.member("a", "a")
		pool := NewPool(n.dialer(link.Identity{ID: "b"}))
		defer pool.Close()
		for range 5 {
			if _, err := pool.At("a:5226", "a").Status(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		for range 2 {
			if err := pool.At("a:5226", "a").Promote(t.Context(), "d"); err != nil {
				t.Fatal(err)
			}
		}
		if got := n.dialed(); len(got) != 3 {
			t.Errorf("dialled %q", got)
		}
		for i := range 2 * maxClients {
			pool.At(fmt.Sprint("h:", i), "")
		}
		if got := len(pool.clients); got > maxClients {
			t.Errorf("%d clients", got)
		}
	})
}
