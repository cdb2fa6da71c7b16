package bench

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// The measures of a chart, in pixels. Names stand on the left of the bars, values on their right.
const (
	chartWidth = 790
	barsLeft   = 150
	barsWidth  = 400
	barHeight  = 16
	barStep    = 24
	groupHead  = 30
	chartHead  = 62
	chartFoot  = 40
)

const chartStyle = `<style>
text { font: 13px system-ui, sans-serif; fill: #1f2328 }
.title { font-size: 16px; font-weight: 600 } .small { font-size: 12px; fill: #59636e } .value { font-variant-numeric: tabular-nums }
.paper { fill: #ffffff } .grid { stroke: #d1d9e0 } .axis { stroke: #59636e } .whisker { stroke: #1f2328; stroke-width: 1.5 }
.ours { fill: #0969da } .lost { fill: #d4562f } .other { fill: #a8b1bb }
@media (prefers-color-scheme: dark) {
text { fill: #f0f6fc } .small { fill: #9198a1 }
.paper { fill: #0d1117 } .grid { stroke: #3d444d } .axis { stroke: #9198a1 } .whisker { stroke: #f0f6fc }
.ours { fill: #4493f8 } .lost { fill: #f0784c } .other { fill: #656c76 }
}
</style>`

// chart draws the rows of a scenario as an SVG: a bar is the median, its whisker goes from the slowest round to the fastest.
func chart(s Scenario, rows []Row) string {
	most := 0.0
	for _, r := range rows {
		most = max(most, r.OpsPerSMax)
	}
	step := tick(most)
	x := func(v float64) float64 { return barsLeft + v/max(most, step)*barsWidth }
	var b strings.Builder
	y := chartHead
	for i, r := range rows {
		if i == 0 || rows[i-1].Clients != r.Clients {
			y += groupHead
			fmt.Fprintf(&b, `<text class="small" x="%d" y="%d">%s</text>`+"\n", 16, y-8, people(s, r.Clients))
		}
		bar(&b, r, x, y)
		y += barStep
	}
	bottom := y + 4
	var grid strings.Builder
	for v := 0.0; v <= max(most, step); v += step {
		class := "grid"
		if v == 0 {
			class = "axis"
		}
		fmt.Fprintf(&grid, `<line class="%s" x1="%.1f" y1="%d" x2="%.1f" y2="%d"/>`+"\n", class, x(v), chartHead, x(v), bottom)
		fmt.Fprintf(&grid, `<text class="small" x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n", x(v), bottom+16, whole(v))
	}
	height := bottom + chartFoot
	title := html.EscapeString(s.Name + ": " + lowerFirst(s.Title))
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img" aria-label="%s">
<title>%s</title>
%s
<rect class="paper" width="%d" height="%d"/>
<text class="title" x="16" y="26">%s</text>
<text class="small" x="16" y="46">An operation is %s. Whiskers: the slowest and the fastest round.</text>
%s%s<text class="small" x="%d" y="%d" text-anchor="middle">operations per second, median of the rounds</text>
</svg>
`, chartWidth, height, chartWidth, height, title, title, chartStyle, chartWidth, height, title,
		html.EscapeString(s.Op), grid.String(), b.String(), barsLeft+barsWidth/2, bottom+33)
}

// bar draws a row at height y: name, bar, whisker, value.
func bar(b *strings.Builder, r Row, x func(float64) float64, y int) {
	class := "other"
	if r.Peer == r.Reference {
		class = "ours"
	}
	middle := y + barHeight/2
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", barsLeft-8, middle+5, html.EscapeString(r.Peer))
	fmt.Fprintf(b, `<rect class="%s" x="%d" y="%d" width="%.1f" height="%d" rx="2"/>`+"\n", class, barsLeft, y, max(x(r.OpsPerS)-barsLeft, 1), barHeight)
	least, most := x(r.OpsPerSMin), x(r.OpsPerSMax)
	fmt.Fprintf(b, `<path class="whisker" d="M%.1f %dH%.1fM%.1f %dv8M%.1f %dv8"/>`+"\n", least, middle, most, least, middle-4, most, middle-4)
	value := grouped(r.OpsPerS)
	if r.Ratio > 0 && r.Peer != r.Reference {
		value += fmt.Sprintf(" (%s: %.2f x)", r.Reference, r.Ratio)
	}
	fmt.Fprintf(b, `<text class="value" x="%.1f" y="%d">%s</text>`+"\n", most+8, middle+5, html.EscapeString(value))
}

// tick is a round number of which at most six fill the axis.
func tick(most float64) float64 {
	if most <= 0 {
		return 1
	}
	power := math.Pow10(int(math.Floor(math.Log10(most / 5))))
	for _, m := range []float64{1, 2, 5} {
		if most/(m*power) <= 5 {
			return m * power
		}
	}
	return 10 * power
}

// whole is a number on the axis.
func whole(v float64) string {
	if v == math.Trunc(v) && v < 1000 {
		return fmt.Sprintf("%.0f", v)
	}
	return grouped(v)
}

// people counts what the clients of a scenario are.
func people(s Scenario, n int) string {
	what := "session"
	switch {
	case s.Drains:
		what = "waiter"
	case s.Local && s.Max > 1:
		what = "goroutine"
	}
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

func lowerFirst(s string) string { return strings.ToLower(s[:1]) + s[1:] }
