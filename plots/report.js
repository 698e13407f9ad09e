// Sorting and filtering of the table of cases. Everything can be read without it.
(function () {
    "use strict";
    const table = document.querySelector(".cases");
    const form = document.getElementById("filter");
    if (!table || !form) return;
    const body = table.tBodies[0];
    const heads = Array.from(table.tHead.rows[0].cells).slice(0, -1);
    const rows = Array.from(body.rows);
    const first = new Map(rows.map((row, i) => [row, i]));
    const shown = document.getElementById("shown");

    // A cell's number is in data-v, or is its text; what has none goes last, either way round.
    function key(row, column, isNumber) {
        const cell = row.cells[column];
        if (!isNumber) return cell.textContent.trim();
        const text = cell.dataset.v || cell.textContent;
        const value = parseFloat(text);
        return Number.isNaN(value) ? null : value;
    }

    function sort(column, up) {
        const isNumber = heads[column].classList.contains("n");
        const keyed = rows.map((row) => [key(row, column, isNumber), first.get(row), row]);
        keyed.sort((a, b) => {
            if (a[0] === null || b[0] === null)
                return (a[0] === null) - (b[0] === null) || a[1] - b[1];
            const order = a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0;
            return (up ? order : -order) || a[1] - b[1];
        });
        const all = document.createDocumentFragment();
        for (const entry of keyed) all.appendChild(entry[2]);
        body.appendChild(all);
    }

    heads.forEach((head, column) => {
        const button = document.createElement("button");
        button.type = "button";
        button.textContent = head.textContent;
        head.replaceChildren(button);
        button.addEventListener("click", () => {
            const up = head.getAttribute("aria-sort") !== "ascending";
            for (const other of heads) other.removeAttribute("aria-sort");
            head.setAttribute("aria-sort", up ? "ascending" : "descending");
            sort(column, up);
        });
    });

    // What words are looked for in: " cpu_simd t=32 b=1 ... ok ". H=512 is that very size.
    const sizes = ["t=", "b=", "i=", "h="];
    let texts = null;
    function textOf(row) {
        const words = [];
        for (let i = 0; i < 9; i++)
            words.push((i > 0 && i < 5 ? sizes[i - 1] : "") + row.cells[i].textContent);
        const reason = row.querySelector(".r");
        return (" " + words.join(" ") + " " + (reason ? reason.textContent : "") + " ").toLowerCase();
    }

    function filter() {
        const words = form.elements.words.value.toLowerCase().split(/\s+/).filter(Boolean);
        const verdict = form.elements.verdict.value;
        texts = texts || new Map(rows.map((row) => [row, textOf(row)]));
        let count = 0;
        for (const row of rows) {
            const text = texts.get(row);
            const fits = (!verdict || row.classList.contains(verdict)) &&
                words.every((word) => text.includes(word.includes("=") ? " " + word + " " : word));
            row.hidden = !fits;
            count += fits;
        }
        shown.textContent = count === rows.length ? count + " cases" : count + " of " + rows.length + " cases";
    }

    form.hidden = false;
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("input", filter);
    form.reset();
})();
