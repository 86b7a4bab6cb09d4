"use strict";
// Draws the charts of the page from the plain data in it. Nothing is fetched.

const report = JSON.parse(document.getElementById("report-data").textContent);
const darkMode = window.matchMedia("(prefers-color-scheme: dark)");
const narrow = () => window.innerWidth < 600;
const colour = (number) => report.palette[number % report.palette.length];

function layout(extra) {
  const style = getComputedStyle(document.documentElement);
  const ink = style.getPropertyValue("--ink").trim();
  const line = style.getPropertyValue("--line").trim();
  const axis = { gridcolor: line, zerolinecolor: line, linecolor: line, automargin: true };
  return {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: ink, size: narrow() ? 11 : 12 },
    margin: { l: 50, r: 12, t: 10, b: 42 },
    legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0 },
    ...extra,
    xaxis: { ...axis, ...(extra.xaxis || {}) },
    yaxis: { ...axis, ...(extra.yaxis || {}) },
  };
}

function matrixOf(chart, frame) {
  const n = chart.size;
  const bytes = chart.bytes || (chart.bytes = Uint8Array.from(atob(chart.frames), (c) => c.charCodeAt(0)));
  const rows = [];
  for (let i = 0; i < n; i++) {
    const row = new Array(n);
    for (let j = 0; j < n; j++) {
      const level = bytes[(frame * n + i) * n + j];
      row[j] = level === 255 ? null : chart.low + (chart.high - chart.low) * (level / 254);
    }
    rows.push(row);
  }
  return rows;
}

const square = (labels) => ({
  xaxis: { title: { text: "client" }, type: "category", showgrid: false, constrain: "domain" },
  yaxis: { title: { text: "client" }, type: "category", autorange: "reversed", showgrid: false, scaleanchor: "x", constrain: "domain" },
});

const drawn = {
  lines: (chart) => [
    chart.series.map((s, k) => ({
      type: "scatter", mode: s.x.length > 60 ? "lines" : "lines+markers", name: s.name, x: s.x, y: s.y,
      line: { color: colour(k), width: 2 }, marker: { size: 5 },
    })),
    { xaxis: { title: { text: chart.x_label } }, yaxis: { title: { text: chart.y_label } }, showlegend: chart.series.length > 1 },
  ],
  bars: (chart) => [
    chart.series.map((s, k) => ({ type: "bar", name: s.name, x: chart.categories, y: s.y, marker: { color: colour(k) } })),
    { barmode: "group", xaxis: { type: "category" }, yaxis: { title: { text: chart.y_label } }, showlegend: chart.series.length > 1 },
  ],
  dots: (chart) => {
    const x = [], y = [], text = [], size = [];
    const most = Math.max(1, ...chart.counts.flat());
    chart.counts.forEach((row, i) => row.forEach((count, j) => {
      if (count > 0) {
        x.push(chart.columns[j]); y.push(chart.rows[i]);
        text.push(`client ${chart.columns[j]}, label ${chart.rows[i]}: ${count} images`);
        size.push(Math.sqrt(count / most) * (narrow() ? 12 : 18));
      }
    }));
    return [
      [{ type: "scatter", mode: "markers", x, y, text, hoverinfo: "text", marker: { size, color: colour(0) } }],
      {
        xaxis: { title: { text: chart.x_label }, type: "category", categoryorder: "array", categoryarray: chart.columns },
        yaxis: { title: { text: chart.y_label }, type: "category", categoryorder: "array", categoryarray: chart.rows },
      },
    ];
  },
  heatmap: (chart) => {
    const diverging = chart.low < 0;
    const reach = Math.max(Math.abs(chart.low), Math.abs(chart.high)) || 1;
    return [
      [{
        type: "heatmap", x: chart.labels, y: chart.labels, z: matrixOf(chart, chart.rounds.length - 1),
        zmin: diverging ? -reach : chart.low, zmax: diverging ? reach : chart.high,
        colorscale: diverging ? report.diverging : "Cividis", hoverongaps: false,
        hovertemplate: "%{y} → %{x}: %{z:.4g}<extra></extra>", colorbar: { thickness: 10 },
      }],
      square(),
    ];
  },
  truth: (chart) => [
    [{
      type: "heatmap", x: chart.labels, y: chart.labels, z: chart.truth, showscale: false, zmin: 0, zmax: 1,
      colorscale: [[0, "rgba(128,128,128,0.08)"], [1, colour(0)]], hovertemplate: "%{y} and %{x}: %{z}<extra></extra>",
    }],
    square(),
  ],
  memberships: (chart) => {
    const used = Math.max(1, ...chart.coalitions.flat()) + 1;
    const scale = [];
    for (let k = 0; k < used; k++) scale.push([k / used, colour(k)], [(k + 1) / used, colour(k)]);
    return [
      [{
        type: "heatmap", x: chart.rounds, y: chart.labels, z: chart.coalitions, zmin: -0.5, zmax: used - 0.5,
        colorscale: scale, showscale: false, xgap: chart.rounds.length > 60 ? 0 : 1, ygap: chart.labels.length > 60 ? 0 : 1,
        hovertemplate: "client %{y}, round %{x}: coalition %{z}<extra></extra>",
      }],
      { xaxis: { title: { text: "round" }, showgrid: false }, yaxis: { title: { text: "client" }, type: "category", autorange: "reversed", showgrid: false } },
    ];
  },
  network: (chart) => [
    [
      {
        type: "scatter", mode: "lines", hoverinfo: "skip", line: { color: "rgba(128,128,128,0.35)", width: 1 },
        x: chart.edges.flatMap(([a, b]) => [chart.x[a], chart.x[b], null]),
        y: chart.edges.flatMap(([a, b]) => [chart.y[a], chart.y[b], null]),
      },
      {
        type: "scatter", mode: chart.labels.length > 60 ? "markers" : "markers+text", x: chart.x, y: chart.y,
        text: chart.labels, textposition: "top center", hovertemplate: "%{text}<extra></extra>",
        marker: { size: chart.labels.length > 60 ? 8 : 14, color: chart.coalitions.map(colour) },
      },
    ],
    { showlegend: false, xaxis: { visible: false }, yaxis: { visible: false } },
  ],
};

const options = { responsive: true, displaylogo: false, displayModeBar: false };

function draw(div, kind, chart) {
  const [traces, extra] = drawn[kind](chart);
  return Plotly.react(div, traces, layout(extra), options);
}

function drawAll() {
  for (const chart of report.charts) {
    draw(document.getElementById(chart.name), chart.kind, chart);
    if (chart.truth) draw(document.getElementById(chart.name + "-truth"), "truth", chart);
    if (chart.kind === "heatmap") showRound(chart, document.getElementById(chart.name + "-round"));
  }
}

function showRound(chart, slider) {
  const frame = Number(slider.value);
  slider.nextElementSibling.textContent = "round " + chart.rounds[frame];
  return Plotly.restyle(chart.name, { z: [matrixOf(chart, frame)] });
}

for (const chart of report.charts) {
  if (chart.kind === "heatmap") {
    const slider = document.getElementById(chart.name + "-round");
    slider.addEventListener("input", () => showRound(chart, slider));
  }
}
drawAll();
darkMode.addEventListener("change", drawAll);
window.addEventListener("beforeprint", () => report.charts.forEach((chart) => Plotly.Plots.resize(chart.name)));
document.documentElement.dataset.ready = "true";
