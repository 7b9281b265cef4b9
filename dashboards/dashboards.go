// Package dashboards holds what Grafana and Prometheus show of Ticketing and warn of:
// dashboards, alerts, and the files that put them in place.
package dashboards

import "embed"

//go:generate go -C gen run .

// Files are the dashboards (grafana), the rules (prometheus/ticketing.rules.yml), what an
// alert asks for (RUNBOOK.md) and the provisioning.
//
//go:embed grafana/*.json prometheus/ticketing.rules.yml provisioning RUNBOOK.md README.md
var Files embed.FS
