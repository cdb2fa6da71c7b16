package zkprom_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/go-menagerie/menagerie/observe/zkprom"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// Each metric and each label that the dashboard and the alerts name exists, and the dashboard shows each metric.
func TestTheDashboardAndTheAlertsNameWhatExists(t *testing.T) {
	has := labelsOf(t)
	queries := dashboardQueries(t)
	require.Greater(t, len(queries), 20)
	shown := strings.Join(queries, "\n")
	for _, r := range alertRules(t) {
		queries = append(queries, r.Expr)
	}
	for _, query := range queries {
		named := metric.FindAllStringSubmatch(query, -1)
		require.NotEmpty(t, named, query)
		var labels []string // of all metrics of the query
		for _, m := range named {
			assert.Contains(t, has, m[1], query)
			for _, l := range matcher.FindAllStringSubmatch(m[2], -1) {
				assert.Contains(t, has[m[1]], l[1], query)
			}
			labels = append(labels, has[m[1]]...)
		}
		for _, by := range grouping.FindAllStringSubmatch(query, -1) {
			for _, l := range strings.Split(by[1], ", ") {
				assert.Contains(t, labels, l, query)
			}
		}
	}
	for name := range has {
		assert.Contains(t, shown, regexp.MustCompile(`_(bucket|count|sum)$`).ReplaceAllString(name, ""), "in the dashboard")
	}
}

var (
	metric   = regexp.MustCompile(`(menagerie_\w+)(?:\{([^}]*)\})?`)
	matcher  = regexp.MustCompile(`(\w+)(?:=|!=|=~|!~)"`)
	grouping = regexp.MustCompile(`(?:by|on|without) \(([^)]*)\)`)
)

// everything is the exposition of a Collector that has been used in all ways.
func everything(t *testing.T) (text string) {
	c := zkprom.New()
	play(t, c, func(t *testing.T, _ *zktest.Server, s *zksync.Session) {
		l, err := zksync.NewMutex(s, "/a").LockContext(t.Context())
		require.NoError(t, err)
		require.NoError(t, l.Unlock())
		l, err = zksync.NewMutex(s, "/a").LockContext(t.Context())
		require.NoError(t, err)
		defer l.Unlock()
		c.Delivery(context.Background(), zksync.DeliveryData{Event: "put"})
		c.Tick(context.Background(), zksync.TickData{Outcome: "done"})
		c.Assign(context.Background(), zksync.AssignData{Event: "gained"})
		text = exposition(t, c)
	})
	return text
}

// labelsOf are the labels of each metric, as Prometheus has them: job and instance are its own, so a metric's own job is exported_job.
func labelsOf(t *testing.T) map[string][]string {
	all := make(map[string][]string)
	for line := range strings.Lines(everything(t)) {
		m := metric.FindStringSubmatch(line)
		if strings.HasPrefix(line, "#") || all[m[1]] != nil {
			continue
		}
		all[m[1]] = []string{"job", "instance"}
		for _, l := range matcher.FindAllStringSubmatch(m[2], -1) {
			all[m[1]] = append(all[m[1]], strings.Replace(l[1], "job", "exported_job", 1))
		}
	}
	require.Len(t, all, 16+2*3) // a histogram has three names
	return all
}

// dashboardQueries are the queries of panels and variables.
func dashboardQueries(t *testing.T) (queries []string) {
	text, err := os.ReadFile("../grafana/menagerie.json")
	require.NoError(t, err)
	type query struct{ Expr string }
	var dashboard struct {
		Panels []struct {
			ID      int
			Title   string
			Type    string
			Targets []query
		}
		Templating struct {
			List []struct{ Name, Type, Definition string }
		}
	}
	require.NoError(t, json.Unmarshal(text, &dashboard))
	ids := make(map[int]bool)
	for _, p := range dashboard.Panels {
		require.False(t, ids[p.ID], p.Title)
		ids[p.ID] = true
		require.Equal(t, p.Type == "row", len(p.Targets) == 0, p.Title)
		for _, q := range p.Targets {
			queries = append(queries, q.Expr)
		}
	}
	for _, v := range dashboard.Templating.List {
		if v.Type == "query" {
			queries = append(queries, v.Definition)
		}
	}
	return queries
}

type alertRule struct {
	Alert, Expr string
	Annotations map[string]string
}

func alertRules(t *testing.T) []alertRule {
	text, err := os.ReadFile("../alerts.yml")
	require.NoError(t, err)
	var file struct{ Groups []struct{ Rules []alertRule } }
	require.NoError(t, yaml.Unmarshal(text, &file))
	require.Len(t, file.Groups, 1)
	return file.Groups[0].Rules
}

// What docs/metrics.md has of Go is in the example, and its tables have the metrics and the alerts.
func TestThePageSaysWhatIsThere(t *testing.T) {
	text, err := os.ReadFile("../../docs/metrics.md")
	require.NoError(t, err)
	page := string(text)
	require.LessOrEqual(t, strings.Count(page, "\n"), 200)
	example, err := os.ReadFile("example_test.go")
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```(?:go)?\n(.*?)```").FindAllStringSubmatch(page, -1)
	require.Len(t, blocks, 3)
	for _, b := range blocks {
		for line := range strings.Lines(b[1]) {
			require.Contains(t, string(example), strings.TrimSpace(line))
		}
	}

	var listed []string
	for row := range strings.Lines(between(page, "\n## The metrics\n", "\n\n`kind` is")) {
		cells := strings.Split(row, "|")
		for _, m := range metric.FindAllString(row, -1) {
			labels := strings.Split(strings.TrimSpace(cells[3]), ", ")
			slices.Sort(labels)
			listed = append(listed, fmt.Sprint(m, " ", strings.TrimSpace(cells[2]), " ", labels))
		}
	}
	require.ElementsMatch(t, families(t), listed)

	named := regexp.MustCompile("(?m)^\\| `(Menagerie\\w+)`").FindAllStringSubmatch(between(page, "\n## Alerts\n", "\n## "), -1)
	rules := alertRules(t)
	require.Len(t, named, len(rules))
	for i, r := range rules {
		require.Equal(t, r.Alert, named[i][1])
	}
}

// The link of each alert leads to a section of a page.
func TestTheRunbooksOfTheAlertsAreThere(t *testing.T) {
	for _, r := range alertRules(t) {
		link, ok := strings.CutPrefix(r.Annotations["runbook_url"], "https://github.com/go-menagerie/menagerie/blob/main/docs/")
		require.True(t, ok, r.Alert)
		page, anchor, _ := strings.Cut(link, "#")
		text, err := os.ReadFile("../../docs/" + page)
		require.NoError(t, err, r.Alert)
		var anchors []string
		for _, h := range regexp.MustCompile(`(?m)^## (.*)$`).FindAllStringSubmatch(string(text), -1) {
			anchors = append(anchors, strings.ReplaceAll(strings.ToLower(h[1]), " ", "-"))
		}
		require.Contains(t, anchors, anchor, r.Alert)
	}
}

func between(text, from, to string) string {
	_, text, _ = strings.Cut(text, from)
	text, _, _ = strings.Cut(text, to)
	return text
}

// families are the metrics, each with its type and its own labels.
func families(t *testing.T) (all []string) {
	text := everything(t)
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (\w+) (\w+)$`).FindAllStringSubmatch(text, -1) {
		series := regexp.MustCompile(`(?m)^` + m[1] + `(?:_count)?(?:\{(.*)\})? `).FindStringSubmatch(text)
		labels := []string{}
		for _, l := range matcher.FindAllStringSubmatch(series[1], -1) {
			labels = append(labels, l[1])
		}
		if len(labels) == 0 {
			labels = []string{""}
		}
		slices.Sort(labels)
		all = append(all, fmt.Sprint(m[1], " ", m[2], " ", labels))
	}
	return all
}

// The page says how many series a name has.
func TestTheNumberOfSeriesOfALock(t *testing.T) {
	c := zkprom.New()
	count := func() (n int) {
		for line := range strings.Lines(exposition(t, c)) {
			if strings.Contains(line, `name="a"`) {
				n++
			}
		}
		return n
	}
	for i, reason := range []string{"", zksync.ReasonSession, zksync.ReasonRevoked, zksync.ReasonMaxHold} {
		ctx := c.AcquireStart(context.Background(), start)
		c.AcquireEnd(ctx, got)
		if reason == "" {
			c.Release(ctx, zksync.ReleaseData{Name: "a", Kind: zksync.KindLock, Token: token})
		} else {
			c.Lost(ctx, zksync.LossData{Name: "a", Kind: zksync.KindLock, Token: token, Reason: reason})
		}
		c.AcquireEnd(c.AcquireStart(context.Background(), start), got) // held_since
		if i == 0 {
			require.Equal(t, 36, count())
		}
	}
	for _, err := range []error{zksync.ErrNotAcquired, context.Canceled, zksync.ErrLost, zksync.ErrClosed} {
		c.AcquireEnd(c.AcquireStart(context.Background(), start), zksync.AcquireEndData{Name: "a", Kind: zksync.KindLock, Err: err})
	}
	require.Equal(t, 138, count())
}
