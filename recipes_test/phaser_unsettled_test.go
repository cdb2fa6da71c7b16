package recipes_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zktest"
)

// What a server says when its answer settles nothing, or is wrong.
const (
	noNode       = -101
	sessionMoved = -118
)

// The answer to the claim is lost, and for a while no answer tells whether it was made.
func TestAClaimOfAnActionIsFoundOutHoweverLongThatTakes(t *testing.T) {
	for _, code := range []int32{noNode, sessionMoved} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			inProcess(t, func(t *testing.T, v *env) {
				action := zkbarrier.WithOnAdvance(func(context.Context, int, int) bool { return false })
				s := v.session()
				p, other := zkbarrier.NewPhaser(s, phaserPath, action), v.phasers(1, action)[0]
				v.gives(0, p.Register)
				v.gives(0, other.Register)
				waiting := phase(context.Background(), other.ArriveAndAwaitAdvance)
				v.quiet()
				v.srv.Intercept(zktest.On(zktest.Create, phaserPath+"/action").LoseReply().Times(1))
				wrong := v.srv.Intercept(zktest.On(zktest.GetData, phaserPath).Session(s.ID()).Error(code))
				last := phase(context.Background(), p.ArriveAndAwaitAdvance)
				time.Sleep(time.Second)
				wrong.Remove()
				v.arrives(last, 1)
				v.arrives(waiting, 1)
			})
		})
	}
}
