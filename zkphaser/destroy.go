package zkphaser

import (
	"context"
	"strconv"

	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Destroy removes the phaser: the next use makes one in phase 0. While a party is registered, or a call advances the phaser,
// the error is zksync.ErrMisuse, which names the processes. See docs/guarantees/calls.md.
func (p *Phaser) Destroy(ctx context.Context) error {
	uses := map[string]string{"": "of its calls make a change", "turns": "of its calls wait to make a change", "action": "of its calls run the function of WithOnAdvance, or wait"}
	return p.made().at.Destroy(ctx, record.Ruin{
		Base: p.terms.Base, ACL: p.at.ACL(), What: "the phaser", Uses: uses,
		There: func(ctx context.Context, e *zkconn.Epoch) (bool, error) {
			v, there, err := p.terms.Ask(ctx, e)
			for _, phase := range []int{v.T.Phase, after(v.T.Phase)} {
				uses["phase-"+strconv.Itoa(phase)] = "of its parties are registered"
			}
			return there, err
		},
		Part: func(child string) bool { return layout.IsPart(layout.Phaser, child) },
	})
}
