package link

import (
	"crypto/x509"
	"net/url"
	"strings"
	"testing"

	"github.com/ticketing-io/ticketing/core/internal/testca"
)

func TestACertificateNamesOneNodeOrOneOperator(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		uris string // with spaces between
		want Identity
		ok   bool
	}{
		{"ticketing://node/n1", Identity{ID: "n1"}, true},
		{"ticketing://operator/alice", Identity{ID: "alice", Operator: true}, true},
		{"spiffe://example.org/db ticketing://node/n1", Identity{ID: "n1"}, true},

		{"", Identity{}, false},
		{"spiffe://example.org/node/n1", Identity{}, false},
		{"https://node/n1", Identity{}, false},
		{"ticketing://node/n1 ticketing://node/n2", Identity{}, false},
		{"ticketing://node/n1 ticketing://operator/alice", Identity{}, false},
		{"ticketing://node/", Identity{}, false},
		{"ticketing://node", Identity{}, false},
		{"ticketing://node/n1/n2", Identity{}, false},
		{"ticketing://node/../n1", Identity{}, false},
		{"ticketing://node/n%311", Identity{}, false},
		{"ticketing://node/n1?x", Identity{}, false},
		{"ticketing://node/n1#x", Identity{}, false},
		{"ticketing://me@node/n1", Identity{}, false},
		{"ticketing://node:1/n1", Identity{}, false},
		{"ticketing://NODE/n1", Identity{}, false},
		{"ticketing://client/n1", Identity{}, false},
		{"ticketing:node/n1", Identity{}, false},
		{"ticketing://node/" + strings.Repeat("a", MaxID+1), Identity{}, false},
	} {
		cert := &x509.Certificate{}
		for _, uri := range strings.Fields(test.uris) {
			cert.URIs = append(cert.URIs, testca.URI(t, uri))
		}
		got, err := identityOf(cert)
		if got != test.want || (err == nil) != test.ok {
			t.Errorf("%q names %+v, %v", test.uris, got, err)
		}
	}
}

func TestAHostNameIsNoIdentity(t *testing.T) {
	t.Parallel()
	cert := &x509.Certificate{DNSNames: []string{"n1"}, URIs: []*url.URL{}}
	cert.Subject.CommonName = "ticketing://node/n1"
	if got, err := identityOf(cert); err == nil {
		t.Errorf("it names %v", got)
	}
}
