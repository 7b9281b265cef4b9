package main

import (
	"maps"
	"slices"

	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// style changes how a graph is drawn.
type style func(*dashboard.Panel, *common.GraphFieldConfig)

// graph is lines over time. Its limits are dashed lines.
func graph(p panel, styles ...style) *dashboard.Panel {
	options := timeseries.NewOptions()
	options.Legend.ShowLegend = true
	options.Legend.Calcs = []string{"max"}
	options.Tooltip = common.VizTooltipOptions{Mode: common.TooltipDisplayModeMulti, Sort: common.SortOrderDescending}
	custom := timeseries.NewFieldConfig()
	custom.DrawStyle = new(common.GraphDrawStyleLine)
	custom.LineWidth = new(2.0)
	custom.FillOpacity = new(8.0)
	custom.ShowPoints = new(common.VisibilityModeNever)
	lines := common.GraphThresholdsStyleModeOff
	if len(p.limits.Steps) > 1 {
		lines = common.GraphThresholdsStyleModeDashed
	}
	custom.ThresholdsStyle = &common.GraphThresholdsStyleConfig{Mode: lines}
	built := p.build("timeseries", options, custom)
	built.FieldConfig.Defaults.Color.Mode = dashboard.FieldColorModeIdPaletteClassic
	built.FieldConfig.Defaults.Min = new(0.0)
	for _, apply := range styles {
		apply(built, custom)
	}
	return built
}

// stacked lays a graph's series upon one another.
func stacked(_ *dashboard.Panel, c *common.GraphFieldConfig) {
	c.Stacking = &common.StackingConfig{Mode: new(common.StackingModeNormal), Group: new("A")}
	c.FillOpacity, c.LineWidth = new(40.0), new(1.0)
}

// bars has a graph count events of single moments.
func bars(b *dashboard.Panel, c *common.GraphFieldConfig) {
	stacked(b, c)
	c.DrawStyle, c.FillOpacity = new(common.GraphDrawStyleBars), new(80.0)
}

// powers shows values from microseconds to minutes side by side.
func powers(b *dashboard.Panel, c *common.GraphFieldConfig) {
	c.ScaleDistribution = &common.ScaleDistributionConfig{Type: common.ScaleDistributionLog, Log: new(10.0)}
	b.FieldConfig.Defaults.Min = nil
}

// upToOne shows all of a ratio, however little is in use.
func upToOne(b *dashboard.Panel, _ *common.GraphFieldConfig) { b.FieldConfig.Defaults.Max = new(1.0) }

// colored gives series the same color wherever they are.
func colored(colors map[string]string) style {
	return func(b *dashboard.Panel, _ *common.GraphFieldConfig) {
		for _, name := range slices.Sorted(maps.Keys(colors)) {
			override(b, name, dashboard.DynamicConfigValue{
				Id: "color", Value: dashboard.FieldColor{Mode: dashboard.FieldColorModeIdFixed, FixedColor: new(colors[name])},
			})
		}
	}
}

// ruled draws series as the lines that others are held against.
func ruled(names ...string) style {
	dash := common.LineStyle{Fill: new(common.LineStyleFillDash), Dash: []float64{10, 10}}
	return func(b *dashboard.Panel, _ *common.GraphFieldConfig) {
		for _, name := range names {
			override(b, name,
				dashboard.DynamicConfigValue{Id: "custom.lineStyle", Value: dash},
				dashboard.DynamicConfigValue{Id: "custom.fillOpacity", Value: 0},
				dashboard.DynamicConfigValue{Id: "custom.lineWidth", Value: 1},
			)
		}
	}
}

func override(b *dashboard.Panel, name string, values ...dashboard.DynamicConfigValue) {
	b.FieldConfig.Overrides = append(b.FieldConfig.Overrides, dashboard.DashboardFieldConfigSourceOverrides{
		Matcher: dashboard.MatcherConfig{Id: "byName", Options: name}, Properties: values,
	})
}
