"use strict";
// Draws the trace in #trace. Text goes in as text, never as markup.
(() => {
  const trace = JSON.parse(document.getElementById("trace").textContent);
  const SVG = "http://www.w3.org/2000/svg";
  const ROW = 28;
  const GUTTER = narrow() ? 58 : 112;
  const GAP = trace.lanes.length > 10 ? 17 : trace.lanes.length > 6 ? 21 : 26;
  const $ = (id) => document.getElementById(id);

  function narrow() { return window.matchMedia("(max-width: 640px)").matches; }

  function make(tag, className, ...children) {
    const node = document.createElement(tag);
    if (className) node.className = className;
    node.append(...children);
    return node;
  }

  function draw(parent, tag, attributes) {
    const node = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    parent.append(node);
    return node;
  }

  const hue = (lane) => {
    const kind = lane >= 0 && trace.lanes[lane] ? trace.lanes[lane].kind : "loop";
    return kind === "task" ? `var(--lane-${lane % 8})` : `var(--lane-${kind})`;
  };
  const laneX = (lane) => GUTTER + GAP / 2 + lane * GAP;
  const clock = (seconds) => seconds.toFixed(3);

  // --- the verdict --------------------------------------------------------------------------

  function verdict() {
    const found = trace.verdict;
    const said = make("div", "");
    if (found) {
      said.append(make("p", "kind", make("span", "code", found.code), found.name));
      said.append(make("h1", "", found.message));
      const where = make("ul", "where mono");
      for (const line of found.where) where.append(make("li", "", line));
      said.append(where);
      if (found.advice) said.append(make("p", "advice", found.advice));
    } else {
      $("verdict").className = "well";
      said.append(make("h1", "", "No finding in this run"));
    }
    said.append(facts());
    const list = make("dl", "");
    if (trace.replay) copyable(list, "replay", trace.replay);
    if (found) copyable(list, "what it is", `handfast explain ${found.code}`, found.summary);
    if (trace.token) copyable(list, "token", trace.token);
    $("verdict").append(said, list);
  }

  function facts() {
    const { tasks, steps, departures, seconds } = trace.facts;
    const fact = (count, what) => make("span", "", make("b", "", count), ` ${what}`);
    const many = (n, what) => fact(n.toLocaleString("en"), n === 1 ? what : `${what}s`);
    const departed = many(departures, "change");
    departed.append(" to the normal order");
    return make("p", "facts", many(tasks, "task"), many(steps, "step"), departed, fact(`${clock(seconds)} s`, "of virtual time"));
  }

  function copyable(list, name, text, title) {
    const code = make("code", "", text);
    if (title) code.title = title;
    const button = make("button", "", "copy");
    button.type = "button";
    button.setAttribute("aria-label", `copy: ${name}`);
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(text);
        button.textContent = "copied";
      } catch {
        getSelection().selectAllChildren(code);
      }
      setTimeout(() => { button.textContent = "copy"; }, 1200);
    });
    list.append(make("div", "", make("dt", "", name), make("dd", "", code, button)));
  }

  // --- names of the lanes -------------------------------------------------------------------

  function names() {
    const step = trace.lanes.length > 10 ? 16 : 21;
    const height = trace.lanes.length * step + 6;
    const svg = draw($("names"), "svg", { width: "100%", height });
    trace.lanes.forEach((lane, at) => {
      const x = laneX(at), y = at * step + 12;
      const line = draw(svg, "path", { d: `M${x} ${height} V${y + 5} Q${x} ${y} ${x + 5} ${y} H${x + 11}`, fill: "none", "stroke-width": 1.5, opacity: 0.7 });
      line.style.stroke = hue(at);
      const text = draw(svg, "text", { x: x + 16, y: y + 4 });
      text.style.setProperty("--hue", hue(at));
      draw(text, "tspan", { class: "name" }).textContent = lane.name;
      draw(text, "tspan", { class: "more", dx: 10 }).textContent = lane.created;
    });
    if (trace.unseen) {
      $("names").append(make("p", "", `${trace.unseen} more tasks have no lane here`));
    }
  }

  // --- rows ---------------------------------------------------------------------------------

  let shown = [];   // what each line shows: {row} or {fold}, with its element
  let chosen = -1;

  function lines() {
    const list = [];
    let settling = false;
    const add = (row) => {
      if (row.settling && !settling) {
        settling = true;
        list.push({ aside: "the program has ended; tasks that are ready still run" });
      }
      list.push({ row });
    };
    for (const item of trace.items) {
      if (!item.fold) add(item);
      else if (item.unfolded) item.fold.forEach(add);
      else list.push({ fold: item });
    }
    return list;
  }

  function rows() {
    const box = $("rows");
    shown = lines();
    const whole = document.createDocumentFragment();
    let time = "";
    shown.forEach((line, at) => {
      const now = line.row && line.row.step ? clock(line.row.time) : time;
      line.element = line.row ? rowOf(line.row, now === time ? "" : now) : line.fold ? foldOf(line.fold) : asideOf(line.aside);
      time = line.fold ? "" : now;
      line.element.id = `line-${at}`;
      line.element.dataset.at = at;
      whole.append(line.element);
    });
    box.replaceChildren(whole);
    lanes();
  }

  function rowOf(row, time) {
    const quiet = ["timer", "callback", "arrival"].includes(row.mark);
    const ended = ["returns", "cancelled"].includes(row.mark);
    const element = make("div", ["row", row.mark, quiet && "quiet wide", ended && "ended", row.departure && "departure", row.failing && "failing"].filter(Boolean).join(" "));
    element.setAttribute("role", "option");
    element.setAttribute("aria-selected", "false");
    element.style.setProperty("--hue", hue(row.lane));
    const gutter = make("span", "gutter");
    if (row.departure) gutter.append(`» ${row.mark}`);
    else if (row.mark === "stuck") gutter.append(make("span", "", "end"));
    else gutter.append(make("span", "", String(row.step || "")), make("span", "time", time));
    element.append(gutter, make("span", ""));
    if (row.departure) {
      element.append(make("span", "words", `${row.who || ""} ${row.words}`.trim()));
    } else {
      element.append(make("span", "who", row.who || ""), make("span", "words", row.words || ""));
      if (!quiet && row.place !== undefined) element.append(make("span", "text", trace.places[row.place].text));
    }
    return element;
  }

  function foldOf(item) {
    const element = make("div", "row fold", make("span", "gutter", "⋮"), make("span", ""), make("span", "words", item.says));
    if (item.open) element.lastChild.append(" · ", make("b", "", "show"));
    else element.lastChild.append(" · too many for this page");
    element.setAttribute("role", "option");
    element.setAttribute("aria-selected", "false");
    return element;
  }

  function asideOf(text) {
    return make("div", "row aside", make("span", "gutter"), make("span", ""), make("span", "words", text));
  }

  // --- lanes --------------------------------------------------------------------------------

  function follow(row, state) {
    // The same rule as `follow` in rows.py.
    for (const lane of [...(row.wakes || []), ...(row.starts || []), ...(row.cancels || [])]) {
      if (trace.lanes[lane].kind === "task") state[lane] = "ready";
    }
    if (row.lane === undefined || row.lane < 0) return;
    if (["returns", "fails", "cancelled"].includes(row.mark)) state[row.lane] = "";
    else if (row.mark === "step") state[row.lane] = (row.wakes || []).includes(row.lane) ? "ready" : "waits";
  }

  function lanes() {
    const svg = $("lanes");
    svg.replaceChildren();
    const height = shown.length * ROW;
    svg.setAttribute("width", laneX(trace.lanes.length) + 4);
    svg.setAttribute("height", height);
    const back = draw(svg, "g", {}), front = draw(svg, "g", {});
    const state = trace.lanes.map((_, at) => (at === 0 ? "ready" : ""));
    const since = trace.lanes.map(() => 0);
    const stroke = (lane, until, kind) => {
      if (kind && until > since[lane]) {
        const line = draw(back, "line", { x1: laneX(lane), x2: laneX(lane), y1: since[lane], y2: until, class: kind });
        line.style.stroke = hue(lane);
      }
      since[lane] = until;
    };
    shown.forEach((line, at) => {
      const y = at * ROW + ROW / 2;
      const before = [...state];
      const rows = line.row ? [line.row] : line.fold ? line.fold.fold : [];
      rows.forEach((row) => follow(row, state));
      if (line.fold) line.fold.after.forEach((now, lane) => { state[lane] = now; });
      if (line.fold) {
        state.forEach((_, lane) => { stroke(lane, y - ROW / 2, before[lane]); stroke(lane, y + ROW / 2, before[lane] || state[lane] ? "folded" : ""); });
      } else if (line.row) {
        state.forEach((now, lane) => { if (now !== before[lane]) stroke(lane, y, before[lane]); });
        for (const lane of line.row.starts || []) since[lane] = y + 8;
        arrows(back, line.row, y);
        mark(front, line.row, y);
      }
    });
    state.forEach((now, lane) => stroke(lane, height, now));
    $("timeline").style.setProperty("--gutter", `${GUTTER}px`);
    $("rows").style.setProperty("--lanes", `${trace.lanes.length * GAP + 12}px`);
  }

  function arrows(parent, row, y) {
    if (row.lane === undefined || row.lane < 0) return;
    const from = laneX(row.lane);
    if (row.mark === "cancel") draw(parent, "path", { d: `M${GUTTER - (narrow() ? 2 : 34)} ${y} H${from - 8}`, class: "cut" });
    const reach = (lane, kind) => {
      if (lane === row.lane) return;
      const to = laneX(lane), way = Math.sign(to - from), end = to - way * 6;
      const bent = kind === "starts";
      const d = bent ? `M${from} ${y} H${to - way * 8} Q${to} ${y} ${to} ${y + 8} V${y + ROW / 2}` : `M${from} ${y} H${end}`;
      const path = draw(parent, "path", { d, class: `arrow ${kind}` });
      path.style.stroke = kind === "cancels" ? "var(--turn)" : hue(row.lane);
      if (kind === "cancels") cross(parent, to, y, "var(--turn)");
      else if (!bent) {
        const head = draw(parent, "path", { d: `M${end + way * 4} ${y} l${-way * 8} -4.5 v9 z`, class: "head" });
        head.style.fill = hue(row.lane);
      }
    };
    (row.starts || []).forEach((lane) => reach(lane, "starts"));
    (row.wakes || []).forEach((lane) => reach(lane, "wakes"));
    (row.cancels || []).forEach((lane) => reach(lane, "cancels"));
  }

  function cross(parent, x, y, color) {
    const path = draw(parent, "path", { d: `M${x - 4} ${y - 4} l8 8 m0 -8 l-8 8`, "stroke-width": 2.4, "stroke-linecap": "round", fill: "none" });
    path.style.stroke = color;
  }

  function mark(parent, row, y) {
    if (row.lane === undefined || row.lane < 0 || row.mark === "choice") return;
    sign(parent, row.failing ? "fails" : row.mark, laneX(row.lane), y, hue(row.lane));
  }

  function sign(parent, kind, x, y, color) {
    const dress = (node) => { node.style.fill = color; node.setAttribute("class", "mark"); };
    const hollow = (node) => { node.style.fill = "var(--card)"; node.style.stroke = color; node.setAttribute("stroke-width", 2); };
    if (kind === "returns") dress(draw(parent, "rect", { x: x - 5.5, y: y - 5.5, width: 11, height: 11, rx: 2 }));
    else if (kind === "fails" || kind === "stuck") {
      const disc = draw(parent, "circle", { cx: x, cy: y, r: 8.5 });
      disc.style.fill = "var(--bad)";
      cross(parent, x, y, "var(--card)");
    } else if (kind === "cancelled") {
      hollow(draw(parent, "circle", { cx: x, cy: y, r: 5.5 }));
      const bar = draw(parent, "path", { d: `M${x - 4} ${y + 4} l8 -8`, "stroke-width": 2 });
      bar.style.stroke = color;
    } else if (kind === "timer" || kind === "callback") dress(draw(parent, "path", { d: `M${x} ${y - 6} l6 6 l-6 6 l-6 -6 z` }));
    else if (kind === "arrival") hollow(draw(parent, "path", { d: `M${x} ${y - 6} l6 6 l-6 6 l-6 -6 z` }));
    else if (kind === "cancel") {
      const disc = draw(parent, "circle", { cx: x, cy: y, r: 8 });
      disc.style.fill = "var(--turn)";
      cross(parent, x, y, "var(--card)");
    } else dress(draw(parent, "circle", { cx: x, cy: y, r: 6 }));
  }

  // --- the source beside it -----------------------------------------------------------------

  const WORDS = new Set("False None True and as assert async await break class continue def del elif else except finally for from global if import in is lambda match nonlocal not or pass raise return try while with yield".split(" "));
  const TOKEN = /(#.*$)|([rbfuRBFU]{0,2}(?:"(?:\\.|[^"\\])*"?|'(?:\\.|[^'\\])*'?))|(\b\d[\d_.]*\b)|([A-Za-z_]\w*)|([^\w"'#]+|.)/g;

  function coloured(text) {
    const span = make("span", "");
    for (const [all, comment, string, number, word] of text.matchAll(TOKEN)) {
      const className = comment ? "tc" : string ? "ts" : number ? "tn" : WORDS.has(word) ? "tk" : "";
      span.append(className ? make("span", className, all) : all);
    }
    return span;
  }

  function detail(row, frame) {
    const panel = $("detail");
    panel.replaceChildren();
    panel.style.setProperty("--hue", hue(row.lane));
    const title = make("h2", "", make("span", "who", row.who || ""), ` ${row.words || ""}`);
    const head = make("div", "head", title);
    if (row.mark === "fails") head.append(make("p", "error", row.note));
    else if (row.note) head.append(make("p", "", row.note));
    if (row.call) head.append(make("p", "", "waits in ", make("code", "", row.call)));
    const facts = [row.step && `step ${row.step}`, `at ${clock(row.time || 0)} s`, row.why].filter(Boolean);
    head.append(make("p", "", facts.join(" · ")));
    if (row.departure) head.append(make("p", "", "This differs from a normal run."));
    panel.append(head);
    const chain = row.chain || [];
    const place = frame !== undefined ? frame : row.place;
    if (chain.length > 1) panel.append(chainOf(row, chain, place));
    if (place === undefined) return;
    const at = trace.places[place];
    panel.append(make("div", "file mono", `${at.file}:${at.line} in ${at.function}`));
    panel.append(sourceOf(row, at, place === row.place && row.left !== undefined ? trace.places[row.left] : null));
    const marked = panel.querySelector(".fault, .here, .left");
    if (marked) panel.scrollTop = Math.max(0, marked.offsetTop - panel.clientHeight / 2);
  }

  function chainOf(row, chain, place) {
    const box = make("div", "chain");
    for (const index of chain) {
      const at = trace.places[index];
      const button = make("button", "mono", at.function);
      button.type = "button";
      button.title = `${at.file}:${at.line}`;
      button.setAttribute("aria-pressed", String(index === place));
      button.addEventListener("click", () => detail(row, index));
      box.append(button);
    }
    return box;
  }

  function sourceOf(row, at, left) {
    const block = trace.sources.find((s) => s.file === at.file && s.first <= at.line && at.line < s.first + s.lines.length);
    const list = make("ol", "");
    if (!block) return make("div", "file", "(the source is not available)");
    const ended = row.mark === "returns" || row.mark === "cancelled";
    block.lines.forEach((text, index) => {
      const line = block.first + index;
      const item = make("li", "", make("i", "", String(line)), coloured(text));
      if (left && left.file === at.file && left.line === line) item.className = "left";
      if (at.line === line && !ended) item.className = row.failing ? "fault" : "here";
      list.append(item);
    });
    return make("div", "source", list);
  }

  // --- choosing -----------------------------------------------------------------------------

  function choose(at, { scroll = true } = {}) {
    const line = shown[at];
    if (!line || line.aside) return;
    if (shown[chosen]) shown[chosen].element.setAttribute("aria-selected", "false");
    chosen = at;
    line.element.setAttribute("aria-selected", "true");
    $("rows").setAttribute("aria-activedescendant", line.element.id);
    if (line.row) {
      detail(line.row);
      if (line.row.step) history.replaceState(null, "", `#step-${line.row.step}`);
    }
    if (scroll) line.element.scrollIntoView({ block: "nearest" });
  }

  function move(by) {
    let at = chosen + by;
    while (shown[at] && shown[at].aside) at += by;
    if (shown[at]) choose(at);
  }

  function next(wanted) {
    const order = [...shown.keys()].map((i) => (i + chosen + 1) % shown.length);
    const at = order.find((i) => shown[i].row && wanted(shown[i].row));
    if (at !== undefined) choose(at);
  }

  function unfold(item, at) {
    if (!item.open) return;
    item.unfolded = true;
    rows();
    choose(at, { scroll: false });
  }

  function unfoldAll() {
    const row = shown[chosen] && shown[chosen].row;
    const folds = trace.items.filter((item) => item.fold && item.open);
    const closed = folds.some((item) => !item.unfolded);
    folds.forEach((item) => { item.unfolded = closed; });
    $("unfold").textContent = closed ? "fold" : "unfold all";
    rows();
    chosen = -1;
    const at = shown.findIndex((line) => line.row === row);
    choose(at < 0 ? 0 : at);
  }

  const toFault = () => next((row) => row.failing);
  const toDeparture = () => next((row) => row.departure);
  const KEYS = {
    ArrowDown: () => move(1), ArrowUp: () => move(-1), j: () => move(1), k: () => move(-1),
    Home: () => choose(0), End: () => choose(shown.length - 1), PageDown: () => move(10), PageUp: () => move(-10),
    n: toDeparture, f: toFault, a: unfoldAll,
    Enter: () => { const line = shown[chosen]; if (line && line.fold) unfold(line.fold, chosen); },
  };

  function listen() {
    const box = $("rows");
    const lineOf = (event) => { const row = event.target.closest(".row"); return row ? Number(row.dataset.at) : -1; };
    box.addEventListener("click", (event) => {
      const at = lineOf(event);
      if (shown[at] && shown[at].fold) unfold(shown[at].fold, at);
      else choose(at, { scroll: false });
    });
    box.addEventListener("mouseover", (event) => {
      const line = shown[lineOf(event)];
      if (line && line.row) detail(line.row);
    });
    box.addEventListener("mouseleave", () => { if (shown[chosen] && shown[chosen].row) detail(shown[chosen].row); });
    document.addEventListener("keydown", (event) => {
      const act = KEYS[event.key];
      const typing = event.target.closest && event.target.closest("button, a, input");
      if (!act || event.ctrlKey || event.metaKey || event.altKey || (typing && event.key === "Enter")) return;
      event.preventDefault();
      act();
    });
    $("to-fault").addEventListener("click", toFault);
    $("to-departure").addEventListener("click", toDeparture);
    $("unfold").addEventListener("click", unfoldAll);
  }

  // --- the key ------------------------------------------------------------------------------

  function key() {
    const box = $("key");
    const add = (text, paint) => {
      const svg = document.createElementNS(SVG, "svg");
      svg.setAttribute("width", 26);
      svg.setAttribute("height", 20);
      paint(svg);
      box.append(make("span", "", svg, text));
    };
    const all = trace.items.flatMap((item) => item.fold || [item]);
    const some = (test) => all.some(test);
    const color = "var(--lane-0)", grey = "var(--lane-loop)";
    const signs = [["step", "runs, then waits"], ["returns", "returns"], ["fails", "fails"], ["cancelled", "is cancelled"], ["timer", "timer or callback"], ["arrival", "external event"], ["cancel", "the explorer cancels it"]];
    const also = { fails: (row) => row.failing, timer: (row) => row.mark === "callback" };
    for (const [kind, text] of signs) {
      const tint = ["timer", "callback", "arrival"].includes(kind) ? grey : color;
      if (some((row) => row.mark === kind || also[kind]?.(row))) add(text, (svg) => sign(svg, kind, 13, 10, tint));
    }
    const rule = (kind) => (svg) => { const line = draw(svg, "line", { x1: 13, x2: 13, y1: 0, y2: 20, class: kind }); line.style.stroke = color; };
    add("waits", rule("waits"));
    add("ready, not yet resumed", rule("ready"));
    if (some((row) => row.wakes)) add("wakes", (svg) => { draw(svg, "path", { d: "M2 10 H18", class: "arrow" }).style.stroke = color; draw(svg, "path", { d: "M24 10 l-8 -4.5 v9 z" }).style.fill = color; });
    if (some((row) => row.starts)) add("starts", (svg) => { draw(svg, "path", { d: "M2 7 H12 Q20 7 20 15 V20", class: "arrow" }).style.stroke = color; });
    box.append(make("span", "", make("b", "", "9 → 11"), `resumed at line 9, waits at line 11${trace.home ? ` of ${trace.home}` : ""}`));
  }

  function measure() {
    const rows = trace.items.flatMap((item) => item.fold || [item]).filter((row) => !row.departure);
    const longest = (name) => Math.max(0, ...rows.filter((row) => name === "who" || !["timer", "callback", "arrival"].includes(row.mark)).map((row) => (row[name] || "").length));
    $("rows").style.setProperty("--who", `${Math.min(170, longest("who") * 8.4 + 22)}px`);
    $("rows").style.setProperty("--words", `${Math.min(190, longest("words") * 7 + 22)}px`);
  }

  document.querySelector("main").hidden = false;
  verdict();
  names();
  measure();
  rows();
  key();
  listen();
  const offer = (name, there) => document.querySelectorAll(`.${name}`).forEach((node) => { node.hidden = !there; });
  offer("to-fault", shown.some((line) => line.row && line.row.failing));
  offer("to-departure", shown.some((line) => line.row && line.row.departure));
  offer("to-unfold", trace.items.some((item) => item.fold && item.open));
  const named = /^#step-(\d+)$/.exec(location.hash);
  const linked = named ? shown.findIndex((line) => line.row && line.row.step === Number(named[1])) : -1;
  const failing = shown.findIndex((line) => line.row && line.row.failing);
  choose(linked >= 0 ? linked : failing >= 0 ? failing : 0, { scroll: linked >= 0 });
})();
