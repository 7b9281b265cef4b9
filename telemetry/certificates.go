package telemetry

import (
	"crypto/tls"

	"github.com/ticketing-io/ticketing/core/config"
	"github.com/ticketing-io/ticketing/telemetry/metrics"
)

// Certificates returns the certificates that a configuration names. One that can't be read
// is left out: who loads it says so.
func Certificates(c config.Config) []metrics.Certificate {
	var list []metrics.Certificate
	for _, one := range []struct{ use, cert, key string }{
		{"client_listener", c.TLS.Cert, c.TLS.Key},
		{"cluster", c.Cluster.Cert, c.Cluster.Key},
	} {
		if one.cert == "" {
			continue
		}
		if pair, err := tls.LoadX509KeyPair(one.cert, one.key); err == nil {
			list = append(list, metrics.Certificate{Use: one.use, NotAfter: pair.Leaf.NotAfter})
		}
	}
	return list
}
