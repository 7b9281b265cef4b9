package main

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/pelletier/go-toml/v2"
)

// names are the nodes that there are files for, in the order of their ports. The
// first ones begin the cluster; the others are spares, to replace one or to grow.
var names = []string{"n1", "n2", "n3", "n4", "n5"}

// beginners is how many nodes begin a cluster.
const beginners = 3

// A node's ports, counted from the first node's client port: the first node has
// the product's own, 5225, 5226 and 5280, and each further node's are portStep on.
const (
	raftOffset  = 1
	adminOffset = 55
	portStep    = 10
)

const loopback = "127.0.0.1"

// folder is the scratch folder. All in it is written anew at each start, but what
// the nodes store.
type folder struct {
	dir  string // absolute
	port int    // the first node's client port
}

// spec is one node's place in the folder and on the machine.
type spec struct {
	name                string
	client, raft, admin string // addresses
	config, data, pid   string // files, and the folder of what it stores
	cert, key           string
}

func (f folder) node(name string) spec {
	port := f.port + portStep*slices.Index(names, name)
	addr := func(offset int) string { return net.JoinHostPort(loopback, strconv.Itoa(port+offset)) }
	return spec{
		name:   name,
		client: addr(0), raft: addr(raftOffset), admin: addr(adminOffset),
		config: f.path(name + ".toml"), data: f.path(name), pid: f.path(name + ".pid"),
		cert: f.path(name + ".pem"), key: f.path(name + "-key.pem"),
	}
}

func (f folder) path(name string) string { return filepath.Join(f.dir, name) }
func (f folder) ca() string              { return f.path("ca.pem") }
func (f folder) token() string           { return f.path("client-token") }
func (f folder) operatorCert() string    { return f.path("operator.pem") }
func (f folder) operatorKey() string     { return f.path("operator-key.pem") }

// clientAddrs are the addresses of the nodes that begin a cluster.
func (f folder) clientAddrs() (addrs []string) {
	for _, name := range names[:beginners] {
		addrs = append(addrs, f.node(name).client)
	}
	return addrs
}

// layOut writes all files, and returns the nodes to start: those that have stored
// something, or the first three of a new cluster.
func (f folder) layOut(fresh bool) (begin []string, err error) {
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return nil, err
	}
	for _, name := range names {
		n := f.node(name)
		if fresh {
			if err := errors.Join(os.RemoveAll(n.data), removeFile(n.config)); err != nil {
				return nil, err
			}
		}
		if err := f.writeConfig(n); err != nil {
			return nil, err
		}
		if _, err := os.Stat(n.data); err == nil {
			begin = append(begin, name)
		}
	}
	if len(begin) == 0 {
		begin = names[:beginners]
	}
	// A form that the server takes: TOKEN alone on its line.
	if err := writeFile(f.token(), []byte(rand.Text()+"\n")); err != nil {
		return nil, err
	}
	return begin, f.issue()
}

// member is an entry of cluster.members.
type member struct {
	ID     string `toml:"id"`
	Raft   string `toml:"raft"`
	Client string `toml:"client"`
	Admin  string `toml:"admin"`
}

// members are those that begin the cluster.
func (f folder) members() (list []member) {
	for _, name := range names[:beginners] {
		n := f.node(name)
		list = append(list, member{n.name, n.raft, n.client, n.admin})
	}
	return list
}

// nodeConfig is a node's configuration file; core/config/REFERENCE.md explains the keys.
type nodeConfig struct {
	Listen           string `toml:"listen"`
	Advertise        string `toml:"advertise,omitempty"`
	ClientTokensFile string `toml:"client_tokens_file"`
	Admin            struct {
		Listen string `toml:"listen"`
	} `toml:"admin"`
	Cluster struct {
		NodeID  string   `toml:"node_id"`
		DataDir string   `toml:"data_dir"`
		Listen  string   `toml:"listen"`
		Cert    string   `toml:"cert"`
		Key     string   `toml:"key"`
		CA      string   `toml:"ca"`
		Members []member `toml:"members,omitempty" comment:"Looked at when the cluster begins; later ones come by \"ticketing members\"."`
	} `toml:"cluster"`
}

// writeConfig writes a node's configuration. The cluster has stored its members'
// addresses, so a node with data must not be given others.
func (f folder) writeConfig(n spec) error {
	var c nodeConfig
	c.Listen, c.Admin.Listen, c.ClientTokensFile = n.client, n.admin, f.token()
	c.Cluster.NodeID, c.Cluster.DataDir, c.Cluster.Listen = n.name, n.data, n.raft
	c.Cluster.Cert, c.Cluster.Key, c.Cluster.CA = n.cert, n.key, f.ca()
	if slices.Contains(names[:beginners], n.name) {
		c.Cluster.Members = f.members()
	} else {
		c.Advertise = n.client // a spare: it is added later
	}
	text, err := toml.Marshal(c)
	if err != nil {
		return err
	}
	before, err := os.ReadFile(n.config)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, err := os.Stat(n.data); err == nil && len(before) > 0 && !bytes.Equal(before, text) {
		return fmt.Errorf("%s would change, and %s has data of a cluster that is made as the file says; "+
			"start with the -port of that time, or with -fresh, which forgets its locks", n.config, n.name)
	}
	return writeFile(n.config, text)
}

// free tells whether a node's ports are free: else its log would be the place
// where a person must find out.
func (n spec) free() error {
	for _, addr := range []string{n.client, n.raft, n.admin} {
		l, err := net.Listen("tcp", addr)
		if err != nil {
			return fmt.Errorf("%s can't listen: %w; end what uses the address (a cluster or a server that still runs), or choose another -port", n.name, err)
		}
		l.Close()
	}
	return nil
}

// writeFile writes a file that only its owner can read.
func writeFile(name string, text []byte) error { return os.WriteFile(name, text, 0o600) }

func removeFile(name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
