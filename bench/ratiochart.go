package bench

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// RatioChart draws, as an SVG, how many times as fast as each other peer the reference is. The axis is logarithmic: a bar to the right of 1
// says that the reference is faster. Its whisker goes from the least to the greatest ratio of a round. The floor is grey: it is no lock.
func RatioChart(title string, rows []Row) string {
	least, most := 0.5, 2.0
	var bars []Row
	for _, r := range rows {
		if r.Ratio > 0 && r.RatioMin > 0 && r.Peer != r.Reference {
			bars, least, most = append(bars, r), min(least, r.RatioMin), max(most, r.RatioMax)
		}
	}
	if len(bars) == 0 {
		return ""
	}
	low, high := math.Log10(least), math.Log10(most)
	x := func(v float64) float64 { return barsLeft + (math.Log10(v)-low)/(high-low)*barsWidth }
	var b, grid strings.Builder
	y := chartHead
	for i, r := range bars {
		if i == 0 || bars[i-1].Scenario != r.Scenario || bars[i-1].Clients != r.Clients {
			y += groupHead
			fmt.Fprintf(&b, `<text class="small" x="16" y="%d">%s, %s</text>`+"\n", y-8, html.EscapeString(r.Scenario), Clients(r.Clients))
		}
		ratioBar(&b, r, x, y)
		y += barStep
	}
	bottom := y + 4
	for _, v := range ratioTicks(least, most) {
		class := "grid"
		if v == 1 {
			class = "axis"
		}
		fmt.Fprintf(&grid, `<line class="%s" x1="%.1f" y1="%d" x2="%.1f" y2="%d"/>`+"\n", class, x(v), chartHead, x(v), bottom)
		fmt.Fprintf(&grid, `<text class="small" x="%.1f" y="%d" text-anchor="middle">%g x</text>`+"\n", x(v), bottom+16, v)
	}
	height := bottom + chartFoot - 16
	title = html.EscapeString(title)
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img" aria-label="%s">
<title>%s</title>
%s
<rect class="paper" width="%d" height="%d"/>
<text class="title" x="16" y="26">%s</text>
<text class="small" x="16" y="46">How many times as fast as each of the others %s is. Whiskers: the rounds.</text>
%s%s</svg>
`, chartWidth, height, chartWidth, height, title, title, chartStyle, chartWidth, height, title, html.EscapeString(rows[0].Reference), grid.String(), b.String())
}

// ratioBar draws a ratio at height y, from 1 on.
func ratioBar(b *strings.Builder, r Row, x func(float64) float64, y int) {
	class := "ours"
	switch {
	case r.Peer == floor.Name():
		class = "other"
	case r.Ratio < 1:
		class = "lost"
	}
	middle, from, to := y+barHeight/2, min(x(1), x(r.Ratio)), max(x(1), x(r.Ratio))
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", barsLeft-8, middle+5, html.EscapeString(r.Peer))
	fmt.Fprintf(b, `<rect class="%s" x="%.1f" y="%d" width="%.1f" height="%d" rx="2"/>`+"\n", class, from, y, max(to-from, 1), barHeight)
	fmt.Fprintf(b, `<path class="whisker" d="M%.1f %dH%.1fM%.1f %dv8M%.1f %dv8"/>`+"\n", x(r.RatioMin), middle, x(r.RatioMax), x(r.RatioMin), middle-4, x(r.RatioMax), middle-4)
	fmt.Fprintf(b, `<text class="value" x="%.1f" y="%d">%s x</text>`+"\n", max(x(r.RatioMax), to)+8, middle+5, grouped(r.Ratio))
}

// ratioTicks are the powers of ten between the two, and, if there are few, twice and five times those.
func ratioTicks(least, most float64) (ticks []float64) {
	steps := []float64{1, 2, 5}
	if most/least > 1000 {
		steps = steps[:1]
	}
	for e := math.Floor(math.Log10(least)); e <= math.Log10(most); e++ {
		for _, m := range steps {
			// Dividing by a power of ten is exact where multiplying by its inverse is not.
			v := m * math.Pow10(int(e))
			if e < 0 {
				v = m / math.Pow10(int(-e))
			}
			if v >= least && v <= most {
				ticks = append(ticks, v)
			}
		}
	}
	return ticks
}
