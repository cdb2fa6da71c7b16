//go:build unix

package main

import (
	"encoding/json"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestVersionSaysWhichBuildThisIs(t *testing.T) {
	t.Parallel()
	p := run(t, "version")
	p.succeeded()
	short := run(t, "--version")
	short.succeeded()
	require.True(t, strings.HasPrefix(p.stdout.String(), short.stdout.String()), p.stdout.String())
	require.Contains(t, p.stdout.String(), "github.com/go-menagerie/menagerie/cmd/menagerie\n")
	require.Contains(t, p.stdout.String(), "with "+runtime.Version()+" for "+runtime.GOOS+"/"+runtime.GOARCH+"\n")
	p = run(t, "version", "--json")
	p.succeeded()
	var all map[string]any
	require.NoError(t, json.Unmarshal([]byte(p.stdout.String()), &all))
	require.Len(t, all, 7)
	for name, v := range map[string]any{"go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH} {
		require.Equal(t, v, all[name])
	}
	require.NotEmpty(t, all["version"])
	run(t, "version", "x").failed(exitUsage, `takes no arguments, found "x"`)
}

func TestABuildIsReadFromWhatGoHasRecorded(t *testing.T) {
	t.Parallel()
	info := &debug.BuildInfo{Main: debug.Module{Path: "example.com/m", Version: "(devel)"}}
	require.Equal(t, "devel", buildOf(info).String())
	require.Contains(t, buildOf(info).text(), "commit   not recorded\n")
	info.Settings = []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.time", Value: "2026-11-27T10:00:00Z"}, {Key: "vcs.modified", Value: "true"}}
	require.Equal(t, "commit 0123456789ab", buildOf(info).String())
	require.Contains(t, buildOf(info).text(), "module   example.com/m\ncommit   0123456789abcdef of 2026-11-27T10:00:00Z, modified\n")
	info.Main.Version = "v1.2.3"
	require.Equal(t, "v1.2.3", buildOf(info).String())
	data, err := json.Marshal(buildOf(info))
	require.NoError(t, err)
	require.JSONEq(t, `{"version":"v1.2.3","commit":"0123456789abcdef","time":"2026-11-27T10:00:00Z","modified":true,
		"go":"`+runtime.Version()+`","os":"`+runtime.GOOS+`","arch":"`+runtime.GOARCH+`"}`, string(data))
}
