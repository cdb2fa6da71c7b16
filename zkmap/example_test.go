package zkmap_test

import (
	"context"
	"fmt"
	"log"
	"slices"

	"github.com/go-menagerie/menagerie/zkmap"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)
