// Draws the report from the data element. Nothing is fetched; names are text, never markup.

const byId = (id) => document.getElementById(id);
const words = (id) => id.replaceAll("_", " ");
const data = JSON.parse(byId("data").textContent);

function node(name, className, ...parts) {
  const element = document.createElement(name);
  if (className) element.className = className;
  element.append(...parts);
  return element;
}

function percent(ratio) {
  const value = ratio * 100;
  return value !== 0 && Math.abs(value) < 0.05 ? value.toFixed(3) : value.toFixed(1);
}

function seconds(ns) {
  const s = ns / 1e9;
  if (Math.abs(s) < 1e-3) return `${(s * 1e6).toFixed(1)} µs`;
  if (Math.abs(s) < 0.1) return `${(s * 1e3).toFixed(1)} ms`;
  if (s < 10) return `${s.toFixed(3)} s`;
  return s < 600 ? `${s.toFixed(1)} s` : `${Math.floor(s / 3600)} h ${String(Math.floor(s / 60) % 60).padStart(2, "0")} min`;
}

function count(value) {
  for (const [unit, size] of [["P", 1e15], ["T", 1e12], ["G", 1e9], ["M", 1e6], ["k", 1e3]]) {
    if (Math.abs(value) >= size) return (value / size).toPrecision(3) + unit;
  }
  return value.toFixed(0);
}

function rate(flopsPerSecond) {
  for (const [unit, size] of [["P", 1e15], ["T", 1e12], ["G", 1e9]]) {
    if (flopsPerSecond >= size) return `${+(flopsPerSecond / size).toPrecision(4)} ${unit}FLOP/s`;
  }
  return `${flopsPerSecond} FLOP/s`;
}

function flops(value) {
  return `${count(value).replace(/([a-zA-Z]?)$/, " $1")}FLOPs`;
}

// A number and its unit, or a dash: what is not known is not 0.
function setFigure(id, text, unit, note) {
  const element = byId(id);
  element.replaceChildren(text ?? "–");
  if (text !== null && unit) element.append(node("small", "", ` ${unit}`));
  element.classList.toggle("wide", text !== null && text.length > 6);
  if (note !== undefined) byId(`${id}-note`).textContent = note;
}

const figure = (ratio) => (ratio === null ? null : percent(ratio));

function interval(ratios) {
  const low = figure(ratios.hfu_low_ratio);
  const high = ratios.hfu_high_ratio === null ? low : figure(ratios.hfu_high_ratio);
  return low === high ? low : `${low} – ${high}`;
}

function showFigures() {
  const given = data.given_ranks !== null;
  const ratios = given ? data.given_ranks : data;
  const note = given ? `of ${data.ranks_given} of ${data.run.world_size} ranks` : "";
  setFigure("mfu", figure(ratios.mfu_ratio), "%",
    ratios.mfu_ratio === null ? `not known: ${ratios.mfu_refusal}` : note || "useful work of the peak");
  setFigure("hfu", interval(ratios), "%",
    ratios.hfu_low_ratio === null ? "not known: nothing observed, or no peak"
      : note || (ratios.hfu_low_ratio === ratios.hfu_high_ratio ? "executed work of the peak" : "an interval: some work is uncounted"));
  setFigure("coverage", figure(data.coverage_time_ratio), "%");
  setFigure("recompute", figure(data.recompute_ratio), "%");
  const { useful, padding } = data.tokens;
  setFigure("tokens", useful > 0 ? count(useful / (data.window_ns / 1e9)) : null, "",
    useful === 0 ? "none declared" : padding > 0 ? `${percent(padding / (useful + padding))} % padding not counted` : "padding not counted");
  const step = data.step_seconds;
  const [value, unit] = seconds(step.mean * 1e9).split(" ");
  const steps = data.step_counts.complete;
  setFigure("step", steps > 0 ? value : null, unit, steps === 0 ? "no complete step" : steps === 1 ? "1 step"
    : `${steps} steps, ${steps < 20 ? "" : "9 in 10 "}within ${seconds(step.low * 1e9)} to ${seconds(step.high * 1e9)}`);
}

function showFindings() {
  const items = data.findings.map((finding) => node("li", "", node("b", "", words(finding.id)),
    ` in ${finding.steps} steps (ratio ${finding.worst_ratio === null ? "?" : finding.worst_ratio.toPrecision(4)}): ${finding.suspect}`));
  for (const slow of data.stragglers) {
    items.push(node("li", "", node("b", "", "straggler"),
      `: rank ${slow.rank} is ${percent(slow.over_ratio)} % slower than the others, slowest in ${slow.slowest_in_steps} of ${data.step_counts.complete} steps`));
  }
  const lost = data.losses.reduce((sum, loss) => sum + loss.count, 0);
  if (lost > 0) items.push(node("li", "", node("b", "", "lost records"), ": " + data.losses.map((l) => `${l.count} in ${words(l.where)} (${words(l.reason)})`).join(", ")));
  for (const warning of data.warnings) items.push(node("li", "about", warning));
  byId("findings").hidden = items.length === 0;
  byId("finding-list").replaceChildren(...items);
}

const stepNames = (first, last) => (first === last ? `step ${last}` : `steps ${first} to ${last}`);

function showUtilization() {
  for (const id of ["chart-title", "step-title"]) byId(id).closest("section").hidden = data.points.length < 2;
  if (data.points.length < 2) return;
  if (!data.points.some((p) => p.mfu_ratio !== null || p.hfu_low_ratio !== null || p.coverage_time_ratio !== null)) {
    byId("chart").replaceChildren(node("p", "quiet", "Nothing to draw: no model formula, no peak, nothing observed."));
    return;
  }
  const known = (ratio) => (ratio === null ? "not known" : `${percent(ratio)} %`);
  new StepChart(byId("chart"), (point, hovered) => {
    byId("chart-text").textContent = point === null ? "" :
      `${hovered ? "" : "last: "}${stepNames(point.first_step, point.step)}, MFU ${known(point.mfu_ratio)}, HFU ${known(point.hfu_low_ratio)}, coverage ${known(point.coverage_time_ratio)}`;
  }).show(data.points);
}

function newPicture(container, height, label) {
  const width = Math.max(280, Math.floor(container.clientWidth));
  const root = document.createElementNS(SVG, "svg");
  root.setAttribute("viewBox", `0 0 ${width} ${height}`);
  root.setAttribute("role", "img");
  root.setAttribute("aria-label", label);
  container.replaceChildren(root);
  return [root, width];
}

function drawSteps() {
  const points = data.points;
  if (points.length < 2) return;
  const [root, width] = newPicture(byId("step-chart"), 132, "Step time by step");
  const box = { left: 56, right: width - 10, top: 8, bottom: 108 };
  const first = points[0].step;
  const last = Math.max(points[points.length - 1].step, first + 1);
  const longest = Math.max(...points.map((p) => p.longest_ns)) * 1.05;
  const x = (step) => box.left + ((step - first) / (last - first)) * (box.right - box.left);
  const y = (ns) => box.bottom - (ns / longest) * (box.bottom - box.top);
  for (const mark of ticks(0, longest, 3)) {
    svg(root, "line", { class: "grid", x1: box.left, x2: box.right, y1: y(mark), y2: y(mark) });
    svg(root, "text", { x: box.left - 6, y: y(mark) + 4, "text-anchor": "end" }, mark === 0 ? "0" : axisSeconds(mark, longest));
  }
  for (const mark of ticks(first, last, Math.max(2, width / 130)).filter(Number.isInteger)) {
    svg(root, "text", { x: x(mark), y: 126, "text-anchor": x(mark) > width - 24 ? "end" : "middle" }, String(mark));
  }
  if (points.some((p) => p.longest_ns !== p.wall_ns)) {
    svg(root, "path", { class: "longest", d: linePath(points, (p) => x(p.step), (p) => y(p.longest_ns)) });
  }
  svg(root, "path", { class: "step", d: linePath(points, (p) => x(p.step), (p) => y(p.wall_ns)) });
  const slow = points.reduce((a, b) => (b.longest_ns > a.longest_ns ? b : a));
  byId("step-text").textContent = `longest ${seconds(slow.longest_ns)} (${stepNames(slow.first_step, slow.step)})`;
}

function axisSeconds(ns, longest) {
  if (longest < 1e6) return `${+(ns / 1e3).toPrecision(3)} µs`;
  return longest < 1e9 ? `${+(ns / 1e6).toPrecision(3)} ms` : `${+(ns / 1e9).toPrecision(3)} s`;
}

// Each step of a device as a column from its start to its end, filled by the shares of its states.
function drawTimeline() {
  const lanes = data.lanes;
  const container = byId("timeline");
  if (lanes.length === 0) {
    container.replaceChildren(node("p", "quiet", "Nothing observed the devices: steps were timed, no more."));
    return;
  }
  const row = lanes.length > 8 ? 24 : 44;
  const height = lanes.length * (row + 6) + 26;
  const [root, width] = newPicture(container, height, "Time of each device by exclusive state, from the first step to the last");
  const left = lanes.some((l) => l.devices > 1) ? 96 : 60;
  const right = width - 10;
  const end = Math.max(...lanes.flatMap((l) => l.cells.map((c) => c.end_ns)));
  const x = (ns) => left + (ns / end) * (right - left);
  const found = [];
  lanes.forEach((lane, index) => {
    const top = index * (row + 6);
    svg(root, "rect", { class: "lane", x: left, y: top, width: right - left, height: row });
    svg(root, "text", { x: left - 6, y: top + row / 2 + 4, "text-anchor": "end" },
      lane.devices > 1 ? `rank ${lane.rank} dev ${lane.device}` : `rank ${lane.rank}`);
    for (const cell of lane.cells) {
      const sum = cell.state_ns.reduce((a, b) => a + b, 0);
      const from = x(cell.start_ns);
      const gap = x(cell.end_ns) - from > 6 ? 1 : 0;
      const span = Math.max(0.5, x(cell.end_ns) - from - gap);
      let at = top + row;
      cell.state_ns.forEach((ns, state) => {
        if (ns === 0) return;
        const tall = (ns / sum) * row;
        at -= tall;
        svg(root, "rect", { class: `s${state}`, x: from.toFixed(2), y: at.toFixed(2), width: span.toFixed(2), height: tall.toFixed(2) });
      });
      found.push({ lane, cell, sum, from, to: from + span, top });
    }
  });
  for (const mark of ticks(0, end, Math.max(2, width / 130))) {
    const anchor = x(mark) < left + 20 ? "start" : x(mark) > right - 20 ? "end" : "middle";
    svg(root, "text", { x: x(mark), y: height - 6, "text-anchor": anchor }, axisSeconds(mark, end));
  }
  const hover = svg(root, "rect", { class: "hover", visibility: "hidden" });
  const describe = (cell) => {
    byId("timeline-text").textContent = cell === null ? timelineNote() :
      `rank ${cell.lane.rank}, ${stepNames(cell.cell.first_step, cell.cell.last_step)}: ` +
      cell.cell.state_ns.map((ns, i) => [ns, i]).filter(([ns]) => ns > 0)
        .map(([ns, i]) => `${words(data.states[i])} ${percent(ns / cell.sum)} % (${seconds(ns)})`).join(", ");
  };
  container.onpointermove = (event) => {
    const scale = width / container.clientWidth;
    const [px, py] = [event.offsetX * scale, event.offsetY * scale];
    const hit = found.find((f) => px >= f.from && px <= f.to + 1 && py >= f.top && py <= f.top + row) ?? null;
    hover.setAttribute("visibility", hit === null ? "hidden" : "visible");
    if (hit !== null) {
      for (const [key, value] of Object.entries({ x: hit.from, y: hit.top, width: hit.to - hit.from, height: row })) hover.setAttribute(key, value);
    }
    describe(hit);
  };
  container.onpointerleave = () => { hover.setAttribute("visibility", "hidden"); describe(null); };
  describe(null);
}

function timelineNote() {
  const longest = Math.max(...data.lanes.map((l) => l.cells.reduce((m, c) => Math.max(m, c.last_step - c.first_step + 1), 1)));
  const parts = [longest > 1 ? `A column is up to ${longest} steps` : "A column is a step", "its height split by what the device did"];
  if (data.lanes_left_out > 0) parts.push(`${data.lanes_left_out} faster ranks are not drawn`);
  return `${parts.join("; ")}.`;
}

function showTimelineKeys() {
  const sums = data.states.map((_, state) => data.lanes.reduce((sum, lane) => sum + lane.cells.reduce((s, c) => s + c.state_ns[state], 0), 0));
  const all = sums.reduce((a, b) => a + b, 0);
  byId("timeline-keys").replaceChildren(...data.states.flatMap((state, i) =>
    (sums[i] === 0 ? [] : [node("li", `c${i}`, `${words(state)} ${percent(sums[i] / all)} %`)])));
}

function showWaterfall() {
  const peak = Number(data.peak_flops);
  if (data.waterfall.length === 0 || !(peak > 0)) {
    byId("waterfall").replaceChildren(node("li", "quiet", "Needs a peak."));
    byId("waterfall").closest(".columns").classList.add("lone");
    return;
  }
  let left = 1;
  const lines = data.waterfall.filter((line) => line.flops !== "0").map((line) => {
    const share = Number(line.flops) / peak;
    const bar = node("span", "");
    left -= share;
    bar.style.left = `${Math.max(0, Math.min(1, left, left + share)) * 100}%`;
    bar.style.width = `${Math.min(1, Math.abs(share)) * 100}%`;
    const item = node("li", `${line.cause === "useful" ? "useful" : line.kind}${share < 0 ? " negative" : ""}`,
      node("span", "", line.text), node("span", "track", bar), node("span", "number", `${percent(share)} %`));
    item.dataset.cause = line.cause;
    return item;
  });
  lines.push(node("li", "note quiet", "Amber: a choice of the program or its configuration. Grey: what the hardware and the model cost."));
  byId("waterfall").replaceChildren(...lines);
}

function showClasses() {
  const kinds = ["counted", "outside", "unknown"];
  const classes = new Map();
  for (const kernel of data.kernels) {
    if (!classes.has(kernel.op_class)) classes.set(kernel.op_class, { all: 0, counted: 0, outside: 0, unknown: 0 });
    const entry = classes.get(kernel.op_class);
    entry[kernel.coverage] += kernel.time_ns;
    entry.all += kernel.time_ns;
  }
  const most = Math.max(...[...classes.values()].map((c) => c.all), 1);
  const all = [...classes.values()].reduce((sum, c) => sum + c.all, 0);
  const rows = [...classes].sort((a, b) => b[1].all - a[1].all).map(([name, entry]) => {
    const track = node("span", "track");
    for (const kind of kinds) {
      if (entry[kind] === 0) continue;
      const bar = node("span", kind);
      bar.style.width = `${(entry[kind] / most) * 100}%`;
      bar.title = `${kind}: ${seconds(entry[kind])}`;
      track.append(bar);
    }
    return node("div", "class-row", node("span", "", words(name)), track, node("span", "number", `${percent(entry.all / all)} %`));
  });
  byId("classes").replaceChildren(...(rows.length ? rows : [node("p", "quiet", "Nothing was observed.")]));
}

function row(...cells) {
  return node("tr", "", ...cells.map(([className, text]) => node("td", className, text)));
}

function wide(columns, text) {
  const cell = node("td", "quiet", text);
  cell.colSpan = columns;
  return node("tr", "", cell);
}

// Names of templates are long: two lines, the whole in a tooltip.
function kernelName(name) {
  const short = node("div", "kernel", name);
  short.title = name;
  return short;
}

function showGaps() {
  const rows = data.gaps.map((gap) => row(["", kernelName(gap.name)], ["", words(gap.reason)], ["number", String(gap.launches)], ["number", seconds(gap.time_ns)]));
  if (rows.length === 0) rows.push(wide(4, data.kernels.length ? "every kernel is counted, or left out by rule" : "nothing was observed"));
  if (data.gaps_left_out > 0) rows.push(wide(4, `and ${data.gaps_left_out} more names`));
  byId("gaps").replaceChildren(...rows);
}

function showRanks() {
  byId("ranks-section").hidden = data.ranks.length < 2;
  const known = (ratio) => (ratio === null ? "–" : `${percent(ratio)} %`);
  byId("ranks").replaceChildren(...data.ranks.map((r) => row(["", String(r.rank)], ["", r.device_model || "unknown"], ["number", known(r.mfu_ratio)],
    ["number", known(r.hfu_low_ratio)], ["number", known(r.coverage_time_ratio)],
    [r.own_over_ratio >= 0.05 ? "number slow" : "number", `${r.own_over_ratio < 0 ? "" : "+"}${percent(r.own_over_ratio)} %`],
    ["number", `${r.times_slowest} steps`])));
}

function showHow() {
  const rows = [];
  const add = (name, ...parts) => rows.push(node("dt", "", name), node("dd", "", ...parts));
  for (const peak of data.peaks) {
    const ranks = data.ranks_given > 1 ? `${peak.ranks} ranks: ` : "";
    if (peak.flops_per_second === null) {
      add("Peak", node("span", "badge", "unknown"), `${ranks}no peak for ${peak.dtype}, so no MFU and no HFU`);
    } else {
      add("Peak", node("span", peak.evidence === "published" ? "badge sure" : "badge", words(peak.evidence)),
        `${ranks}${rate(peak.flops_per_second)} ${peak.dtype} on ${peak.device_model}: ${peak.source}`);
    }
  }
  add("Convention", `${data.run.convention} (${data.run.convention_hash}), a multiply-add is 2 FLOPs`);
  add("Model", data.run.model ?? "no formula declared, so no MFU");
  add("Ranks", `${data.ranks_given} of ${data.run.world_size}; steps placed by the ${data.clock} clock`);
  const counts = data.step_counts;
  add("Steps", `${counts.complete} complete, ${counts.warmup} warmup, ${counts.incomplete} incomplete; only complete ones count`);
  add("Work", ["executed", "useful", "recomputed", "auxiliary", "padding", "excess", "unexplained"]
    .map((name) => `${name} ${flops(Number(data[`${name}_flops`]))}`).join(", "));
  if (data.late_records > 0) add("Late records", String(data.late_records));
  byId("how").replaceChildren(...rows);
}

function show() {
  byId("run").textContent = data.run.run_id;
  byId("model").textContent = data.run.model ?? "";
  byId("status").textContent = data.first_step === null ? "no steps"
    : `steps ${data.first_step} to ${data.last_step}, ${data.ranks_given} of ${data.run.world_size} ranks`;
  byId("footer").textContent = `flopledger ${data.run.version}; ratios are sums over sums`;
  byId("report").hidden = false;
  for (const part of [showFigures, showFindings, showWaterfall, showClasses, showGaps, showRanks, showHow, showTimelineKeys, showUtilization, drawSteps, drawTimeline]) part();
  let drawn = byId("report").clientWidth;
  window.addEventListener("resize", () => {
    if (byId("report").clientWidth === drawn) return;
    drawn = byId("report").clientWidth;
    drawSteps();
    drawTimeline();
  });
}

show();
