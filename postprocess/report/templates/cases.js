"use strict";
// Search, filter, sort and keys of the table of all cases. Without this script the page shows everything.
(() => {
  const section = document.getElementById("cases");
  if (!section) return;
  const list = section.querySelector(".cases");
  const head = list.querySelector(".head");
  const input = section.querySelector("input");
  const output = section.querySelector("output");
  const buttons = [...head.querySelectorAll("button")];
  const columns = buttons.map((button) => button.dataset.key);
  const numeric = buttons.map((button) => button.dataset.kind === "number");
  const rows = [...list.querySelectorAll(":scope > details")];
  const powers = {
    "": 1, k: 1e3, M: 1e6, G: 1e9, Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30,
  };
  const names = {
    env: "environment", mpi: "environment", np: "p", processes: "p", size: "bytes",
  };
  const condition = /^([a-z]+)(!=|<=|>=|=|<|>)(.+)$/;
  const known = [];
  let sort = "";

  // What a row holds: its text, and its cells as text and number.
  function readRow(row) {
    const fields = [...row.firstElementChild.children].filter((field) => field.localName === "i");
    const cells = fields.map((field) => field.textContent);
    return {
      row,
      cells,
      numbers: cells.map((cell) => (cell === "∞" ? Infinity : parseFloat(cell))),
      text: row.textContent.toLowerCase(),
    };
  }

  function read(least = rows.length) {
    while (known.length < least) known.push(readRow(rows[known.length]));
    return known;
  }

  // Rows are read while nothing else is to be done, so that the first search of a large night need not wait.
  const idle = window.requestIdleCallback || ((work) => setTimeout(work, 10));
  function readAhead() {
    read(Math.min(known.length + 100, rows.length));
    if (known.length < rows.length) idle(readAhead);
  }

  function parseNumber(word) {
    const found = /^(\d+\.?\d*|\.\d+)(k|M|G|Ki|Mi|Gi)?(B|%|x|us|µs)?$/.exec(word);
    return found ? parseFloat(found[1]) * powers[found[2] || ""] : NaN;
  }

  // A test of a row for one word of the search; null for a condition that is not finished or unknown.
  function parseWord(word) {
    const found = condition.exec(word);
    if (!found) return (each) => each.text.includes(word.toLowerCase());
    const name = names[found[1]] || found[1];
    const place = columns.indexOf(name);
    if (place < 0) return null;
    const [, , sign, said] = found;
    if (sign === "=" || sign === "!=") {
      const tests = said.split(",").map((value) => parseValue(place, value));
      return (each) => tests.some((test) => test(each)) === (sign === "=");
    }
    const limit = parseNumber(said);
    if (!numeric[place] || Number.isNaN(limit)) return null;
    return {
      "<": (each) => each.numbers[place] < limit,
      ">": (each) => each.numbers[place] > limit,
      "<=": (each) => each.numbers[place] <= limit,
      ">=": (each) => each.numbers[place] >= limit,
    }[sign];
  }

  // A test for one value of a column: a number, a whole text, or a part of texts that no row has whole.
  function parseValue(place, value) {
    if (numeric[place]) {
      const number = parseNumber(value);
      return (each) => each.numbers[place] === number;
    }
    const whole = read().some((each) => each.cells[place] === value);
    return (each) => (whole ? each.cells[place] === value : each.cells[place].includes(value));
  }

  function filter() {
    const words = input.value.split(/\s+/).filter(Boolean);
    const tests = words.map(parseWord);
    const unknown = words.filter((_, number) => !tests[number]);
    let shown = 0;
    for (const each of words.length ? read() : rows.map((row) => ({ row }))) {
      each.row.hidden = !tests.every((test) => !test || test(each));
      shown += each.row.hidden ? 0 : 1;
    }
    const hint = unknown.length ? `; not understood: ${unknown.join(" ")}` : "";
    output.textContent = `${shown} of ${rows.length} cases${hint}`;
    for (const link of document.querySelectorAll("a[data-search]")) {
      if (link.dataset.search === input.value.trim()) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  }

  function order() {
    const down = sort.startsWith("-");
    const place = columns.indexOf(sort.replace("-", ""));
    buttons.forEach((button, number) => {
      if (number === place) button.setAttribute("aria-sort", down ? "descending" : "ascending");
      else button.removeAttribute("aria-sort");
    });
    const sorted = place < 0 ? rows : read().slice().sort((a, b) => {
      if (!numeric[place]) return a.cells[place].localeCompare(b.cells[place]) * (down ? -1 : 1);
      const [x, y] = [a.numbers[place], b.numbers[place]];
      if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y);
      return x === y ? 0 : (x < y ? -1 : 1) * (down ? -1 : 1);
    }).map((each) => each.row);
    list.append(...sorted);
  }

  // The state is in the address: #q=bcast+p%3D4&sort=-slowdown
  function keep() {
    const state = new URLSearchParams();
    if (input.value.trim()) state.set("q", input.value.trim());
    if (sort) state.set("sort", sort);
    history.replaceState(null, "", `#${state}`);
  }

  function search(text) {
    input.value = text;
    filter();
    keep();
  }

  // Take the state from the address; any other fragment names something on the page, which must be seen.
  function restore() {
    const fragment = location.hash.slice(1);
    if (/^(q|sort)=/.test(fragment) || fragment === "") {
      const state = new URLSearchParams(fragment);
      input.value = state.get("q") || "";
      sort = state.get("sort") || "";
      filter();
      order();
      return;
    }
    const row = document.getElementById(fragment)?.closest(".cases > details");
    if (!row) return;
    if (row.hidden) {
      input.value = "";
      filter();
    }
    row.open = true;
    row.scrollIntoView();
  }

  head.addEventListener("click", (event) => {
    const name = event.target.closest("button")?.dataset.key;
    if (!name) return;
    const first = numeric[columns.indexOf(name)] ? `-${name}` : name;
    sort = sort === first ? (first === name ? `-${name}` : name) : first;
    order();
    keep();
  });
  input.addEventListener("input", () => {
    filter();
    keep();
  });
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-search]");
    const cell = event.target.closest(".map td[title]");
    if (!link && !cell) return;
    event.preventDefault();
    if (link) search(link.dataset.search === input.value.trim() ? "" : link.dataset.search);
    else search(searchOf(cell));
    section.scrollIntoView();
  });
  function searchOf(cell) {
    const titles = cell.closest("table").querySelectorAll("th[data-search]");
    const program = cell.parentElement.dataset.search;
    return `${program} ${titles[cell.cellIndex - 1].dataset.search}`;
  }
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && event.target !== input && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      section.scrollIntoView();
      input.focus();
      input.select();
    } else if (event.key === "Escape") {
      search("");
      input.blur();
    }
  });
  window.addEventListener("hashchange", restore);

  section.querySelector(".search").hidden = false;
  buttons.forEach((button) => { button.disabled = false; });
  document.documentElement.classList.add("searching");
  restore();
  idle(readAhead);
})();
