package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
)

// What the dashboards are called in links.
const (
	overviewUID   = "ticketing-overview"
	contentionUID = "ticketing-contention"
	clusterUID    = "ticketing-cluster"
	runtimeUID    = "ticketing-runtime"
)

// board is a dashboard in the classic schema: what files can provision in every Grafana that
// is in use. The newer schema needs Grafana 12 and its API.
//
//lint:ignore SA1019 see above
type board = dashboard.Dashboard

// tag is what the dashboards find each other by.
const tag = "ticketing"

// columns is how wide Grafana's grid is.
const columns = 24

// section is a heading, "" for none, and what is below it.
type section struct {
	title  string
	panels []*dashboard.Panel
}

// page makes a dashboard of its sections, one below the other.
func page(uid, title, about string, sections ...section) board {
	d := dashboard.NewDashboard()
	d.Uid, d.Title, d.Description, d.Tags = &uid, &title, &about, []string{tag}
	d.GraphTooltip = new(dashboard.DashboardCursorSyncCrosshair)
	d.Time = &dashboard.DashboardDashboardTime{From: "now-1h", To: "now"}
	d.Refresh = new("30s")
	d.Templating.List = variables()
	d.Annotations.List = []dashboard.AnnotationQuery{alerts()}
	d.Links = []dashboard.DashboardLink{siblings()}
	d.Panels = place(sections)
	return *d
}

// place gives panels their places, from left to right, and their ids.
func place(sections []section) (placed []dashboard.PanelOrRowPanel) {
	var x, y, height, id uint32
	newLine := func() { x, y, height = 0, y+height, 0 }
	for _, s := range sections {
		newLine()
		if s.title != "" {
			id++
			placed = append(placed, dashboard.PanelOrRowPanel{RowPanel: &dashboard.RowPanel{
				Type: "row", Title: &s.title, Id: id, Panels: []dashboard.Panel{},
				GridPos: &dashboard.GridPos{Y: y, W: columns, H: 1},
			}})
			y++
		}
		for _, p := range s.panels {
			if x+p.GridPos.W > columns {
				newLine()
			}
			id++
			p.Id = new(id)
			p.GridPos.X, p.GridPos.Y = x, y
			x, height = x+p.GridPos.W, max(height, p.GridPos.H)
			placed = append(placed, dashboard.PanelOrRowPanel{Panel: p})
		}
	}
	return placed
}

// variables are what is chosen at the top: where the data is, which cluster, which of its
// nodes. One job is one cluster, or one server.
func variables() []dashboard.VariableModel {
	chosen := func(name, label, asked string) dashboard.VariableModel {
		return dashboard.VariableModel{
			Type: dashboard.VariableTypeQuery, Name: name, Label: &label, Datasource: source(),
			Query: &dashboard.StringOrMap{String: &asked}, Definition: &asked,
			Refresh: new(dashboard.VariableRefreshOnTimeRangeChanged), Sort: new(dashboard.VariableSortAlphabeticalAsc),
		}
	}
	instance := chosen("instance", "Node", `label_values(ticketing_build_info{job="$job"}, instance)`)
	instance.Multi, instance.IncludeAll, instance.AllValue = new(true), new(true), new(".*")
	instance.Current = &dashboard.VariableOption{
		Selected: new(true),
		Text:     dashboard.StringOrArrayOfString{String: new("All")},
		Value:    dashboard.StringOrArrayOfString{String: new("$__all")},
	}
	return []dashboard.VariableModel{
		{Type: dashboard.VariableTypeDatasource, Name: "datasource", Label: new("Data source"), Query: &dashboard.StringOrMap{String: new("prometheus")}},
		chosen("job", "Cluster (job)", "label_values(ticketing_build_info, job)"),
		instance,
	}
}

// alerts marks in all graphs when an alert fired.
func alerts() dashboard.AnnotationQuery {
	expr := `ALERTS{job="$job",alertstate="firing",severity=~"critical|warning"}`
	return dashboard.AnnotationQuery{
		Name: "Alerts", Datasource: source(), Enable: true, IconColor: bad, Expr: &expr,
		Target:      prometheus.Dataquery{Datasource: source(), RefId: new("Alerts"), Expr: expr, Range: new(true)},
		TitleFormat: new("{{alertname}}"), TextFormat: new("{{severity}} {{instance}}"), TagKeys: new("severity"), Step: new("30s"),
	}
}

// siblings shows the other dashboards at the top, for what is chosen here.
func siblings() dashboard.DashboardLink {
	return dashboard.DashboardLink{
		Title: "Ticketing", Type: dashboard.DashboardLinkTypeDashboards, Icon: "external link",
		Tooltip: "The other dashboards of Ticketing", Tags: []string{tag}, IncludeVars: true, KeepTime: true,
	}
}

// leadsTo is a panel's link to the dashboard that tells more.
func leadsTo(uid string) dashboard.DashboardLink {
	url := "/d/" + uid + "?${datasource:queryparam}&${job:queryparam}&${instance:queryparam}&${__url_time_range}"
	return dashboard.DashboardLink{
		Title: "More", Type: dashboard.DashboardLinkTypeLink, Icon: "dashboard", Tags: []string{},
		Tooltip: "The dashboard that tells more", Url: &url,
	}
}
