package zktest_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// A test of what a lock does when the server of its session loses the others.
func ExampleRunEnsemble() {
	TestHandover := func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e := zktest.RunEnsemble(t, 3, zktest.WithTick(2*time.Second))
			s := e.SessionAt(t, 0, zksync.WithTimeout(20*time.Second))
			l, err := zksync.NewMutex(s, "/locks/a").LockContext(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			heal := e.Isolate(0) // from the other two, not from the session
			time.Sleep(11 * time.Second)
			if !l.Valid() || e.At(s.ID()) != 1 {
				t.Error("member 0 should have noticed, and the session have gone to member 1")
			}
			heal()
		})
	}
	goTest(TestHandover)
	// Output: ok
}

func ExampleEnsemble_Lag() {
	e := zktest.StartEnsemble(3)
	defer e.Close()
	catchUp := e.Lag(0)
	e.Server(1).Create("/n", nil, 0, 0)
	_, there := e.Server(0).Node("/n")
	fmt.Println("while it lags:", there)
	catchUp()
	_, there = e.Server(0).Node("/n")
	fmt.Println("afterwards:", there)
	// Output:
	// while it lags: false
	// afterwards: true
}

func ExampleEnsemble_ElectLeader() {
	e := zktest.StartEnsemble(3)
	defer e.Close()
	fmt.Printf("member %d, zxid %#x\n", e.Leader(), e.Server(e.Leader()).Zxid())
	e.ElectLeader(0)
	fmt.Printf("member %d, zxid %#x\n", e.Leader(), e.Server(e.Leader()).Zxid())
	// Output:
	// member 2, zxid 0x100000000
	// member 0, zxid 0x200000000
}

// Whichever servers a client chooses, it can be had at a certain one.
func ExampleEnsemble_Pin() {
	goTest(func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e := zktest.RunEnsemble(t, 3)
			conn := e.ConnectAt(t, 0, 10*time.Second)
			unpin := e.Pin(conn.SessionID(), 2)
			time.Sleep(time.Second)
			fmt.Println(e.At(conn.SessionID()))
			unpin()
		})
	})
	// Output:
	// 2
	// ok
}

// The other two elect a leader and go on; the one that is alone serves until it notices.
func ExampleEnsemble_Isolate() {
	goTest(func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e := zktest.RunEnsemble(t, 3, zktest.WithSyncLimit(5*time.Second), zktest.WithElectionTime(500*time.Millisecond))
			heal := e.Isolate(2)
			for range 3 {
				fmt.Println("leader:", e.Leader(), "member 2 serves:", e.Serving(2))
				time.Sleep(3 * time.Second)
				synctest.Wait() // what happens at this instant has happened
			}
			heal()
			fmt.Println("leader:", e.Leader(), "member 2 serves:", e.Serving(2))
		})
	})
	// Output:
	// leader: 2 member 2 serves: true
	// leader: 2 member 2 serves: true
	// leader: 1 member 2 serves: false
	// leader: 1 member 2 serves: true
	// ok
}
