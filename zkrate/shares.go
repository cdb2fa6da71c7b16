package zkrate

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"time"

	"github.com/go-menagerie/menagerie/internal/errs"
)

// Shares are whole numbers, so that they add up exactly: the limit is divided into parts of a billionth, the burst into
// thousandths of a token.
const (
	wholeRate = 1_000_000_000
	token     = 1000

	maxBurst = 1_000_000_000_000 // in thousandths it fits into 53 bits, so JSON and float64 keep it exactly
)

// share is what one process has of the limit and of the burst, as the record says.
type share struct {
	Rate  int64 `json:"rate"`  // parts of the limit
	Burst int64 `json:"burst"` // of the bucket, in thousandths
	// Need is 0 unless the process wants more: then the least bucket that helps it, in thousandths.
	Need  int64  `json:"need,omitempty"`
	Turn  int64  `json:"turn"`  // those that want more get it in this order
	Write uint64 `json:"write"` // counts the writes of the process, so that it knows them again
}

// table is the data of the record.
type table struct {
	Level  int64             `json:"level"` // the tokens that no process has, in thousandths
	Shares map[string]*share `json:"shares"`

	burst int64 // all of it, in thousandths
}

var errOverwritten = errs.Broken("the rate limiter", `its data were overwritten externally; "menagerie reset" removes it, and its next user creates it again`)

// parse reads a table. Without data no process has ever had a share, and the bucket has first.
func parse(data []byte, burst, first int64) (*table, error) {
	t := &table{Level: first, Shares: map[string]*share{}, burst: burst}
	if len(data) > 0 {
		t.Shares = nil
		if json.Unmarshal(data, t) != nil || t.Shares == nil {
			return nil, errOverwritten
		}
	}
	rate, room := int64(wholeRate), burst
	for _, s := range t.Shares {
		if s == nil || s.Rate < 0 || s.Rate > rate || s.Burst < 0 || s.Burst > room || s.Need < 0 || s.Need > burst {
			return nil, errOverwritten
		}
		rate, room = rate-s.Rate, room-s.Burst
	}
	if t.Level < 0 || t.Level > room {
		return nil, errOverwritten
	}
	return t, nil
}

// free is what no process has.
func (t *table) free() (rate, size int64) {
	rate, size = wholeRate, t.burst
	for _, s := range t.Shares {
		rate, size = rate-s.Rate, size-s.Burst
	}
	return rate, size
}

// within reports whether all shares are those of the processes in a list.
func (t *table) within(list []string) bool {
	n := 0
	for _, id := range list {
		if t.Shares[id] != nil {
			n++
		}
	}
	return n == len(t.Shares)
}

// bury removes the shares of processes that are not in the list. The servers have ended their sessions, so they have stopped
// already. Their tokens are lost: nothing says how many they have used.
func (t *table) bury(list []string) {
	living := make(map[string]*share, len(list))
	for _, id := range list {
		if s := t.Shares[id]; s != nil {
			living[id] = s
		}
	}
	t.Shares = living
}

// last is a turn after all others.
func (t *table) last() (turn int64) {
	for _, s := range t.Shares {
		turn = max(turn, s.Turn)
	}
	return turn + 1
}

// place is how many processes have an earlier turn.
func (t *table) place(id string) (before int) {
	me := t.Shares[id]
	for _, s := range t.Shares {
		if me != nil && s.Turn < me.Turn {
			before++
		}
	}
	return before
}

// nearest is how many processes that wait for their turn look at each change. Others look once in a period: it takes some time
// until they are near.
const nearest = 8

// ahead is how many processes with an earlier turn have less than they need, if this one has; else a large number.
func (t *table) ahead(id string) (n int) {
	me := t.Shares[id]
	if me == nil || me.Burst >= me.Need {
		return math.MaxInt
	}
	for _, s := range t.Shares {
		if s.Burst < s.Need && s.Turn < me.Turn {
			n++
		}
	}
	return n
}

// wanted reports whether another process wants more, and queued whether one has to wait for its turn: the buckets that all who
// want more need do not fit into the burst.
func (t *table) wanted(id string) (wanted, queued bool) {
	need := int64(0)
	for other, s := range t.Shares {
		wanted = wanted || other != id && s.Need > 0
		need += s.Need
	}
	if me := t.Shares[id]; me != nil && me.Need == 0 {
		need += min(me.Burst, token) // it uses its bucket, too
	}
	return wanted, need > t.burst
}

// claim is what a process is to get of something that is divided.
type claim struct{ floor, most int64 }

func (c claim) at(level int64) int64 { return max(c.floor, min(c.most, level)) }

// fill divides total fairly: it returns the greatest level at which all claims fit. So none gets less than another that claims more
// (max-min fairness).
func fill(total int64, claims []claim) int64 {
	fits, over := int64(0), total+1
	for over-fits > 1 {
		level, sum := fits+(over-fits)/2, int64(0)
		for i := 0; i < len(claims) && sum <= total; i++ {
			sum += claims[i].at(level)
		}
		if sum <= total {
			fits = level
		} else {
			over = level
		}
	}
	return fits
}

// demand is what this process needs, as its bucket has seen it.
type demand struct {
	short  bool  // calls were refused, or wait
	full   bool  // the bucket has all that it can have
	idle   bool  // there were no calls for some time
	need   int64 // the least bucket that helps, in thousandths
	rate   int64 // what was used, in parts
	served bool  // it has had its turn: see [table.next]
}

// An idle process keeps a twentieth of the whole, divided by the number of processes, and a token at least, for its next calls: if each
// of them had to join again, it would cost a dozen requests. That is so if the burst has two tokens for each process. A process that
// has enough keeps a quarter more than it uses.
const (
	reserve  = 20
	headroom = 4
)

// fair is what the process id is to have, with this demand, if each process did what this one does.
func (t *table) fair(id string, d demand) (rate, size int64) {
	n, me := int64(len(t.Shares)), t.Shares[id]
	mine, mineSize := claim{most: math.MaxInt64}, claim{floor: d.need, most: math.MaxInt64}
	switch wanted, _ := t.wanted(id); {
	case d.short:
	case !wanted:
		return me.Rate, me.Burst
	case d.idle:
		if t.burst < 2*n*token {
			return 0, 0
		}
		return min(me.Rate, wholeRate/reserve/n), min(me.Burst, max(token, t.burst/reserve/n))
	default:
		mine.most = min(me.Rate, d.rate+d.rate/headroom)
		mineSize = claim{floor: min(me.Burst, token), most: me.Burst}
	}
	var rates, sizes []claim
	needed := int64(0)
	for _, other := range t.inTurn() {
		s, any := t.Shares[other], int64(math.MaxInt64)
		switch {
		case other == id:
			if needed += mineSize.floor; needed > t.burst {
				return 0, 0
			}
			rates, sizes = append(rates, mine), append(sizes, mineSize)
		case s.Need == 0: // it has enough, and gives what is more than its part
			rates, sizes = append(rates, claim{most: s.Rate}), append(sizes, claim{most: s.Burst})
		default:
			if needed += s.Need; needed <= t.burst { // else it waits for its turn, and so do all after it
				rates, sizes = append(rates, claim{most: any}), append(sizes, claim{floor: s.Need, most: any})
			}
		}
	}
	return mine.at(fill(wholeRate, rates)), mineSize.at(fill(t.burst, sizes))
}

// inTurn are the processes in the order of their turns.
func (t *table) inTurn() []string {
	ids := make([]string, 0, len(t.Shares))
	for id := range t.Shares {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b string) int {
		return cmp.Or(cmp.Compare(t.Shares[a].Turn, t.Shares[b].Turn), cmp.Compare(a, b))
	})
	return ids
}

// next is what the process id should write for itself, and whether that is worth a write. It takes only what is free, so it never
// has to be trusted: the parts of all processes add up to the whole at most, whatever each of them computes.
//
// If more processes want a token than there are tokens in the burst, they take turns: one that was served for a while goes to the
// end of the line. What it has in its bucket goes with the share, so a turn that was too short for a token loses nothing.
func (t *table) next(id string, d demand) (next share, worth bool) {
	me := t.Shares[id]
	was := *me
	defer func() { *me = was }()
	if me.Need = 0; d.short {
		me.Need = d.need
		if was.Need == 0 {
			me.Turn = t.last()
		}
	}
	wanted, queued := t.wanted(id)
	rotates := queued && wanted && d.served
	if rotates {
		me.Turn = t.last()
	}
	rate, size := t.fair(id, d)
	free, room := t.free()
	slack := func(whole int64) int64 { return whole / 100 / int64(len(t.Shares)) }
	next = *me
	next.Rate = move(me.Rate, rate, free, slack(wholeRate), false)
	next.Burst = move(me.Burst, size, room, slack(t.burst), me.Burst < d.need)
	if next.Burst == 0 {
		next.Rate = 0 // without room for tokens the rate would be lost
	}
	gains := rate > me.Rate+slack(wholeRate) || size > me.Burst+slack(t.burst) || me.Burst < d.need
	switch {
	case next.Rate != was.Rate || next.Burst != was.Burst || rotates:
		worth = true
	case me.Need > was.Need: // others must know that they are to give
		worth = gains && len(t.Shares) > 1
	case me.Need < was.Need:
		worth = wanted
	}
	return next, worth
}

// move is have after a step to want: down to it, or up as far as there is room. Differences up to slack are left alone, unless any gain
// matters.
func move(have, want, room, slack int64, any bool) int64 {
	switch gain := min(want-have, room); {
	case want < have-slack, want == 0, gain > slack, gain > 0 && any:
		return have + gain
	}
	return have
}

// change applies next to the share of id: tokens go with the room for them. given is what the process has taken out of its bucket
// for that; got is what it may put into its bucket once the servers have the table. Both are in thousandths.
func (t *table) change(id string, next share, given int64) (got int64) {
	me := t.Shares[id]
	_, room := t.free()
	if gain := next.Burst - me.Burst; gain > 0 {
		got = int64(float64(t.Level) * (float64(gain) / float64(room)))
		got = min(max(got, t.Level-(room-gain)), t.Level) // the room that is left must hold the rest, however that was rounded
	}
	t.Level += given - got
	*me = next
	return got
}

func (t *table) clone() *table {
	c := &table{Level: t.Level, Shares: make(map[string]*share, len(t.Shares)), burst: t.burst}
	for id, s := range t.Shares {
		copied := *s
		c.Shares[id] = &copied
	}
	return c
}

func (t *table) encode() []byte {
	data, err := json.Marshal(t)
	if err != nil {
		panic(err) // it is made of numbers and names
	}
	return data
}

// The pace of a process. A period is long enough to see how much a process uses. Reads and writes of the record are bounded by it,
// and with many processes it is longer, so that all together change the record at most fifty times in a second.
const (
	leastPeriod = 2 * time.Second
	spacing     = 20 * time.Millisecond
)

// period is the pace with n processes.
func period(n int) time.Duration { return max(leastPeriod, time.Duration(n)*spacing) }
