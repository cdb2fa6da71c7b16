package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// build is what version --json prints. Its names are part of the interface.
type build struct {
	Version  string `json:"version"` // of the module, or "devel"
	Commit   string `json:"commit"`
	Time     string `json:"time"` // of the commit
	Modified bool   `json:"modified"`
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`

	module string
}

func thisBuild() build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = new(debug.BuildInfo)
	}
	return buildOf(info)
}

func buildOf(info *debug.BuildInfo) build {
	b := build{Version: info.Main.Version, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH, module: info.Main.Path}
	if b.Version == "" || b.Version == "(devel)" {
		b.Version = "devel"
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

// String names the build: the version of the module of a "go install", else the commit.
func (b build) String() string {
	if b.Version == "devel" && b.Commit != "" {
		return "commit " + b.Commit[:min(12, len(b.Commit))]
	}
	return b.Version
}

func (a *app) versionCommand() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "version [--json]",
		Short: "Show which build this is",
		Long: `Shows the version, the commit and whether the files were modified, the version of Go, the system and the
module, as Go has recorded them in this build. A "go install" from an archive has no commit.

Exit codes:
    0  shown
    1  the output cannot be written
    2  wrong command line`,
		Example: `  menagerie version
  menagerie version --json`,
		Args: noArguments,
		RunE: func(*cobra.Command, []string) error {
			b := thisBuild()
			if asJSON {
				return writeJSON(a.stdout, b, false)
			}
			_, err := fmt.Fprint(a.stdout, b.text())
			return outputError(err)
		},
	}
	withoutConnection(cmd, "leave it out")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print an object")
	return cmd
}

// text is the build for people, a property a line.
func (b build) text() string {
	commit := cmp.Or(b.Commit, "not recorded")
	if b.Time != "" {
		commit += " of " + b.Time
	}
	if b.Modified {
		commit += ", modified"
	}
	return fmt.Sprintf("menagerie version %s\nmodule   %s\ncommit   %s\nbuilt    with %s for %s/%s\n", b, b.module, commit, b.Go, b.OS, b.Arch)
}
