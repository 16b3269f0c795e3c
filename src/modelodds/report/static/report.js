"use strict";
// Draws the report's plots from the data in the page; on a live page, asks the server for newer data.
(() => {
  const $ = (id) => document.getElementById(id);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const touch = window.matchMedia("(pointer: coarse)");  // a finger on a plot means to scroll the page
  const LIGHT = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999"];
  const DARK = ["#56B4E9", "#E69F00", "#1FBF93", "#CC79A7", "#F0E442", "#E8743B", "#FFFFFF", "#A6A6A6"];
  const DASHES = ["solid", "dash", "dot"];
  let data = JSON.parse($("data").textContent);

  const colour = (i) => (dark.matches ? DARK : LIGHT)[i % 8];
  const dash = (i) => DASHES[Math.floor(i / 8) % 3];
  const fade = (hex, alpha) => {
    const [r, g, b] = [1, 3, 5].map((k) => parseInt(hex.slice(k, k + 2), 16));
    return `rgba(${r},${g},${b},${alpha})`;
  };
  // Plotly reads a few tags in its texts: a name is to be shown as it is.
  const text = (name) => String(name).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  const twice = (sd) => sd.map((s) => (s === null ? 0 : 2 * s));

  const layout = (x, y, more = {}) => {
    const ink = dark.matches ? "#e6e6e6" : "#1a1a1a";
    const grid = dark.matches ? "#2b3238" : "#ebebeb";
    const axis = (title) => ({
      title: { text: title, font: { size: 12 }, standoff: 6 }, gridcolor: grid, zerolinecolor: grid, linecolor: ink, automargin: true,
    });
    const { xaxis = {}, yaxis = {}, ...rest } = more;
    return {
      margin: { l: 52, r: 12, t: 8, b: 40 }, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { color: ink, size: 12 }, hovermode: "closest", uirevision: "kept", dragmode: touch.matches ? false : "zoom",
      legend: { orientation: "h", y: -0.2, font: { size: 11 } },
      xaxis: { ...axis(x), ...xaxis }, yaxis: { ...axis(y), ...yaxis }, ...rest,
    };
  };
  const CONFIG = { responsive: true, displaylogo: false, displayModeBar: touch.matches ? false : "hover",
    modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]] };  // none that sends anything anywhere
  const draw = (id, traces, shape) => Plotly.react($(id), traces, shape, CONFIG);
  // A figure with nothing in it is not there.
  const show = (id, something) => !($(id).closest("figure").hidden = !something);

  function drawTrace() {
    const { n, mean, low, high } = data.trace;
    const traces = data.names.flatMap((name, i) => [
      { x: n, y: low[i], mode: "lines", line: { width: 0 }, hoverinfo: "skip", showlegend: false, legendgroup: i },
      { x: n, y: high[i], mode: "lines", line: { width: 0 }, fill: "tonexty", fillcolor: fade(colour(i), 0.15),
        hoverinfo: "skip", showlegend: false, legendgroup: i },
      { x: n, y: mean[i], name: text(name), mode: n.length > 1 ? "lines" : "markers", legendgroup: i,
        line: { color: colour(i), dash: dash(i), width: 2 }, hovertemplate: "%{y:.4f} after %{x} evaluations" },
    ]);
    draw("trace", traces, layout("evaluations", "probability", { yaxis: { range: [-0.02, 1.02] }, hovermode: "x" }));
  }

  function drawCounts() {
    const traces = data.names.map((name, i) => ({
      x: data.counts.n, y: data.counts.each[i], name: text(name), mode: "lines",
      line: { color: colour(i), dash: dash(i), width: 2, shape: "hv" },
    }));
    draw("counts", traces, layout("evaluations, all models", "evaluations of the model"));
  }

  function drawOdds() {
    const { names, mean, sd } = data.odds;
    const traces = names.map((name, k) => ({
      x: [mean[k]], y: [k], name: text(name), mode: "markers", showlegend: false,
      marker: { color: colour(data.names.indexOf(name)), size: 9 },
      error_x: { type: "data", array: twice([sd[k]]), color: colour(data.names.indexOf(name)) },
      hovertemplate: "%{x:.3f} nats",
    }));
    const yaxis = { tickvals: names.map((_, k) => k), ticktext: names.map(text), autorange: "reversed" };
    draw("odds", traces, layout("natural log of the odds", "", { yaxis }));
  }

  function drawPrior() {
    const traces = data.names.map((name, i) => ({
      x: data.prior_odds.factor, y: data.prior_odds.probability[i], name: text(name), mode: "lines",
      line: { color: colour(i), dash: dash(i), width: 2 }, hovertemplate: "%{y:.3f} at %{x:.3g} times the odds",
    }));
    const more = { xaxis: { type: "log", dtick: 1 }, yaxis: { range: [-0.02, 1.02] } };
    draw("prior", traces, layout("factor on its prior odds", "its probability", more));
  }

  const chosen = () => data.names[$("model").selectedIndex] ?? data.names[0];

  function drawPair() {
    const model = data.models[chosen()], i = data.names.indexOf(chosen());
    const a = $("across").selectedIndex, b = $("up").selectedIndex;
    if (!show("pair", a >= 0)) return;
    const same = a === b;
    const draws = same
      ? { x: model.draws[a], y: model.draws[a].map((_, k) => (k * 0.618) % 1), hoverinfo: "x" }
      : { x: model.draws[a], y: model.draws[b] };
    const points = {
      x: model.points[a], y: same ? model.points[a].map(() => 0.5) : model.points[b], name: "evaluated", mode: "markers",
      text: model.id.map((n, k) => `evaluation ${n}: ${(-model.below[k]).toPrecision(3)} below the best`),
      hovertemplate: "%{text}<extra></extra>",
      marker: { size: 8, color: model.below.map((y) => Math.max(y, -10)), colorscale: "Cividis", cmin: -10, cmax: 0,
        line: { width: 1, color: dark.matches ? "#fff" : "#000" }, colorbar: { thickness: 8, title: { text: "nats" } } },
    };
    const inner = { ...draws, name: "posterior draws", mode: "markers", hoverinfo: "skip",
      marker: { size: 3, color: colour(i), opacity: 0.5 } };
    const shown = (k) => (model.draws[k].length ? model.draws[k] : model.points[k]);
    const around = (values) => {
      const [low, high] = [Math.min(...values), Math.max(...values)], pad = 0.1 * (high - low);
      return { range: [low - pad, high + pad] };
    };
    const more = { xaxis: around(shown(a)), yaxis: same ? { showticklabels: false } : around(shown(b)),
      uirevision: `${chosen()}/${a}/${b}` };
    draw("pair", [inner, points], layout(text(model.parameters[a]), same ? "" : text(model.parameters[b]), more));
  }

  function drawSlice() {
    const model = data.models[chosen()], i = data.names.indexOf(chosen());
    const line = model.slices.find((s) => s.parameter === model.parameters[$("across").selectedIndex]) ?? model.slices[0];
    if (!show("slice", line)) return;
    const edge = (sign) => line.mean.map((m, k) => m + sign * 2 * line.sd[k]);
    const band = { mode: "lines", line: { width: 0 }, hoverinfo: "skip", showlegend: false, x: line.value };
    const traces = [
      { ...band, y: edge(-1) }, { ...band, y: edge(1), fill: "tonexty", fillcolor: fade(colour(i), 0.25) },
      { x: line.value, y: line.mean, name: "log-likelihood", mode: "lines", line: { color: colour(i), width: 2 } },
      { x: line.value, y: line.score, name: "acquisition", mode: "lines", yaxis: "y2",
        line: { color: colour(i + 2), width: 2, dash: "dot" } },
    ];
    const shape = layout(text(line.parameter), "nats below the best", { uirevision: `${chosen()}/${line.parameter}` });
    shape.xaxis.anchor = "y2";
    shape.yaxis.domain = [0.36, 1];
    shape.yaxis2 = { ...shape.yaxis, domain: [0, 0.28], title: { text: "gain", font: { size: 12 } }, rangemode: "tozero" };
    draw("slice", traces, shape);
  }

  function drawLeftOut() {
    const left = data.models[chosen()].left_out, i = data.names.indexOf(chosen());
    if (!show("leftout", left?.observed.length)) return;
    const low = Math.min(...left.observed) - 0.5;
    const traces = [
      { x: [low, 0.5], y: [low, 0.5], mode: "lines", line: { color: "#8c8c8c", width: 1 }, hoverinfo: "skip", showlegend: false },
      { x: left.observed, y: left.mean, mode: "markers", name: text(chosen()), showlegend: false,
        marker: { color: colour(i), size: 7 }, error_y: { type: "data", array: twice(left.sd), color: fade(colour(i), 0.6) },
        hovertemplate: "observed %{x:.3f}, predicted %{y:.3f}<extra></extra>" },
    ];
    const more = { uirevision: chosen(), yaxis: { range: [low - 1.5, 2] } };
    draw("leftout", traces, layout("observed, nats below the best", "predicted from the others", more));
  }

  function drawCalibration() {
    const traces = [{ x: [0, 1], y: [0, 1], mode: "lines", line: { color: "#8c8c8c", width: 1 }, hoverinfo: "skip",
      showlegend: false }];
    data.names.forEach((name, i) => {
      const shares = data.models[name].calibration;
      if (shares) traces.push({ x: data.levels, y: shares, name: text(name), mode: "lines",
        line: { color: colour(i), dash: dash(i), width: 2 } });
    });
    if (!show("calibration", traces.length > 1)) return;
    const more = { xaxis: { range: [0, 1] }, yaxis: { range: [0, 1.02] } };
    draw("calibration", traces, layout("predicted share inside", "observed share inside", more));
  }

  function fill(select, labels, index) {
    select.replaceChildren(...labels.map((label) => new Option(label)));
    select.selectedIndex = Math.min(index, labels.length - 1);
  }
  function chooseModel() {
    const labels = data.models[chosen()].parameters;
    fill($("across"), labels, 0);
    fill($("up"), labels, 1);
    for (const id of ["across", "up"]) $(id).closest("label").hidden = labels.length === 0;
    drawModel();
  }
  function drawModel() { drawPair(); drawSlice(); drawLeftOut(); }
  function drawAll() { drawTrace(); drawCounts(); drawOdds(); drawPrior(); drawModel(); drawCalibration(); }

  fill($("model"), data.names, Math.max(0, data.names.indexOf(data.odds.names[0])));
  chooseModel();
  drawAll();
  $("model").addEventListener("change", chooseModel);
  $("across").addEventListener("change", () => { drawPair(); drawSlice(); });
  $("up").addEventListener("change", drawPair);
  dark.addEventListener("change", drawAll);

  if (document.body.dataset.live === "true") {
    let version = "";
    const say = (words) => { $("live").hidden = false; $("live").textContent = words; };
    const look = async () => {
      try {
        const answer = await fetch(`state?known=${encodeURIComponent(version)}`, { cache: "no-store" });
        if (answer.status === 200) {
          const news = await answer.json();
          version = news.version;
          data = news.data;
          $("opening").innerHTML = news.opening;  // escaped where it was written
          $("closing").innerHTML = news.closing;
          const keep = chosen();
          if (!data.models[keep]) fill($("model"), data.names, 0);
          if ($("across").options.length === 0) chooseModel();
          drawAll();
        } else if (answer.status !== 304) {
          say(`Live: ${(await answer.text()).slice(0, 300)}`);
          return;
        }
        say(`Live: last looked at ${new Date().toLocaleTimeString()}.`);
      } catch (error) {
        say("The server does not answer any more; this is the last state it showed.");
      }
    };
    look();
    setInterval(look, 2000);
  }
})();
