package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

// version and revision are set by the linker in a release:
//
//	go build -ldflags "-X main.version=v1.2.3 -X main.revision=abc123"
//
// Without that they come from what the Go tool recorded in the binary.
var version, revision string

// versionJSON is what version prints.
type versionJSON struct {
	Version  string `json:"version"`
	Revision string `json:"revision"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func newVersion(p *program) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:               "version",
		Short:             "Print the version of this program",
		GroupID:           groupTools,
		Long:              "Prints version, revision, Go version and platform of this program.",
		Example:           "  ticketing version\n  ticketing version --json",
		Args:              exactArgs(),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			v := thisVersion()
			if asJSON {
				return printJSON(p.stdout, v)
			}
			w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintf(w, "ticketing\t%s\nrevision\t%s\ngo\t%s\nplatform\t%s\n", v.Version, v.Revision, v.Go, v.Platform)
			return printed(w.Flush())
		},
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

func thisVersion() versionJSON {
	v := versionJSON{
		Version:  version,
		Revision: revision,
		Go:       runtime.Version(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	if v.Version == "" {
		v.Version = info.Main.Version
	}
	if v.Version == "" {
		v.Version = "(devel)"
	}
	if v.Revision == "" {
		v.Revision = vcsRevision(info.Settings)
	}
	return v
}

// vcsRevision returns the commit that the binary was built from, marked when the
// tree had changes.
func vcsRevision(settings []debug.BuildSetting) string {
	rev, dirty := "unknown", ""
	for _, s := range settings {
		switch {
		case s.Key == "vcs.revision":
			rev = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+changes"
		}
	}
	return rev + dirty
}
