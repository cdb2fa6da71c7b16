package proving

import "github.com/go-menagerie/menagerie/internal/share"

func init() { share.Strict = true }
