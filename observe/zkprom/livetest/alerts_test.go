package livetest

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// step is the interval of scrapes and evaluations.
const step = 15 * time.Second

// moment is a case of an alert: what is scraped, a value each step, and the first and the last instant at which the alert fires.
type moment struct {
	alert       string
	series      map[string]string
	first, last time.Duration
	labels      []string // of the alert that fires, in pairs
	summary     string
}

// moments has at least one for each alert.
var moments = []moment{
	{
		alert: "MenagerieLockHeldTooLong", // since minute 1
		series: map[string]string{
			`menagerie_held_since_seconds{instance="host:1",name="stock",kind="lock"}`:  "_x4 60x80 stale",
			`menagerie_held_since_seconds{instance="host:1",name="leader",kind="lock"}`: "0x200",
			`menagerie_held_since_seconds{instance="host:1",name="other",kind="lock"}`:  "0x200",
		},
		first: 16*time.Minute + step, last: 21 * time.Minute, labels: []string{"instance", "host:1", "name", "stock", "kind", "lock"},
		summary: "stock (lock) has been held for 15m 15s by host:1.",
	},
	{
		alert: "MenagerieNothingIsGranted", // since minute 4, when it was granted in another process, until minute 20
		series: map[string]string{
			`menagerie_waiting{instance="host:1",name="stock",kind="lock"}`:                                          "3x79 0x40",
			`menagerie_acquire_wait_seconds_count{instance="host:2",name="stock",kind="lock",outcome="granted"}`:     "5x15 6x63 7x40",
			`menagerie_acquire_wait_seconds_count{instance="host:1",name="stock",kind="lock",outcome="canceled"}`:    "0+1x200",
			`menagerie_acquire_wait_seconds_count{instance="host:1",name="customers",kind="lock",outcome="granted"}`: "0+1x200",
			`menagerie_waiting{instance="host:1",name="leader-of-all",kind="lock"}`:                                  "1x200",
			`menagerie_waiting{instance="host:1",name="other",kind="lock"}`:                                          "1x200",
			`menagerie_waiting{instance="host:1",name="mail",kind="lock"}`:                                           "1x200",
			`menagerie_deliveries_total{instance="host:2",name="mail",event="put"}`:                                  "1x200",
		},
		first: 14 * time.Minute, last: 20*time.Minute - step, labels: []string{"instance", "host:1", "name", "stock", "kind", "lock"},
		summary: "3 acquisitions of stock (lock) wait in host:1, and no process was granted one.",
	},
	{
		alert: "MenagerieNothingIsGranted", // never: it is granted once in five minutes
		series: map[string]string{
			`menagerie_waiting{instance="host:1",name="stock",kind="lock"}`:                                      "1x110 stale",
			`menagerie_acquire_wait_seconds_count{instance="host:1",name="stock",kind="lock",outcome="granted"}`: "0x5 1x20 2x20 3x20 4x20 5x20",
		},
	},
	{
		alert: "MenagerieWaitingTooLong", // until minute 10, when acquisitions end
		series: map[string]string{
			`menagerie_acquire_wait_seconds_bucket{instance="host:1",name="stock",kind="lock",outcome="granted",le="10"}`:   "0x200",
			`menagerie_acquire_wait_seconds_bucket{instance="host:1",name="stock",kind="lock",outcome="granted",le="30"}`:   "0x200",
			`menagerie_acquire_wait_seconds_bucket{instance="host:1",name="stock",kind="lock",outcome="granted",le="100"}`:  "0+1x40 40x100",
			`menagerie_acquire_wait_seconds_bucket{instance="host:1",name="stock",kind="lock",outcome="granted",le="+Inf"}`: "0+1x40 40x100",
		},
		first: 5*time.Minute + step, last: 20*time.Minute - step, labels: []string{"name", "stock", "kind", "lock"},
		summary: "One in ten acquisitions of stock (lock) waits for more than 1m 33s.",
	},
	{
		alert: "MenagerieWaitingTooLong", // never: 5 % wait that long, or they are cancelled, or wait to lead or for elements
		series: map[string]string{
			`menagerie_acquire_wait_seconds_bucket{name="mail",kind="lock",outcome="granted",le="100"}`:    "0+9x200",
			`menagerie_acquire_wait_seconds_bucket{name="mail",kind="lock",outcome="granted",le="+Inf"}`:   "0+9x200",
			`menagerie_deliveries_total{instance="host:2",name="mail",event="put"}`:                        "1x200",
			`menagerie_acquire_wait_seconds_bucket{name="other",kind="lock",outcome="granted",le="100"}`:   "0+9x200",
			`menagerie_acquire_wait_seconds_bucket{name="other",kind="lock",outcome="granted",le="+Inf"}`:  "0+9x200",
			`menagerie_acquire_wait_seconds_bucket{name="stock",kind="lock",outcome="granted",le="30"}`:    "0+19x200",
			`menagerie_acquire_wait_seconds_bucket{name="stock",kind="lock",outcome="granted",le="100"}`:   "0+20x200",
			`menagerie_acquire_wait_seconds_bucket{name="stock",kind="lock",outcome="granted",le="+Inf"}`:  "0+20x200",
			`menagerie_acquire_wait_seconds_bucket{name="stock",kind="lock",outcome="canceled",le="100"}`:  "0+9x200",
			`menagerie_acquire_wait_seconds_bucket{name="stock",kind="lock",outcome="canceled",le="+Inf"}`: "0+9x200",
			`menagerie_acquire_wait_seconds_bucket{name="leader",kind="lock",outcome="granted",le="100"}`:  "0+9x200",
			`menagerie_acquire_wait_seconds_bucket{name="leader",kind="lock",outcome="granted",le="+Inf"}`: "0+9x200",
		},
	},
	{
		alert: "MenagerieLeasesLost", // one, in minute 1
		series: map[string]string{
			`menagerie_losses_total{instance="host:1",name="stock",kind="lock",reason="session"}`: "0x3 1x200",
			`menagerie_losses_total{instance="host:1",name="stock",kind="lock",reason="removed"}`: "0x200",
			`menagerie_losses_total{instance="host:1",name="stock",kind="lock",reason="revoked"}`: "0+1x200",
		},
		first: time.Minute, last: 10*time.Minute + 3*step, labels: []string{"instance", "host:1", "name", "stock", "kind", "lock", "reason", "session"},
		summary: "host:1 has lost leases of stock (lock): session.",
	},
	{
		alert: "MenagerieNoSession", // from minute 2 to minute 12, and another session is well
		series: map[string]string{
			`menagerie_session_state{instance="host:1",state="connected"}`: "2x7 1x39 2x39",
			`menagerie_session_state{instance="host:1",state="suspended"}`: "0x7 1x0 0x78",
			`menagerie_session_state{instance="host:1",state="lost"}`:      "0x8 1x38 0x39",
			`menagerie_session_state{instance="host:1",state="closed"}`:    "0x87",
		},
		first: 3 * time.Minute, last: 12*time.Minute - step, labels: []string{"instance", "host:1"},
		summary: "A session of host:1 has had no connection to a ZooKeeper server for a minute.",
	},
	{
		alert: "MenagerieNoSession", // before the first session is open
		series: map[string]string{
			`menagerie_session_state{instance="host:1",state="connected"}`: "0x19 1x39",
			`menagerie_session_state{instance="host:1",state="suspended"}`: "0x59",
			`menagerie_session_state{instance="host:1",state="lost"}`:      "0x59",
			`menagerie_session_state{instance="host:1",state="closed"}`:    "0x59",
		},
		first: time.Minute, last: 5*time.Minute - step, labels: []string{"instance", "host:1"},
		summary: "A session of host:1 has had no connection to a ZooKeeper server for a minute.",
	},
	{
		alert: "MenagerieNoSession", // never: the connection was lost for less than a minute, and later the session was closed
		series: map[string]string{
			`menagerie_session_state{instance="host:1",state="connected"}`: "1x7 0x3 1x40 0x147",
			`menagerie_session_state{instance="host:1",state="suspended"}`: "0x7 1x3 0x188",
			`menagerie_session_state{instance="host:1",state="closed"}`:    "0x52 1x147",
		},
	},
	{
		alert: "MenagerieLeaseAboutToEnd", // seen once, in minute 2
		series: map[string]string{
			`menagerie_lease_remaining_seconds{instance="host:1"}`: "3x7 2x0 3x200",
			`menagerie_session_timeout_seconds{instance="host:1"}`: "15x200",
		},
		first: 2 * time.Minute, last: 7 * time.Minute, labels: []string{"instance", "host:1"},
		summary: "The leases of host:1 were 2s from their end.",
	},
	{
		alert: "MenagerieDeadLetters", // one in minute 5, which leaves the window in minute 15
		series: map[string]string{
			`menagerie_deliveries_total{instance="host:1",name="mail",event="dead"}`:     "0x19 1x200",
			`menagerie_deliveries_total{instance="host:1",name="mail",event="received"}`: "0+1x220",
			`menagerie_deliveries_total{instance="host:1",name="parts",event="dead"}`:    "3x220",
		},
		first: 5 * time.Minute, last: 15*time.Minute - step, labels: []string{"name", "mail"},
		summary: "Elements of the queue mail have become dead letters.",
	},
	{
		alert: "MenagerieElementsComeAgainAndAgain", // until minute 20, when acknowledgements begin: the window has half of the nacks in minute 25
		series: map[string]string{
			`menagerie_deliveries_total{instance="host:1",name="mail",event="received"}`: "0+1x200",
			`menagerie_deliveries_total{instance="host:2",name="mail",event="received"}`: "0+1x200",
			`menagerie_deliveries_total{instance="host:1",name="mail",event="nacked"}`:   "0+1x80 80x100",
			`menagerie_deliveries_total{instance="host:2",name="mail",event="nacked"}`:   "0+1x80 80x100",
		},
		first: 15*time.Minute + step, last: 25*time.Minute - step, labels: []string{"name", "mail"},
		summary: "Most deliveries of the queue mail are given back.",
	},
	{
		alert: "MenagerieElementsComeAgainAndAgain", // never: half of them, or a single one
		series: map[string]string{
			`menagerie_deliveries_total{name="mail",event="received"}`:  "0+2x200",
			`menagerie_deliveries_total{name="mail",event="nacked"}`:    "0+1x200",
			`menagerie_deliveries_total{name="parts",event="received"}`: "0x10 1x200",
			`menagerie_deliveries_total{name="parts",event="nacked"}`:   "0x10 1x200",
		},
	},
}

// Prometheus' own tool plays the rules in virtual time.
func TestEachAlertFiresAtItsInstant(t *testing.T) {
	text, rules := alerts(t)
	fires := make(map[string]bool)
	var tests []any
	for _, m := range moments {
		var r rule
		for _, r = range rules {
			if r.Alert == m.alert {
				break
			}
		}
		require.Equal(t, m.alert, r.Alert)
		fires[r.Alert] = fires[r.Alert] || m.labels != nil
		tests = append(tests, m.test(r))
	}
	for _, r := range rules {
		assert.True(t, fires[r.Alert], "%s never fires", r.Alert)
	}
	promtool(t, map[string]string{
		"alerts.yml": text,
		"test.yml":   yamlOf(t, map[string]any{"rule_files": []string{"alerts.yml"}, "evaluation_interval": step.String(), "tests": tests}),
	}, "test", "rules", "test.yml")
}

// test is the moment as promtool plays it: the alert with its texts at the first instant, and how often it has fired in all.
func (m moment) test(r rule) any {
	var series, fired []any
	for s, values := range m.series {
		series = append(series, map[string]string{"series": s, "values": values})
	}
	test := map[string]any{"interval": step.String(), "input_series": series}
	if m.labels != nil {
		labels, sample := map[string]string{"severity": r.Labels["severity"]}, fmt.Sprintf(`{alertname=%q, severity=%q`, r.Alert, r.Labels["severity"])
		for i := 0; i < len(m.labels); i += 2 {
			labels[m.labels[i]] = m.labels[i+1]
			sample += fmt.Sprintf(`, %s=%q`, m.labels[i], m.labels[i+1])
		}
		annotations := map[string]string{"summary": m.summary, "reason": r.Annotations["reason"], "runbook_url": r.Annotations["runbook_url"]}
		test["alert_rule_test"] = []any{map[string]any{
			"eval_time": m.first.String(), "alertname": r.Alert,
			"exp_alerts": []any{map[string]any{"exp_labels": labels, "exp_annotations": annotations}},
		}}
		fired = []any{
			map[string]any{"labels": sample + `, alertstate="firing"}`, "value": int((m.last-m.first)/step) + 1},
		}
	}
	test["promql_expr_test"] = []any{map[string]any{
		"expr": `count_over_time(ALERTS{alertstate="firing", alertname="` + strings.TrimSpace(r.Alert) + `"}[1d])`, "eval_time": (max(m.last, 25*time.Minute) + 10*time.Minute).String(), "exp_samples": fired,
	}}
	return test
}

func TestTheRulesAreValid(t *testing.T) {
	text, rules := alerts(t)
	page, err := os.ReadFile("../../../docs/metrics.md")
	require.NoError(t, err)
	config := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(page)
	require.NotNil(t, config)
	promtool(t, map[string]string{"alerts.yml": text, "prometheus.yml": string(config[1])}, "check", "config", "--lint-fatal", "prometheus.yml")
	for _, r := range rules {
		require.NotEmpty(t, r.Annotations["summary"], r.Alert)
		require.NotEmpty(t, r.Annotations["reason"], r.Alert)
	}
}
