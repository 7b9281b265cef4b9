package config

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"slices"
	"strings"
)

// nodeURI is the beginning of the name in a node's certificate: its only URI of this
// scheme, with the node's id behind it. The nodes' link holds the other side to it.
const (
	nodeScheme = "ticketing"
	nodeURI    = nodeScheme + "://node/"
)

// clusterTLS checks the certificates of section [cluster].
func (k *checker) clusterTLS() {
	one := k.c.Cluster
	cert := k.pair("cluster.cert", one.Cert, "cluster.key", one.Key)
	pool := k.ca("cluster.ca", one.CA)
	switch {
	case one.Cert != "" && one.CA == "" && !k.unread["cluster.ca"]:
		k.fault("cluster.cert", "cluster.ca is not set; set it to the CA that signs the nodes' certificates, or remove both")
	case one.CA != "" && one.Cert == "" && !k.unread["cluster.cert"]:
		k.fault("cluster.ca", "cluster.cert is not set; set it to this node's certificate, or remove both")
	}
	if cert != nil && pool != nil {
		k.nodeCertificate(cert, pool)
	}
}

// nodeCertificate checks what the other nodes will check of this node's certificate,
// so that it is told here and not in their logs.
func (k *checker) nodeCertificate(cert *tls.Certificate, pool *x509.CertPool) {
	const key = "cluster.cert"
	file := quote(k.c.Cluster.Cert)
	between := x509.NewCertPool()
	for _, der := range cert.Certificate[1:] {
		if c, err := x509.ParseCertificate(der); err == nil {
			between.AddCert(c)
		}
	}
	_, err := cert.Leaf.Verify(x509.VerifyOptions{Roots: pool, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
	// Of its time there is a warning already: a reload can mend it.
	if _, foreign := errors.AsType[x509.UnknownAuthorityError](err); foreign {
		k.fault(key, "%s is not signed by the CA in %s; have it signed by the cluster's own CA, or name that one", file, quote(k.c.Cluster.CA))
	}
	if usages := cert.Leaf.ExtKeyUsage; len(usages) > 0 && !slices.Contains(usages, x509.ExtKeyUsageAny) &&
		!(slices.Contains(usages, x509.ExtKeyUsageServerAuth) && slices.Contains(usages, x509.ExtKeyUsageClientAuth)) {
		k.fault(key, "%s is not for both ends of a connection; have one made with the extended key usages serverAuth and clientAuth", file)
	}
	if !validName(k.c.Cluster.NodeID) { // told elsewhere
		return
	}
	want := nodeURI + k.c.Cluster.NodeID
	var named []string
	for _, uri := range cert.Leaf.URIs {
		if strings.EqualFold(uri.Scheme, nodeScheme) {
			named = append(named, uri.String())
		}
	}
	switch {
	case len(named) == 0:
		k.fault(key, "%s names no node; have one made with the URI %s as a subject alternative name", file, want)
	case len(named) > 1 || named[0] != want:
		k.fault(key, "%s is for %s and not for %s; name this node's own certificate", file, quote(strings.Join(named, ", ")), want)
	}
}
