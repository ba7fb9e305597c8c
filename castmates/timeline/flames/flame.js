(() => {
  const drawing = document.documentElement, whole = Number(drawing.dataset.width), letter = 7;
  const frames = [...drawing.querySelectorAll(".frame")].map((mark) => ({
    mark, x: Number(mark.dataset.x), width: Number(mark.dataset.w), depth: Number(mark.dataset.d), name: mark.dataset.n,
    text: mark.querySelector("text"), words: mark.querySelector("title").textContent,
  }));
  const of = new Map(frames.map((frame) => [frame.mark, frame]));
  const reading = drawing.querySelector(".reading"), field = drawing.querySelector("input");
  const found = drawing.querySelector(".found"), inside = (one, other) =>
    one.x >= other.x - 1e-6 && one.x + one.width <= other.x + other.width + 1e-6;

  const place = (frame, x, width) => {
    frame.mark.setAttribute("x", x.toFixed(2));
    frame.mark.setAttribute("width", Math.max(width, 0.1).toFixed(2));
    const room = Math.floor((width - 6) / letter), name = frame.name;
    const cut = () => (name.includes("::") && room >= 14 ? `…${name.slice(1 - room)}` : `${name.slice(0, room - 1)}…`);
    frame.text.textContent = room < 3 ? "" : name.length <= room ? name : cut();
  };
  const zoom = (chosen) => {
    for (const frame of frames) {
      const above = frame.depth < chosen.depth && inside(chosen, frame);
      const shown = above || (frame.depth >= chosen.depth && inside(frame, chosen));
      frame.mark.style.display = shown ? "" : "none";
      frame.mark.classList.toggle("above", above);
      if (above) place(frame, 0, whole);
      else if (shown) place(frame, ((frame.x - chosen.x) / chosen.width) * whole, (frame.width / chosen.width) * whole);
    }
  };
  const search = () => {
    const wanted = field.value.trim().toLowerCase();
    drawing.classList.toggle("searched", wanted !== "");
    let number = 0, covered = 0, ends = [];
    for (const frame of frames) {
      const hit = wanted !== "" && frame.words.toLowerCase().includes(wanted);
      frame.mark.classList.toggle("hit", hit);
      if (!hit) continue;
      number += 1;
      if (!ends.some((other) => other.depth < frame.depth && inside(frame, other))) { covered += frame.width; ends.push(frame); }
    }
    found.textContent = wanted === "" ? "" : `${number} frames, ${((100 * covered) / whole).toFixed(1)} % of the width`;
  };
  const read = (frame) => { reading.textContent = frame ? frame.words.replaceAll("\n", " · ") : ""; };
  const next = (frame, key) => {
    const beside = frames.filter((one) => one.depth === frame.depth && one.mark.style.display !== "none");
    const at = beside.indexOf(frame);
    if (key === "ArrowLeft") return beside[at - 1];
    if (key === "ArrowRight") return beside[at + 1];
    if (key === "ArrowUp") return frames.find((one) => one.depth === frame.depth - 1 && inside(frame, one));
    return frames.find((one) => one.depth === frame.depth + 1 && inside(one, frame) && one.mark.style.display !== "none");
  };

  drawing.addEventListener("click", (event) => {
    const mark = event.target.closest(".frame");
    if (mark) zoom(of.get(mark));
  });
  drawing.addEventListener("pointerover", (event) => read(of.get(event.target.closest(".frame"))));
  drawing.addEventListener("focusin", (event) => { const frame = of.get(event.target); if (frame) read(frame); });
  drawing.addEventListener("keydown", (event) => {
    const frame = of.get(event.target);
    if (event.key === "Escape") { field.value = ""; search(); zoom(frames[0]); }
    else if (frame && event.key === "Enter") zoom(frame);
    else if (frame && event.key.startsWith("Arrow")) {
      const other = next(frame, event.key);
      if (other) { other.mark.focus(); event.preventDefault(); }
    }
  });
  field.addEventListener("input", search);
  drawing.querySelector("button").addEventListener("click", () => zoom(frames[0]));
})();
