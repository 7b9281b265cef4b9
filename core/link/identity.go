package link

import (
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
)

// Identity is who is at the other end of a stream. With TLS it is proved by the
// certificate, without it is what the other side says.
type Identity struct {
	ID       string // a node's id or an operator's name; "" for an operator without TLS
	Operator bool
}

// String writes an identity for logs and errors: "node n1".
func (i Identity) String() string {
	switch {
	case !i.Operator:
		return "node " + i.ID
	case i.ID == "":
		return "an operator without a certificate"
	default:
		return "operator " + i.ID
	}
}

// What a certificate says of whom it names, as its one URI of the scheme ticketing.
const (
	scheme      = "ticketing"
	nodeURI     = scheme + "://node/"
	operatorURI = scheme + "://operator/"
)

var errNoIdentity = errors.New("its certificate names neither a node nor an operator, by one URI " + nodeURI + "ID or " + operatorURI + "NAME")

// identityOf returns whom a certificate names. That the cluster's CA signed it is to
// be checked elsewhere.
func identityOf(cert *x509.Certificate) (Identity, error) {
	var found []string
	for _, u := range cert.URIs {
		if strings.EqualFold(u.Scheme, scheme) {
			found = append(found, u.String())
		}
	}
	if len(found) != 1 {
		return Identity{}, errNoIdentity
	}
	if id, ok := strings.CutPrefix(found[0], nodeURI); ok && validID(id) {
		return Identity{ID: id}, nil
	}
	if name, ok := strings.CutPrefix(found[0], operatorURI); ok && validID(name) {
		return Identity{ID: name, Operator: true}, nil
	}
	return Identity{}, fmt.Errorf("%w: %q", errNoIdentity, found[0])
}
