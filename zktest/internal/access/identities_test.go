package access

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

// The orders are what a real server said to whoAmI.
func TestManyIdentitiesAreInTheOrderOfARealServersTable(t *testing.T) {
	ids := []wire.ID{{Scheme: "ip", Name: "127.0.0.1"}}
	want := map[int]string{
		11: "5 2 8 9 3 10 ip 7 1 0 4 6",
		14: "5 2 8 9 12 3 10 ip 7 11 13 1 0 4 6",
		23: "2 10 ip 18 11 13 15 22 19 4 6 5 8 9 12 3 14 20 21 7 16 1 17 0",
		95: "25 82 15 13 36 57 56 6 51 62 9 14 20 16 84 60 37 47 27 88 73 2 42 26 79 59 91 32 11 83 19 85 30 66 23 76 28 8 41 12 92 50 53 7 34 1 74 52 17 " +
			"0 94 77 38 45 64 58 93 22 72 75 48 43 71 24 68 31 80 86 55 69 90 10 65 29 ip 87 18 33 40 67 81 39 61 4 46 5 54 89 35 3 21 49 44 70 78 63",
		26: "25 2 10 ip 18 11 13 15 22 19 4 6 23 5 8 9 24 12 3 14 20 21 7 16 1 17 0",
	}
	for n := range 96 {
		if order, ok := want[n]; ok {
			require.Equal(t, order, namesOf(ids), "%d users", n)
		}
		id := wire.ID{Scheme: "digest", Name: Digest(fmt.Sprintf("user%d:pw", n))}
		before := namesOf(ids)
		more := With(ids, id)
		require.Equal(t, before, namesOf(ids), "the list that requests in flight have stays as it is")
		require.Equal(t, more, With(more, id), "nobody is in it twice")
		ids = more
	}
}

func namesOf(ids []wire.ID) string {
	var names []string
	for _, id := range ids {
		user, _, _ := strings.Cut(id.Name, ":")
		names = append(names, strings.Replace(strings.TrimPrefix(user, "user"), "127.0.0.1", "ip", 1))
	}
	return strings.Join(names, " ")
}
