// Figures: the value of a mark beside the pointer, or of the marks one by one with the arrow keys. Without this script
// the browser itself shows them, as titles.
const NEAR = 12; // pixels around the pointer in which a mark is looked for

const readable = (drawing) => {
  const marks = [...drawing.querySelectorAll(".value")];
  if (!marks.length) return;
  const words = new Map(marks.map((mark) => [mark, mark.querySelector(":scope > title")]));
  marks.forEach((mark) => {
    const title = words.get(mark);
    words.set(mark, title.textContent);
    title.remove();
  });
  const box = make("div", { className: "reading" }), spoken = make("div", { className: "unread" });
  box.setAttribute("aria-hidden", "true");
  spoken.setAttribute("aria-live", "polite");
  drawing.append(box);
  drawing.after(spoken);
  let read = null;

  const show = (mark) => {
    if (mark === read) return;
    read?.classList.remove("read");
    read = mark;
    box.textContent = mark ? words.get(mark) : "";
    if (!mark) return;
    mark.classList.add("read");
    const frame = drawing.getBoundingClientRect(), place = mark.getBoundingClientRect();
    const left = place.left + place.width / 2 - frame.left + drawing.scrollLeft - box.offsetWidth / 2;
    const least = drawing.scrollLeft, most = least + frame.width - box.offsetWidth;
    const above = place.top - frame.top - box.offsetHeight - 6;
    box.style.left = `${Math.max(least, Math.min(left, most))}px`;
    box.style.top = `${above >= 0 ? above : place.bottom - frame.top + 6}px`;
  };

  // Letters may lie on a mark, and a small one is hard to meet: the nearest one counts.
  const nearest = (x, y) => {
    const under = document.elementsFromPoint(x, y).map((one) => one.closest(".value")).find((one) => words.has(one));
    if (under) return under;
    let best = null, least = NEAR;
    marks.forEach((mark) => {
      const { left, right, top, bottom } = mark.getBoundingClientRect();
      const away = Math.hypot(Math.max(left - x, 0, x - right), Math.max(top - y, 0, y - bottom));
      if (away < least) [best, least] = [mark, away];
    });
    return best;
  };

  drawing.addEventListener("pointermove", (event) => show(nearest(event.clientX, event.clientY)));
  drawing.addEventListener("pointerleave", () => show(null));
  drawing.addEventListener("blur", () => show(null));
  drawing.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") show(null);
    if (!step) return;
    event.preventDefault();
    const place = marks.indexOf(read);
    show(marks[read ? (place + step + marks.length) % marks.length : step > 0 ? 0 : marks.length - 1]);
    spoken.textContent = words.get(read);
    read.scrollIntoView({ launch: "nearest", inline: "nearest" });
  });
};

document.querySelectorAll(".drawing").forEach((drawing) => {
  const width = parseFloat(drawing.firstElementChild?.style.width) || 0;
  drawing.classList.add(width > 400 ? "wide" : "narrow"); // points: two columns of a paper, or one
  readable(drawing);
});
