package zksync_test

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/go-menagerie/menagerie/zksync"
)

func ExampleToken() {
	first := zksync.Token{Zxid: 0x10000002a}
	handedOver := zksync.Token{Zxid: 0x10000002a, Seq: 1}
	next := zksync.Token{Zxid: 0x10000002f}

	fmt.Println(first)
	fmt.Println(handedOver)
	fmt.Println(next)
	fmt.Println(first.Compare(handedOver), next.Compare(handedOver))
	fmt.Println(first.String() < handedOver.String(), handedOver.String() < next.String())
	// Output:
	// 000000010000002a-00000000
	// 000000010000002a-00000001
	// 000000010000002f-00000000
	// -1 1
	// true true
}

func ExampleToken_json() {
	message := struct {
		Order string
		Token zksync.Token
	}{"A-17", zksync.Token{Zxid: 42}}
	if err := json.NewEncoder(os.Stdout).Encode(message); err != nil {
		fmt.Println(err)
	}
	// Output: {"Order":"A-17","Token":"000000000000002a-00000000"}
}

func ExampleParseToken() {
	token, err := zksync.ParseToken("000000010000002a-00000003")
	fmt.Println(token.Zxid, token.Seq, err)

	_, err = zksync.ParseToken("42")
	fmt.Println(err)
	// Output:
	// 4294967338 3 <nil>
	// zksync: token "42": want 16 hexadecimal digits, a dash and 8 more: misuse
}
