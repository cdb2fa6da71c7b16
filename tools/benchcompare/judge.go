package main

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchmath"
)

// bound says by how much a median may grow, and from which probability on a growth counts as chance.
type bound struct{ growth, chance float64 }

// bounds are by the unit. What has another unit is not compared. Requests need the better proof: some depend on who comes
// first, and a hundredth is little.
var bounds = map[string]bound{"sec/op": {0.10, 0.05}, "requests/op": {0.01, 0.01}}

// series is one benchmark and one unit.
type series struct{ pkg, name, unit string }

// results are the measurements of a revision.
type results map[series][]float64

// read adds what a test binary has printed.
func (r results) read(pkg string, out []byte) error {
	reader := benchfmt.NewReader(bytes.NewReader(out), pkg)
	for reader.Scan() {
		switch rec := reader.Result().(type) {
		case *benchfmt.Result:
			for _, v := range rec.Values {
				if _, ok := bounds[v.Unit]; ok {
					s := series{pkg, string(rec.Name.Full()), v.Unit}
					r[s] = append(r[s], v.Value)
				}
			}
		case *benchfmt.SyntaxError:
			return fmt.Errorf("%s: %w", pkg, rec)
		}
	}
	return reader.Err()
}

// judge prints what changed, and reports whether something got worse.
func judge(older, newer results, out io.Writer) (worse bool) {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "package\tbenchmark\tunit\tolder\tnewer\tchange\t")
	for _, s := range newer.sorted() {
		if len(older[s]) == 0 {
			fmt.Fprintf(t, "%s\t%s\t%s\t-\t%.4g\tnot in the older revision\t\n", s.pkg, s.name, s.unit, median(newer[s]))
			continue
		}
		was, is := benchmath.NewSample(older[s], &benchmath.DefaultThresholds), benchmath.NewSample(newer[s], &benchmath.DefaultThresholds)
		c := benchmath.AssumeNothing.Compare(was, is)
		before, after := median(older[s]), median(newer[s])
		verdict := ""
		if b := bounds[s.unit]; c.P < b.chance && after > before*(1+b.growth) {
			verdict, worse = "WORSE", true
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%.4g\t%.4g\t%s (p=%.3f)\t%s\n", s.pkg, s.name, s.unit, before, after, c.FormatDelta(before, after), c.P, verdict)
	}
	for _, s := range older.sorted() {
		if len(newer[s]) == 0 {
			fmt.Fprintf(t, "%s\t%s\t%s\t%.4g\t-\tnot there any more\t\n", s.pkg, s.name, s.unit, median(older[s]))
		}
	}
	_ = t.Flush() // nobody can be told
	return worse
}

func (r results) sorted() (all []series) {
	for s := range r {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b series) int {
		return strings.Compare(a.pkg+" "+a.name+" "+a.unit, b.pkg+" "+b.name+" "+b.unit)
	})
	return all
}

func median(values []float64) float64 {
	return benchmath.AssumeNothing.Summary(benchmath.NewSample(values, &benchmath.DefaultThresholds), 0.95).Center
}
