// Draws the report's charts as SVG and its animation on a canvas. No libraries: the page works offline from a file.
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const SVG = "http://www.w3.org/2000/svg";
const charts = [];

function element(parent, tag, attributes = {}, text = "") {
  const made = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text) made.textContent = text;
  parent.appendChild(made);
  return made;
}

function ticks(low, high, count) {
  const raw = (high - low) / count, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((f) => f * power).find((s) => s >= raw * 0.999);
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) found.push(k * step);
  // One number alone tells nothing about the scale.
  return found.length < 2 && count < 10 ? ticks(low, high, count + 1) : found;
}

function decades(low, high, count) {
  const step = Math.max(1, Math.ceil((high - low) / count)), found = [];
  for (let k = Math.ceil(low / step) * step; k <= high; k += step) found.push(k);
  return found;
}

// With as many digits as it takes to tell ticks of a step apart.
function label(value, step = 0) {
  const size = Math.abs(value);
  if (size === 0 || size < 1e-9 * step) return "0";
  const digits = step > 0 ? Math.max(0, Math.floor(Math.log10(size) + 1e-9) - Math.floor(Math.log10(step) + 1e-9)) : 1;
  if (size >= 1e5 || size < 1e-3) return value.toExponential(digits).replace(/\.?0*e/, "e").replace("e+", "e");
  return String(+value.toPrecision(Math.max(4, digits + 1)));
}

function labels(places) { return places.map((t) => label(t, places.length > 1 ? places[1] - places[0] : 0)); }

// The points of a series to draw: where a pixel's column holds many, only its lowest and highest.
function path(x, y, from, to, toX, toY, columns) {
  const first = lower(x, from), last = Math.min(x.length - 1, lower(x, to) + 1);
  const stride = Math.max(1, Math.floor((last - first) / columns));
  let text = "", pen = false;
  const put = (i) => {
    if (y[i] === null) { pen = false; return; }
    text += (pen ? "L" : "M") + toX(x[i]).toFixed(1) + " " + toY(y[i]).toFixed(1);
    pen = true;
  };
  for (let i = Math.max(0, first - 1); i <= last; i += stride) {
    if (stride < 2) { put(i); continue; }
    let low = i, high = i;
    for (let j = i; j < Math.min(i + stride, last + 1); j++) {
      if (y[j] === null) continue;
      if (y[low] === null || y[j] < y[low]) low = j;
      if (y[high] === null || y[j] > y[high]) high = j;
    }
    put(Math.min(low, high)); if (low !== high) put(Math.max(low, high));
  }
  return text;
}

function lower(x, value) {
  let a = 0, b = x.length;
  while (a < b) { const m = (a + b) >> 1; if (x[m] < value) a = m + 1; else b = m; }
  return a;
}

// spec: {title, x, xLabel, yLabel, series: [{y, kind}], bars, height, log, zero, link, equal}
function chart(host, spec) {
  const box = document.createElement("div");
  box.className = "chart"; host.appendChild(box);
  let width = 600, shown = null;
  const height = spec.height || 200;
  const left = 62, right = 14, top = spec.title ? 26 : 10, bottom = spec.xLabel ? 38 : 22;
  const value = (y) => (spec.log ? (y > 0 ? Math.log10(y) : null) : y);
  const series = spec.series.map((s) => ({ ...s, y: s.y.map((v) => (v === null ? null : value(v))) }));
  const xs = spec.x, whole = [xs[0], xs[xs.length - 1]];
  if (!(whole[1] > whole[0])) { whole[0] -= 0.5; whole[1] += 0.5; }

  function draw(range) {
    const [from, to] = (shown = range || shown || whole);
    box.replaceChildren();
    width = Math.max(240, box.clientWidth - 10);
    const svg = element(box, "svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": spec.title || spec.yLabel || "" });
    let low = Infinity, high = -Infinity;
    for (const s of series) {
      const ownX = s.x || xs;
      for (let i = 0; i < s.y.length; i++) {
        if (s.y[i] === null || ownX[i] < from || ownX[i] > to || s.loose) continue;
        const more = s.error ? s.error[i] || 0 : 0;
        low = Math.min(low, s.y[i] - more); high = Math.max(high, s.y[i] + more);
      }
    }
    // A loose series may widen the range, but not so far that the others shrink to a line.
    const [least, most] = [low - 0.5 * (high - low), high + 0.5 * (high - low)];
    for (const s of series.filter((s) => s.loose)) {
      s.y.forEach((v, i) => {
        const at = (s.x || xs)[i];
        if (v === null || at < from || at > to) return;
        low = Math.max(least, Math.min(low, v)); high = Math.min(most, Math.max(high, v));
      });
    }
    if (spec.zero) { low = Math.min(low, 0); high = Math.max(high, 0); }
    if (!(high > low)) { const c = Number.isFinite(low) ? low : 0; low = c - 1; high = c + 1; }
    const room = 0.06 * (high - low); low -= room; high += room;
    const toX = (x) => left + ((x - from) / (to - from)) * (width - left - right);
    const toY = (y) => top + ((high - y) / (high - low)) * (height - top - bottom);
    if (spec.title) element(svg, "text", { x: left, y: 17, class: "title" }, spec.title);
    const places = spec.log ? decades(low, high, 5) : ticks(low, high, Math.max(3, height / 50));
    const names = spec.log ? places.map((t) => label(10 ** t)) : labels(places);
    places.forEach((t, i) => {
      element(svg, "line", { x1: left, x2: width - right, y1: toY(t), y2: toY(t), class: "grid" });
      element(svg, "text", { x: left - 6, y: toY(t) + 4, "text-anchor": "end" }, names[i]);
    });
    const marks = ticks(from, to, Math.max(3, width / 110)), texts = labels(marks);
    marks.forEach((t, i) => {
      element(svg, "line", { x1: toX(t), x2: toX(t), y1: top, y2: height - bottom, class: "grid" });
      element(svg, "text", { x: toX(t), y: height - bottom + 15, "text-anchor": "middle" }, texts[i]);
    });
    if (spec.xLabel) element(svg, "text", { x: width - right, y: height - 5, "text-anchor": "end" }, spec.xLabel);
    if (low < 0 && high > 0 && !spec.log) element(svg, "line", { x1: left, x2: width - right, y1: toY(0), y2: toY(0), class: "zero" });
    const clip = "c" + Math.random().toString(36).slice(2);
    element(element(svg, "clipPath", { id: clip }), "rect", { x: left, y: top, width: width - left - right, height: height - top - bottom });
    const ink = element(svg, "g", { "clip-path": `url(#${clip})` });
    for (const [a, b] of spec.unused || []) {
      const [x1, x2] = [toX(a ?? from), toX(b ?? to)];
      if (x2 > x1) element(ink, "rect", { x: x1, width: x2 - x1, y: top, height: height - top - bottom, class: "unused" });
    }
    for (const s of series) {
      const ownX = s.x || xs;
      if (s.bars) {
        for (let i = 0; i < s.y.length; i++) {
          const a = toX(ownX[i] - s.bars / 2), b = toX(ownX[i] + s.bars / 2);
          element(ink, "rect", { x: a + 0.5, width: Math.max(1, b - a - 1), y: Math.min(toY(s.y[i]), toY(0)), height: Math.abs(toY(s.y[i]) - toY(0)), class: "bar" });
        }
      } else if (s.dots) {
        for (let i = 0; i < s.y.length; i++) {
          if (s.y[i] === null) continue;
          const x = toX(ownX[i]).toFixed(1);
          if (s.error) element(ink, "line", { x1: x, x2: x, y1: toY(s.y[i] - s.error[i]).toFixed(1), y2: toY(s.y[i] + s.error[i]).toFixed(1), class: "estimated", "stroke-width": 1.5 });
          element(ink, "circle", { cx: x, cy: toY(s.y[i]).toFixed(1), r: s.error ? 2.5 : 2, class: s.error ? "mean" : s.faint ? "dots faint" : "dots" });
        }
      } else {
        const line = element(ink, "path", { d: path(ownX, s.y, from, to, toX, toY, width), class: s.kind, "stroke-width": s.width || 1.5, "stroke-linejoin": "round" });
        if (s.colour) line.style.stroke = s.colour;
        if (s.name) element(line, "title", {}, s.name);
      }
    }
    element(svg, "rect", { x: left, y: top, width: width - left - right, height: height - top - bottom, class: "frame" });
    if (spec.link) zoomable(svg, ink, toX, from, to);
  }

  function zoomable(svg, ink, toX, from, to) {
    const toTime = (event) => {
      const place = svg.getBoundingClientRect();
      const x = ((event.clientX - place.left) / place.width) * width;
      return Math.min(to, Math.max(from, from + ((x - left) / (width - left - right)) * (to - from)));
    };
    let start = null, mark = null;
    svg.addEventListener("pointerdown", (event) => {
      start = toTime(event); svg.setPointerCapture(event.pointerId);
      mark = element(ink, "rect", { y: top, height: height - top - bottom, width: 0, x: toX(start), class: "select" });
    });
    svg.addEventListener("pointermove", (event) => {
      if (start === null) return;
      const now = toTime(event);
      mark.setAttribute("x", toX(Math.min(start, now))); mark.setAttribute("width", Math.abs(toX(now) - toX(start)));
    });
    svg.addEventListener("pointerup", (event) => {
      if (start === null) return;
      const range = [Math.min(start, toTime(event)), Math.max(start, toTime(event))];
      start = null; mark.remove();
      if (toX(range[1]) - toX(range[0]) > 6) spec.link(range);
    });
    svg.addEventListener("dblclick", () => spec.link(whole));
  }

  charts.push(draw);
  const named = spec.series.filter((s) => s.name);
  if (named.length) {
    const names = document.createElement("p");
    names.className = "legend names";
    for (const s of named) {
      const entry = document.createElement("span"), key = document.createElement("i");
      key.className = "key"; key.style.borderColor = s.colour; entry.append(key, s.name); names.appendChild(entry);
    }
    host.after(names);
  }
  return draw;
}

function linked(draws) { return (range) => draws.forEach((draw) => draw(range)); }

for (const recording of data.recordings) {
  const host = document.getElementById("recording-" + recording.id), draws = [];
  const link = (range) => {
    linked(draws)(range);
    // A page around this one, if it asked for that, learns which part was chosen.
    if (recording.tells) parent.postMessage({ shadowfit: range }, "*");
  };
  for (const c of recording.channels) {
    draws.push(chart(host, { title: `${c.name} [${c.unit}]`, x: recording.time, height: 240, link, unused: recording.unused, series: [
      { y: c.rollout, kind: "rollout", loose: true }, { y: c.measured, kind: "measured", width: 3 }, { y: c.estimated, kind: "estimated" }] }));
  }
  for (const r of recording.residuals) {
    draws.push(chart(host, { title: `${r.name}: estimated − measured [${r.unit}]`, x: recording.time, height: 130, link, zero: true,
      series: [{ y: r.values, kind: "estimated", width: 1 }] }));
  }
  recording.inputs.forEach((u, i) => draws.push(chart(host, { title: `${u.kind} ${u.name} [${u.unit}]`, x: recording.time, height: 130, link,
    xLabel: i === recording.inputs.length - 1 ? "time [s]" : "", series: [{ y: u.values, kind: "estimated", width: 1 }] })));
}

for (const joint of data.forces || []) {
  const host = document.getElementById("force-" + joint.id);
  for (const c of joint.charts) {
    const share = c.explains >= 0.01 ? `: explains ${Math.round(100 * c.explains)} %` : "";
    chart(host, { title: `over ${c.over.split(" ")[0]}${share}`, x: [c.low, c.high], xLabel: c.over, height: 210, zero: true,
      series: [{ x: c.x, y: c.y, dots: true, faint: true, loose: true }, ...c.means.map((m) => ({ x: m.x, y: m.y, error: m.error, dots: true }))] });
  }
}

// One parameter: each piece of the data with its bar, below them all data together.
function forest(host, spec) {
  const box = document.createElement("div");
  box.className = "chart"; host.appendChild(box);
  const line = 19, top = 30, bottom = 24;
  charts.push(() => {
    box.replaceChildren();
    const width = Math.max(240, box.clientWidth - 10), height = top + line * (spec.rows.length + 1) + bottom;
    const longest = spec.rows.reduce((m, r) => Math.max(m, r.label.length), 3);
    const left = Math.min(0.45 * width, 14 + 6.4 * longest), right = 14, foot = height - bottom;
    const toX = (x) => left + ((x - spec.low) / (spec.high - spec.low)) * (width - left - right);
    const svg = element(box, "svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${spec.name}: pieces of the data and all` });
    element(svg, "text", { x: 8, y: 17, class: "title" }, spec.name + (spec.unit ? ` [${spec.unit}]` : ""));
    if (spec.apart) element(svg, "text", { x: width - right, y: 17, "text-anchor": "end", class: "warn" }, "disagree");
    const marks = ticks(spec.low, spec.high, Math.max(4, (width - left) / 80)), texts = labels(marks);
    marks.forEach((t, i) => {
      element(svg, "line", { x1: toX(t), x2: toX(t), y1: top - 4, y2: foot, class: "grid" });
      element(svg, "text", { x: Math.min(toX(t), width - right - 3.2 * texts[i].length), y: height - 8, "text-anchor": "middle" }, texts[i]);
    });
    element(svg, "line", { x1: toX(spec.value), x2: toX(spec.value), y1: top - 4, y2: foot, class: "zero" });
    const clip = "c" + Math.random().toString(36).slice(2);
    element(element(svg, "clipPath", { id: clip }), "rect", { x: left - 4, y: 0, width: width - left - right + 8, height });
    const ink = element(svg, "g", { "clip-path": `url(#${clip})` });
    const most = Math.floor((left - 14) / 6.4);
    spec.rows.forEach((row, i) => {
      const y = top + line * (i + 0.5);
      const name = row.label.length > most ? row.label.slice(0, most - 1) + "…" : row.label;
      const text = element(svg, "text", { x: 8, y: y + 4 }, name);
      if (name !== row.label) element(text, "title", {}, row.label);
      if (row.half === null) return;
      element(ink, "line", { x1: toX(row.value - row.half), x2: toX(row.value + row.half), y1: y, y2: y, class: "piece", "stroke-width": 1.5 });
      element(ink, "rect", { x: toX(row.value) - 3, y: y - 3, width: 6, height: 6, class: "mean" });
    });
    const y = top + line * (spec.rows.length + 0.5), ends = spec.interval.map((end) => toX(end === null ? spec.value : end));
    element(svg, "line", { x1: 8, x2: width - right, y1: y - line / 2, y2: y - line / 2, class: "frame" });
    element(svg, "text", { x: 8, y: y + 4, class: "title" }, "all");
    const at = toX(spec.value), a = Math.min(ends[0], at - 3), b = Math.max(ends[1], at + 3);
    element(ink, "path", { d: `M${a} ${y}L${at} ${y - 6}L${b} ${y}L${at} ${y + 6}Z`, class: "whole" });
  });
}
for (const spec of data.forest || []) forest(document.getElementById("forest"), spec);

if (data.log.number.length > 1) {
  const host = document.getElementById("convergence");
  const steps = data.log.number;
  chart(host, { title: "cost per time step", x: steps, xLabel: "iteration", log: true, height: 230, series: [
    { y: data.log.cost, kind: "estimated", width: 2 }, { y: data.log.dynamics, kind: "rollout" }, { y: data.log.observation, kind: "measured" }] });
  if (data.log.parameters.length) chart(host, { title: "relative distance from the final value", x: steps, xLabel: "iteration", log: true, height: 230,
    series: data.log.parameters.map((p, i) => ({ y: p.distance, kind: "trace", width: 1.3, name: p.name, colour: `hsl(${(i * 137) % 360} 60% 50%)` })) });
}

for (const d of data.diagnostics) {
  const host = document.getElementById("diagnostics-" + d.id);
  const bell = d.centres.map((z) => Math.exp(-z * z / 2) / Math.sqrt(2 * Math.PI));
  chart(host, { title: "distribution", x: [d.low, d.high], xLabel: "residual / assumed std", height: 210, zero: true,
    series: [{ x: d.centres, y: d.density, bars: d.width }, { x: d.centres, y: bell, kind: "soft-line" }] });
  chart(host, { title: "quantiles against normal", x: [-3, 3], xLabel: "normal quantile", height: 210,
    series: [{ x: [-3, 3], y: [-3, 3], kind: "soft-line" }, { x: d.normal, y: d.quantiles, dots: true }] });
  chart(host, { title: "autocorrelation", x: [-0.5, d.autocorrelation.length - 0.5], xLabel: "lag [samples]", height: 210, zero: true,
    series: [{ x: d.autocorrelation.map((_, i) => i), y: d.autocorrelation, bars: 0.8 },
      { x: [0, d.autocorrelation.length], y: [d.white, d.white], kind: "soft-line" }, { x: [0, d.autocorrelation.length], y: [-d.white, -d.white], kind: "soft-line" }] });
}

function animate(scene) {
  const canvas = document.getElementById("canvas"), slider = document.getElementById("moment");
  const play = document.getElementById("play"), clock = document.getElementById("clock");
  const context = canvas.getContext("2d");
  let yaw = 0.7, pitch = 0.35, moment = scene.time[0], playing = false, before = 0, drag = null;
  // A body held at one end only reaches as far again beyond its centre of mass.
  const tip = (centre, end) => centre.map((v, k) => 2 * v - end[k]);
  const points = scene.frames.flatMap((frame) => {
    const found = frame.slice();
    scene.spokes.reduce((at, count) => { if (count === 2) found.push(tip(frame[at], frame[at + 1])); return at + count; }, 0);
    return found;
  }).concat(...scene.sliders.map((s) => s.rail.flat()));
  const centre = [0, 1, 2].map((k) => { const v = points.map((p) => p[k]); return (v.reduce((a, b) => Math.min(a, b)) + v.reduce((a, b) => Math.max(a, b))) / 2; });
  const reach = Math.max(1e-6, ...[0, 1, 2].map((k) => points.reduce((m, p) => Math.max(m, Math.abs(p[k] - centre[k])), 0)));
  const colours = () => { const s = getComputedStyle(document.documentElement); return (n) => s.getPropertyValue(n).trim(); };
  function frameAt(time) { let i = lower(scene.time, time); return Math.min(i, scene.time.length - 1); }
  function draw() {
    const ratio = window.devicePixelRatio || 1, w = canvas.clientWidth, h = canvas.clientHeight, ink = colours();
    canvas.width = w * ratio; canvas.height = h * ratio; context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const scale = (0.42 * Math.min(w, h)) / reach;
    const project = (p) => {
      const x = p[0] - centre[0], y = p[1] - centre[1], z = p[2] - centre[2];
      const a = x * Math.cos(yaw) - y * Math.sin(yaw), b = x * Math.sin(yaw) + y * Math.cos(yaw);
      return [w / 2 + scale * a, h / 2 - scale * (z * Math.cos(pitch) - b * Math.sin(pitch))];
    };
    context.lineCap = "round";
    const frame = frameAt(moment), tints = [ink("--estimated"), ink("--rollout"), ink("--good"), ink("--warn"), ink("--bad")];
    const trail = (index, tint) => {
      context.strokeStyle = tint; context.globalAlpha = 0.35; context.lineWidth = 1.5; context.beginPath();
      for (let i = Math.max(0, frame - 60); i <= frame; i++) { const [x, y] = project(scene.frames[i][index]); if (i === Math.max(0, frame - 60)) context.moveTo(x, y); else context.lineTo(x, y); }
      context.stroke(); context.globalAlpha = 1;
    };
    for (const slider of scene.sliders) {
      const [a, b] = slider.rail[frame].map(project), corners = slider.carriage[frame].map(project);
      context.strokeStyle = ink("--soft"); context.lineWidth = 2; context.beginPath(); context.moveTo(...a); context.lineTo(...b); context.stroke();
      context.strokeStyle = tints[slider.body % tints.length]; context.lineWidth = 1.5; context.beginPath();
      // Corners are numbered by three binary digits; edges join those that differ in one.
      corners.forEach((from, i) => [1, 2, 4].forEach((digit) => { if (!(i & digit)) { context.moveTo(...from); context.lineTo(...corners[i | digit]); } }));
      context.stroke();
    }
    let at = 0;
    scene.spokes.forEach((count, body) => {
      const own = scene.frames[frame].slice(at, at + count).map(project), tint = tints[body % tints.length];
      trail(at, tint);
      context.strokeStyle = tint; context.lineWidth = 5;
      for (let i = 1; i < count; i++) { context.beginPath(); context.moveTo(...own[0]); context.lineTo(...own[i]); context.stroke(); }
      if (count === 2) { context.beginPath(); context.moveTo(...own[0]); context.lineTo(...tip(own[0], own[1])); context.stroke(); }
      context.fillStyle = ink("--ink"); context.beginPath(); context.arc(own[0][0], own[0][1], 4, 0, 7); context.fill();
      context.fillStyle = ink("--panel");
      for (let i = 1; i < count; i++) { context.beginPath(); context.arc(own[i][0], own[i][1], 3.5, 0, 7); context.fill(); context.lineWidth = 1.5; context.strokeStyle = ink("--ink"); context.stroke(); }
      context.fillStyle = ink("--soft"); context.font = "13px system-ui, sans-serif"; 
      context.fillText(scene.bodies[body], Math.min(own[0][0] + 8, w - context.measureText(scene.bodies[body]).width - 4), own[0][1] - 8);
      at += count;
    });
    slider.value = moment; clock.textContent = moment.toFixed(2) + " s";
  }
  slider.min = scene.time[0]; slider.max = scene.time[scene.time.length - 1]; slider.step = "any";
  slider.addEventListener("input", () => { moment = +slider.value; draw(); });
  function tick(now) {
    if (!playing) return;
    moment += (now - before) / 1000; before = now;
    if (moment > scene.time[scene.time.length - 1]) moment = scene.time[0];
    draw(); requestAnimationFrame(tick);
  }
  play.addEventListener("click", () => {
    playing = !playing; play.textContent = playing ? "Pause" : "Play"; before = performance.now(); if (playing) requestAnimationFrame(tick);
  });
  canvas.addEventListener("pointerdown", (e) => { drag = [e.clientX, e.clientY]; canvas.setPointerCapture(e.pointerId); });
  canvas.addEventListener("pointermove", (e) => {
    if (!drag) return;
    yaw -= (e.clientX - drag[0]) * 0.01; pitch = Math.max(-1.5, Math.min(1.5, pitch + (e.clientY - drag[1]) * 0.01)); drag = [e.clientX, e.clientY]; draw();
  });
  canvas.addEventListener("pointerup", () => { drag = null; });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  window.addEventListener("resize", draw);
  draw();
}
// Drawn once all have their place: beside how many others a chart stands decides its width.
charts.forEach((draw) => draw());
window.addEventListener("resize", () => charts.forEach((draw) => draw()));
window.addEventListener("beforeprint", () => charts.forEach((draw) => draw()));
if (data.animation) animate(data.animation);
document.documentElement.dataset.ready = "yes";
