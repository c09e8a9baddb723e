// What is wrong with how a page looks: a list of sentences. Runs in the page, from outside of it.
(() => {
  const found = [];
  const shows = (e) => e.checkVisibility({ opacityProperty: true, visibilityProperty: true, contentVisibilityAuto: true });
  const where = (e) => {
    const figure = e.closest("figure, section");
    return (figure && figure.id) || "page";
  };
  const width = document.documentElement.clientWidth;

  // -- labels: whole, readable, apart from each other
  // A line's box is higher than its letters, which are what must not touch.
  const label = (text) => {
    const r = text.getBoundingClientRect();
    const slack = Math.min(r.width, r.height) * 0.18;
    const upright = r.height > r.width * 1.2 && text.textContent.trim().length > 2;
    return {
      text, words: text.textContent.trim(),
      left: r.left + (upright ? slack : 0.5), right: r.right - (upright ? slack : 0.5),
      top: r.top + (upright ? 0.5 : slack), bottom: r.bottom - (upright ? 0.5 : slack),
    };
  };
  const drawings = [...document.querySelectorAll("svg[role=img]")].filter(shows);
  for (const svg of drawings) {
    const frame = svg.getBoundingClientRect();
    const scrolls = svg.closest(".scroll, .panels");
    const place = `${where(svg)}: «${(svg.querySelector("title") || {}).textContent}»`;
    if (frame.width < 20 || frame.height < 20) found.push(`${place} is ${frame.width} by ${frame.height} pixels`);
    if (!scrolls && (frame.left < -1 || frame.right > width + 1)) found.push(`${place} leaves the page`);
    const marks = [...svg.querySelectorAll("path, rect, circle, line, polygon, polyline")].filter(shows);
    if (!marks.some((mark) => { const r = mark.getBoundingClientRect(); return r.width + r.height > 0; })) {
      found.push(`${place} is empty`);
    }
    const labels = [...svg.querySelectorAll("text")].filter((t) => shows(t) && t.textContent.trim()).map(label);
    const scale = frame.width / (svg.viewBox.baseVal.width || frame.width);
    for (const a of labels) {
      // A shortened text is missing for every reader.
      if (a.words.includes("…") && a.text.matches(".label, .value, .heading, .verdict, .axis-title")) found.push(`${place}: «${a.words}» is shortened`);
      const size = parseFloat(getComputedStyle(a.text).fontSize) * scale;
      if (size < (width < 600 ? 11 : 8.5)) found.push(`${place}: «${a.words}» is ${size.toFixed(1)} pixels high`);
      if (a.left < frame.left - 2 || a.right > frame.right + 2 || a.top < frame.top - 2 || a.bottom > frame.bottom + 2) {
        found.push(`${place}: «${a.words}» is cut`);
      }
    }
    labels.sort((a, b) => a.left - b.left);
    for (let i = 0; i < labels.length; i++) {
      for (let j = i + 1; j < labels.length && labels[j].left < labels[i].right; j++) {
        const [a, b] = [labels[i], labels[j]];
        if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1) {
          found.push(`${place}: «${a.words}» and «${b.words}» overlap`);
        }
      }
    }
  }
  // Wide content scrolls in its place, has a cue at its edge, and is reachable by keyboard; its caption is not cut.
  for (const box of [...document.querySelectorAll(".scroll, .panels")].filter(shows)) {
    const style = getComputedStyle(box);
    const place = `${where(box)}: «${box.getAttribute("aria-label")}»`;
    if (box.scrollWidth > box.clientWidth + 1 && style.overflowX === "auto") {
      if (!style.backgroundAttachment.includes("local") || !style.backgroundImage.includes("gradient")) found.push(`${place} scrolls without a cue`);
      if (box.tabIndex !== 0 || !box.getAttribute("aria-label")) found.push(`${place} scrolls out of the keyboard's reach`);
    }
    const frame = box.getBoundingClientRect();
    for (const caption of box.querySelectorAll("caption")) {
      const words = document.createRange();
      words.selectNodeContents(caption);
      if (words.getBoundingClientRect().right > Math.min(frame.right, width) + 1) found.push(`${place}: the caption is cut`);
    }
  }
  // Drawings do not lie on each other, and nothing makes the whole page wider than the screen.
  for (const panels of document.querySelectorAll(".panels")) {
    const boxes = [...panels.children].filter(shows).map((e) => e.getBoundingClientRect());
    boxes.forEach((a, i) => boxes.slice(i + 1).forEach((b) => {
      if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1) {
        found.push(`${where(panels)}: two drawings overlap`);
      }
    }));
  }
  if (document.documentElement.scrollWidth > width + 1) {
    const wide = [...document.querySelectorAll("body *")].filter((e) => !e.closest(".scroll, .panels, pre, .hidden, .skip") && e.getBoundingClientRect().right > width + 1);
    found.push(`the page is ${document.documentElement.scrollWidth} pixels wide on ${width}: ${wide.slice(0, 3).map((e) => e.outerHTML.slice(0, 80)).join(" | ")}`);
  }

  // -- contrast of every text, WCAG 2.2, 1.4.3
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const known = new Map();
  const rgba = (colour) => {
    if (!known.has(colour)) {
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = colour;
      canvas.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
      known.set(colour, [r, g, b, a / 255]);
    }
    return known.get(colour);
  };
  const over = (top, under) => [0, 1, 2].map((i) => top[i] * top[3] + under[i] * (1 - top[3]));
  const luminance = (c) => {
    const [r, g, b] = c.map((v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (a, b) => {
    const [x, y] = [luminance(a), luminance(b)];
    return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
  };
  const grounds = (e) => {
    const layers = [];
    for (let at = e; at; at = at.parentElement) layers.unshift(rgba(getComputedStyle(at).backgroundColor));
    const canvasColour = matchMedia("(prefers-color-scheme: dark)").matches && !matchMedia("print").matches ? [18, 18, 18] : [255, 255, 255];
    return layers.reduce((under, layer) => over(layer, under), canvasColour);
  };
  const opacity = (e) => { let all = 1; for (let at = e; at; at = at.parentElement) all *= parseFloat(getComputedStyle(at).opacity); return all; };
  // The shapes of a drawing that lie below a label, as the painter laid them.
  const below = (text, ground) => {
    const r = text.getBoundingClientRect();
    const middle = new DOMPoint(r.x + r.width / 2, r.y + r.height / 2);
    for (const shape of text.ownerSVGElement.querySelectorAll("rect, path, circle, polygon")) {
      if (shape.closest("defs") || !(shape.compareDocumentPosition(text) & Node.DOCUMENT_POSITION_FOLLOWING) || !shows(shape)) continue;
      const style = getComputedStyle(shape);
      if (style.fill === "none" || style.fill.startsWith("url(")) continue;
      const box = shape.getBoundingClientRect();
      if (middle.x < box.left || middle.x > box.right || middle.y < box.top || middle.y > box.bottom) continue;
      const inverse = shape.getScreenCTM().inverse();
      const at = shape.ownerSVGElement.createSVGPoint();
      [at.x, at.y] = [middle.x, middle.y];
      if (!shape.isPointInFill(at.matrixTransform(inverse))) continue;
      const fill = rgba(style.fill);
      ground = over([fill[0], fill[1], fill[2], fill[3] * parseFloat(style.fillOpacity) * opacity(shape)], ground);
    }
    return ground;
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const poor = new Map();
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const e = node.parentElement;
    if (!node.data.trim() || !shows(e) || e.closest("title, desc, style, .hidden") || e.tagName === "S" || e.closest("svg defs")) continue;
    const svg = e instanceof SVGElement;
    const style = getComputedStyle(e);
    const ground = svg ? below(e.closest("text"), grounds(e.ownerSVGElement.parentElement)) : grounds(e);
    const ink = rgba(svg ? style.fill : style.color);
    const seen = over([ink[0], ink[1], ink[2], ink[3] * opacity(e)], ground);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && parseInt(style.fontWeight, 10) >= 700);
    const ratio = contrast(seen, ground);
    if (ratio < (large ? 3 : 4.5) - 0.01) {
      poor.set(`${where(e)}: <${e.tagName} class="${e.getAttribute("class") || ""}">`, `«${node.data.trim().slice(0, 30)}» has a contrast of ${ratio.toFixed(2)}`);
    }
  }
  poor.forEach((words, place) => found.push(`${place} ${words}`));
  return { found, drawings: drawings.length, figures: document.querySelectorAll("figure").length };
})()
