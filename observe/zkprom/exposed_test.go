package zkprom_test

import (
	"bytes"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/observe/zkprom"
)

// exposed are the series that Prometheus would get now whose names begin with one of the prefixes, as `name{label="value"}`. It
// waits until nothing happens any more.
func exposed(t *testing.T, c *zkprom.Collector, prefixes ...string) series {
	t.Helper()
	synctest.Wait()
	return read(t, c, prefixes...)
}

// read is exposed without the wait.
func read(t *testing.T, c *zkprom.Collector, prefixes ...string) series {
	t.Helper()
	all := make(series)
	for line := range strings.Lines(exposition(t, c)) {
		series, value, _ := strings.Cut(strings.TrimSpace(strings.ReplaceAll(line, "menagerie_", "")), "} ")
		if value != "" {
			series += "}"
		} else {
			series, value, _ = strings.Cut(series, " ")
		}
		for _, p := range prefixes {
			if strings.HasPrefix(series, p) {
				v, err := strconv.ParseFloat(value, 64)
				require.NoError(t, err, line)
				all[series] = v
			}
		}
	}
	return all
}

// exposition is the text that Prometheus would get.
func exposition(t *testing.T, c *zkprom.Collector) string {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(c))
	families, err := registry.Gather()
	require.NoError(t, err)
	var text bytes.Buffer
	for _, f := range families {
		_, err := expfmt.MetricFamilyToText(&text, f)
		require.NoError(t, err)
	}
	return text.String()
}

type series = map[string]float64
