// The report's Explore section: filters, summary, picture and table of the run's cases, and what
// did not run. The page is complete without this script; bench/html/page_data.c writes the records that
// it reads. Parts, in order: small helpers, the records, the state and its link, filters, summary,
// picture, table, reasons, the card, and drawing all of them.
(function() {
"use strict";
const $ = (id) => document.getElementById(id);
const app = $("app");
let data;
try {
    data = JSON.parse($("data").textContent);
} catch (error) {
    return;  // a page that was cut short: what C wrote remains
}
if (!data.cases.length) {
    $("explore").querySelector("h2").after(h("p", {class: "note"}, "This run has no cases."));
    return;
}

// Helpers

function add(node, attributes, children) {
    for (const [name, value] of Object.entries(attributes || {}))
        if (value !== null && value !== undefined && value !== false)
            node.setAttribute(name, value === true ? "" : value);
    for (const child of children.flat())
        if (child !== null && child !== undefined && child !== false) node.append(child);
    return node;
}
function h(tag, attributes, ...children) {
    return add(document.createElement(tag), attributes, children);
}
function svg(tag, attributes, ...children) {
    return add(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

// Three significant digits.
function digits(value) {
    const size = Math.abs(value);
    if (size === 0) return "0";
    return size >= 100 ? value.toFixed(0) : value.toPrecision(3);
}
const UNITS = {
    time: [["ns", 1], ["µs", 1e3], ["ms", 1e6], ["s", 1e9]],
    bytes: [["B", 1], ["KiB", 1024], ["MiB", 1048576], ["GiB", 1073741824]],
};
function unitFor(kind, value) {
    return UNITS[kind].filter((unit, i) => i === 0 || value >= 0.9995 * unit[1]).pop();
}
function withUnit(kind, value) {
    if (value === null || value === undefined || !isFinite(value)) return "–";
    const unit = unitFor(kind, value);
    return digits(value / unit[1]) + " " + unit[0];
}
const ns = (value) => withUnit("time", value);
const times = (value) => (value === null ? "–" : digits(value) + "×");
const plural = (count, word) => count.toLocaleString("en") + " " + word + (count === 1 ? "" : "s");
const least = (values) => values.reduce((a, b) => Math.min(a, b), Infinity);
const most = (values) => values.reduce((a, b) => Math.max(a, b), -Infinity);
function median(values) {
    const sorted = values.slice().sort((a, b) => a - b), middle = sorted.length >> 1;
    return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}
// One word of a shell's command line.
const shellWord = (text) =>
    (/^[\w@%+=:,./-]+$/.test(text) ? text : "'" + text.replace(/'/g, "'\\''") + "'");

// Records

const text = (index) => (index >= 0 && index < data.texts.length ? data.texts[index] : "");
const SERIES = data.series.map(([name, color, mark, dash]) => ({name, color, mark, dash}));
const SETTINGS =
    data.settings.map(([heading, dtype, pass, others]) => ({heading, dtype, pass, others}));
// A case is an array: numbers of its series, setting and verdict; its sizes; numbers of texts, -1
// for none (what follows the sizes in the case's name, why it did not run, what ran, a warning).
// One with a time goes on: times of a call in ns, the error, the lower bound in ns, flops and bytes
// of a call, the most bytes in use, the time of preparation in ns, whether lo and hi are a 95 %
// interval or the range of the samples, counts, why sampling stopped, the samples as a strip, the
// kernels, the error over what is allowed, and the time of an update of the weights in ns.
const CASES = data.cases.map((row, index) => {
    const [series, setting, T, B, I, H, verdict, tail, reason, description, warning, median_, lo,
        hi, min, p5, p95, error, bound, flops, bytes, peak, prepare, hasInterval, samples, blocks,
        calls, stop, strip, kernels, toleranceUsed, update] = row;
    return {
        index,
        series: SERIES[series],
        setting: SETTINGS[setting],
        settingOrder: setting,
        T,
        B,
        I,
        H,
        verdict: data.verdicts[verdict][0],
        failed: data.verdicts[verdict][1] === 1,
        tail: text(tail),
        reason: text(reason),
        description: text(description),
        warning: text(warning),
        timed: row.length > 11,
        median: median_,
        lo,
        hi,
        min,
        p5,
        p95,
        error,
        bound,
        flops,
        bytes,
        peak,
        prepare,
        update,
        hasInterval: hasInterval === 1,
        samples,
        blocks,
        calls,
        stop: text(stop),
        strip,
        kernels: text(kernels),
        toleranceUsed,
        problem: setting + "|" + T + "|" + B + "|" + I + "|" + H,
        speedup: null,
        rank: "",
    };
});
const PROBLEMS = new Map();  // a problem's key to its timed cases
for (const c of CASES) {
    if (!c.timed) continue;
    if (!PROBLEMS.has(c.problem)) PROBLEMS.set(c.problem, []);
    PROBLEMS.get(c.problem).push(c);
}
const idOf = (c) =>
    c.series.name.split("/")[0] + "/T" + c.T + "_B" + c.B + "_I" + c.I + "_H" + c.H + c.tail;
const sizesOf = (c) => "T = " + c.T + ", B = " + c.B + ", I = " + c.I + ", H = " + c.H;
// Whether the intervals do not overlap; a case without bounds is never apart from another.
const apart = (a, b) => a.lo !== null && b.lo !== null && (a.hi < b.lo || b.hi < a.lo);

function searchText(c) {
    if (!c.words)
        c.words = (" " + idOf(c) + " " +
            ["T", "B", "I", "H"].map((size) => size + "=" + c[size]).join(" ") + " " +
            c.setting.dtype + " " + c.setting.pass + " " + c.setting.others + " " + c.verdict +
            " " + c.reason + " " + c.warning + " " + c.description + " " + c.kernels +
            " ").toLowerCase();
    return c.words;
}

// State: what the reader chose. It is kept in the page's link, #key=value,value&..., without what
// is as it begins.

const FACETS = [
    {key: "impl", label: "Implementation", of: (c) => c.series.name},
    {key: "dtype", label: "Precision", of: (c) => c.setting.dtype},
    {key: "pass", label: "Pass", of: (c) => c.setting.pass},
    {key: "others", label: "Other settings", of: (c) => c.setting.others || "none"},
    {key: "T", label: "Sequence length T", of: (c) => String(c.T)},
    {key: "B", label: "Batch size B", of: (c) => String(c.B)},
    {key: "I", label: "Input size I", of: (c) => String(c.I)},
    {key: "H", label: "Hidden size H", of: (c) => String(c.H)},
    {key: "verdict", label: "Verdict", of: (c) => c.verdict},
];
for (const facet of FACETS) {
    const counts = new Map();
    for (const c of CASES) counts.set(facet.of(c), (counts.get(facet.of(c)) || 0) + 1);
    facet.values = Array.from(counts.keys());
    if ("TBIH".includes(facet.key)) facet.values.sort((a, b) => a - b);
    facet.counts = counts;
}
const facetOf = (key) => FACETS.find((facet) => facet.key === key);
const SIZES = ["T", "B", "I", "H"];
const inputVaries = CASES.some((c) => c.I !== c.H);

function defaults() {
    const state = {
        base: data.baseline >= 0 ? SERIES[data.baseline].name : "",
        q: "",
        chart: "time",
        x: "",
        sort: "",
        open: ""
    };
    for (const facet of FACETS) state[facet.key] = new Set();
    return state;
}
let state = defaults();

function stateToLink() {
    const first = defaults(), parts = [];
    for (const [key, value] of Object.entries(state)) {
        if (value instanceof Set) {
            if (value.size) parts.push(key + "=" + Array.from(value, encodeURIComponent).join(","));
        } else if (value !== first[key]) {
            parts.push(key + "=" + encodeURIComponent(value));
        }
    }
    return parts.length ? "#" + parts.join("&") : "";
}
function stateFromLink(link) {
    const read = defaults();
    for (const part of link.replace(/^#/, "").split("&")) {
        const at = part.indexOf("="), key = part.slice(0, at);
        if (at < 0 || !Object.hasOwn(read, key)) continue;
        let values;
        try {
            values = part.slice(at + 1).split(",").map(decodeURIComponent);
        } catch (error) {
            continue;  // no link that this page wrote
        }
        if (read[key] instanceof Set)
            read[key] = new Set(values.filter((value) => facetOf(key).counts.has(value)));
        else read[key] = values[0];
    }
    if (read.base && !SERIES.some((series) => series.name === read.base))
        read.base = defaults().base;
    if (!["time", "speedup", "rate"].includes(read.chart)) read.chart = "time";
    if (!SIZES.includes(read.x)) read.x = "";
    return read;
}
function saveState() {
    const link = stateToLink(), address = location.href.split("#")[0];
    if (link === location.hash || (!link && !location.hash.includes("="))) return;
    try {
        history.replaceState(null, "", address + link);
    } catch (error) {
        location.hash = link;
    }
}
// Changes the state and draws everything that depends on it.
function change(changes) {
    Object.assign(state, changes);
    saveState();
    draw();
}

// Returns the cases that pass the filters, with their speed-ups and ranks. A rank is among the shown
// cases. Cases are tied when both have an interval and these overlap, as in a sweep's table.
function select() {
    const active = FACETS.filter((facet) => state[facet.key].size > 0);
    const words = state.q.toLowerCase().split(/\s+/).filter(Boolean);
    const shown = CASES.filter((c) => active.every((facet) => state[facet.key].has(facet.of(c))) &&
            words.every(
                (word) => searchText(c).includes(word.includes("=") ? " " + word + " " : word)));
    const timed = shown.filter((c) => c.timed), groups = new Map();
    for (const c of timed) {
        const base = PROBLEMS.get(c.problem).find((other) => other.series.name === state.base);
        c.speedup = base ? base.median / c.median : null;
        c.rank = "";
        if (!groups.has(c.problem)) groups.set(c.problem, []);
        groups.get(c.problem).push(c);
    }
    for (const group of groups.values()) {
        if (group.length < 2) continue;
        const best = group.reduce((a, b) => (b.median < a.median ? b : a));
        const close = group.filter((c) => c !== best && !apart(c, best));
        const ties = close.filter((c) => c.hasInterval && best.hasInterval);
        best.rank = ties.length ? "tied" : close.length ? "" : "fastest";
        for (const c of ties) c.rank = "tied";
    }
    return {shown, timed, groups};
}

// Filters

function makeFilters() {
    const base = $("baseline");
    if (!state.base) base.append(h("option", {value: ""}, "no baseline"));
    for (const series of SERIES)
        if (CASES.some((c) => c.timed && c.series === series))
            base.append(h("option", {value: series.name}, series.name));
    base.addEventListener("change", () => change({base: base.value}));
    $("words").addEventListener("input", () => change({q: $("words").value}));
    $("reset").addEventListener("click", () => {
        const kept = {base: state.base, chart: state.chart, x: state.x, sort: state.sort};
        change(Object.assign(defaults(), kept));
    });
    $("filters").addEventListener("submit", (event) => event.preventDefault());
    for (const facet of FACETS) {
        if (facet.values.length < 2 || (facet.key === "I" && !inputVaries))
            continue;  // where I is H, H filters both
        const chips = h("div", {class: "chips"});
        for (const value of facet.values) {
            const input = h("input", {type: "checkbox", value, name: facet.key});
            const series = facet.key === "impl" && SERIES.find((one) => one.name === value);
            const count = ["impl", "verdict"].includes(facet.key) &&
                h("small", {}, String(facet.counts.get(value)));
            chips.append(h("label", {class: "chip"}, input,
                series && h("span", {class: "dot c" + series.color}), value, count));
            input.addEventListener("change", () => {
                const chosen = new Set(state[facet.key]);
                if (input.checked) chosen.add(value);
                else chosen.delete(value);
                change({[facet.key]: chosen});
            });
        }
        $("facets").append(h("fieldset", {}, h("legend", {}, facet.label), chips));
    }
    $("chart-kind").addEventListener("change", () => change({chart: $("chart-kind").value}));
    $("chart-axis").addEventListener("change", () => change({x: $("chart-axis").value}));
}
// Makes the controls show the state, which may come from a link.
function syncFilters(selection) {
    $("baseline").value = state.base;
    if ($("words").value !== state.q) $("words").value = state.q;
    for (const input of $("facets").querySelectorAll("input"))
        input.checked = state[input.name].has(input.value);
    const all = selection.shown.length === CASES.length;
    $("count").textContent = all
        ? plural(CASES.length, "case")
        : selection.shown.length.toLocaleString("en") + " of " + plural(CASES.length, "case");
    $("reset").disabled = all && !state.q && FACETS.every((facet) => state[facet.key].size === 0);
    $("chart-kind").value = state.chart;
    const filters = FACETS.filter((facet) => state[facet.key].size > 0)
        .map((facet) => facet.label + ": " + Array.from(state[facet.key]).join(" or "));
    if (state.q) filters.push("words: " + state.q);
    $("filter-note").textContent = // on paper, where the controls are not
        filters.length ? $("count").textContent + ", filtered by " + filters.join("; ") : "";
}
function nameOf(series) {
    return h("span", {class: "name"}, h("span", {class: "dot c" + series.color}), series.name);
}

// Summary: one line per implementation

// The counts and the speed-ups of a series among the cases that are shown.
function summaryOf(series, timed) {
    const own = timed.filter((c) => c.series === series);
    const ratios = own.map((c) => c.speedup).filter((ratio) => ratio !== null);
    return {
        series,
        count: own.length,
        fastest: own.filter((c) => c.rank === "fastest").length,
        tied: own.filter((c) => c.rank === "tied").length,
        low: least(ratios),
        high: most(ratios),
        middle: ratios.length ? median(ratios) : null,
    };
}
// A common logarithmic scale of speed-ups: positions as percentages, and powers of two to mark.
function summaryScale(lines) {
    const known = lines.filter((line) => line.middle !== null);
    const low = Math.log2(Math.min(0.5, least(known.map((line) => line.low))));
    const high = Math.log2(Math.max(2, most(known.map((line) => line.high))));
    const step = Math.ceil((high - low) / 6), marks = [];
    for (let e = Math.ceil(low / step) * step; e <= high; e += step) marks.push(e);
    const at = (ratio) => (100 * (Math.log2(ratio) - low) / (high - low)).toFixed(2) + "%";
    return {at, marks};
}
function summaryTrack(line, {at, marks}) {
    const said = "from " + times(line.low) + " to " + times(line.high);
    const rule = (e) =>
        h("span", {class: e === 0 ? "rule one" : "rule", style: "left:" + at(2 ** e)});
    const span = "left:" + at(line.low) + ";right:calc(100% - " + at(line.high) + ")";
    return h("div", {class: "track", role: "img", "aria-label": said}, marks.map(rule),
        h("span", {class: "span c" + line.series.color, style: span}),
        h("span", {class: "middle c" + line.series.color, style: "left:" + at(line.middle)}));
}
function summaryRow(line, scale) {
    const has = line.middle !== null;
    const number = (label, value) => h("td", {class: "n", "data-label": label}, String(value));
    return h("tr", {}, h("td", {}, nameOf(line.series)), number("times", line.count),
        number("fastest", line.fastest), number("tied", line.tied),
        number("speed-up", has ? times(line.middle) : "–"),
        h("td", {class: "range"}, has && summaryTrack(line, scale)));
}
function drawSummary({timed, groups}) {
    const compared = Array.from(groups.values()).filter((group) => group.length > 1).length;
    const lines = SERIES.map((series) => summaryOf(series, timed)).filter((line) => line.count > 0);
    lines.sort((a, b) => (b.middle || 0) - (a.middle || 0) || b.fastest - a.fastest);
    const bars = state.base ? " The bar runs from the lowest to the highest speed-up over " +
            state.base + ", and its mark is the median." : "";
    $("summary-note").textContent = compared
        ? "Fastest counts the " + plural(compared, "problem") +
            " for which at least two of the shown implementations have a time." + bars
        : "No problem has times of two of the shown implementations.";
    const scale = summaryScale(lines);
    const label = (e) => (e < 0 ? "1/" + 2 ** -e : 2 ** e) + "×";
    const ticks = h("div", {class: "track"}, scale.marks.map((e) =>
        h("span", {class: "tick", style: "left:" + scale.at(2 ** e)}, label(e))));
    const head = (name) => h("th", {scope: "col", class: "n"}, name);
    const table = h("table", {},
        h("thead", {}, h("tr", {}, h("th", {scope: "col"}, "Implementation"), head("Times"),
            head("Fastest"), head("Tied"), head("Speed-up"),
            h("th", {scope: "col", class: "range", "aria-label": "Range of speed-ups"},
                lines.some((line) => line.middle !== null) && ticks))),
        h("tbody", {}, lines.map((line) => summaryRow(line, scale))));
    $("summary").replaceChildren(
        lines.length ? table : h("p", {class: "empty"}, "No shown case has a time."));
}

// Picture

const MOST_PANELS = innerWidth < 700 ? 6 : 12;
let allPanels = false;
const CHARTS = {
    time: {
        value: (c) => c.median / c.T,
        lo: (c) => c.lo / c.T,
        hi: (c) => c.hi / c.T,
        bound: (c) => (c.bound ? c.bound / c.T : null),
        note:
            "Lower is better. The median time of a call divided by T; bars show the 95 % interval, " +
            "or the range of the samples where there are too few for one."
    },
    speedup: {
        value: (c) => c.speedup,
        lo: () => null,
        hi: () => null,
        bound: () => null,
        note: "Higher is better. The baseline’s median divided by the case’s median."
    },
    rate: {
        value: (c) => (c.flops && c.bytes ? c.flops / c.median : null),
        lo: (c) => c.flops / c.hi,
        hi: (c) => c.flops / c.lo,
        bound: (c) => (c.bound ? c.flops / c.bound : null),
        note:
            "Higher is better. Flops of the GEMMs per second, over flops per byte of inputs and " +
            "outputs. The dashed line is the best rate shown."
    },
};

// Shapes of the marks 1 to 10, as in plots/style.gp; those from 7 on are open.
const MARKS = [
    "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0",
    "M-3.6 -3.6h7.2v7.2h-7.2z",
    "M0 -4.8L4.5 3.2H-4.5z",
    "M0 -5L5 0L0 5L-5 0z",
    "M0 4.8L4.5 -3.2H-4.5z",
    "M0 -4.8L4.6 -1.5L2.8 3.9H-2.8L-4.6 -1.5z",
    "M-3.6 -3.6h7.2v7.2h-7.2z",
    "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0",
    "M0 -4.8L4.5 3.2H-4.5z",
    "M0 -5L5 0L0 5L-5 0z",
];
const DASHES = ["", "6 4", "2 3", "8 3 2 3"];
function markOf(series) {
    return svg("path", {
        d: MARKS[(series.mark - 1) % 10],
        class: series.mark > 6 ? "open s" + series.color : "f" + series.color,
        "stroke-width": 1.6
    });
}

// Panels of the chosen axis: one per setting and set of the other sizes. I counts as a size where
// it is not H.
function panelsOf(timed, kind, axis) {
    const panels = new Map();
    for (const c of timed) {
        const y = CHARTS[kind].value(c);
        if (y === null || !(y > 0)) continue;
        let key = String(c.settingOrder), title = "";
        if (kind !== "rate") {
            const held = SIZES.filter(
                (size) => size !== axis && (size !== "I" || (c.I !== c.H && axis !== "I")));
            title = held.map((size) => size + " = " + c[size]).join(", ");
            key += held.map((size) => "|" + size + String(c[size]).padStart(12, "0")).join("");
        }
        if (!panels.has(key))
            panels.set(key, {key, setting: c.setting, order: c.settingOrder, title, points: []});
        panels.get(key).points.push({c, x: kind === "rate" ? c.flops / c.bytes : c[axis], y});
    }
    const list =
        Array.from(panels.values()).sort((a, b) => a.order - b.order || (a.key < b.key ? -1 : 1));
    for (const panel of list) {
        panel.lines = new Map();
        for (const point of panel.points) {
            if (!panel.lines.has(point.c.series)) panel.lines.set(point.c.series, []);
            panel.lines.get(point.c.series).push(point);
        }
        for (const line of panel.lines.values()) line.sort((a, b) => a.x - b.x);
    }
    // A panel whose lines all have one point says nothing.
    return kind === "rate"
        ? list
        : list.filter((panel) => Array.from(panel.lines.values()).some((line) => line.length > 1));
}
function bestAxis(timed) {
    const counts =
        ["H", "B", "T", "I"].map((size) => [size, new Set(timed.map((c) => c[size])).size]);
    if (!inputVaries) counts.pop();
    return counts.reduce((a, b) => (b[1] > a[1] ? b : a))[0];
}

// A logarithmic scale from values to pixels.
function scaleOf(low, high, from, to) {
    const a = Math.log(low), b = Math.log(high) - a || 1;
    return (value) => from + (to - from) * (Math.log(value) - a) / b;
}
// Round numbers in the range; about `count` at most.
function roundTicks(low, high, count) {
    for (const steps
             of [[1, 1.2, 1.5, 2, 3, 4, 5, 6, 8], [1, 2, 3, 5, 7], [1, 2, 5], [1, 3], [1]]) {
        const ticks = [];
        for (let e = Math.floor(Math.log10(low)); e <= Math.log10(high); e++)
            for (const step of steps)
                if (step * 10 ** e >= low && step * 10 ** e <= high) ticks.push(step * 10 ** e);
        if (ticks.length <= count || steps.length === 1)
            return ticks.filter((_, i) => i % Math.ceil(ticks.length / count) === 0);
    }
    return [];
}
function powerTicks(low, high) {
    const ticks = [], step = Math.max(1, Math.ceil(Math.log2(high / low) / 6));
    for (let e = Math.ceil(Math.log2(low)); e <= Math.log2(high); e++)
        if (e % step === 0) ticks.push(2 ** e);
    return ticks;
}

function yAxisOf(kind, low, high) {
    if (kind === "speedup" && high / low < 6)
        return {
            ticks: roundTicks(low, high, 7),
            format: (v) => String(+v.toPrecision(2)) + "×",
            label: "speed-up"
        };
    if (kind === "speedup")
        return {
            ticks: powerTicks(low, high),
            format: (v) => (v < 1 ? "1/" + 1 / v : v) + "×",
            label: "speed-up"
        };
    if (kind === "rate")
        return {
            ticks: roundTicks(low, high, 7),
            format: (v) => String(+v.toPrecision(3)),
            label: "GFLOP/s"
        };
    const unit = unitFor("time", Math.sqrt(low * high));
    return {
        ticks: roundTicks(low / unit[1], high / unit[1], 6).map((v) => v * unit[1]),
        format: (v) => String(+(v / unit[1]).toPrecision(3)),
        label: unit[0] + " per step"
    };
}

function drawPoint(point, {kind, X, Y}) {
    const {c} = point, chart = CHARTS[kind];
    const said = c.series.name + ", " + sizesOf(c) + ": " +
        (kind === "time"             ? ns(point.y) + " per step"
                : kind === "speedup" ? times(point.y)
                                     : digits(point.y) + " GFLOP/s");
    const group = svg("g", {
        class: "point",
        transform: "translate(" + X(point.x).toFixed(1) + " " + Y(point.y).toFixed(1) + ")",
        tabindex: "-1",
        role: "img",
        "aria-label": said,
        "data-case": c.index
    });
    const lo = chart.lo(c), hi = chart.hi(c);
    if (c.lo !== null && lo > 0 && hi > 0) {
        const y = Y(point.y), from = (Y(lo) - y).toFixed(1), to = (Y(hi) - y).toFixed(1);
        if (Math.abs(from - to) > 3)
            group.append(svg("path", {
                class: "whisker s" + c.series.color,
                d: "M-3 " + from + "h6M-3 " + to + "h6M0 " + from + "V" + to
            }));
    }
    group.append(svg("circle", {class: "hit", r: 9}), markOf(c.series));
    return group;
}

function drawAxes(image, frame) {
    const {width, height, left, right, bottom, axis, X, Y} = frame;
    const across = (y) => "M" + left + " " + y.toFixed(1) + "H" + (width - right);
    for (const tick of axis.ticks)
        image.append(svg("path", {class: "grid", d: across(Y(tick))}),
            svg("text", {x: left - 6, y: Y(tick) + 4, "text-anchor": "end"}, axis.format(tick)));
    image.append(svg("path", {class: "axis", d: across(height - bottom)}));
    let last = -Infinity;
    for (const tick of frame.xTicks) {
        const x = X(tick), label = String(tick);
        if (x - last < 7 * label.length + 8) continue; // it would touch its neighbour
        last = x;
        image.append(
            svg("path", {class: "axis", d: "M" + x.toFixed(1) + " " + (height - bottom) + "v4"}),
            svg("text", {x: x.toFixed(1), y: height - bottom + 16, "text-anchor": "middle"},
                label));
    }
    image.append(svg("text",
        {x: (left + width - right) / 2, y: height - 2, "text-anchor": "middle"}, frame.xLabel),
        svg("text", {x: 0, y: 10}, axis.label));
    if (frame.kind === "speedup") image.append(svg("path", {class: "unit", d: across(Y(1))}));
}

// A series' line, and its lower bounds.
function drawLine(image, series, line, {kind, X, Y}) {
    const at = (x, y) => X(x).toFixed(1) + " " + Y(y).toFixed(1);
    const bounds = line.map((point) => [point.x, CHARTS[kind].bound(point.c)])
        .filter((bound) => bound[1]);
    if (kind === "rate") {
        for (const [x, y] of bounds)
            image.append(svg("path", {class: "unit", d: "M" + at(x, y) + "m-4 0h8m-4 -4v8"}));
        return;
    }
    if (bounds.length > 1)
        image.append(svg("path",
            {class: "bound", d: "M" + bounds.map(([x, y]) => at(x, y)).join("L")}));
    if (line.length > 1)
        image.append(svg("path", {
            class: "line s" + series.color,
            "stroke-dasharray": DASHES[(series.dash - 1) % 4] || null,
            d: "M" + line.map((point) => at(point.x, point.y)).join("L"),
        }));
}

function drawPanel(panel, frame) {
    const {kind, width, height, left, right, Y} = frame;
    const image = svg("svg", {
        viewBox: "0 0 " + width + " " + height,
        role: "group",
        "aria-label": panel.setting.heading + ", " + panel.title,
    });
    drawAxes(image, frame);
    if (kind === "rate") {
        const best = Y(most(panel.points.map((point) => point.y))).toFixed(1);
        image.append(svg("path", {
            class: "unit",
            "stroke-dasharray": "5 4",
            d: "M" + left + " " + best + "H" + (width - right),
        }));
    }
    for (const [series, line] of panel.lines) drawLine(image, series, line, frame);
    const marks = Array.from(panel.lines.values()).flat().map((point) => drawPoint(point, frame));
    marks[0].setAttribute("tabindex", "0");
    image.append(...marks);
    return h("figure", {class: "panel"},
        h("figcaption", {}, panel.setting.heading,
            panel.title && h("small", {}, " · " + panel.title)),
        image);
}

function rangeOf(values, pad) {
    const known = values.filter((value) => value > 0 && isFinite(value));
    const low = least(known), high = most(known), room = Math.max(pad, (high / low) ** 0.06);
    return [low / room, high * room];
}
// What all panels share: the size in pixels, the scales and the ticks of both axes.
function frameOf(panels, kind, axis, width) {
    const chart = CHARTS[kind], points = panels.flatMap((panel) => panel.points);
    const shown = ({c, y}) =>
        kind === "speedup" ? [y, 1] : [y, chart.lo(c), chart.hi(c), chart.bound(c)];
    const [yLow, yHigh] = rangeOf(points.flatMap(shown), 1.15);
    const [xLow, xHigh] = rangeOf(points.map((point) => point.x), 1.12);
    const sizes = Array.from(new Set(points.map((point) => point.x))).sort((a, b) => a - b);
    const height = kind === "rate" ? Math.min(420, 0.62 * width + 60)
                                   : Math.max(190, Math.min(260, 0.62 * width));
    const yAxis = yAxisOf(kind, yLow, yHigh), letter = 7; // pixels per letter of a label
    const longest = Math.max(...yAxis.ticks.map((tick) => yAxis.format(tick).length));
    const left = Math.max(44, 8 + letter * longest), right = 12, top = 20, bottom = 34;
    const xLabel = $("chart-axis").querySelector("[value=" + axis + "]").textContent;
    return {
        kind, width, height, left, right, bottom,
        X: scaleOf(xLow, xHigh, left, width - right),
        Y: scaleOf(yLow, yHigh, height - bottom, top),
        xTicks: kind === "rate" ? powerTicks(xLow, xHigh) : sizes,
        xLabel: kind === "rate" ? "flops per byte" : xLabel,
        axis: yAxis,
    };
}

function drawLegend(panels) {
    const used = SERIES.filter((series) => panels.some((panel) => panel.lines.has(series)));
    $("legend").replaceChildren(...used.map(
        (series) => h("span", {},
            svg("svg", {width: 34, height: 12, viewBox: "-17 -6 34 12", "aria-hidden": "true"},
                svg("path", {
                    class: "line s" + series.color,
                    "stroke-dasharray": DASHES[(series.dash - 1) % 4] || null,
                    d: "M-16 0H16"
                }),
                markOf(series)),
            series.name)));
}
let drawn = {timed: []};
function drawChart({timed}) {
    const kind = state.chart, axis = state.x || bestAxis(timed), area = $("chart");
    drawn = {timed};
    $("chart-axis").value = axis;
    $("chart-axis").querySelector("[value=I]").hidden = !inputVaries;
    $("axis-label").hidden = kind === "rate";
    const panels = panelsOf(timed, kind, axis),
          shown = allPanels ? panels : panels.slice(0, MOST_PANELS);
    const hasBound = timed.some((c) => c.bound);
    $("chart-note").textContent = CHARTS[kind].note +
        (hasBound && kind === "time" ? " The dotted line is the lower bound (floor) of the time."
                                     : "") +
        (hasBound && kind === "rate" ? " A + is the rate at the lower bound of the time." : "");
    drawLegend(shown);
    if (!panels.length) {
        const why = kind === "speedup" && !timed.some((c) => c.speedup !== null)
            ? "The baseline has no time for the shown problems."
            : timed.length
            ? "Nothing to draw: each line would have a single point. Choose another axis, or " +
                "show more cases."
            : "No shown case has a time.";
        area.replaceChildren(h("p", {class: "empty"}, why));
        return;
    }
    const wide = kind === "rate" && shown.length === 1, gap = 19, room = area.clientWidth || 900;
    area.classList.toggle("one", wide);
    const columns = wide ? 1 : Math.max(1, Math.floor((room + gap) / (304 + gap)));
    const frame = frameOf(shown, kind, axis,
        Math.round(wide ? Math.min(room, 1024) : (room - (columns - 1) * gap) / columns));
    area.replaceChildren(...shown.map((panel) => drawPanel(panel, frame)));
    if (shown.length < panels.length) {
        const more = h("button", {type: "button"}, "Draw all " + panels.length + " panels");
        more.addEventListener("click", () => {
            allPanels = true;
            drawChart(drawn);
        });
        area.append(h("p", {class: "note"},
            "These are " + shown.length + " of " + panels.length +
                " panels: choose sizes to see others. ",
            more));
    }
}

// Arrow keys in a panel: left and right along a line, up and down to the other lines at the same x.
function movePoint(event) {
    const point = event.target.closest && event.target.closest(".point");
    const steps = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0,
                       -1]}[event.key];
    if (!point || !steps) return;
    event.preventDefault();
    const place = (node) => node.getAttribute("transform").match(/[\d.-]+/g).map(Number);
    const own = CASES[point.dataset.case], [x, y] = place(point);
    let best = null, distance = Infinity;
    for (const other of point.parentNode.querySelectorAll(".point")) {
        const [ox, oy] = place(other), same = CASES[other.dataset.case].series === own.series;
        const fits = steps[0]
            ? same && (ox - x) * steps[0] > 0.05
            : !same && Math.abs(ox - x) < 1 && (y - oy) * steps[1] >= 0 && other !== point;
        const away = Math.abs(ox - x) + Math.abs(oy - y) * (steps[0] ? 0.001 : 1);
        if (fits && away < distance) [best, distance] = [other, away];
    }
    if (!best) return;
    point.setAttribute("tabindex", "-1");
    best.setAttribute("tabindex", "0");
    best.focus();
}

// Table

const PART = 150;  // rows made at a time
const hasOthers = facetOf("others").values.some((value) => value !== "none");
const COLUMNS = [
    {
        key: "impl",
        label: "Implementation",
        of: (c) => c.series.name,
        cell: (c) => h("td", {class: "wrap"}, nameOf(c.series))
    },
    ...SIZES.map((size) => ({
        key: size,
        label: size,
        number: true,
        of: (c) => c[size],
        cell: (c) => h("td", {class: "n size", "data-label": size}, String(c[size]))
    })),
    {
        key: "dtype",
        label: "Precision",
        of: (c) => c.setting.dtype,
        cell: (c) => h("td", {}, c.setting.dtype)
    },
    {
        key: "pass",
        label: "Pass",
        of: (c) => c.setting.pass,
        cell: (c) => h("td", {}, c.setting.pass)
    },
    ...(hasOthers ? [{
        key: "others",
        label: "Others",
        of: (c) => c.setting.others,
        cell: (c) => h("td", {class: "wrap"}, c.setting.others)
    }]
                  : []),
    {
        key: "median",
        label: "Median",
        number: true,
        of: (c) => c.median,
        cell: (c) => h("td", {class: "n median"}, ns(c.median),
            c.hasInterval &&
                h("small", {}, " ±" + (50 * (c.hi - c.lo) / c.median).toFixed(1) + " %"))
    },
    {
        key: "step",
        label: "Per step",
        number: true,
        of: (c) => c.median / c.T,
        cell: (c) => h("td", {class: "n", "data-label": "per step"}, ns(c.median / c.T))
    },
    {
        key: "speedup",
        label: "Speed-up",
        number: true,
        of: (c) => c.speedup,
        cell: (c) => h("td", {class: "n" + (c.rank ? " best" : ""), "data-label": "speed-up"},
            times(c.speedup), c.rank && h("small", {}, " " + c.rank))
    },
    ...(CASES.some((c) => c.update) ? [{
        key: "update",
        label: "Update",
        number: true,
        of: (c) => c.update,
        cell: (c) => h("td", {class: "n", "data-label": "update"}, c.update ? ns(c.update) : "–")
    }]
                                    : []),
    {
        key: "error",
        label: "Error",
        number: true,
        of: (c) => c.error,
        cell: (c) => h("td", {class: "n", "data-label": "error"},
            c.error === null ? "–" : c.error.toExponential(1))
    },
    {
        key: "samples",
        label: "Samples",
        number: true,
        of: (c) => c.samples,
        cell: (c) => h("td", {class: "n"}, stripOf(c))
    },
];

// How many samples lie at which distance from the median, one bar per percent.
function stripOf(c) {
    let bars = "";
    for (let i = 0; i < c.strip.length; i++) {
        const height = Math.min(9, +c.strip[i] || 0);
        if (height > 0) bars += "M" + (2 * i + 1) + " 16v-" + (1.6 * height).toFixed(1);
    }
    return svg("svg", {
        class: "strip",
        viewBox: "0 0 82 16",
        role: "img",
        "aria-label": plural(c.samples, "sample")
    },
        svg("path", {class: "mid", d: "M41 0v16"}), svg("path", {d: bars}));
}

// By problem, and the fastest first, unless the reader chose a column.
function sortCases(timed) {
    const descending = state.sort.startsWith("-"),
          column = COLUMNS.find((one) => one.key === state.sort.replace(/^-/, ""));
    const byProblem = (a, b) =>
        a.settingOrder - b.settingOrder || a.H - b.H || a.B - b.B || a.T - b.T || a.I - b.I;
    if (!column) return timed.slice().sort((a, b) => byProblem(a, b) || a.median - b.median);
    return timed.map((c) => [column.of(c), c])
        .sort(([a, p], [b, q]) => {
            if (a === null || b === null) return (a === null) - (b === null) || p.index - q.index;
            const order = a < b ? -1 : a > b ? 1 : 0;
            return (descending ? -order : order) || p.index - q.index;
        })
        .map((pair) => pair[1]);
}

let table = {rows: [], made: 0, body: null, more: null};
function makeRow(c, before) {
    const grouped = !state.sort, same = grouped && before && before.problem === c.problem;
    const row = h("tr", {
        tabindex: "-1",
        "data-case": c.index,
        class: same             ? "same"
            : grouped && before ? "next"
                                : null,
        "aria-expanded": "false"
    },
        COLUMNS.map((column) => column.cell(c)));
    return row;
}
function makeRows(count) {
    const part = document.createDocumentFragment(),
          end = Math.min(table.rows.length, table.made + count);
    for (; table.made < end; table.made++)
        part.append(makeRow(table.rows[table.made], table.rows[table.made - 1]));
    table.body.append(part);
    const left = table.rows.length - table.made;
    table.more.hidden = left === 0;
    table.more.textContent = "Show the other " + plural(left, "case");
    const first = table.body.querySelector("tr");
    if (first && !table.body.querySelector("tr[tabindex='0']")) first.setAttribute("tabindex", "0");
}
const sentinel = new IntersectionObserver((entries) => {
    if (entries.some((entry) => entry.isIntersecting) && table.made < table.rows.length)
        makeRows(PART);
}, {rootMargin: "600px"});

function drawTable({timed}) {
    sentinel.disconnect();
    const head = h("tr", {});
    for (const column of COLUMNS) {
        const up = state.sort === column.key, down = state.sort === "-" + column.key;
        const button = h("button", {type: "button"}, column.label);
        button.addEventListener("click", () => {
            change({sort: up ? "-" + column.key : down ? "" : column.key});
            const again = Array.from(document.querySelectorAll("#cases th button"))
                              .find((one) => one.textContent === column.label);
            if (again) again.focus();
        });
        head.append(h("th", {
            scope: "col",
            class: column.number ? "n" : null,
            "aria-sort": up ? "ascending"
                : down      ? "descending"
                            : null
        },
            button));
    }
    const body = h("tbody", {}), more = h("button", {type: "button", id: "more"});
    more.addEventListener("click", () => makeRows(Infinity));
    table = {rows: sortCases(timed), made: 0, body, more};
    const list = h("table", {id: "cases", class: state.sort ? null : "grouped"},
        h("thead", {}, head), body);
    const none = h("p", {class: "empty"}, "No shown case has a time.");
    $("table").replaceChildren(...(timed.length ? [list, more] : [none]));
    makeRows(PART);
    sentinel.observe(more);
    if (state.open) {
        const place = table.rows.findIndex((c) => idOf(c) === state.open);
        if (place >= table.made) makeRows(place - table.made + 1);
        if (place >= 0)
            openRow(body.querySelector("tr[data-case='" + table.rows[place].index + "']"), true);
    }
}

function openRow(row, open) {
    const c = CASES[row.dataset.case], next = row.nextElementSibling,
          isOpen = next && next.classList.contains("details");
    for (const details of table.body.querySelectorAll("tr.details")) {
        details.previousElementSibling.setAttribute("aria-expanded", "false");
        details.remove();
    }
    if (isOpen && !open) return false;
    row.setAttribute("aria-expanded", "true");
    row.after(h("tr", {class: "details"}, h("td", {colspan: COLUMNS.length}, detailsOf(c, true))));
    return true;
}
function toggleRow(row) {
    state.open = openRow(row, false) ? idOf(CASES[row.dataset.case]) : "";
    hideCard();
    saveState();
}
function moveRow(event) {
    const row = event.target.closest && event.target.closest("tbody tr[data-case]");
    if (!row || event.target !== row) return;
    if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        toggleRow(row);
        return;
    }
    const step = {ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling"}[event.key];
    if (!step) return;
    event.preventDefault();
    if (step === "nextElementSibling" && !row.nextElementSibling && table.made < table.rows.length)
        makeRows(PART);
    let to = row[step];
    if (to && !to.dataset.case) to = to[step];
    if (!to) return;
    row.setAttribute("tabindex", "-1");
    to.setAttribute("tabindex", "0");
    to.focus();
}

// What did not run: one line per verdict and reason

// The cases without a time by verdict and reason: failures first, then the most cases.
function foldCases(shown) {
    const folds = new Map();
    for (const c of shown) {
        if (c.timed) continue;
        const key = c.verdict + "\n" + c.reason, {verdict, failed, reason} = c;
        if (!folds.has(key)) folds.set(key, {verdict, failed, reason, cases: [], names: new Set()});
        folds.get(key).cases.push(c);
        folds.get(key).names.add(c.series.name);
    }
    return Array.from(folds.values())
        .sort((a, b) => b.failed - a.failed || b.cases.length - a.cases.length);
}
function reasonRow(fold) {
    const EXAMPLES = 60, left = fold.cases.length - EXAMPLES;
    const named = h("details", {}, h("summary", {}, "Which cases"));
    named.addEventListener("toggle", () => {
        if (named.children.length > 1) return; // made already
        const ids = fold.cases.slice(0, EXAMPLES).map((c) => h("div", {}, h("code", {}, idOf(c))));
        named.append(h("div", {class: "examples"}, ids, left > 0 && "and " + left + " more"));
    });
    return h("tr", {class: fold.failed ? "bad" : "none"},
        h("td", {}, h("span", {class: "verdict"}, fold.verdict)),
        h("td", {class: "n"}, String(fold.cases.length)),
        h("td", {}, fold.reason || "no reason was recorded", named),
        h("td", {}, Array.from(fold.names).join(", ")));
}
function drawReasons({shown}) {
    const MOST = 100, list = foldCases(shown);
    const count = list.reduce((sum, fold) => sum + fold.cases.length, 0);
    if (count === 0) {
        const every = CASES.every((c) => c.timed);
        $("reasons").replaceChildren(h("p", {},
            every ? "Every case ran and agreed with the oracle."
                  : "All cases that pass the filter have a time."));
        return;
    }
    const filtered = shown.length < CASES.length ? " that pass the filter" : "";
    const head = (name, kind) => h("th", {scope: "col", class: kind}, name);
    $("reasons").replaceChildren(
        h("p", {}, plural(count, "case") + filtered + (count === 1 ? " has" : " have") +
            " no time. Failures come first."),
        h("table", {class: "reasons"},
            h("thead", {}, h("tr", {}, head("Verdict"), head("Cases", "n"), head("Why"),
                head("Implementations"))),
            h("tbody", {}, list.slice(0, MOST).map(reasonRow))),
        list.length > MOST ? h("p", {class: "note"}, plural(list.length - MOST, "more reason") +
            " are left out: use the filters.") : "");
}

// The card about a point or a row; and all details of a case

function detailsOf(c, all) {
    const list = h("dl", {});
    const fact = (name, ...value) => {
        if (value.every((one) => one !== null && one !== "" && one !== "–"))
            list.append(h("dt", {}, name), h("dd", {}, value));
    };
    fact("median", ns(c.median) + ", " + ns(c.median / c.T) + " per step");
    if (c.lo !== null)
        fact(c.hasInterval ? "95 % interval" : "range of samples", ns(c.lo) + " to " + ns(c.hi));
    if (c.speedup !== null)
        fact("speed-up", times(c.speedup) + " over " + state.base + (c.rank ? ", " + c.rank : ""));
    fact("samples",
        c.samples + (c.blocks > 1 ? " in " + c.blocks + " blocks" : "") +
            (c.calls > 1 ? ", " + digits(c.calls) + " calls each" : "") + " ",
        stripOf(c));
    if (all) {
        fact("stopped by", c.stop);
        fact("fastest sample", ns(c.min));
        fact("5 % to 95 %", ns(c.p5) + " to " + ns(c.p95));
    }
    fact("error",
        c.error === null
            ? ""
            : c.error.toExponential(2) + " (norm of the difference to the oracle, relative)" +
                (typeof c.toleranceUsed === "number"
                    ? ", at most " + (100 * c.toleranceUsed).toPrecision(2) +
                        " % of what is allowed"
                    : ""));
    fact("ran", c.description);
    fact("kernels", c.kernels);
    if (c.bound)
        fact("lower bound",
            ns(c.bound) + ", the median is " + times(c.median / c.bound) + " as long");
    if (c.flops) fact("rate", digits(c.flops / c.median) + " GFLOP/s");
    fact("warning", c.warning);
    if (all) {
        fact("peak memory", withUnit("bytes", c.peak));
        fact("preparation", ns(c.prepare));
        if (c.update)
            fact("update of the weights",
                ns(c.update) + " per step of an optimizer, beyond the call");
        fact("case", h("code", {}, idOf(c)));
        if (data.repeat !== null)
            fact("repeat with",
                h("code", {class: "repeat"},
                    "bench-lstm --sweep --case " + shellWord(idOf(c)) + data.repeat));
    }
    return list;
}
let cardNode = null;  // what the card is about
function showCard(node) {
    cardNode = node;
    const c = CASES[node.dataset.case], card = $("card"), box = node.getBoundingClientRect();
    card.replaceChildren(h("p", {}, nameOf(c.series)),
        h("p", {class: "where"}, c.setting.heading + " · " + sizesOf(c)), detailsOf(c, false));
    card.hidden = false;
    const isRow = node.tagName === "TR", width = card.offsetWidth, height = card.offsetHeight;
    const left = isRow ? box.right - width - 8 : box.left + box.width / 2 + 14;
    const flip = !isRow && left + width > innerWidth - 8;
    let top = box.bottom + 6;
    if (top + height > innerHeight - 8) top = box.top - height - 6;
    card.style.left =
        Math.max(8, Math.min(flip ? box.left - width - 14 : left, innerWidth - width - 8)) + "px";
    card.style.top = Math.max(8, top) + "px";
}
function hideCard() { $("card").hidden = true; }
const target = (event) =>
    event.target.closest && event.target.closest(".point, #cases tr[data-case]");
function watchCard(area) {
    area.addEventListener("pointerover", (event) => {
        const node = target(event);
        if (node &&
            !(node.nextElementSibling && node.nextElementSibling.classList.contains("details")))
            showCard(node);
        else hideCard();
    });
    area.addEventListener("pointerleave", hideCard);
    area.addEventListener("focusin", (event) => {
        if (target(event) && event.target.matches(":focus-visible, .point"))
            showCard(target(event));
    });
    area.addEventListener("focusout", hideCard);
}

// All together

function draw() {
    const selection = select();
    hideCard();
    syncFilters(selection);
    drawSummary(selection);
    drawChart(selection);
    drawTable(selection);
    drawReasons(selection);
}

app.hidden = false;
makeFilters();
state = stateFromLink(location.hash);
draw();
watchCard($("chart"));
watchCard($("table"));
$("chart").addEventListener("keydown", movePoint);
$("chart").addEventListener("click", (event) => {
    const point = event.target.closest(".point");
    if (point) {
        point.focus();
        showCard(point);
    }
});
$("table").addEventListener("keydown", moveRow);
$("table").addEventListener("click", (event) => {
    const row = event.target.closest("tbody tr[data-case]");
    if (row && !String(getSelection())) toggleRow(row);
});
addEventListener("keydown", (event) => {
    if (event.key === "Escape") hideCard();
});
addEventListener("scroll", () => {
    if (document.activeElement === cardNode && !$("card").hidden)
        showCard(cardNode);  // it moved with the page
    else hideCard();
}, {passive: true});
addEventListener("hashchange", () => {
    if (location.hash && !location.hash.includes("=")) return;  // a link to a section
    state = stateFromLink(location.hash);
    draw();
});
// Links to sections leave the state in the address.
document.addEventListener("click", (event) => {
    const link = event.target.closest && event.target.closest("a[href^='#']");
    const to = link && document.getElementById(link.getAttribute("href").slice(1));
    if (!to || !stateToLink() || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    to.scrollIntoView();
});
addEventListener("beforeprint", () => {
    if (table.body) makeRows(Infinity);
});
let width = innerWidth;
addEventListener("resize", () => {
    if (innerWidth === width) return;
    width = innerWidth;
    drawChart(drawn);
});
})();
