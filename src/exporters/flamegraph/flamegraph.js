// The still picture comes alive: fit to the window, zoom, search, walk with the keyboard.
(function () {
  "use strict";
  const SVG = "http://www.w3.org/2000/svg";
  const XHTML = "http://www.w3.org/1999/xhtml";
  const svg = document.currentScript ? document.currentScript.closest("svg") : document.documentElement;
  const standalone = svg === document.documentElement;
  const number = (name) => parseFloat(svg.dataset[name]);
  const margin = number("margin"), row = number("row"), top = number("top");
  const deepest = number("depth");
  const find = (id) => svg.querySelector("#" + id);
  const head = find("head"), details = find("details"), found = find("found");
  const hint = details.textContent;

  let width = number("width");
  let zoom = { x: 0, w: 1, d: 0 };
  let flipped = false;
  let here = null;
  let hits = [];
  let charWidth = 7;

  const frames = Array.from(svg.querySelectorAll("#frames > g.f"), (g) => {
    const title = g.querySelector("title").textContent.split("\n");
    return {
      g: g,
      rect: g.querySelector("rect"),
      text: g.querySelector("text"),
      x: parseFloat(g.dataset.x),
      w: parseFloat(g.dataset.w),
      d: parseInt(g.dataset.d, 10),
      name: title[0],
      module: title[1],
      figures: title.slice(2).join(" · "),
    };
  });
  frames.forEach((frame) => { frame.g.frame = frame; });

  const SLACK = 1e-9; // places are written with limited digits
  const contains = (outer, inner) =>
    outer.x <= inner.x + SLACK && outer.x + outer.w >= inner.x + inner.w - SLACK;

  // What tells least goes first: template arguments, parameters, leading namespaces, the end.
  function shorten(name, columns) {
    if (name.length <= columns) return name;
    const unnamed = /^\[unknown\] (.*)(\+0x[0-9a-f]+)$/.exec(name);
    if (unnamed && unnamed[1].length + unnamed[2].length <= columns) return unnamed[1] + unnamed[2];
    if (unnamed && unnamed[2].length < columns) return "…" + unnamed[2];
    let previous;
    do {
      previous = name;
      name = name.replace(/([\w…])<(?!…>)[^<>]*>/g, "$1<…>");
    } while (name !== previous);
    if (name.length <= columns) return name;
    name = name.replace(/([\w>])\([^()…][^()]*\)/g, "$1(…)");
    while (name.length > columns && /^(?:….?::)?[^:<(]+::./.test(name)) {
      const shorter = name.replace(/^(?:…::)?[^:<(]+::/, "…::");
      if (shorter === name) break;
      name = shorter;
    }
    return name.length <= columns ? name : name.slice(0, Math.max(columns - 1, 0)) + "…";
  }

  function label(frame, pixels) {
    const columns = Math.floor((pixels - 6) / charWidth);
    if (columns < 3) {
      if (frame.text) frame.text.style.display = "none";
      return;
    }
    if (!frame.text) {
      frame.text = document.createElementNS(SVG, "text");
      frame.g.appendChild(frame.text);
    }
    frame.text.style.display = "";
    frame.text.textContent = shorten(frame.name, columns);
  }

  const rowY = (depth) => top + (flipped ? deepest - depth : depth) * row;

  function place(frame) {
    const scale = (width - 2 * margin) / zoom.w;
    const above = frame.d < zoom.d && contains(frame, zoom);
    const start = above ? zoom.x : frame.x;
    const span = above ? zoom.w : frame.w;
    const x = margin + (start - zoom.x) * scale, pixels = span * scale;
    const inside = above || (frame.d >= zoom.d && contains(zoom, frame));
    const visible = inside && pixels >= 0.1;
    frame.g.style.display = visible ? "" : "none";
    frame.visible = visible;
    if (!visible) return;
    frame.g.classList.toggle("dim", above);
    frame.rect.setAttribute("x", x.toFixed(2));
    frame.rect.setAttribute("width", pixels.toFixed(2));
    frame.rect.setAttribute("y", rowY(frame.d));
    label(frame, pixels);
    if (frame.text) {
      frame.text.setAttribute("x", (x + 4).toFixed(2));
      frame.text.setAttribute("y", rowY(frame.d) + row - 5);
    }
  }

  function layout() {
    frames.forEach(place);
    reset.disabled = zoom.w === 1;
  }

  function fit() {
    const place = standalone ? svg : svg.parentElement;
    width = Math.max(place.clientWidth || window.innerWidth, 320);
    svg.removeAttribute("viewBox");
    svg.setAttribute("width", width);
    svg.querySelectorAll("[data-right]").forEach((element) => {
      element.setAttribute("x", width - margin);
    });
    svg.querySelectorAll(".wide").forEach((element) => { element.setAttribute("width", width); });
    svg.querySelectorAll(".rule").forEach((element) => { element.setAttribute("x2", width); });
    const room = Math.min(430, width - 2 * margin);
    tools.setAttribute("x", width - margin - room);
    tools.setAttribute("width", room);
    svg.querySelectorAll("[data-full]").forEach((element) => {
      const free = width - 2 * margin - (element.dataset.beside ? room + 16 : 0);
      cut(element, element.dataset.full, free);
    });
    layLegend();
    layout();
  }

  function cut(element, text, free) {
    element.textContent = text;
    while (text.length > 4 && element.getComputedTextLength() > free) {
      const excess = element.getComputedTextLength() / free;
      text = text.slice(0, Math.max(Math.min(text.length - 1, Math.floor(text.length / excess)), 3));
      element.textContent = text + "…";
    }
  }

  // The legend closes up, and modules that do not fit are left out.
  function layLegend() {
    let x = margin;
    svg.querySelectorAll("g.chip").forEach((chip) => {
      const text = chip.querySelector("text"), end = x + 17 + text.getComputedTextLength();
      chip.style.visibility = end <= width - margin ? "" : "hidden";
      chip.querySelector("rect").setAttribute("x", x);
      text.setAttribute("x", x + 17);
      x = end + 18;
    });
  }

  function show(frame) {
    const text = frame ? `${frame.name}  —  ${frame.module}  ·  ${frame.figures}` : hint;
    cut(details, text, width - 2 * margin - (found.textContent ? found.getComputedTextLength() + 16 : 0));
    details.classList.toggle("faint", !frame);
  }

  function zoomTo(frame) {
    zoom = { x: frame.x, w: frame.w, d: frame.d };
    layout();
    go(frame);
  }

  function resetZoom() {
    zoom = { x: 0, w: 1, d: 0 };
    layout();
  }

  // The keyboard's place.
  function go(frame) {
    if (!frame) return;
    if (here) here.g.classList.remove("here");
    here = frame;
    here.g.classList.add("here");
    here.g.parentNode.appendChild(here.g); // its outline lies over its neighbours
    show(here);
    const y = rowY(frame.d);
    if (standalone && (y < window.scrollY + top || y + row > window.scrollY + window.innerHeight))
      window.scrollTo(0, y - window.innerHeight / 2);
  }

  function neighbour(direction) {
    if (!here || !here.visible) return frames[0];
    const visible = frames.filter((frame) => frame.visible && frame !== here);
    if (direction === "parent")
      return visible.find((frame) => frame.d === here.d - 1 && contains(frame, here));
    if (direction === "child")
      return visible.filter((frame) => frame.d === here.d + 1 && contains(here, frame))
        .reduce((best, frame) => (!best || frame.w > best.w ? frame : best), null);
    const sign = direction === "next" ? 1 : -1;
    return visible.filter((frame) => frame.d === here.d && sign * (frame.x - here.x) > 0)
      .reduce((best, frame) => (!best || sign * (best.x - frame.x) > 0 ? frame : best), null);
  }

  function pattern(text) {
    const flags = /[A-Z]/.test(text) ? "" : "i";
    try {
      return new RegExp(text, flags);
    } catch (error) {
      return null;
    }
  }

  // Nested matches count once.
  function share(matches) {
    let sum = 0, end = 0;
    matches.slice().sort((a, b) => a.x - b.x || b.w - a.w).forEach((frame) => {
      if (frame.x + frame.w <= end + SLACK) return;
      sum += frame.x + frame.w - Math.max(frame.x, end);
      end = frame.x + frame.w;
    });
    return sum;
  }

  function search(text) {
    const wanted = text ? pattern(text) : null;
    input.classList.toggle("bad", Boolean(text) && !wanted);
    hits = wanted
      ? frames.filter((frame) => frame.d > 0 && (wanted.test(frame.name) || wanted.test(frame.module)))
      : [];
    const matched = new Set(hits);
    frames.forEach((frame) => {
      frame.g.classList.toggle("hit", matched.has(frame));
      frame.g.classList.toggle("miss", Boolean(wanted) && !matched.has(frame));
    });
    found.textContent = wanted
      ? `${(100 * share(hits)).toFixed(2)} % matched, ${hits.length} frame${hits.length === 1 ? "" : "s"}`
      : text ? "not a regular expression" : "";
  }

  function nextHit(step) {
    const visible = hits.filter((frame) => frame.visible);
    if (!visible.length) return;
    const order = visible.sort((a, b) => a.x - b.x || a.d - b.d);
    const index = order.indexOf(here);
    go(order[(index + step + order.length) % order.length]);
  }

  function flip() {
    flipped = !flipped;
    layout();
  }

  // Controls exist only where scripts run.
  const tools = document.createElementNS(SVG, "foreignObject");
  tools.setAttribute("y", 10);
  tools.setAttribute("height", 30);
  const bar = document.createElementNS(XHTML, "div");
  bar.className = "tools";
  const element = (name, properties) => {
    const created = document.createElementNS(XHTML, name);
    Object.assign(created, properties);
    bar.appendChild(created);
    return created;
  };
  const input = element("input", { type: "search", placeholder: "Search: regular expression  ( / )", spellcheck: false });
  const reset = element("button", { textContent: "Reset zoom", title: "Escape" });
  const turn = element("button", { textContent: "Flip", title: "i: roots above or below" });
  input.setAttribute("aria-label", "Search frames");
  tools.appendChild(bar);
  head.appendChild(tools);

  input.addEventListener("input", () => search(input.value));
  reset.addEventListener("click", resetZoom);
  turn.addEventListener("click", flip);
  svg.addEventListener("click", (event) => {
    const frame = event.target.closest("g.f"), chip = event.target.closest("g.chip");
    if (frame && frame.frame) zoomTo(frame.frame);
    if (chip) {
      const quoted = "^" + chip.dataset.module.replace(/[.*+?^${}()|[\]\\]/g, "\\$&") + "$";
      input.value = input.value === quoted ? "" : quoted;
      search(input.value);
    }
  });
  svg.addEventListener("mouseover", (event) => {
    const frame = event.target.closest("g.f");
    show((frame && frame.frame) || here);
  });

  const keys = {
    ArrowUp: () => go(neighbour(flipped ? "child" : "parent")),
    ArrowDown: () => go(neighbour(flipped ? "parent" : "child")),
    ArrowLeft: () => go(neighbour("previous")),
    ArrowRight: () => go(neighbour("next")),
    Enter: () => here && zoomTo(here),
    "/": () => input.focus(),
    i: flip,
    n: () => nextHit(1),
    N: () => nextHit(-1),
    Escape: () => {
      if (zoom.w !== 1) resetZoom();
      else if (input.value) search((input.value = ""));
    },
  };
  window.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key === "f") {
      event.preventDefault();
      input.focus();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target === input) {
      if (event.key === "Escape") { search((input.value = "")); input.blur(); }
      if (event.key === "Enter") { input.blur(); nextHit(1); }
      return;
    }
    if (event.target.tagName === "button" && event.key === "Enter") return;
    const action = keys[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });

  // The head stays in sight when a deep graph is scrolled.
  window.addEventListener("scroll", () => {
    if (standalone)
      head.setAttribute("transform", `translate(0 ${window.scrollY})`);
  });
  window.addEventListener("resize", fit);
  const probe = find("probe");
  charWidth = probe.getComputedTextLength() / probe.textContent.length || charWidth;
  fit();
  show(null);
})();
