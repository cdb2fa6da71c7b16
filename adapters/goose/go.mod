module github.com/go-menagerie/menagerie/adapters/goose

go 1.26.0
