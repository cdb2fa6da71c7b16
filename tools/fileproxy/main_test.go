package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The modules as a user gets them: without go.work, from a proxy, in a module cache that has none of ours.
func TestTheCommandInstallsAndTheLocksRequireLittle(t *testing.T) {
	proxy, cache, home := t.TempDir(), t.TempDir(), t.TempDir()
	for _, m := range []string{".", "bench", "cmd/menagerie"} {
		if err := publish(filepath.Join("..", "..", m), proxy, "v0.0.0"); err != nil {
			t.Fatal(err)
		}
	}
	cached := output(t, nil, "", "env", "GOMODCACHE")
	// With other flags the standard library would be compiled once more.
	env := append(os.Environ(), "GOWORK=off", "GOFLAGS="+os.Getenv("GOFLAGS")+" -modcacherw", "GOBIN="+home, "GOMODCACHE="+cache, "GONOSUMDB=github.com/go-menagerie",
		"GOPROXY=file://"+proxy+",file://"+filepath.Join(cached, "cache", "download")+","+output(t, nil, "", "env", "GOPROXY"))
	const root = "github.com/go-menagerie/menagerie"
	output(t, env, home, "install", root+"/cmd/menagerie@v0.0.0")
	if help, err := exec.Command(filepath.Join(home, "menagerie"), "--help").Output(); err != nil || !strings.Contains(string(help), "menagerie lock") {
		t.Fatalf("%v: %s", err, help)
	}

	// A program that uses a lock builds with what the lock needs.
	for name, text := range map[string]string{
		"go.mod":  "module example.com/user\n\ngo 1.26.0\n\nrequire " + root + " v0.0.0\n",
		"main.go": "package main\n\nimport \"" + root + "/zksync\"\n\nfunc main() { _ = zksync.NewMutex(nil, \"/a\") }\n",
	} {
		if err := os.WriteFile(filepath.Join(home, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	output(t, env, home, "mod", "tidy")
	output(t, env, home, "build", "-o", os.DevNull, ".")
	got := output(t, env, home, "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", ".")
	for dep := range strings.FieldsSeq(got) {
		switch dep {
		case "example.com/user", root, "github.com/go-zookeeper/zk", "golang.org/x/sync", "github.com/cenkalti/backoff/v4":
		default:
			t.Errorf("a user of zksync builds %s, too", dep)
		}
	}
}

func output(t *testing.T, env []string, dir string, args ...string) string {
	t.Helper()
	c := exec.Command("go", args...)
	c.Env, c.Dir = env, dir
	out, err := c.Output()
	if err != nil {
		var text []byte
		if exit, ok := err.(*exec.ExitError); ok {
			text = exit.Stderr
		}
		t.Fatalf("go %s: %v: %s%s", strings.Join(args, " "), err, out, text)
	}
	return strings.TrimSpace(string(out))
}
