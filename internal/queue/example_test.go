package queue_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zktest"
)

// Crew is a recipe on the queue alone: the first few of its members work, the others stand by and take over in order.
type Crew struct{ queue *queue.Queue }

func NewCrew(c *zkconn.Client, dir string, working int) *Crew {
	return &Crew{queue.New(queue.Queue{
		Client: c, Dir: dir, Kind: queue.KindLock, ACL: zk.WorldACL(zk.PermAll),
		Policy: func(ahead []queue.Entry, _ queue.Entry) []queue.Entry {
			if len(ahead) < working {
				return nil
			}
			return ahead[len(ahead)-working:] // as long as all of these are there, so are too many
		},
	})}
}

// Work runs f when fewer than working members are ahead. f gets a fencing token, and a context that ends when others
// may work in its place.
func (c *Crew) Work(ctx context.Context, f func(ctx context.Context, token int64)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	t, err := c.queue.Obtain(ctx, func(*queue.Ticket) { cancel() })
	if err != nil {
		return err
	}
	defer t.Leave(time.Second)
	f(ctx, t.Entry.Czxid)
	return nil
}

func Example() {
	srv := zktest.Start()
	defer srv.Close()
	client := zkconn.Open(zkconn.Config{Servers: []string{"zk:2181"}, Timeout: 10 * time.Second, Dial: srv.DialContext})
	defer client.Close()

	crew := NewCrew(client, "/crew", 2)
	begun, end := make(chan string, 4), make(chan bool)
	for i := range 4 {
		go func() {
			_ = crew.Work(context.Background(), func(context.Context, int64) {
				begun <- fmt.Sprint("member ", i)
				<-end
			})
		}()
		_ = srv.WaitFor(context.Background(), func() bool { return len(srv.Children("/crew")) > i }) // they come in order
	}
	first := []string{<-begun, <-begun}
	slices.Sort(first)
	fmt.Println(first)
	end <- true
	fmt.Println(<-begun)
	end <- true
	fmt.Println(<-begun)
	close(end)
	// Output:
	// [member 0 member 1]
	// member 2
	// member 3
}
