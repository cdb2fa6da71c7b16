package livetest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// program is the path of prometheus or promtool. Where tests may not be skipped a machine without it fails.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err == nil {
		return path
	}
	missing := "there is no " + name + "; as root on Debian or Ubuntu run: apt-get install -y --no-install-recommends prometheus"
	require.Empty(t, os.Getenv("CI"), missing)
	t.Skip(missing)
	return ""
}

// promtool runs promtool in a folder of its own with these files.
func promtool(t *testing.T, files map[string]string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program(t, "promtool"), args...)
	cmd.Dir = t.TempDir()
	for name, content := range files {
		require.NoError(t, os.WriteFile(filepath.Join(cmd.Dir, name), []byte(content), 0o600))
	}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// rule is an alert of alerts.yml.
type rule struct {
	Alert               string
	Expr                string
	For                 string `yaml:",omitempty"`
	Labels, Annotations map[string]string
}

// alerts are the text of alerts.yml, and its rules.
func alerts(t *testing.T) (text string, rules []rule) {
	t.Helper()
	content, err := os.ReadFile("../../alerts.yml")
	require.NoError(t, err)
	var file struct {
		Groups []struct {
			Name  string
			Rules []rule
		}
	}
	require.NoError(t, yaml.Unmarshal(content, &file))
	require.Len(t, file.Groups, 1)
	return string(content), file.Groups[0].Rules
}

// yamlOf writes v as YAML.
func yamlOf(t *testing.T, v any) string {
	t.Helper()
	text, err := yaml.Marshal(v)
	require.NoError(t, err)
	return string(text)
}
