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

// bound says by how much a result may grow, and from which probability on a growth of the median counts as chance. Where
// nothing is left to chance this is 0, and the least results are compared: a disturbed run can only have more.
type bound struct{ growth, chance float64 }

// bounds are by the unit. What has another unit is not compared. The requests of clients that work at the same time need
// the better proof: they depend on who comes first, and a hundredth is little. Of allocated bytes a hundredth is the runtime's.
var bounds = map[string]bound{
	"sec/op": {0.10, 0.05}, "requests/op": {0.01, 0.01},
	"exact-requests/op": {}, "exact-received-bytes/op": {}, "exact-sent-bytes/op": {},
	"allocs/op": {}, "allocated-bytes/op": {growth: 0.01},
}

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
func judge(older, newer results, out io.Writer) (found bool) {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "package\tbenchmark\tunit\tolder\tnewer\tchange\t")
	for _, s := range newer.sorted() {
		if len(older[s]) == 0 {
			fmt.Fprintf(t, "%s\t%s\t%s\t-\t%.6g\tnot in the older revision\t\n", s.pkg, s.name, s.unit, median(newer[s]))
			continue
		}
		before, after, change, worse := bounds[s.unit].compare(older[s], newer[s])
		verdict := ""
		if worse {
			verdict, found = "WORSE", true
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%.6g\t%.6g\t%s\t%s\n", s.pkg, s.name, s.unit, before, after, change, verdict)
	}
	for _, s := range older.sorted() {
		if len(newer[s]) == 0 {
			fmt.Fprintf(t, "%s\t%s\t%s\t%.6g\t-\tnot there any more\t\n", s.pkg, s.name, s.unit, median(older[s]))
		}
	}
	_ = t.Flush() // nobody can be told
	return found
}

// compare returns the results of both revisions, and whether the newer one is worse.
func (b bound) compare(older, newer []float64) (before, after float64, change string, worse bool) {
	if b.chance == 0 {
		before, after = slices.Min(older), slices.Min(newer)
		return before, after, fmt.Sprintf("%+.6g", after-before), after > before*(1+b.growth)
	}
	c := benchmath.AssumeNothing.Compare(benchmath.NewSample(older, &benchmath.DefaultThresholds), benchmath.NewSample(newer, &benchmath.DefaultThresholds))
	before, after = median(older), median(newer)
	return before, after, fmt.Sprintf("%s (p=%.3f)", c.FormatDelta(before, after), c.P), c.P < b.chance && after > before*(1+b.growth)
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
