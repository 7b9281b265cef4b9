package config_test

import (
	"flag"
	"fmt"
	"strings"

	"github.com/ticketing-io/ticketing/core/config"
)

// A command makes its flags from Keys, and hands those that were given to Load.
func ExampleKeys() {
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	for _, k := range config.Keys() {
		if k.Switch() {
			flags.Bool(k.Flag, false, k.Help)
		} else {
			flags.String(k.Flag, k.Default, k.Help)
		}
	}
	flags.Parse([]string{"--max-waiters=10", "--insecure", "--listen=:5225"})

	given := map[string]string{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = f.Value.String() })
	c, warnings, err := config.Load(config.Sources{Flags: given})
	fmt.Println(c.MaxWaiters, err)
	fmt.Println(strings.Split(warnings.String(), ";")[0])
	// Output:
	// 10 <nil>
	// flag --insecure: insecure: whoever can reach :5225 can take and release locks
}

// Every fault is told at once, each with its place.
func ExampleLoad() {
	environment := map[string]string{"LISTEN": "0.0.0.0:5225", "MAX_WAITERS": "lots"}
	_, _, err := config.Load(config.Sources{
		Env:   func(name string) (string, bool) { v, ok := environment[name]; return v, ok },
		Flags: map[string]string{"tls-cert": "server.pem"},
	})
	fmt.Println(err)
	// Output:
	// environment LISTEN: listen: "0.0.0.0:5225" can be reached from other machines, and there are no client tokens; set client_tokens_file, or listen on 127.0.0.1:5225, or set insecure = true to let anyone take and release locks
	// environment MAX_WAITERS: max_waiters: "lots" is not a whole number
	// flag --tls-cert: tls.cert: tls.key is not set; set it to the private key of this certificate, or remove both
}
