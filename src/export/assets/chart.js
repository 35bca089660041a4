"use strict";
// Two charts on one axis of steps: utilization above, coverage below. SVG, no library.

const SVG = "http://www.w3.org/2000/svg";

function svg(parent, name, attributes, text) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  parent.append(element);
  return element;
}

// The next 1, 2 or 5 times a power of ten.
function niceStep(rough) {
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((m) => m * power).find((step) => step >= rough);
}

function ticks(low, high, count) {
  const step = niceStep(Math.max((high - low) / count, 1e-9));
  const marks = [];
  for (let at = Math.ceil(low / step - 1e-9) * step; at <= high + step * 1e-9; at += step) marks.push(at);
  return marks;
}

// Lines break where a value is not known: nothing is drawn that nobody saw.
function linePath(points, x, y) {
  let path = "";
  let open = false;
  for (const point of points) {
    const value = y(point);
    if (value === null) { open = false; continue; }
    path += `${open ? "L" : "M"}${x(point).toFixed(1)} ${value.toFixed(1)}`;
    open = true;
  }
  return path;
}

function bandPath(points, x, low, high) {
  const known = points.filter((p) => low(p) !== null && high(p) !== null);
  if (known.length === 0) return "";
  const upper = known.map((p) => `${x(p).toFixed(1)} ${high(p).toFixed(1)}`);
  const lower = known.map((p) => `${x(p).toFixed(1)} ${low(p).toFixed(1)}`).reverse();
  return `M${upper.concat(lower).join("L")}Z`;
}

class StepChart {
  constructor(container, describe) {
    this.container = container;
    this.describe = describe;
    this.points = [];
    new ResizeObserver(() => {
      if (this.width !== container.clientWidth) requestAnimationFrame(() => this.draw());
    }).observe(container);
    container.addEventListener("pointermove", (event) => this.pointAt(event.offsetX));
    container.addEventListener("pointerleave", () => this.pointAt(null));
  }

  show(points) {
    this.points = points;
    this.draw();
  }

  draw() {
    this.width = this.container.clientWidth;
    const width = Math.max(280, Math.floor(this.width));
    const box = { left: 42, right: width - 10, top: 10, middle: 186, second: 210, bottom: 262 };
    const points = this.points;
    const first = points.length ? points[0].step : 0;
    const last = points.length ? Math.max(points[points.length - 1].step, first + 1) : 1;
    const top = points.reduce((m, p) => Math.max(m, p.hfu_high_ratio ?? 0, p.hfu_low_ratio ?? 0, p.mfu_ratio ?? 0), 0.05);
    const marks = ticks(0, top, 4);
    const high = marks[marks.length - 1] >= top ? top : marks[marks.length - 1] + (marks[1] - marks[0]);
    const scale = (low, up, from, to) => (v) => (v === null || v === undefined ? null : from + ((v - low) / (up - low)) * (to - from));
    const stepX = scale(first, last, box.left, box.right);
    const x = (p) => stepX(p.step);
    const ratioY = scale(0, high, box.middle, box.top);
    const lowest = points.reduce((m, p) => Math.min(m, p.coverage_time_ratio ?? 1), 0.95);
    const floor = Math.max(0, Math.floor(lowest * 10 - 1e-9) / 10);
    const coverageY = scale(floor, 1, box.bottom, box.second);

    const root = document.createElementNS(SVG, "svg");
    root.setAttribute("viewBox", `0 0 ${width} 284`);
    root.setAttribute("role", "img");
    root.setAttribute("aria-label", "MFU, HFU and coverage by step; the figures of the last step are above");
    for (const mark of ticks(0, high, 4)) {
      svg(root, "line", { class: "grid", x1: box.left, x2: box.right, y1: ratioY(mark), y2: ratioY(mark) });
      svg(root, "text", { x: box.left - 6, y: ratioY(mark) + 4, "text-anchor": "end" }, `${+(mark * 100).toPrecision(3)} %`);
    }
    for (const mark of [floor, 1]) {
      svg(root, "line", { class: "grid", x1: box.left, x2: box.right, y1: coverageY(mark), y2: coverageY(mark) });
      svg(root, "text", { x: box.left - 6, y: coverageY(mark) + 4, "text-anchor": "end" }, `${Math.round(mark * 100)} %`);
    }
    for (const mark of ticks(first, last, Math.max(2, width / 130)).filter(Number.isInteger)) {
      svg(root, "text", { x: stepX(mark), y: 280, "text-anchor": stepX(mark) > width - 24 ? "end" : "middle" }, String(mark));
    }
    const line = (name, y) => svg(root, "path", { class: name, d: linePath(points, x, y) });
    const hfuLow = (p) => ratioY(p.hfu_low_ratio);
    const coverage = (p) => coverageY(p.coverage_time_ratio);
    svg(root, "path", { class: "band", d: bandPath(points, x, hfuLow, (p) => ratioY(p.hfu_high_ratio)) });
    line("hfu", hfuLow);
    line("mfu", (p) => ratioY(p.mfu_ratio));
    svg(root, "path", { class: "under", d: bandPath(points, x, (p) => (coverage(p) === null ? null : box.bottom), coverage) });
    line("coverage", coverage);
    this.cursor = svg(root, "line", { class: "cursor", y1: box.top, y2: box.bottom, visibility: "hidden" });
    this.x = x;
    this.container.replaceChildren(root);
    this.describe(points[points.length - 1] ?? null, false);
  }

  pointAt(offset) {
    if (!this.cursor || this.points.length === 0) return;
    this.cursor.setAttribute("visibility", offset === null ? "hidden" : "visible");
    if (offset === null) {
      this.describe(this.points[this.points.length - 1], false);
      return;
    }
    const nearest = this.points.reduce((best, p) =>
      Math.abs(this.x(p) - offset) < Math.abs(this.x(best) - offset) ? p : best);
    this.cursor.setAttribute("x1", this.x(nearest));
    this.cursor.setAttribute("x2", this.x(nearest));
    this.describe(nearest, true);
  }
}
