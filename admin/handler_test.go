package admin

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// measured is a server whose metrics are one line.
func measured(ready error) *Server {
	return New(Config{
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ticketing_ready 1\n") }),
		Ready:   func() error { return ready },
	})
}

func TestWhatIsAnswered(t *testing.T) {
	unready := errors.New("no leader is known")
	for _, test := range []struct {
		method, path string
		ready        error
		status       int
		body         string
	}{
		{"GET", "/metrics", nil, 200, "ticketing_ready 1\n"},
		{"GET", "/metrics", unready, 200, "ticketing_ready 1\n"},
		{"GET", "/livez", nil, 200, "ok\n"},
		{"GET", "/livez", unready, 200, "ok\n"},
		{"HEAD", "/livez", nil, 200, "ok\n"}, // a real connection sends no body
		{"GET", "/readyz", nil, 200, "ok\n"},
		{"GET", "/readyz", unready, 503, "no leader is known\n"},
		{"GET", "/readyz", errors.Join(unready, errors.New("no disk")), 503, "no leader is known; no disk\n"},
		{"GET", "/", nil, 404, ""},
		{"GET", "/metrics/", nil, 404, ""},
		{"GET", "/debug/pprof/", nil, 404, ""},
		{"POST", "/metrics", nil, 405, ""},
		{"DELETE", "/livez", nil, 405, ""},
	} {
		answer := httptest.NewRecorder()
		measured(test.ready).handler().ServeHTTP(answer, httptest.NewRequest(test.method, "http://localhost"+test.path, nil))
		if answer.Code != test.status || test.body != "" && answer.Body.String() != test.body {
			t.Errorf("%s %s was answered %d %q, want %d %q", test.method, test.path, answer.Code, answer.Body, test.status, test.body)
		}
		if answer.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s %s: a browser may guess what the answer is", test.method, test.path)
		}
	}
}

// A page of another name, which its owner lets lead here, reads nothing.
func TestOnlyThisMachinesNamesAreAnswered(t *testing.T) {
	for _, test := range []struct {
		host    string
		ofOwner bool
	}{
		{"localhost", true},
		{"localhost:5280", true},
		{"LOCALHOST:1", true},
		{"127.0.0.1", true},
		{"127.0.0.1:5280", true},
		{"127.8.9.1:5280", true},
		{"[::1]", true},
		{"[::1]:5280", true},
		{"", false},
		{"evil.example", false},
		{"evil.example:5280", false},
		{"localhost.evil.example", false},
		{"127.0.0.1.evil.example", false},
		{"localhost@evil.example", false},
		{"0.0.0.0:5280", false},
		{"[::]:5280", false},
		{"10.0.0.1:5280", false},
		{"[::1", false},
		{"localhost:5280:5280", false},
	} {
		for _, path := range []string{"/metrics", "/livez", "/readyz", "/other"} {
			request := httptest.NewRequest("GET", path, nil)
			request.Host = test.host
			answer := httptest.NewRecorder()
			measured(nil).handler().ServeHTTP(answer, request)
			refused := answer.Code == http.StatusForbidden
			if refused == test.ofOwner {
				t.Errorf("%s of Host %q was answered %d", path, test.host, answer.Code)
			}
			if refused && strings.Count(answer.Body.String(), "\n") != 1 {
				t.Errorf("refused with %q, want one line", answer.Body)
			}
		}
	}
}
