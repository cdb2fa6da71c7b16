package livetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest"
)

// hurry is how many times faster than shipped the alerts are here. Nothing else of them changes.
const hurry = 200

// Each alert begins and ends at a real Prometheus that scrapes a process over HTTP, and the dashboard shows it.
func TestEachAlertFiresAndEndsAtARealPrometheus(t *testing.T) {
	_ = program(t, "prometheus")
	srv := zktest.Run(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), serversKey+"="+srv.Addr())
	app := startProcess(t, cmd)
	target := app.says(t, regexp.MustCompile(`(?m)^metrics at (.*)$`))
	p := startPrometheus(t, target)

	p.until(t, "MenagerieLockHeldTooLong", "MenagerieNothingIsGranted", "MenagerieWaitingTooLong", "MenagerieDeadLetters", "MenagerieElementsComeAgainAndAgain")
	p.shows(t, dashboard(t))
	checkMetrics(t, "http://"+target+"/metrics")

	_, err := fmt.Fprintln(app.stdin, "calm")
	require.NoError(t, err)
	allow := srv.Refuse()
	for _, s := range srv.Sessions() {
		srv.Disconnect(s.ID)
	}
	p.until(t, "MenagerieNoSession", "MenagerieLeaseAboutToEnd", "MenagerieLeasesLost")
	allow()
	p.until(t)
}

// checkMetrics has promtool look at what is scraped.
func checkMetrics(t *testing.T, address string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program(t, "promtool"), "check", "metrics")
	cmd.Stdin = bytes.NewReader(get(t, address))
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Empty(t, string(out))
}

// shortened is the text of the alerts with all times divided by hurry.
func shortened(t *testing.T) string {
	t.Helper()
	text, _ := alerts(t)
	times := 0
	for _, form := range []*regexp.Regexp{regexp.MustCompile(`(\bfor: )(\d+)m()`), regexp.MustCompile(`(\[)(\d+)m(\])`), regexp.MustCompile(`()([\d.]+) \* 60()\n`)} {
		text = form.ReplaceAllStringFunc(text, func(found string) string {
			times++
			m := form.FindStringSubmatch(found)
			n, err := strconv.ParseFloat(m[2], 64)
			require.NoError(t, err)
			if strings.HasSuffix(found, "\n") {
				return fmt.Sprintf("%g * 60 / %d\n", n, hurry)
			}
			return fmt.Sprintf("%s%dms%s", m[1], int(n*60*1000)/hurry, m[3])
		})
	}
	require.Equal(t, 13, times)
	return text
}

// monitor is a running Prometheus.
type monitor struct{ address string }

// startPrometheus starts a Prometheus that scrapes target, with the shortened alerts.
func startPrometheus(t *testing.T, target string) *monitor {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{"alerts.yml": shortened(t), "prometheus.yml": yamlOf(t, map[string]any{
		"global":         map[string]string{"scrape_interval": "200ms", "scrape_timeout": "200ms", "evaluation_interval": "200ms"},
		"rule_files":     []string{"alerts.yml"},
		"scrape_configs": []any{map[string]any{"job_name": "app", "static_configs": []any{map[string]any{"targets": []string{target}}}}},
	})} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	// Nothing is left of it if this process is killed: then the shell reads the end of its input.
	cmd := exec.Command("sh", "-c", `"$@" & read -r _; kill -KILL $!`, "sh", program(t, "prometheus"),
		"--config.file=prometheus.yml", "--storage.tsdb.path=data", "--web.listen-address=127.0.0.1:0")
	cmd.Dir = dir
	p := startProcess(t, cmd)
	m := &monitor{"http://" + p.says(t, regexp.MustCompile(`msg="Listening on" address=(\S+)`))}
	p.says(t, regexp.MustCompile(`msg="(Server is ready) to receive web requests."`))
	return m
}

// until waits until all of these alerts have been seen to fire; without any, until none fires.
func (p *monitor) until(t *testing.T, names ...string) {
	t.Helper()
	begin, missing := time.Now(), slices.Clone(names)
	var firing []string
	poll(t, func() bool {
		firing = p.firing(t)
		missing = slices.DeleteFunc(missing, func(name string) bool { return slices.Contains(firing, name) })
		return len(missing) == 0 && (len(names) > 0 || len(firing) == 0)
	}, func() any { return fmt.Sprintf("missing: %v, firing: %v", missing, firing) })
	t.Logf("%v after %v", names, time.Since(begin).Round(100*time.Millisecond))
}

// firing are the names of the alerts that fire.
func (p *monitor) firing(t *testing.T) (names []string) {
	var answer struct {
		Data struct {
			Alerts []struct {
				State  string
				Labels map[string]string
			}
		}
	}
	require.NoError(t, json.Unmarshal(get(t, p.address+"/api/v1/alerts"), &answer))
	for _, a := range answer.Data.Alerts {
		if a.State == "firing" {
			names = append(names, a.Labels["alertname"])
		}
	}
	return names
}

// shows waits until each query has a result that is a number.
func (p *monitor) shows(t *testing.T, queries []string) {
	t.Helper()
	for _, q := range queries {
		var text []byte
		poll(t, func() bool {
			text = get(t, p.address+"/api/v1/query?query="+url.QueryEscape(q))
			var answer struct {
				Data struct {
					Result []struct{ Value [2]any }
				}
			}
			require.NoError(t, json.Unmarshal(text, &answer))
			return slices.ContainsFunc(answer.Data.Result, func(r struct{ Value [2]any }) bool { return r.Value[1] != "NaN" })
		}, func() any { return q + ": " + string(text) })
	}
}

// dashboard are the queries of the dashboard's panels, for all names and jobs.
func dashboard(t *testing.T) (queries []string) {
	t.Helper()
	text, err := os.ReadFile("../../grafana/menagerie.json")
	require.NoError(t, err)
	var d struct {
		Panels []struct {
			Targets []struct{ Expr string }
		}
	}
	require.NoError(t, json.Unmarshal(text, &d))
	for _, p := range d.Panels {
		for _, q := range p.Targets {
			queries = append(queries, strings.NewReplacer("$__rate_interval", "5s", "$job", ".*", "$name", ".*").Replace(q.Expr))
		}
	}
	require.Greater(t, len(queries), 20)
	return queries
}

func get(t *testing.T, address string) []byte {
	t.Helper()
	r, err := http.Get(address)
	require.NoError(t, err)
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, r.StatusCode, "%s", text)
	return text
}
