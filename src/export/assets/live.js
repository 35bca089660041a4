"use strict";
// Polls /api/v1/steps and shows the last step. Numbers are shown as the API gives them.

const POLL_MS = 1000;
const RETRY_MS = 3000;
const TIMEOUT_MS = 4000;
const KEPT_STEPS = 512;
const STATE_NAMES = {
  compute: "compute", exposed_communication: "exposed communication", exposed_copy: "exposed copy",
  idle: "idle", untracked: "not observed",
};

const byId = (id) => document.getElementById(id);
const words = (id) => id.replaceAll("_", " ");

function setText(id, text) {
  const element = byId(id);
  if (element.textContent !== text) element.textContent = text;
}

function node(name, className, text) {
  const element = document.createElement(name);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
}

function percent(ratio) {
  const value = ratio * 100;
  return value !== 0 && Math.abs(value) < 0.05 ? value.toFixed(3) : value.toFixed(1);
}

function seconds(ns) {
  const s = ns / 1e9;
  if (Math.abs(s) < 1e-3) return `${(s * 1e6).toFixed(1)} µs`;
  return Math.abs(s) < 0.1 ? `${(s * 1e3).toFixed(1)} ms` : `${s.toFixed(3)} s`;
}

function count(value) {
  for (const [unit, size] of [["P", 1e15], ["T", 1e12], ["G", 1e9], ["M", 1e6], ["k", 1e3]]) {
    if (Math.abs(value) >= size) return (value / size).toPrecision(3) + unit;
  }
  return value.toFixed(0);
}

function rate(flopsPerSecond) {
  const text = count(flopsPerSecond);
  return `${text.replace(/[a-zA-Z]$/, "")} ${/[a-zA-Z]$/.test(text) ? text.slice(-1) : ""}FLOP/s`;
}

// A number and its unit, or a dash: what is not known is not 0.
function setFigure(id, text, unit) {
  const element = byId(id);
  element.replaceChildren(text ?? "–");
  if (text !== null && unit) element.append(node("small", "", ` ${unit}`));
  element.classList.toggle("wide", text !== null && text.length > 6);
}

function showFigures(step) {
  setFigure("mfu", step.mfu_ratio === null ? null : percent(step.mfu_ratio), "%");
  setText("mfu-note", step.mfu_ratio === null ? `not known: ${words(step.mfu_refusal)}` : "useful work of the peak");
  const low = step.hfu_low_ratio === null ? null : percent(step.hfu_low_ratio);
  const high = step.hfu_high_ratio === null ? low : percent(step.hfu_high_ratio);
  setFigure("hfu", low === high ? low : `${low} – ${high}`, "%");
  setText("hfu-note", low === null ? `not known: ${words(step.hfu_refusal)}`
    : low === high ? "executed work of the peak" : "an interval: some work is uncounted");
  setFigure("coverage", step.coverage_time_ratio === null ? null : percent(step.coverage_time_ratio), "%");
  setFigure("recompute", step.recompute_ratio === null ? null : percent(step.recompute_ratio), "%");
  const useful = step.tokens.useful;
  setFigure("tokens", useful > 0 ? count(useful / (step.wall_ns / 1e9)) : null, "");
  const padding = step.tokens.padded - useful;
  setText("tokens-note", useful > 0 && padding > 0
    ? `${percent(padding / step.tokens.padded)} % padding not counted` : "padding not counted");
  const names = Object.keys(step.values);
  const main = names.includes("loss") ? "loss" : names[0];
  setText("value-name", main === undefined ? "Loss" : main === "loss" ? "Loss" : main);
  const value = main === undefined ? null : step.values[main];
  setFigure("value", value === null ? null : typeof value === "number" ? String(+value.toPrecision(4)) : value, "");
  setText("values", main === undefined ? "none given"
    : names.filter((n) => n !== main).slice(0, 2).map((n) => `${words(n)} ${step.values[n]}`).join(", ") || " ");
}

function showTime(step) {
  const sums = {};
  for (const device of step.devices) {
    for (const [state, ns] of Object.entries(device.state_ns)) sums[state] = (sums[state] ?? 0) + ns;
  }
  const all = Object.values(sums).reduce((a, b) => a + b, 0);
  setText("wall", `step ${step.step}, ${seconds(step.wall_ns)}${step.devices.length > 1 ? `, ${step.devices.length} devices` : ""}`);
  const bars = [];
  const keys = [];
  Object.entries(sums).forEach(([state, ns], index) => {
    if (ns === 0) return;
    const bar = node("span", `c${index}`);
    bar.style.width = `${(ns / all) * 100}%`;
    bars.push(bar);
    keys.push(node("li", `c${index}`, `${STATE_NAMES[state] ?? words(state)} ${percent(ns / all)} % (${seconds(ns)})`));
  });
  byId("time-bar").replaceChildren(...bars);
  byId("time-list").replaceChildren(...keys);
}

function showGaps(step) {
  const rows = step.gaps.slice(0, 8).map((gap) => {
    const row = node("tr");
    row.append(node("td", "", gap.name), node("td", "", words(gap.reason)),
      node("td", "number", String(gap.launches)), node("td", "number", seconds(gap.time_ns)));
    return row;
  });
  const rest = step.gaps.length - rows.length + step.gaps_left_out;
  if (rows.length === 0) rows.push(emptyRow("every kernel is counted, or left out by rule"));
  if (rest > 0) rows.push(emptyRow(`and ${rest} more, see the step log`));
  byId("gaps").replaceChildren(...rows);
}

function emptyRow(text) {
  const row = node("tr");
  const cell = node("td", "quiet", text);
  cell.colSpan = 4;
  row.append(cell);
  return row;
}

function showWaterfall(step) {
  if (step.waterfall.length === 0 || step.peak_flops === null) return;
  const peak = Number(step.peak_flops);
  let left = 1;
  const lines = step.waterfall.map((line) => {
    const share = Number(line.flops) / peak;
    const item = node("li", line.cause === "useful" ? "useful" : line.kind);
    if (share < 0) item.classList.add("negative");
    const track = node("span", "track");
    const bar = node("span");
    left -= share;
    bar.style.left = `${Math.max(0, Math.min(1, left, left + share)) * 100}%`;
    bar.style.width = `${Math.min(1, Math.abs(share)) * 100}%`;
    track.append(bar);
    item.append(node("span", "", line.text), track, node("span", "number", `${percent(share)} %`));
    item.dataset.cause = line.cause;
    item.hidden = Number(line.flops) === 0;
    return item;
  });
  lines.push(node("li", "note quiet", "Amber: a choice of the program or its configuration. Grey: what the hardware and the model cost."));
  byId("waterfall").replaceChildren(...lines);
}

function showFindings(step) {
  byId("findings").hidden = step.findings.length === 0;
  byId("finding-list").replaceChildren(...step.findings.map((finding) => {
    const item = node("li");
    item.append(node("b", "", words(finding.id)),
      ` (ratio ${typeof finding.ratio === "number" ? finding.ratio.toPrecision(4) : finding.ratio}): ${finding.suspect}`);
    return item;
  }));
}

function showHow(run, body) {
  const rows = [];
  const add = (name, ...parts) => {
    const value = node("dd");
    value.append(...parts);
    rows.push(node("dt", "", name), value);
  };
  const peak = run.peaks.find((p) => p.dtype === run.peak_dtype && !p.sparse);
  if (peak) {
    const spread = peak.spread_low_ratio === null ? ""
      : `, spread ${percent(peak.spread_low_ratio)} to ${percent(peak.spread_high_ratio)} %`;
    add("Peak", node("span", peak.evidence === "published" ? "badge sure" : "badge", words(peak.evidence)),
      `${rate(peak.flops_per_second)} ${peak.dtype} on ${peak.device_model}: ${peak.source}${spread}`);
  } else {
    add("Peak", node("span", "badge", "unknown"), `no peak for ${run.peak_dtype}, so no MFU and no HFU`);
  }
  add("Convention", `${run.convention} (${run.convention_hash}), a multiply-add is 2 FLOPs`);
  add("Model", run.model ?? "no formula declared, so no MFU");
  add("Rank", `${run.rank} of ${run.world_size}${run.rank_source ? ` (${run.rank_source})` : ""}`);
  if (body.state) {
    add("Evidence", `${words(body.state.collector)}: ` +
      body.state.capabilities.map((c) => (c.available ? c.name : `no ${c.name} (${words(c.reason)})`)).join(", "));
  }
  const totals = body.totals;
  if (totals) {
    add("Steps", Object.entries(totals.steps).map(([name, n]) => `${n} ${name}`).join(", "));
    const lost = totals.losses.reduce((sum, loss) => sum + loss.count, 0);
    add("Lost records", lost === 0 ? "none" : totals.losses.map((l) => `${l.count} ${words(l.where)} (${words(l.reason)})`).join(", "));
    const wall = Number(totals.wall_ns);
    if (wall > 0) add("Own time", `${percent(Number(totals.overhead_ns) / wall)} % of wall time, beside the training`);
  }
  add("Version", `flopledger ${run.version}`);
  byId("how").replaceChildren(...rows);
}

class Live {
  constructor() {
    this.run = null;
    this.points = [];
    this.finished = false;
    this.updated = null;
    this.chart = new StepChart(byId("chart"), (point, hovered) => this.describe(point, hovered));
  }

  describe(point, hovered) {
    const figure = (ratio) => (ratio === null ? "not known" : `${percent(ratio)} %`);
    setText("chart-text", point === null ? " " :
      `${hovered ? "" : "last: "}step ${point.step}, ${seconds(point.wall_ns)}, MFU ${figure(point.mfu_ratio)}, ` +
      `HFU ${figure(point.hfu_low_ratio)}, coverage ${figure(point.coverage_time_ratio)}`);
  }

  status(kind, text) {
    const element = byId("status");
    element.className = `status ${kind}`;
    setText("status", text);
    document.body.classList.toggle("stale", kind === "lost");
    const run = this.run ? `${this.run.run_id} · flopledger` : "flopledger";
    const title = kind === "live" && this.mfu !== undefined && this.mfu !== null ? `MFU ${percent(this.mfu)} % · ${run}` : `${text} · ${run}`;
    if (document.title !== title) document.title = title;
  }

  async get(path) {
    const response = await fetch(path, { cache: "no-store", signal: AbortSignal.timeout(TIMEOUT_MS) });
    if (!response.ok) throw new Error(`${path}: ${response.status}`);
    return response.json();
  }

  async update() {
    const since = this.points.length ? this.points[this.points.length - 1].step : null;
    let body = await this.get(since === null ? "/api/v1/steps" : `/api/v1/steps?since=${since}`);
    if (this.run === null || (body.last && body.last.run_id !== this.run.run_id)) {
      // Another run has taken the port.
      const about = await this.get("/api/v1/run");
      this.run = about.run;
      this.points = [];
      if (since !== null) body = await this.get("/api/v1/steps");
    }
    this.updated = Date.now();
    this.finished = body.state?.run_finished === true;
    this.points = this.points.concat(body.steps.filter((s) => s.result === "complete")).slice(-KEPT_STEPS);
    this.show(body);
  }

  show(body) {
    if (this.run) {
      setText("run", this.run.world_size > 1 ? `${this.run.run_id}, rank ${this.run.rank} of ${this.run.world_size}` : this.run.run_id);
      setText("model", this.run.model ?? "");
      showHow(this.run, body);
    }
    const step = body.last;
    if (step) {
      showFigures(step);
      showFindings(step);
      showTime(step);
      showGaps(step);
      showWaterfall(step);
      this.chart.show(this.points);
      this.mfu = step.mfu_ratio;
    }
    if (this.finished) this.status("finished", "run finished");
    else if (body.state?.collector === "disabled") this.status("lost", "books stopped after a fault, the training goes on");
    else if (!step) this.status("waiting", "waiting for the first step");
    else this.status("live", this.liveText(body, step));
  }

  // A run that stalls still answers: say how old the last step is once it is late.
  liveText(body, step) {
    const age = body.snapshot_age_seconds ?? 0;
    return age > Math.max(10, (3 * step.wall_ns) / 1e9) ? `no new step for ${Math.round(age)} s` : `live, step ${step.step}`;
  }

  async loop() {
    let wait = POLL_MS;
    try {
      await this.update();
      wait = this.finished ? RETRY_MS : POLL_MS;
    } catch (error) {
      wait = RETRY_MS;
      const ago = this.updated === null ? "" : `, figures are ${Math.round((Date.now() - this.updated) / 1000)} s old`;
      if (this.finished) this.status("finished", "run finished, server gone");
      else this.status("lost", `connection lost${ago}`);
    }
    setTimeout(() => this.loop(), wait);
  }
}

new Live().loop();
