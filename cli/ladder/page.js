// SPDX-License-Identifier: Apache-2.0
//
// Shows the data of the ladder's page: tables of speeds and counts, sources with counts, and drawings of steps.
// A step is one recorded instruction of a warp: a memory access, a copy, or a tensor core instruction.
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const LANES = 32, WORD = 4, SECTOR = 32, LINE = 128; // lanes of a warp; sizes in bytes
const byId = (id) => document.getElementById(id);

// ---- Elements ------------------------------------------------------------------------------------

function element(name, attributes, ...children) {
  const svg = ["svg", "g", "rect", "text", "title"].includes(name);
  const made = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {}))
    if (key === "style") made.style.cssText = value;
    else made.setAttribute(key, value);
  made.append(...children);
  return made;
}

const rectangle = (x, y, width, height, kind, more) => element("rect", { x, y, width, height, class: kind, ...more });
const text = (x, y, words, kind) => element("text", { x, y, class: kind || "" }, String(words));

function drawing(width, height, label, kind, ...children) {
  const svg = element("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label, class: kind });
  svg.append(...children);
  return element("div", { class: "drawing", tabindex: 0, role: "group", "aria-label": label }, svg);
}

// A whole number as text with narrow spaces: "65 536".
const whole = (x) => String(Math.round(x)).replace(/\B(?=(\d{3})+$)/g, "\u202f");
const several = (count, what) => `${whole(count)} ${what}${count === 1 ? "" : "s"}`;

// ---- Tables of numbers ---------------------------------------------------------------------------

function tableOf(csv) {
  const lines = csv.trim().split("\n").filter((line) => !line.startsWith("#"));
  const [names, ...rows] = lines.map((line) => line.split(","));
  return rows.map((row) => Object.fromEntries(row.map((value, i) => [names[i], value])));
}

const speeds = data.speeds.flatMap(tableOf);
for (const rung of data.rungs) {
  rung.counts = tableOf(data.columns + "\n" + rung.counts)[0];
  for (const [name, value] of Object.entries(rung.counts)) if (/^\d+$/.test(value)) rung.counts[name] = Number(value);
}

function speedAt(rung, size) {
  return speeds.find((row) => row.rung === rung.name && ["m", "n", "k"].every((side) => row[side] === String(size)));
}

const ratio = (x, y) => (y > 0 ? (x / y).toFixed(2) : "–");
const loads = (c) => c.global_load_requests + c.async_copy_requests;
const loadSectors = (c) => c.global_load_sectors + c.async_copy_sectors;
const conflicts = (c) => c.shared_load_conflicts + c.shared_store_conflicts + c.async_copy_conflicts;

const SHOWN = 4096; // the size whose speeds the overview shows

function overviewRow(rung, fastest) {
  const c = rung.counts, speed = speedAt(rung, SHOWN);
  const bar = element("span", { class: "bar", style: `width:${speed ? (4 * speed.tflops) / fastest : 0}rem` });
  const cells = [
    ratio(loadSectors(c), loads(c)), ratio(SECTOR * (loadSectors(c) + c.global_store_sectors), c.needed_bytes),
    whole(conflicts(c))];
  return element("tr", {},
    element("th", { scope: "row" }, `${rung.number} `, element("a", { href: "#" + rung.name }, rung.name)),
    ...cells.map((cell) => element("td", {}, cell)),
    element("td", {}, ...(speed ? [bar, Number(speed.tflops).toFixed(1)] : ["not measured"])));
}

function showOverview() {
  const names = ["rung", "sectors a load", "bytes moved / needed", "bank conflicts", `TFLOP/s at ${SHOWN}³`];
  const fastest = Math.max(...data.rungs.map((rung) => Number((speedAt(rung, SHOWN) || { tflops: 0 }).tflops)), 1);
  for (const chapter of new Set(data.rungs.map((rung) => rung.chapter)))
    byId("tables").append(element("table", {},
      element("caption", {}, `Chapter ${chapter}: ${CHAPTERS[chapter]}`),
      element("thead", {}, element("tr", {}, ...names.map((name) => element("th", { scope: "col" }, name)))),
      element("tbody", {}, ...data.rungs.filter((r) => r.chapter === chapter).map((r) => overviewRow(r, fastest)))));
}

const CHAPTERS = {
  1: "FP32 on CUDA cores", 2: "f16 with sums in FP32 on tensor cores", 3: "FP32 by products of TF32 on tensor cores",
};

// ---- The comment at the head of a source ---------------------------------------------------------

// Splits this comment of a source into prose and drawings, in their order. Each part is [is a drawing, text].
function partsOf(source) {
  const lines = source.slice(0, source.indexOf("*/")).split("\n").slice(2).map((line) => line.replace(/^ \* ?/, ""));
  const parts = [];
  let blank = true;
  for (const line of lines) {
    const last = parts[parts.length - 1], drawn = /^ {3}/.test(line), starts = /^(Changed[^:]*|Why|Look at): /.test(line);
    if (line.trim() === "") blank = true;
    else {
      if (last && drawn && last[0]) last[1] += (blank ? "\n\n" : "\n") + line;
      else if (last && !drawn && !last[0] && !blank && !starts) last[1] += " " + line;
      else parts.push([drawn, line]);
      blank = false;
    }
  }
  return parts;
}

// What the rung changes, in two sentences of that comment. If several rungs share a source file, a drawing in
// the comment has a line for each rung; the text of the rung's line is added to the sentences.
function ideaOf(rung, parts) {
  const prose = parts.filter((part) => !part[0]).map((part) => part[1]);
  const own = parts.map((part) => part[1].match(new RegExp(`^ *${rung.number} ${rung.name} .* {2,}(\\S.*)$`, "m")));
  const found = own.find((match) => match);
  const words = prose.find((p) => p.startsWith("Changed")) || (/^Rungs/.test(prose[0]) ? prose[0] : prose[1]);
  const sentences = words.replace(/^(Changed|Rungs? )[^:]*: */, "").match(/.*?[.:](?= |$)/g).slice(0, 2).join("");
  return sentences + (found ? ` Here ${found[1]}.` : "");
}

function showHead(rung, source) {
  const parts = partsOf(source), idea = ideaOf(rung, parts);
  const first = idea.match(/^[a-z]+(?= )/), isName = first && new RegExp(`\\b${first[0]}[_(]`).test(source);
  byId("idea").textContent = first && !isName ? idea.charAt(0).toUpperCase() + idea.slice(1) : idea;
  byId("head").replaceChildren(...parts.slice(1).map(([drawn, words]) => element(drawn ? "pre" : "p", {}, words)));
}

// ---- The source with counts ----------------------------------------------------------------------

// The counts of each source line: sectors, wavefronts, conflicts, and FFMA or tensor-core instructions.
function countsByLine(rung, lines) {
  const counts = lines.map(() => ({ math: 0, sectors: 0, wavefronts: 0, conflicts: 0 }));
  for (const l of rung.trace.lines) {
    if (l.line === 0) continue;
    const to = counts[l.line - 1];
    if (l.kind === "mma" || l.kind === "wgmma") to.math += l.requests;
    for (const name of ["sectors", "wavefronts", "conflicts"]) to[name] += l[name];
  }
  for (const [line, threads] of rung.trace.executions)
    if (line > 0 && /\b(acc|sum)\S* \+= .+ \* /.test(lines[line - 1])) counts[line - 1].math += threads / LANES;
  return counts;
}

function countCell(count, total, title) {
  if (count === 0) return element("td", {});
  return element("td", { class: "heat", style: `--share:${total > 0 ? count / total : 0}`, title }, whole(count));
}

// Appends a line of code. inComment: whether the line begins in a comment. Returns inComment of the next line.
function addCode(cell, line, inComment) {
  for (const part of line.split(/(\/\*|\*\/)/)) {
    if (part === "/*") inComment = true;
    if (part !== "") cell.append(inComment ? element("span", { class: "comment" }, part) : part);
    if (part === "*/") inComment = false;
  }
  return inComment;
}

function showSource(rung, source) {
  const lines = source.trimEnd().split("\n"), counts = countsByLine(rung, lines), total = {};
  const names = { math: rung.chapter === 1 ? "FFMA" : "MMA", sectors: "sectors", wavefronts: "wavefr." };
  const titles = { math: "instructions of warps", sectors: "of global memory", wavefronts: "of shared memory" };
  for (const name of Object.keys(names)) total[name] = Math.max(...counts.map((c) => c[name]));
  const columns = Object.keys(names).filter((name) => total[name] > 0);
  const heading = element("tr", {}, element("th", { scope: "col" }, "line"),
    ...columns.map((name) => element("th", { scope: "col", title: titles[name] }, names[name])),
    element("th", { scope: "col" }, "source"));
  const body = element("tbody");
  let inComment = false;
  for (let i = lines.findIndex((line) => line.startsWith(" */")) + 1; i < lines.length; i++) {
    const at = rung.trace.steps.findIndex((step) => step.line === i + 1), code = element("td");
    const number = at < 0 ? i + 1 : element("button", { type: "button", title: "go to its first step" }, i + 1);
    if (at >= 0) number.addEventListener("click", () => showStep(at));
    inComment = addCode(code, lines[i], inComment);
    const cells = columns.map((name) => countCell(counts[i][name], total[name], `${names[name]} ${titles[name]}`));
    if (counts[i].conflicts > 0) {
      const bad = element("span", { class: "bad", title: "of these by bank conflicts" }, ` (${whole(counts[i].conflicts)})`);
      cells[columns.indexOf("wavefronts")].append(bad);
    }
    body.append(element("tr", { id: "line-" + (i + 1) }, element("td", {}, number), ...cells, code));
  }
  byId("source").replaceChildren(element("thead", {}, heading), body);
  byId("source-title").textContent = "kernels/" + rung.trace.file;
  byId("legend").textContent = "Counts of the whole product: " + [
    total.math > 0 ? `${names.math} instructions of warps` : "", "32-byte sectors of global memory",
    total.wavefronts > 0 ? "wavefronts of shared memory (in brackets: by bank conflicts)" : "",
  ].filter((words) => words !== "").join(", ") + ".";
}

// ---- Where a step accesses memory ----------------------------------------------------------------

const arrayAt = (trace, offset) => trace.arrays.find((array) => offset >= array.begin && offset < array.end);

// Text for the matrix element at a byte offset in global memory: "A[3][16]".
function placeInMatrix(trace, step, offset) {
  const matrix = trace.matrices.find((x) => x.name === step.matrix), at = offset - matrix.begin;
  const row = Math.floor(at / matrix.ld_bytes), column = (at % matrix.ld_bytes) / matrix.element;
  return matrix.rows > 1 ? `${step.matrix}[${row}][${column}]` : `${step.matrix} + ${at} bytes`;
}

function placeInShared(trace, offset) {
  const array = arrayAt(trace, offset);
  return array ? `${array.name} + ${offset - array.begin} bytes` : `byte ${offset}`;
}

// Groups lanes by the byte offset that they access: a list of [offset, [lanes]], sorted by offset.
function sharers(lanes) {
  const found = new Map();
  lanes.forEach((offset, lane) => {
    if (offset === null) return;
    if (!found.has(offset)) found.set(offset, []);
    found.get(offset).push(lane);
  });
  return [...found].sort((x, y) => x[0] - y[0]);
}

const isChosen = (lanes) => chosen.lane < 0 || lanes.includes(chosen.lane);

// A box for an element, with the number of the lane that accesses it or, for several lanes, their count.
function laneBox(x, y, width, height, lanes) {
  const words = lanes.length > 1 ? (width >= 24 ? "×" + lanes.length : lanes.length) : lanes[0];
  const group = element("g", { class: isChosen(lanes) ? "" : "other" },
    rectangle(x, y, width, height, "lane", { style: `--number:${lanes[0]}` }));
  if (width >= 14) group.append(text(x + width / 2, y + height - 4, words));
  group.append(element("title", {}, `lane ${lanes.join(", ")}`));
  return group;
}

// ---- Drawings ------------------------------------------------------------------------------------

const CELL = 20, ROW = 17, LEFT = 100; // pixels, in the drawings of banks and sectors

// Draws a row for each line of 128 bytes that a step accesses; the 32-byte sectors that are moved are marked.
function drawSectors(trace, step) {
  const groups = sharers(step.global), scale = CELL / WORD;
  const starts = [...new Set(groups.map(([offset]) => Math.floor(offset / LINE)))].sort((x, y) => x - y);
  const sectors = [...new Set(groups.flatMap(([offset]) => // the bytes of an access may lie in two sectors
    [Math.floor(offset / SECTOR), Math.floor((offset + step.bytes - 1) / SECTOR)]))];
  const y = (offset) => 20 + starts.indexOf(Math.floor(offset / LINE)) * ROW;
  const x = (offset) => LEFT + (offset % LINE) * scale;
  const parts = [text(LEFT, 13, "128 bytes, four sectors of 32; the numbers are lanes", "faint")];
  for (const start of starts) {
    parts.push(rectangle(LEFT, y(start * LINE), LINE * scale, ROW, "frame"));
    parts.push(text(0, y(start * LINE) + 13, placeInMatrix(trace, step, start * LINE), "faint"));
  }
  for (const sector of sectors)
    parts.push(rectangle(x(sector * SECTOR), y(sector * SECTOR), SECTOR * scale, ROW, "unused"));
  for (const [offset, lanes] of groups)
    parts.push(laneBox(x(offset), y(offset), step.bytes * scale, ROW - 1, lanes));
  const label = `${several(step.sectors, "sector")} of ${step.matrix} in ${several(starts.length, "line")} of 128 bytes`;
  return drawing(LEFT + LINE * scale + 1, y(starts[starts.length - 1] * LINE) + ROW + 2, label, "sectors", ...parts);
}

// The wavefronts of an access to shared memory. A wavefront is a list of [bank, lanes], one for each word.
function wavefrontsOf(step) {
  const found = [];
  for (let first = 0; first < LANES; first += step.together) {
    const words = new Map(), depth = Array(LANES).fill(0), rows = [];
    for (let lane = first; lane < first + step.together; lane++) {
      if (step.shared[lane] === null) continue;
      const end = step.shared[lane] + step.bytes;
      for (let word = Math.floor(step.shared[lane] / WORD); word * WORD < end; word++) {
        if (!words.has(word)) words.set(word, []);
        words.get(word).push(lane);
      }
    }
    for (const [word, lanes] of words) {
      const bank = word % LANES, row = depth[bank]++;
      (rows[row] = rows[row] || []).push([bank, lanes]);
    }
    rows.forEach((row, i) => found.push({ first, conflict: i > 0, words: row }));
  }
  return found;
}

function drawBanks(step) {
  const rows = wavefrontsOf(step), parts = [text(0, 13, "bank", "faint")];
  for (let bank = 0; bank < LANES; bank++) parts.push(text(LEFT + bank * CELL + 2, 13, bank, "faint"));
  rows.forEach((row, i) => {
    const y = 20 + i * ROW, lanes = `lanes ${row.first}–${row.first + step.together - 1}`;
    parts.push(rectangle(LEFT, y, LANES * CELL, ROW, "frame"));
    parts.push(text(0, y + 13, row.conflict ? "conflict" : step.together < LANES ? lanes : "wavefront", row.conflict ? "bad" : "faint"));
    for (const [bank, who] of row.words) parts.push(laneBox(LEFT + bank * CELL, y, CELL, ROW - 1, who));
  });
  const label = `${several(step.wavefronts, "wavefront")} of shared memory, ${step.conflicts} by bank conflicts`;
  return drawing(LEFT + LANES * CELL + 1, 22 + rows.length * ROW, label, "banks", ...parts);
}

// Draws where in its matrix a step accesses elements. ranges: a list of [offset, bytes, number of rows].
function drawMatrix(trace, step, ranges) {
  const matrix = trace.matrices.find((x) => x.name === step.matrix);
  const columns = matrix.row_bytes, tall = 160, wide = Math.min(300, Math.max(60, (tall * columns) / matrix.element / matrix.rows));
  const parts = [text(0, 12, `${step.matrix}, ${matrix.rows} × ${columns / matrix.element}`, "faint"), rectangle(0.5, 18.5, wide, tall, "frame")];
  for (const [offset, bytes, rows] of ranges) {
    const at = offset - matrix.begin, row = Math.floor(at / matrix.ld_bytes), x = ((at % matrix.ld_bytes) / columns) * wide;
    parts.push(rectangle(x, 18.5 + (row / matrix.rows) * tall, Math.max(1.5, (bytes / columns) * wide),
      Math.max(1.5, ((rows || 1) / matrix.rows) * tall), "touched"));
  }
  return drawing(320, tall + 22, `where in ${step.matrix}`, "small", ...parts);
}

// Draws where in shared memory a step accesses bytes. ranges: a list of [offset, bytes].
function drawShared(trace, ranges) {
  const end = Math.max(...trace.arrays.map((array) => array.end)), wide = 640;
  const parts = [];
  trace.arrays.forEach((array, i) => {
    const x = (array.begin / end) * wide, width = ((array.end - array.begin) / end) * wide;
    parts.push(rectangle(x + 0.5, 16.5, Math.max(width - 1, 1), 16, "frame"));
    if (width > 8 * array.name.length) parts.push(text(x + 2, 12, array.name, "faint"));
  });
  for (const [offset, bytes] of ranges)
    parts.push(rectangle((offset / end) * wide, 17, Math.max(1.5, (bytes / end) * wide), 15, "touched"));
  const label = `where in the ${whole(end)} bytes of shared memory`;
  return drawing(wide + 1, 36, label, "shared-map", ...parts);
}

// Draws the fragments of mma.sync: a, b and the sums. Each element shows the number of its lane.
function drawFragments(trace) {
  const f = trace.fragments, side = 22, gap = side, top = 20 + f.k * side + gap, left = f.k * side + gap;
  const parts = [text(left, 13, `b, ${f.k} × ${f.n}`, "faint"), text(0, top - 6, `a, ${f.m} × ${f.k}`, "faint"),
    text(left, top - 6, `sums, ${f.m} × ${f.n}`, "faint")];
  const grid = (elements, columns, x, y) => elements.forEach((holder, i) =>
    parts.push(laneBox(x + (i % columns) * side, y + Math.floor(i / columns) * side, side - 1, side - 1, [holder % LANES])));
  grid(f.b, f.n, left, 20);
  grid(f.a, f.k, 0, top);
  grid(f.sums, f.n, left, top);
  return drawing(left + f.n * side, top + f.m * side, "which lane holds which element of the fragments", "square", ...parts);
}

const present = (lanes) => lanes.filter((offset) => offset !== null);

function drawingsOf(trace, step) {
  if (step.kind === "mma") return [drawFragments(trace)];
  if (step.kind === "wgmma") return [drawShared(trace, step.tiles.map((offset) => [offset, 256]))];
  const made = [];
  if (step.rows !== undefined) {
    if (step.global) made.push(drawMatrix(trace, step, [[present(step.global)[0], step.row_bytes, step.rows]]));
    return [...made, drawShared(trace, [[present(step.shared)[0], step.bytes]])];
  }
  if (step.global) made.push(drawSectors(trace, step), drawMatrix(trace, step, present(step.global).map((at) => [at, step.bytes])));
  if (step.shared) made.push(drawBanks(step), drawShared(trace, present(step.shared).map((at) => [at, step.bytes])));
  return made;
}

// ---- What a step does, in words ------------------------------------------------------------------

function describe(trace, step) {
  const before = `Line ${step.line}, warp ${step.warp}: `, lanes = present(step.global || step.shared || []).length;
  if (step.kind === "mma")
    return `${before}mma.sync multiplies ${step.m} × ${step.k} by ${step.k} × ${step.n} (${step.type}). The drawing shows which lane holds which element.`;
  if (step.kind === "wgmma")
    return `${before}with the other warps of its warpgroup, wgmma multiplies ${step.m} × ${step.k} (at ${placeInShared(trace, step.tiles[0])}) by ${step.k} × ${step.n} (at ${placeInShared(trace, step.tiles[1])}), ${step.type}, directly from shared memory.`;
  if (step.rows !== undefined) {
    const inside = present(step.shared)[0], outside = step.global ? placeInMatrix(trace, step, present(step.global)[0]) : "a place beyond the edge of its matrix, so that it contains zeros";
    return `${before}one lane starts a ${step.kind} of a box of ${several(step.rows, "row")} of ${step.row_bytes} bytes, at ${outside}; in shared memory at ${placeInShared(trace, inside)}.`;
  }
  const words = [`${before}${step.kind}, ${several(lanes, "lane")} × ${several(step.bytes, "byte")}`];
  if (step.global) words.push(`${several(step.sectors, "sector")} of ${step.matrix}, ${whole((100 * new Set(present(step.global)).size * step.bytes) / (step.sectors * SECTOR))} % of their bytes used`);
  if (step.shared) {
    const array = arrayAt(trace, present(step.shared)[0]);
    words.push(`${several(step.wavefronts, "wavefront")} of shared memory (${array ? array.name : "?"}), ${step.conflicts > 0 ? `${step.conflicts} by bank conflicts` : "no bank conflicts"}`);
  }
  return words.join("; ") + ".";
}

function describeLane(trace, step, lane) {
  const words = [];
  if (step.kind === "mma") {
    const f = trace.fragments;
    for (const [name, columns] of [["a", f.k], ["b", f.n], ["sums", f.n]]) {
      const held = f[name].map((holder, i) => [holder, i]).filter(([holder]) => holder % LANES === lane);
      words.push(`${name}: ` + held.map(([holder, i]) => `(${Math.floor(i / columns)}, ${i % columns}) in [${Math.floor(holder / LANES)}]`).join(", "));
    }
  }
  if (step.global && step.global[lane] !== null) words.push(placeInMatrix(trace, step, step.global[lane]));
  if (step.shared && step.shared[lane] !== null)
    words.push(`${placeInShared(trace, step.shared[lane])}, bank ${Math.floor(step.shared[lane] / WORD) % LANES}`);
  return `Lane ${lane}: ${words.length > 0 ? words.join("; ") : "does not take part"}.`;
}

// ---- What is shown -------------------------------------------------------------------------------

const chosen = { rung: 0, step: 0, lane: -1 };

function showStep(step) {
  const trace = data.rungs[chosen.rung].trace, last = trace.steps.length - 1;
  chosen.step = Math.min(Math.max(step, 0), last);
  const now = trace.steps[chosen.step];
  byId("step").value = chosen.step + 1;
  byId("step-number").textContent = `${chosen.step + 1} of ${last + 1}`;
  byId("step-before").disabled = chosen.step === 0;
  byId("step-after").disabled = chosen.step === last;
  byId("step-text").textContent = describe(trace, now);
  byId("lane-number").textContent = chosen.lane < 0 ? "all" : chosen.lane;
  byId("lane-text").textContent = chosen.lane < 0 ? "Choose a lane to see what it accesses." : describeLane(trace, now, chosen.lane);
  byId("drawing").replaceChildren(...drawingsOf(trace, now));
  for (const row of document.querySelectorAll("#source tr.now")) row.classList.remove("now");
  const row = byId("line-" + now.line);
  if (!row) return;
  row.classList.add("now");
  const box = byId("source").parentElement; // scrolls the source only, not the page
  if (row.offsetTop < box.scrollTop + 40 || row.offsetTop + 40 > box.scrollTop + box.clientHeight)
    box.scrollTop = row.offsetTop - box.clientHeight / 3;
}

function showSpeed(rung) {
  const rows = speeds.filter((row) => row.rung === rung.name);
  const sizes = rows.map((row) => {
    const size = row.m === row.n && row.n === row.k ? `${row.m}³` : `${row.m}×${row.n}×${row.k}`;
    return `${size}\u00a0${Number(row.tflops).toPrecision(3)}\u00a0(${Number(row.percent_cublas).toFixed(0)}\u00a0%)`;
  });
  byId("speed").textContent = rows.length === 0 ? "Speed: not measured."
    : `Speed in TFLOP/s and share of cuBLAS, ${rows[0].chip}: ${sizes.join(", ")}.`;
}

function showRung(number) {
  chosen.rung = number;
  const rung = data.rungs[number], c = rung.counts, source = data.files[rung.trace.file];
  document.title = `${rung.name} – the ladder`;
  byId("name").textContent = `${rung.number}. ${rung.name}`;
  byId("rung").value = rung.name;
  byId("before").disabled = number === 0;
  byId("after").disabled = number === data.rungs.length - 1;
  showHead(rung, source);
  showSpeed(rung);
  byId("facts").textContent = `${several(c.blocks, "block")} of ${c.threads} threads; ${whole(c.shared_bytes)} bytes of shared memory and ` +
    `${several(c.barriers / c.blocks, "barrier")} a block; ${ratio(loadSectors(c), loads(c))} sectors a load; ${several(conflicts(c), "bank conflict")}.`;
  showSource(rung, source);
  byId("step").max = rung.trace.steps.length;
  showStep(0);
}

const indexOf = (name) => data.rungs.findIndex((rung) => rung.name === name);

function start() {
  const c = data.rungs[0].counts;
  byId("about").textContent = `${data.rungs.length} CUDA kernels that multiply matrices, each a step further than the one before. ` +
    `Tegula ${c.tegula} ran them on its simulator, ${c.m} × ${c.n} × ${c.k}: it counted every access to memory, and recorded those that are drawn below ` +
    "(of each instruction of a block the first few executions, by one warp).";
  showOverview();
  for (const chapter of new Set(data.rungs.map((rung) => rung.chapter)))
    byId("rung").append(element("optgroup", { label: "Chapter " + chapter },
      ...data.rungs.filter((r) => r.chapter === chapter).map((r) => element("option", { value: r.name }, `${r.number} ${r.name}`))));
  const go = (number) => { location.hash = data.rungs[number].name; };
  byId("rung").addEventListener("change", (event) => go(indexOf(event.target.value)));
  byId("before").addEventListener("click", () => go(chosen.rung - 1));
  byId("after").addEventListener("click", () => go(chosen.rung + 1));
  byId("step").addEventListener("input", (event) => showStep(event.target.value - 1));
  byId("step-before").addEventListener("click", () => showStep(chosen.step - 1));
  byId("step-after").addEventListener("click", () => showStep(chosen.step + 1));
  byId("lane").addEventListener("input", (event) => { chosen.lane = Number(event.target.value); showStep(chosen.step); });
  window.addEventListener("hashchange", () => showRung(Math.max(indexOf(location.hash.slice(1)), 0)));
  showRung(Math.max(indexOf(location.hash.slice(1)), 0));
}

start();
