package cron_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkcron"
	"github.com/go-menagerie/menagerie/zksync"
)

// The clock of the servers' leader was a year ahead when the job was made. It was set right before the first tick.
func TestAJobThatWasMadeUnderAWrongClockRunsItsTicks(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		var b book
		s := v.Session(zksync.WithTimeout(time.Minute))
		v.Server.SetTime(time.Now().AddDate(1, 0, 0))
		c := zkcron.New(s, path)
		c.At(job, "0 * * * *", b.writes(0, nil))
		ctx, cancel := context.WithCancel(t.Context())
		a := starts(ctx, c)
		v.Settled(queue, 1)
		ends(v, cancel, a)
		v.Server.SetTime(time.Now())
		c = zkcron.New(s, path)
		c.At(job, "0 * * * *", b.writes(0, nil))
		ctx, cancel = context.WithCancel(t.Context())
		a = starts(ctx, c)
		time.Sleep(130 * time.Minute)
		require.Len(t, b.times(), 2)
		ends(v, cancel, a)
	})
}

// It is set right while a process that goes by it holds the job.
func TestAHolderThatGoesByAWrongClockRunsItsTicksOnceThatIsSetRight(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		var b book
		v.Server.SetTime(time.Now().AddDate(1, 0, 0))
		c := zkcron.New(v.Session(zksync.WithTimeout(time.Minute)), path)
		c.At(job, "0 * * * *", b.writes(0, nil))
		ctx, cancel := context.WithCancel(t.Context())
		a := starts(ctx, c)
		v.Settled(queue, 1)
		v.Server.SetTime(time.Now())
		time.Sleep(3*time.Hour - time.Minute)
		require.NotEmpty(t, b.times())
		for _, e := range b.all() {
			require.Equal(t, 2000, e.tick.Scheduled.Year())
		}
		ends(v, cancel, a)
	})
}
