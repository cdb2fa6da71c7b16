package zkcron

import (
	"encoding/json"
	"time"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/zksync"
)

// run is the data of a record: the last tick, and the last run out of turn. Before the first run it is empty.
type run struct {
	Scheduled time.Time       `json:"scheduled,omitzero"`
	Missed    int             `json:"missed,omitempty"`
	Started   time.Time       `json:"started,omitzero"`
	Ended     time.Time       `json:"ended,omitzero"`
	Owner     json.RawMessage `json:"owner,omitempty"` // see [node.Content]
	Token     zksync.Token    `json:"token,omitzero"`
	Err       string          `json:"err,omitempty"`
	Extra     *extra          `json:"extra,omitempty"`
}

// extra is the last run out of turn: see [Cron.RunNow].
type extra struct {
	run
	Number int64 `json:"number"` // of the newest request that it is for; it is for all requests up to that one

	// The run before it, for a process that asked for that one, and has not seen yet how it ended.
	Served int64  `json:"served,omitempty"`
	Failed string `json:"failed,omitempty"`
}

// number is that of the newest request for which a run has begun; 0 if there is none.
func (r run) number() int64 {
	if r.Extra == nil {
		return 0
	}
	return r.Extra.Number
}

// outcome is how the run for a request has ended. done is false if it has not.
func (r run) outcome(request int64) (failed string, done bool) {
	x := r.Extra
	switch {
	case x == nil:
		return "", false
	case x.Number >= request && !x.unfinished():
		return x.Err, true
	case x.Served >= request:
		return x.Failed, true
	}
	return "", false
}

// newest is the part about the last tick or about the last run out of turn, for the caller to change: r is a copy then.
func (r *run) newest(extra bool) *run {
	if !extra {
		return r
	}
	x := *r.Extra
	r.Extra = &x
	return &x.run
}

// underWay reports whether a run of either kind was begun, and its end is not known.
func (r run) underWay() bool { return r.unfinished() || r.Extra != nil && r.Extra.unfinished() }

// unfinished reports whether the run was begun, and its end is not known.
func (r run) unfinished() bool { return !r.Started.IsZero() && r.Ended.IsZero() && r.Err == "" }

func (r run) public() Record {
	return Record{r.Scheduled.UTC(), r.Started.UTC(), r.Ended.UTC(), zksync.Owner(node.Decode(r.Owner).Owner), r.Err}
}

func decode(data []byte) (r run, err error) {
	if len(data) == 0 {
		return r, nil
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return run{}, errs.Misuse("the record of the job cannot be read: %w", err)
	}
	times := []time.Time{r.Scheduled, r.Started, r.Ended}
	if x := r.Extra; x != nil {
		times = append(times, x.Scheduled, x.Started, x.Ended)
	}
	for _, t := range times {
		if y := t.UTC().Year(); y < 1 || y > 9998 {
			return run{}, errs.Misuse("the record of the job cannot be read: in some time zones the year of %v cannot be written", t)
		}
	}
	return r, nil
}
