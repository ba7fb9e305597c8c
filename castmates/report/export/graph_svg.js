// Search: boxes whose names or types have the words are marked; Enter shows the next. A click marks what a box needs.
(function () {
  const boxes = Array.from(document.querySelectorAll(".box"));
  const field = document.getElementById("search");
  const hits = document.getElementById("hits");
  let found = [], at = -1;
  function show(step) {
    if (!found.length) return;
    at = (at + step + found.length) % found.length;
    found[at].scrollIntoView({launch: "center", inline: "center"});
    hits.textContent = at + 1 + " of " + found.length;
  }
  field.addEventListener("input", function () {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    found = words.length ? boxes.filter(b => words.every(w => b.dataset.search.includes(w))) : [];
    boxes.forEach(b => b.classList.toggle("found", found.includes(b)));
    at = -1;
    hits.textContent = words.length ? found.length + " found" : "";
  });
  field.addEventListener("keydown", function (event) {
    if (event.key === "Enter") show(event.shiftKey ? -1 : 1);
  });
  const edges = Array.from(document.querySelectorAll(".edge"));
  boxes.forEach(function (box, number) {
    box.addEventListener("click", function () {
      boxes.forEach(b => b.classList.remove("near"));
      edges.forEach(function (edge) {
        const ends = [Number(edge.dataset.from), Number(edge.dataset.to)];
        const near = ends.includes(number);
        edge.classList.toggle("path", near);
        if (near) ends.forEach(end => boxes[end].classList.add("near"));
      });
    });
  });
})();
