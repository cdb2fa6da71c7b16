package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/survey"
	"github.com/go-menagerie/menagerie/zksync"
)

// survey is what an operator sees of everything below a path.
func (a *app) survey(s *zksync.Session, root string) *survey.Survey {
	return &survey.Survey{Session: s, Root: root}
}

// surveyOnce connects and reads one view.
func (a *app) surveyOnce(cmd *cobra.Command, root string) (v *survey.View, err error) {
	all := a.survey(nil, root)
	err = a.looking(cmd, all.Heard, func(ctx context.Context, s *zksync.Session, _ func()) error {
		all.Session = s
		v, err = all.Once(ctx)
		return err
	})
	return v, err
}
