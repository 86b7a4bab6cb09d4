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

// Of few rounds there would be one numbered 1.5.
const wholeTicks = (last) => (last <= 10 ? { dtick: 1 } : {});

const hidden = new Set();

const drawn = {
  lines: (chart) => {
    const traces = [];
    for (const curve of chart.curves) {
      const [paint, dash] = report.styles[curve.method];
      const visible = !hidden.has(curve.method);
      if (curve.low && chart.curves.length <= report.bands) {
        traces.push({
          type: "scatter", x: curve.x.concat(curve.x.slice().reverse()), y: curve.high.concat(curve.low.slice().reverse()),
          fill: "toself", fillcolor: paint + "26", line: { width: 0 }, mode: "lines", hoverinfo: "skip", visible, meta: curve.method,
        });
      }
      traces.push({
        type: "scatter", mode: curve.x.length > 60 ? "lines" : "lines+markers", name: curve.name, x: curve.x, y: curve.y,
        line: { color: paint, dash, width: 2 }, marker: { size: 5 }, cliponaxis: false, hovertemplate: "%{fullData.name}: %{y:.4g}<extra></extra>", visible, meta: curve.method,
      });
    }
    const xaxis = { title: { text: chart.x_label }, ...wholeTicks(Math.max(...chart.curves.map((curve) => curve.x.at(-1)))) };
    const yaxis = { title: { text: chart.y_label }, ...(chart.y_range && { range: chart.y_range }) };
    return [traces, { xaxis, yaxis, showlegend: false }];
  },
  bars: (chart) => [
    chart.series.map((s, k) => ({
      type: "bar", orientation: "h", name: s.name, x: s.x, y: chart.categories, marker: { color: colour(k) },
      hovertemplate: "%{y} %{fullData.name}: %{x:,}<extra></extra>",
    })),
    {
      barmode: "group", xaxis: { title: { text: chart.x_label } },
      yaxis: { type: "category", autorange: "reversed", tickmode: "linear", dtick: 1, showgrid: false },
    },
  ],
  columns: (chart) => [
    chart.series.map((s) => ({
      type: "bar", name: s.name, x: chart.categories, y: s.y, marker: { color: report.styles[s.method][0] },
      hovertemplate: "client %{x}, %{fullData.name}: %{y:.4f}<extra></extra>", visible: !hidden.has(s.method), meta: s.method,
    })),
    { barmode: "group", xaxis: { type: "category", title: { text: chart.x_label } }, yaxis: { title: { text: chart.y_label } }, showlegend: false },
  ],
  table: (chart) => [
    [{
      type: "heatmap", x: chart.columns, y: chart.rows, z: chart.values, colorscale: "Cividis", hoverongaps: false,
      ygap: 1, xgap: chart.columns.length > 60 ? 0 : 1, colorbar: { thickness: 10 },
      hovertemplate: `%{y}, ${chart.x_label} %{x}: %{z:.4f}<extra></extra>`,
    }],
    {
      xaxis: { type: "category", title: { text: chart.x_label }, showgrid: false },
      yaxis: { type: "category", autorange: "reversed", tickmode: "linear", dtick: 1, showgrid: false, tickfont: { size: 10 } },
    },
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
        colorscale: diverging ? (darkMode.matches ? report.diverging_dark : report.diverging) : "Cividis", hoverongaps: false,
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
      { xaxis: { title: { text: "round" }, showgrid: false, ...wholeTicks(chart.rounds.at(-1)) }, yaxis: { title: { text: "client" }, type: "category", autorange: "reversed", showgrid: false } },
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

function drawChart(chart) {
  chart.shown = true;
  draw(document.getElementById(chart.name), chart.kind, chart);
  if (chart.truth) draw(document.getElementById(chart.name + "-truth"), "truth", chart);
  if (chart.kind === "heatmap") showRound(chart, document.getElementById(chart.name + "-round"));
}

const place = (chart) => document.getElementById(chart.name);
const folded = (chart) => place(chart).closest("details:not([open])") !== null;
const waiting = () => report.charts.filter((chart) => !chart.shown && !folded(chart));

// What is on the screen is drawn at once; the rest one by one, so that the page answers in between.
function drawNext() {
  const [next] = waiting();
  if (next) {
    drawChart(next);
    setTimeout(drawNext);
  } else {
    document.documentElement.dataset.ready = "true";
  }
}

function showMethod(method, shown) {
  if (shown) hidden.delete(method);
  else hidden.add(method);
  for (const chart of report.charts) {
    const traces = place(chart).data;
    if (!chart.shown || (chart.kind !== "lines" && chart.kind !== "columns")) continue;
    const own = traces.flatMap((trace, k) => (trace.meta === method ? [k] : []));
    if (own.length) Plotly.restyle(place(chart), { visible: shown }, own);
  }
}

const chips = [...document.querySelectorAll("button[data-method]")];
function press(chip, shown) {
  chip.setAttribute("aria-pressed", String(shown));
  showMethod(Number(chip.dataset.method), shown);
}
for (const chip of chips) chip.addEventListener("click", () => press(chip, chip.getAttribute("aria-pressed") !== "true"));
document.getElementById("everyone")?.addEventListener("click", () => {
  const shown = hidden.size > 0;
  chips.forEach((chip) => press(chip, shown));
});

function showRound(chart, slider) {
  const frame = Number(slider.value);
  slider.nextElementSibling.textContent = "round " + chart.rounds[frame];
  return Plotly.restyle(chart.name, { z: [matrixOf(chart, frame)] });
}

for (const chart of report.charts) {
  if (chart.kind === "heatmap") {
    const slider = document.getElementById(chart.name + "-round");
    slider.addEventListener("input", () => (chart.shown ? showRound(chart, slider) : drawChart(chart)));
  }
}
// Every figure as a table: one line per point, so that any program reads it.
const tables = {
  lines: (chart) => [
    ["method", chart.x_label, chart.y_label, "low", "high"],
    ...chart.curves.flatMap((c) => c.x.map((x, k) => [c.name, x, c.y[k], c.low ? c.low[k] : null, c.high ? c.high[k] : null])),
  ],
  bars: (chart) => [
    ["name", "series", chart.x_label],
    ...chart.series.flatMap((s) => s.x.map((x, k) => [chart.categories[k], s.name, x])),
  ],
  columns: (chart) => [
    ["method", chart.x_label, chart.y_label],
    ...chart.series.flatMap((s) => s.y.map((y, k) => [s.name, chart.categories[k], y])),
  ],
  table: (chart) => [
    ["name", chart.x_label, "value"],
    ...chart.values.flatMap((row, i) => row.map((value, j) => [chart.rows[i], chart.columns[j], value])),
  ],
  dots: (chart) => [
    [chart.y_label, chart.x_label, "count"],
    ...chart.counts.flatMap((row, i) => row.map((count, j) => [chart.rows[i], chart.columns[j], count])),
  ],
  heatmap: (chart) => [
    ["round", "from", "to", "value", ...(chart.truth ? ["truth"] : [])],
    ...chart.rounds.flatMap((round, frame) => matrixOf(chart, frame).flatMap((row, i) => row.map(
      (value, j) => [round, chart.labels[i], chart.labels[j], value, ...(chart.truth ? [chart.truth[i][j]] : [])],
    ))),
  ],
  memberships: (chart) => [
    ["client", "round", "coalition"],
    ...chart.coalitions.flatMap((row, i) => row.map((number, j) => [chart.labels[i], chart.rounds[j], number])),
  ],
  network: (chart) => [
    ["client", "other client", "coalition"],
    ...chart.edges.map(([a, b]) => [chart.labels[a], chart.labels[b], chart.coalitions[a]]),
  ],
};

function csvOf(chart) {
  const cell = (value) => {
    const text = value === null || value === undefined ? "" : String(value);
    // A name that a spreadsheet would take for a formula stays a name.
    const safe = typeof value === "string" && /^[=+\-@\t\r]/.test(text) ? "'" + text : text;
    return /[",\n\r]/.test(safe) ? '"' + safe.replaceAll('"', '""') + '"' : safe;
  };
  return tables[chart.kind](chart).map((row) => row.map(cell).join(",") + "\n").join("");
}

for (const button of document.querySelectorAll("button.save")) {
  button.addEventListener("click", () => {
    const chart = report.charts.find((each) => each.name === button.dataset.chart);
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([csvOf(chart)], { type: "text/csv" }));
    link.download = chart.name + ".csv";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });
}

// A click on a head sorts by that column: numbers, the highest first; words from A; then the other way.
function sortBy(head) {
  const row = head.parentElement, body = head.closest("table").tBodies[0];
  const column = [...row.children].indexOf(head);
  const number = (line) => Number.parseFloat(line.children[column].textContent.replaceAll(",", ""));
  const lines = [...body.rows];
  const numeric = lines.some((line) => !Number.isNaN(number(line)));
  const before = head.getAttribute("aria-sort");
  const up = before === "none" ? !numeric : before === "descending";
  const value = (line) => (Number.isNaN(number(line)) ? (up ? Infinity : -Infinity) : number(line));
  const order = numeric
    ? (a, b) => value(a) - value(b)
    : (a, b) => a.children[column].textContent.localeCompare(b.children[column].textContent);
  lines.sort((a, b) => (up ? order(a, b) : order(b, a))).forEach((line) => body.append(line));
  for (const other of row.children) other.setAttribute("aria-sort", "none");
  head.setAttribute("aria-sort", up ? "ascending" : "descending");
}
for (const button of document.querySelectorAll("button.sort")) button.addEventListener("click", () => sortBy(button.parentElement));

report.charts.filter((chart) => !folded(chart) && place(chart).getBoundingClientRect().top < window.innerHeight).forEach(drawChart);
document.documentElement.dataset.interactive = performance.now().toFixed(0);
setTimeout(drawNext);
document.querySelectorAll("details").forEach((each) => each.addEventListener("toggle", drawNext));
darkMode.addEventListener("change", () => report.charts.filter((chart) => chart.shown).forEach(drawChart));
window.addEventListener("beforeprint", () => {
  waiting().forEach(drawChart);
  report.charts.filter((chart) => chart.shown && !folded(chart)).forEach((chart) => Plotly.Plots.resize(chart.name));
});
