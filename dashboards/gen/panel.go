package main

import (
	"cmp"
	"strconv"

	"github.com/grafana/grafana-foundation-sdk/go/cog/variants"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/heatmap"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/statetimeline"
	"github.com/grafana/grafana-foundation-sdk/go/table"
)

// Colors, by what they say on a wall.
const (
	good    = "green"
	warning = "orange"
	bad     = "red"
	quiet   = "blue"
	grey    = "text"
)

// Units of Grafana.
const (
	count     = "short"
	perSecond = "reqps"
	seconds   = "s"
	ratio     = "percentunit"
	memory    = "bytes"
)

// panel is what is particular to a panel; its kind does the rest.
type panel struct {
	title         string
	about         string // what it shows, and what to think of it
	unit          string
	limits        *dashboard.ThresholdsConfig
	queries       []query
	width, height uint32
	more          string // uid of the dashboard that tells more, "" for none
	empty         string // what is said when there is no data, "" for "no data"
}

// limits are from where on a value has which color.
func limits(lowest string, steps ...dashboard.Threshold) *dashboard.ThresholdsConfig {
	all := append([]dashboard.Threshold{{Color: lowest}}, steps...)
	return &dashboard.ThresholdsConfig{Mode: dashboard.ThresholdsModeAbsolute, Steps: all}
}

// from is a step of limits.
func from(value float64, color string) dashboard.Threshold {
	return dashboard.Threshold{Value: &value, Color: color}
}

// source is the data source that the variable chooses.
func source() *common.DataSourceRef {
	return &common.DataSourceRef{Type: new("prometheus"), Uid: new("${datasource}")}
}

// build makes a panel of a kind.
func (p panel) build(kind string, options, custom any) *dashboard.Panel {
	built := &dashboard.Panel{
		Type: kind, Title: &p.title, Description: &p.about, Datasource: source(), Options: options,
		GridPos: &dashboard.GridPos{W: p.width, H: p.height},
		FieldConfig: &dashboard.FieldConfigSource{
			Defaults: dashboard.FieldConfig{
				Unit: &p.unit, Thresholds: p.limits, NoValue: new(cmp.Or(p.empty, "no data")), Custom: custom,
				Color: &dashboard.FieldColor{Mode: dashboard.FieldColorModeIdThresholds},
			},
			Overrides: []dashboard.DashboardFieldConfigSourceOverrides{},
		},
	}
	for i, q := range p.queries {
		built.Targets = append(built.Targets, q.target(string(rune('A'+i))))
	}
	if p.more != "" {
		built.Links = []dashboard.DashboardLink{leadsTo(p.more)}
	}
	return built
}

func (q query) target(ref string) variants.Dataquery {
	return prometheus.Dataquery{
		Datasource: source(), RefId: &ref, Expr: q.expr, LegendFormat: &q.legend,
		EditorMode: new(prometheus.QueryEditorModeCode), Range: new(true), Exemplar: &q.exemplars,
	}
}

// number is one figure that can be read from afar. Where a value can mean trouble, the
// background has its color. It is of now: of a time range Grafana would go on to show the
// last figure that there was, of nodes that are long gone.
func number(p panel) *dashboard.Panel {
	options := stat.NewOptions()
	options.ReduceOptions.Calcs = []string{"lastNotNull"}
	options.Orientation = common.VizOrientationAuto
	options.GraphMode, options.ColorMode = common.BigValueGraphModeNone, common.BigValueColorModeBackground
	if len(p.limits.Steps) == 1 {
		options.ColorMode = common.BigValueColorModeValue
	}
	built := p.build("stat", options, nil)
	for i, target := range built.Targets {
		built.Targets[i] = ofNow(target)
	}
	return built
}

// ofNow asks for the newest values only.
func ofNow(target variants.Dataquery) prometheus.Dataquery {
	q := target.(prometheus.Dataquery)
	q.Range, q.Instant = nil, new(true)
	return q
}

// state is how a value is called, and its color.
type state struct {
	value       int
	text, color string
}

// named calls some of a panel's values by name.
func named(b *dashboard.Panel, states ...state) *dashboard.Panel {
	names := make(map[string]dashboard.ValueMappingResult)
	for i, s := range states {
		names[strconv.Itoa(s.value)] = dashboard.ValueMappingResult{Text: &s.text, Color: &s.color, Index: new(int32(i))}
	}
	b.FieldConfig.Defaults.Mappings = []dashboard.ValueMapping{{ValueMap: &dashboard.ValueMap{Type: dashboard.MappingTypeValueToText, Options: names}}}
	return b
}

// timeline is what state something was in when.
func timeline(p panel, states ...state) *dashboard.Panel {
	options := statetimeline.NewOptions()
	options.Legend.ShowLegend = false
	options.Tooltip = common.VizTooltipOptions{Mode: common.TooltipDisplayModeSingle, Sort: common.SortOrderNone}
	custom := statetimeline.NewFieldConfig()
	custom.FillOpacity = new(uint32(70))
	return named(p.build("state-timeline", options, custom), states...)
}

// heat is a histogram over time. Its one query sums over all labels but le.
func heat(p panel) *dashboard.Panel {
	options := heatmap.NewOptions()
	options.Calculate = new(false)
	options.CellGap = new(uint8(1))
	options.YAxis.Unit = &p.unit
	options.Color.Mode = new(heatmap.HeatmapColorModeScheme)
	options.Color.Scheme = "Oranges"
	options.Color.Exponent = 0.5
	options.Tooltip.YHistogram = new(true)
	built := p.build("heatmap", options, heatmap.NewFieldConfig())
	q := built.Targets[0].(prometheus.Dataquery)
	q.Format = new(prometheus.PromQueryFormatHeatmap)
	built.Targets[0] = q
	return built
}

// rows is a table with a line for each series of its one query, and some of its labels in
// columns.
func rows(p panel, columns ...string) *dashboard.Panel {
	options := table.NewOptions()
	options.Footer = nil
	built := p.build("table", options, table.NewFieldConfig())
	q := ofNow(built.Targets[0])
	q.Format = new(prometheus.PromQueryFormatTable)
	built.Targets[0] = q
	order := make(map[string]int)
	for i, name := range columns {
		order[name] = i
	}
	built.Transformations = []dashboard.DataTransformerConfig{
		{Id: "filterFieldsByName", Options: map[string]any{"include": map[string]any{"names": columns}}},
		{Id: "organize", Options: map[string]any{"indexByName": order}},
	}
	return built
}
