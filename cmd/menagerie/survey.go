package main

import (
	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/survey"
	"github.com/go-menagerie/menagerie/zksync"
)

// survey is what an operator sees of everything below a path.
func (a *app) survey(s *zksync.Session, root string) *survey.Survey {
	return &survey.Survey{Session: s, Root: root}
}
