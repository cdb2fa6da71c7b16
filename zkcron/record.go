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
	Version int32 `json:"version"` // of the record before the start; never 0, because the holder writes the record when it takes over

	// The run before it, for a call that has not seen yet how it ended; 0 if there was none.
	Before int32  `json:"before,omitempty"`
	Failed string `json:"failed,omitempty"`
}

// begun reports whether a run out of turn has begun since the record had this version. Versions wrap around.
func (r run) begun(since int32) bool { return r.Extra != nil && r.Extra.Version-since >= 0 }

// outcome is how a run that has begun since this version has ended. done is false if none has.
func (r run) outcome(since int32) (failed string, done bool) {
	x := r.Extra
	switch {
	case !r.begun(since):
		return "", false
	case !x.unfinished():
		return x.Err, true
	case x.Before != 0 && x.Before-since >= 0:
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
