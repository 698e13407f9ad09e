// The report: its headline, what changed since earlier runs, filters, summary, pictures and table
// of the run's cases, what did not run, and the machine. bench/commands/report.c writes the data
// that it reads. Parts, in order: small helpers, the records, the state and its link, filters,
// summary, pictures, table, the card, what did not run, headline, changes, machine, and drawing all
// of them.
(function() {
"use strict";
const $ = (id) => document.getElementById(id);
let data;
try {
    data = JSON.parse($("data").textContent);
} catch (error) {
    return;  // a page that was cut short: what is written in it remains
}

// Helpers

function add(node, attributes, children) {
    for (const [name, value] of Object.entries(attributes))
        if (value !== null && value !== undefined && value !== false)
            node.setAttribute(name, value === true ? "" : value);
    for (const child of children.flat(2))
        if (child !== null && child !== undefined && child !== false) node.append(child);
    return node;
}
const h = (tag, attributes, ...children) =>
    add(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) =>
    add(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
const path = (kind, d, others) => svg("path", {class: kind, d, ...others});
const word = (x, y, anchor, words) => svg("text", {x, y, "text-anchor": anchor}, words);
const note = (...words) => h("p", {class: "note"}, words);

// Three significant digits.
function digits(value) {
    const size = Math.abs(value);
    if (size === 0) return "0";
    return size >= 99.95 ? value.toFixed(0) : value.toPrecision(3);
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
const plural = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
// "1 case has", "3 cases have"
const pluralHas = (count, noun) => `${plural(count, noun)} ${count === 1 ? "has" : "have"}`;
const least = (values) => values.reduce((a, b) => Math.min(a, b), Infinity);
const most = (values) => values.reduce((a, b) => Math.max(a, b), -Infinity);
function median(values) {
    const sorted = values.slice().sort((a, b) => a - b), middle = sorted.length >> 1;
    return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}
const distinct = (values) => Array.from(new Set(values)).sort((a, b) => a - b);

// Records

const TEXTS = new Map(Object.entries(data.texts).map(([text, index]) => [index, text]));
const text = (index) => TEXTS.get(index) || "";
const SERIES = data.series.map(([name, color, mark, dash]) => ({name, color, mark, dash}));
const SETTINGS = data.settings.map(([heading, dtype, math, pass, others], order) =>
    ({heading, dtype: dtype + (math && "/" + math), pass, others, order}));
// The settings that differ in the pass alone, which is inference, in the precision alone, which is
// f32, and in the threads alone, of which there is one; undefined where the run has none.
for (const setting of SETTINGS) {
    const {pass, dtype, others} = setting;
    const find = (changes) => SETTINGS.find((one) => Object.entries({pass, dtype, others, ...changes})
        .every(([key, value]) => one[key] === value));
    const without = (part) =>
        part ? find({others: others.replace(part[0], "").replace(/^, /, "")}) : setting;
    const threads = /(^|, )(\d+) threads/.exec(others);
    setting.threads = threads ? Number(threads[2]) : 1;
    setting.alone = without(/, \d+ instances/.exec(others));
    setting.infer = find({pass: "infer"});
    setting.plain = find({dtype: "f32"});
    setting.single = without(threads);
}
// A style for elements whose colour is that of a series.
const colorOf = ({color}) => "--own:var(--c" + color + ")";
const RANKS = ["", "fastest", "tied"];
// What a case with a time has: times of a call in ns, with lo and hi of the 95 % interval or else
// of the range of the samples; relative errors in norm; the lower bound in ns; flops and bytes of a
// call; the most bytes in use; the time of preparation in ns; counts; why sampling stopped; the
// samples as a strip; the kernels; the error over what is allowed; the time of an update of the
// weights in ns; of a stream its high percentiles, its longest call, the share of calls that were
// too late, and the calls per second of all instances.
const FIELDS = ["median", "lo", "hi", "min", "p5", "p95", "error", "gradientError", "bound",
    "flops", "bytes", "peak", "prepare", "hasInterval", "samples", "blocks", "calls", "stop",
    "strip", "kernels", "toleranceUsed", "update", "percentiles"];
const PERCENTILES = ["90", "99", "99.9"];  // percentiles of a stream, each [ns, lo, hi]
const PROBLEMS = data.problems.map(([setting, T, B, I, H, cases]) => {
    const problem = {setting: SETTINGS[setting], T, B, I, H};
    problem.cases = cases.map(([series, verdict, rank, tail, reason, description, warning,
        ...numbers]) => {
        const c = {...problem, problem, series: SERIES[series], verdict: data.verdicts[verdict][0],
            failed: data.verdicts[verdict][1], rank: RANKS[rank], tail: text(tail),
            reason: text(reason), description: text(description), warning: text(warning),
            timed: numbers.length > 0, speedup: null, kernels: ""};
        numbers.forEach((number, i) => { c[FIELDS[i]] = number; });
        if (c.timed) [c.stop, c.kernels] = [text(c.stop), text(c.kernels)];
        if (c.percentiles) [c.percentiles, c.longest, c.late, c.perSecond] = c.percentiles;
        return c;
    });
    problem.timed = problem.cases.filter((c) => c.timed);  // the fastest first
    return problem;
});
const CASES = PROBLEMS.flatMap((problem) => problem.cases);
const keyOf = (setting, p) => [setting.order, p.T, p.B, p.I, p.H].join();
const BY_KEY = new Map(PROBLEMS.map((problem) => [keyOf(problem.setting, problem), problem]));
// The problem of the same sizes in another setting, and the case of a series in a problem.
const like = (c, setting) => setting && BY_KEY.get(keyOf(setting, c));
const timedOf = (problem, series) => problem && problem.timed.find((c) => c.series === series);
const idOf = (c) =>
    `${c.series.name.split(/[/ ]/)[0]}/T${c.T}_B${c.B}_I${c.I}_H${c.H}${c.tail}`;
// place: the id of a case in the page's link, with a number where other devices ran the case before.
const repeats = new Map();
CASES.forEach((c, i) => {
    const id = idOf(c), times = 1 + (repeats.get(id) || 0);
    repeats.set(id, times);
    Object.assign(c, {index: i, place: times > 1 ? `${id} ${times}` : id});
});
const sizesOf = (c) => `T = ${c.T}, B = ${c.B}, I = ${c.I}, H = ${c.H}`;

function searchText(c) {
    if (!c.words)
        c.words = ["", idOf(c), `T=${c.T} B=${c.B} I=${c.I} H=${c.H}`, c.setting.dtype,
            c.setting.pass, c.setting.others, c.verdict, c.reason, c.warning, c.description,
            c.kernels, ""].join(" ").toLowerCase();
    return c.words;
}

// State: what the reader chose. It is kept in the page's link, #key=value&key=value, without what
// is as it begins.

const SIZES = ["T", "B", "I", "H"];
const FACETS = [
    ["impl", "Implementation", (c) => c.series.name],
    ["dtype", "Precision", (c) => c.setting.dtype],
    ["pass", "Pass", (c) => c.setting.pass],
    ["others", "Other settings", (c) => c.setting.others || "none"],
    ["T", "Sequence length T", (c) => String(c.T)],
    ["B", "Batch size B", (c) => String(c.B)],
    ["I", "Input size I", (c) => String(c.I)],
    ["H", "Hidden size H", (c) => String(c.H)],
    ["verdict", "Verdict", (c) => c.verdict],
].map(([key, label, of]) => {
    const groups = Map.groupBy(CASES, of), values = Array.from(groups.keys());
    if (SIZES.includes(key)) values.sort((a, b) => a - b);
    if (key === "impl") values.sort();
    return {key, label, of, groups, values};
});
const facetOf = (key) => FACETS.find((facet) => facet.key === key);
const inputVaries = CASES.some((c) => c.I !== c.H);

function defaults() {
    const state = {base: data.baseline >= 0 ? SERIES[data.baseline].name : "", q: "", chart: "time",
        x: "", sort: "", open: ""};
    for (const facet of FACETS) state[facet.key] = new Set();
    return state;
}
let state = defaults();

function stateToLink() {
    const first = defaults(), link = new URLSearchParams();
    for (const [key, value] of Object.entries(state)) {
        if (value instanceof Set) value.forEach((one) => link.append(key, one));
        else if (value !== first[key]) link.append(key, value);
    }
    return String(link) && "#" + link;
}
function stateFromLink(hash) {
    const read = defaults(), link = new URLSearchParams(hash.slice(1));
    for (const key of Object.keys(read)) {
        const values = link.getAll(key);
        if (read[key] instanceof Set)
            read[key] = new Set(values.filter((value) => facetOf(key).groups.has(value)));
        else if (values.length) read[key] = values[0];
    }
    if (read.base && !SERIES.some((series) => series.name === read.base))
        read.base = defaults().base;
    if (!Object.hasOwn(CHARTS, read.chart)) read.chart = "time";
    if (!SIZES.includes(read.x)) read.x = "";
    return read;
}
function saveState() {
    const link = stateToLink();
    if (link === location.hash || (!link && !location.hash.includes("="))) return;
    try {
        history.replaceState(null, "", location.href.split("#")[0] + link);
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

// Returns the cases that pass the filters, with their speed-ups over the chosen baseline.
function select() {
    const active = FACETS.filter((facet) => state[facet.key].size > 0);
    const words = state.q.toLowerCase().split(/\s+/).filter(Boolean)
        .map((one) => (one.includes("=") ? ` ${one} ` : one));  // T=1 is not to find T=16
    const shown = CASES.filter((c) => words.every((one) => searchText(c).includes(one)) &&
        active.every((facet) => state[facet.key].has(facet.of(c))));
    const timed = shown.filter((c) => c.timed), series = SERIES.find((s) => s.name === state.base);
    for (const c of timed) {
        c.base = timedOf(c.problem, series);
        c.speedup = c.base ? c.base.median / c.median : null;
    }
    return {shown, timed};
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
        const {base: kept, chart, x, sort} = state;
        change(Object.assign(defaults(), {base: kept, chart, x, sort}));
    });
    $("filters").addEventListener("submit", (event) => event.preventDefault());
    for (const facet of FACETS) {
        if (facet.values.length < 2 || (facet.key === "I" && !inputVaries))
            continue;  // where I is H, H filters both
        const chips = facet.values.map((value) => {
            const input = h("input", {type: "checkbox", value, name: facet.key});
            const series = facet.key === "impl" && SERIES.find((one) => one.name === value);
            input.addEventListener("change", () => {
                const chosen = new Set(state[facet.key]);
                if (!chosen.delete(value)) chosen.add(value);
                change({[facet.key]: chosen});
            });
            return h("label", {class: "chip"}, input,
                series && dotOf(series), value,
                ["impl", "verdict"].includes(facet.key) &&
                    h("small", {}, String(facet.groups.get(value).length)));
        });
        $("facets").append(
            h("fieldset", {}, h("legend", {}, facet.label), h("div", {class: "chips"}, chips)));
    }
    $("chart-kind").append(...Object.entries(CHARTS).map(([kind, chart]) =>
        h("option", {value: kind}, chart.name)));
    $("chart-kind").addEventListener("change", () => change({chart: $("chart-kind").value}));
    $("chart-axis").addEventListener("change", () => change({x: $("chart-axis").value}));
}
// Makes the controls show the state, which may come from a link.
function syncFilters({shown}) {
    $("baseline").value = state.base;
    if ($("words").value !== state.q) $("words").value = state.q;
    for (const input of $("facets").querySelectorAll("input"))
        input.checked = state[input.name].has(input.value);
    const all = shown.length === CASES.length;
    const filters = FACETS.filter((facet) => state[facet.key].size > 0)
        .map((facet) => `${facet.label}: ${Array.from(state[facet.key]).join(" or ")}`);
    if (state.q) filters.push("words: " + state.q);
    const part = all ? "" : shown.length.toLocaleString("en") + " of ";
    const count = $("count").textContent = part + plural(CASES.length, "case");
    $("reset").disabled = all && !filters.length;
    $("chart-kind").value = state.chart;
    $("filter-note").textContent =  // on paper, where the controls are not
        filters.length ? `${count}, filtered by ${filters.join("; ")}` : "";
}
const dotOf = (series) => h("span", {class: "dot", style: colorOf(series)});
const nameOf = (series) => h("span", {class: "name"}, dotOf(series), series.name);

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
    return {marks, at: (ratio) => (100 * (Math.log2(ratio) - low) / (high - low)).toFixed(2) + "%"};
}
function summaryTrack({low, high, middle, series}, {at, marks}) {
    const rule = (e) => h("span", {class: e ? "rule" : "rule one", style: `left:${at(2 ** e)}`});
    const span = `left:${at(low)};right:calc(100% - ${at(high)})`;
    const said = `from ${times(low)} to ${times(high)}`;
    return h("div", {class: "track", role: "img", "aria-label": said}, marks.map(rule),
        h("span", {class: "span", style: `${colorOf(series)};${span}`}),
        h("span", {class: "middle", style: `${colorOf(series)};left:${at(middle)}`}));
}
function drawSummary({timed}) {
    const compared = new Set(timed.map((c) => c.problem).filter((p) => p.timed.length > 1)).size;
    const lines = SERIES.map((series) => summaryOf(series, timed)).filter((line) => line.count > 0);
    lines.sort((a, b) => (b.middle || 0) - (a.middle || 0) || b.fastest - a.fastest);
    $("summary-note").textContent = !compared
        ? "No shown problem has times of two implementations."
        : `Fastest counts the ${plural(compared, "problem")} for which at least two ` +
            "implementations have a time." + (state.base ? " The bar runs from the lowest to the " +
            `highest speed-up over ${state.base}, and its mark is the median.` : "");
    const scale = summaryScale(lines), track = lines.some((line) => line.middle !== null);
    const ticks = scale.marks.map((e) => h("span",
        {class: "tick", style: `left:${scale.at(2 ** e)}`}, `${e < 0 ? "1/" + 2 ** -e : 2 ** e}×`));
    const rows = lines.map((line) => h("tr", {}, h("td", {}, nameOf(line.series)),
        numberCell("times", line.count), numberCell("fastest", line.fastest),
        numberCell("tied", line.tied), numberCell("speed-up", times(line.middle)),
        h("td", {class: "range"}, line.middle !== null && summaryTrack(line, scale))));
    $("summary").replaceChildren(lines.length
        ? h("table", {}, tableHead(["Implementation", "Times#", "Fastest#", "Tied#", "Speed-up#",
            h("th", {class: "range", "aria-label": "Range of speed-ups"},
                track && h("div", {class: "track"}, ticks))]), h("tbody", {}, rows))
        : h("p", {class: "empty"}, "No shown case has a time."));
}
const numberCell = (label, words) => h("td", {class: "n", "data-label": label}, String(words));
// The head of a table; # at the end of a name marks a column of numbers.
function tableHead(names) {
    return h("thead", {}, h("tr", {}, names.map((name) => typeof name !== "string" ? name
        : h("th", {scope: "col", class: name.endsWith("#") && "n"}, name.replace("#", "")))));
}

// Pictures

const MOST_PANELS = innerWidth < 700 ? 6 : 12;
let allPanels = false;
// A chart with `ratio` shows its two cases' quotient, and the widest interval that theirs allow.
const quotient = (above, below) => (above && below ? above.median / below.median : null);
const widest = (above, below) =>
    (above && below ? [above.lo / below.hi, above.hi / below.lo] : []);
const inference = (c) => timedOf(like(c, c.setting.infer), c.series);
const inF32 = (c) => timedOf(like(c, c.setting.plain), c.series);
const onOneThread = (c) => timedOf(like(c, c.setting.single), c.series);
const bestInF32 = (c) => (like(c, c.setting.plain) || {timed: []}).timed[0];
const isF32 = (c) => c.setting.plain === c.setting;
// What each kind shows of a case: value, interval and value at the lower bound of the time. Without
// x it is drawn over the size that the reader chose; with x, a mark per case or, where it joins
// them, lines over x; points gives several [x, y, lo, hi] of a case, joined; map draws cells.
// setting: of the panel that the case belongs to.
const CHARTS = {
    time: {
        name: "time per step", unit: "time", label: "per step",
        value: (c) => c.median / c.T,
        interval: (c) => [c.lo / c.T, c.hi / c.T],
        bound: (c) => c.bound && c.bound / c.T,
        note: "Lower is better. The median time of a call divided by T; bars show the 95 % " +
            "interval, or the range of the samples where there are too few for one.",
        boundNote: "The dotted line is the lower bound (floor) of the time.",
    },
    speedup: {
        name: "speed-up over the baseline", label: "speed-up", suffix: "×", reference: () => 1,
        value: (c) => c.speedup,
        note: "Higher is better. The baseline’s median divided by the case’s median.",
    },
    map: {
        name: "speed-up by two sizes", map: true,
        value: (c) => c.speedup,
        note: "Each cell is one problem: how many times as fast as the baseline. Blue is " +
            "faster, orange slower; = tied, as the intervals overlap; × failed; grey did not run; " +
            "– is not in this run.",
    },
    rate: {
        name: "rate (roofline)", label: "GFLOP/s", xLabel: "flops per byte",
        x: (c) => c.flops / c.bytes,
        value: (c) => (c.flops && c.bytes ? c.flops / c.median : null),
        interval: (c) => [c.flops / c.hi, c.flops / c.lo],
        bound: (c) => c.bound && c.flops / c.bound,
        reference: (points) => most(points.map((point) => point.y)),
        note: "Higher is better. Flops of the GEMMs per second, over flops per byte of inputs " +
            "and outputs. The dashed line is the best rate shown.",
        boundNote: "A + is the rate at the lower bound of the time.",
    },
    training: {
        name: "training over inference", label: "training / inference", suffix: "×",
        ratio: (c) => (c.setting.pass === "train" ? [c, inference(c)] : []),
        note: "Lower is better. The median of a training call divided by that of inference of " +
            "the same implementation; bars show the widest interval that both allow.",
    },
    precision: {
        name: "precision: speed-up over f32", label: "f32 / this precision", suffix: "×",
        ratio: (c) => (isF32(c) ? [] : [inF32(c), c]),
        note: "Higher is better. The median in f32 divided by that in this precision, for the " +
            "same implementation; bars show the widest interval that both allow.",
    },
    error: {
        name: "precision: speed over error", label: "speed-up over the fastest in f32", suffix: "×",
        xLabel: "error in norm against the oracle", acrossPrecisions: true, reference: () => 1,
        setting: (c) => c.setting.plain,
        x: (c) => c.gradientError || c.error,
        ratio: (c) => (c.gradientError || c.error ? [bestInF32(c), c] : []),
        note: "Left and up is better. The fastest median in f32 of the same sizes divided by the " +
            "median, over |result − oracle| / |oracle| of the worst output or, in training, the " +
            "worst gradient.",
    },
    scaling: {
        name: "scaling over threads", label: "speed-up over one thread", suffix: "×",
        xLabel: "threads", joins: true, setting: (c) => c.setting.single,
        x: (c) => c.setting.threads,
        ratio: (c) => [onOneThread(c), c],
        note: "Higher is better. The median on one thread divided by that on so many, for the " +
            "same implementation; bars show the widest interval that both allow.",
    },
    latency: {
        name: "latency of streams", unit: "time", label: "latency", xLabel: "percentile",
        points: (c) => (c.percentiles ? [[2, c.median, c.lo, c.hi],
            ...c.percentiles.map(([value, lo, hi], i) => [[10, 100, 1000][i], value, lo, hi])] : []),
        xText: (x) => ({2: "50", 10: "90", 100: "99", 1000: "99.9"}[x]),
        bound: (c) => c.bound,
        note: "Lower is better. So many percent of the calls of a stream took at most so long; " +
            "bars show 95 % intervals. A line ends where the calls are too few to tell.",
        boundNote: "The dotted line is the lower bound (floor) of the time.",
    },
    throughput: {
        name: "throughput of instances", unit: "time", label: "p99", xLabel: "calls per second",
        joins: true, setting: (c) => c.setting.alone, xText: (x) => shortNumber(x),
        x: (c) => c.perSecond,
        value: (c) => c.setting.alone && c.percentiles && c.percentiles[1][0],
        interval: (c) => (c.percentiles ? c.percentiles[1].slice(1) : []),
        note: "Right and down is better. Each mark is a number of instances, which share the " +
            "threads: their calls per second together, and how long 99 % of the calls took at most.",
    },
    memory: {
        name: "peak memory", unit: "bytes", label: "peak memory",
        value: (c) => c.peak,
        note: "Lower is better. The most memory that the case used at a time: tensors, buffers, and " +
            "what the implementation or a library allocated itself.",
    },
};
if (!CASES.some((c) => c.percentiles)) delete CHARTS.latency;
if (SETTINGS.every((setting) => setting.alone === setting)) delete CHARTS.throughput;
const hasOwnX = (chart) => Boolean(chart.x || chart.points);
const hasMarksAlone = (chart) => chart.x && !chart.joins;
// The points of a case, each with its interval, which may be empty.
const pointsOf = (chart, c, axis) => (chart.points
    ? chart.points(c).map(([x, y, ...interval]) => ({c, x, y, interval}))
    : [{c, y: chart.value(c), x: chart.x ? chart.x(c) : c[axis],
        interval: chart.interval && c.lo !== null ? chart.interval(c) : []}]);
for (const chart of Object.values(CHARTS).filter(({ratio}) => ratio)) {
    chart.value = (c) => quotient(...chart.ratio(c));
    chart.interval = (c) => widest(...chart.ratio(c));
}
const boundOf = (chart, c) => (chart.bound && c.bound ? chart.bound(c) : null);

// Shapes of the marks 1 to 10, as in plots/style.gp; those from 7 on are open.
const CIRCLE = "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0", SQUARE = "M-3.6 -3.6h7.2v7.2h-7.2z",
      UP = "M0 -4.8L4.5 3.2H-4.5z", DIAMOND = "M0 -5L5 0L0 5L-5 0z", DOWN = "M0 4.8L4.5 -3.2H-4.5z",
      PENTAGON = "M0 -4.8L4.6 -1.5L2.8 3.9H-2.8L-4.6 -1.5z";
const MARKS = [CIRCLE, SQUARE, UP, DIAMOND, DOWN, PENTAGON, SQUARE, CIRCLE, UP, DIAMOND];
const DASHES = [null, "6 4", "2 3", "8 3 2 3"];
const markOf = (series) => path(series.mark > 6 ? "mark open" : "mark",
    MARKS[(series.mark - 1) % 10], {style: colorOf(series)});
const lineOf = (series, d) => path("line", d,
    {style: colorOf(series), "stroke-dasharray": DASHES[(series.dash - 1) % 4]});

// Panels: one per setting and set of the sizes that the chart holds constant. I counts as a size
// where it is not H.
function panelsOf(points, chart, axes) {
    const held = (c) => (hasMarksAlone(chart) ? []
        : SIZES.filter((size) => !axes.includes(size) && (size !== "I" || c.I !== c.H)));
    const setting = chart.setting || ((c) => c.setting);
    const key = ({c}) => setting(c).order +
        held(c).map((size) => "|" + size + String(c[size]).padStart(12, "0")).join("");
    return Array.from(Map.groupBy(points, key), ([name, own]) => ({
        key: name,
        order: setting(own[0].c).order,
        heading: chart.acrossPrecisions ? setting(own[0].c).heading.replace(", f32", "")
                                        : setting(own[0].c).heading,
        title: held(own[0].c).map((size) => size + " = " + own[0].c[size]).join(", "),
        points: own,
    })).sort((a, b) => a.order - b.order || (a.key < b.key ? -1 : 1));
}
function chartPanels(timed, chart, axis) {
    const points = timed.flatMap((c) => pointsOf(chart, c, axis))
        .filter((point) => point.y > 0 && point.x > 0);
    const panels = panelsOf(points, chart, hasOwnX(chart) ? [] : [axis]);
    for (const panel of panels) {
        panel.lines = Map.groupBy(panel.points, (point) => point.c.series);
        for (const line of panel.lines.values()) line.sort((a, b) => a.x - b.x);
    }
    // A panel whose lines all have one point says nothing, nor do precisions with nothing beside
    // f32.
    return panels.filter((panel) => chart.acrossPrecisions ? panel.points.some(({c}) => !isF32(c))
        : hasMarksAlone(chart) || Array.from(panel.lines.values()).some((line) => line.length > 1));
}
function bestAxis(timed, axes) {
    const counts = axes.filter((size) => size !== "I" || inputVaries)
        .map((size) => [size, new Set(timed.map((c) => c[size])).size]);
    return counts.reduce((a, b) => (b[1] > a[1] ? b : a))[0];
}

// A logarithmic scale from values to pixels.
function scaleOf(low, high, from, to) {
    const a = Math.log(low), b = Math.log(high) - a || 1;
    return (value) => from + (to - from) * (Math.log(value) - a) / b;
}
// Round numbers in the range; about `count` at most.
function roundTicks(low, high, count) {
    let ticks;
    for (const steps of [[1, 1.2, 1.5, 2, 3, 4, 5, 6, 8], [1, 2, 5], [1]]) {
        ticks = [];
        for (let e = Math.floor(Math.log10(low)); e <= Math.log10(high); e++)
            ticks.push(...steps.map((step) => step * 10 ** e));
        ticks = ticks.filter((tick) => tick >= low && tick <= high);
        if (ticks.length <= count) return ticks;
    }
    return ticks.filter((_, i) => i % Math.ceil(ticks.length / count) === 0);
}
const shortNumber = (value) =>
    (value < 1e-3 ? value.toExponential(0) : String(+value.toPrecision(3)));

function drawPoint(point, {X, Y, say}) {
    const {c} = point, y = Y(point.y), [lo, hi] = point.interval;
    const group = svg("g", {class: "point", role: "img", "data-case": c.index,
        transform: `translate(${X(point.x).toFixed(1)} ${y.toFixed(1)})`,
        "aria-label": `${c.series.name}, ${sizesOf(c)}: ${say(point.y)}`});
    if (lo > 0 && hi > 0 && Y(lo) - Y(hi) > 3) {
        const from = (Y(lo) - y).toFixed(1), to = (Y(hi) - y).toFixed(1);
        group.append(path("whisker", `M-3 ${from}h6M-3 ${to}h6M0 ${from}V${to}`,
            {style: colorOf(c.series)}));
    }
    group.append(svg("circle", {class: "hit", r: 9}), markOf(c.series));
    return group;
}
function drawAxes(image, {width, height, left, right, bottom, X, Y, xTicks, yTicks, xLabel, yLabel,
    xText, yText}) {
    for (const tick of yTicks)
        image.append(path("grid", `M${left} ${Y(tick).toFixed(1)}H${width - right}`),
            word(left - 6, Y(tick) + 4, "end", yText(tick)));
    image.append(path("axis", `M${left} ${height - bottom}H${width - right}`));
    let last = -Infinity;
    for (const tick of xTicks) {
        const x = X(tick), label = xText(tick);
        if (x - last < 7 * label.length + 8) continue;  // it would touch its neighbour
        last = x;
        image.append(path("axis", `M${x.toFixed(1)} ${height - bottom}v4`),
            word(x.toFixed(1), height - bottom + 16, "middle", label));
    }
    image.append(word((left + width - right) / 2, height - 2, "middle", xLabel),
        word(0, 10, "start", yLabel));
}
// A series' line, and its lower bounds.
function drawLine(image, series, line, {chart, X, Y}) {
    const at = (x, y) => `${X(x).toFixed(1)} ${Y(y).toFixed(1)}`;
    const bounds = line.map(({c, x}) => [x, boundOf(chart, c)]).filter((bound) => bound[1]);
    if (hasMarksAlone(chart))
        for (const [x, y] of bounds)
            image.append(path("unit", `M${at(x, y)}m-4 0h8m-4 -4v8`));
    else if (bounds.length > 1)
        image.append(path("bound", "M" + bounds.map(([x, y]) => at(x, y)).join("L")));
    if (!hasMarksAlone(chart) && line.length > 1)
        image.append(lineOf(series, "M" + line.map((point) => at(point.x, point.y)).join("L")));
}
function panelFigure(panel, image) {
    return h("figure", {class: "panel"}, h("figcaption", {}, panel.heading,
        panel.title && h("small", {}, " · " + panel.title)), image);
}
function drawPanel(panel, frame) {
    const {chart, width, height, left, right, Y} = frame;
    const image = svg("svg", {viewBox: `0 0 ${width} ${height}`, role: "group",
        "aria-label": `${panel.heading}, ${panel.title}`});
    drawAxes(image, frame);
    const reference = chart.reference && Y(chart.reference(panel.points)).toFixed(1);
    if (reference)
        image.append(path("unit", `M${left} ${reference}H${width - right}`,
            {"stroke-dasharray": "5 4"}));
    for (const [series, line] of panel.lines) drawLine(image, series, line, frame);
    for (const line of panel.lines.values())
        image.append(...line.map((point) => drawPoint(point, frame)));
    return panelFigure(panel, image);
}
function rangeOf(values, pad) {
    const known = values.filter((value) => value > 0 && isFinite(value));
    const low = least(known), high = most(known), room = Math.max(pad, (high / low) ** 0.06);
    return [low / room, high * room];
}
// What all panels share: the size in pixels, the scales, and the ticks and labels of both axes.
function frameOf(panels, chart, axis, width) {
    const points = panels.flatMap((panel) => panel.points), xs = points.map((point) => point.x);
    const ys = points.flatMap(({c, y, interval}) => [y, ...interval, boundOf(chart, c)]);
    const reference = chart.reference ? [chart.reference(points)] : [];
    const [yLow, yHigh] = rangeOf(ys.concat(reference), 1.15), [xLow, xHigh] = rangeOf(xs, 1.12);
    const marksAlone = hasMarksAlone(chart);
    const height = marksAlone ? Math.min(420, 0.62 * width + 60)
                              : Math.max(190, Math.min(260, 0.62 * width));
    const [unit, size] = chart.unit ? unitFor(chart.unit, Math.sqrt(yLow * yHigh)) : ["", 1];
    const yTicks = roundTicks(yLow / size, yHigh / size, 7).map((tick) => tick * size);
    const yText = (v) => shortNumber(v / size) + (chart.suffix || "");
    const left = Math.max(44, 8 + 7 * most(yTicks.map((tick) => yText(tick).length)));
    const right = 12, top = 20, bottom = 34;
    return {
        chart, width, height, left, right, bottom, yTicks, yText,
        X: scaleOf(xLow, xHigh, left, width - right),
        Y: scaleOf(yLow, yHigh, height - bottom, top),
        xTicks: marksAlone ? roundTicks(xLow, xHigh, 7) : distinct(xs),
        xText: chart.xText || (marksAlone ? shortNumber : String),
        xLabel: chart.xLabel || axisName(axis),
        yLabel: unit + (unit && " ") + chart.label,
        say: (y) => `${chart.unit ? withUnit(chart.unit, y) : digits(y)} ${chart.label}`,
    };
}
const axisName = (axis) => $("chart-axis").querySelector("[value=" + axis + "]").textContent;

// Heat maps: a panel per implementation, setting and set of the other sizes; H goes across.
function mapPanels(shown, axis) {
    const points = shown.filter((c) => c.series.name !== state.base).map((c) => ({c}));
    return panelsOf(points, CHARTS.map, ["H", axis]).flatMap((panel) =>
        Array.from(Map.groupBy(panel.points, (point) => point.c.series), ([series, own]) => ({
            heading: panel.heading,
            title: series.name + (panel.title && ", " + panel.title),
            cases: own.map((point) => point.c),
        }))).filter(({cases}) => new Set(cases.map((c) => c.H)).size > 1 &&
            new Set(cases.map((c) => c[axis])).size > 1 && cases.some((c) => c.speedup));
}
function mapCell(c) {
    if (!c) return ["–", "none"];
    if (!c.timed) return [(c.failed ? "× " : "") + c.verdict, c.failed ? "failed" : "none"];
    if (c.speedup === null) return ["no base", "none"];
    // As lb_rows_apart says: a case with one sample is never apart from another.
    const apart = c.lo !== null && c.base.lo !== null && (c.hi < c.base.lo || c.base.hi < c.lo);
    return [(apart ? "" : "=") + digits(c.speedup), c.speedup >= 1 ? "faster" : "slower"];
}
function drawMap(panel, axis) {
    const xs = distinct(panel.cases.map((c) => c.H));
    const ys = distinct(panel.cases.map((c) => c[axis]));
    const W = 56, H = 28, left = 52, top = 16, width = left + W * xs.length + 4;
    const image = svg("svg", {class: "map", role: "group", "aria-label": panel.title,
        viewBox: `0 0 ${width} ${top + H * ys.length + 38}`, style: `max-width:${width}px`});
    ys.reverse().forEach((y, row) => {
        image.append(word(left - 6, top + H * row + 19, "end", String(y)));
        xs.forEach((x, column) => {
            const c = panel.cases.find((one) => one.H === x && one[axis] === y);
            const [words, kind] = mapCell(c);
            const shade = c && c.speedup ? Math.min(1, Math.abs(Math.log2(c.speedup)) / 2) : 1;
            image.append(svg("g", {class: c && "point", "data-case": c && c.index, role: "img",
                "aria-label": `H = ${x}, ${axis} = ${y}: ${words}`,
                transform: `translate(${left + W * column} ${top + H * row})`},
                svg("rect", {class: "cell " + kind + " hit", width: W - 2, height: H - 2,
                    "fill-opacity": (0.1 + 0.9 * shade).toFixed(2)}),
                svg("text", {x: W / 2 - 1, y: 18, "text-anchor": "middle",
                    class: shade > 0.6 && kind !== "none" ? "strong" : null}, words)));
        });
    });
    image.append(...xs.map((x, column) =>
        word(left + W * column + W / 2, top + H * ys.length + 14, "middle", String(x))),
        word(left + W * xs.length / 2, top + H * ys.length + 32, "middle", axisName("H")),
        word(0, 10, "start", axis));
    return panelFigure(panel, image);
}

function drawLegend(panels) {
    const used = SERIES.filter((series) =>
        panels.some(({lines}) => lines && lines.has(series)));
    $("legend").replaceChildren(...used.map((series) => h("span", {},
        svg("svg", {width: 34, height: 12, viewBox: "-17 -6 34 12", "aria-hidden": "true"},
            lineOf(series, "M-16 0H16"), markOf(series)), series.name)));
}
let drawn = {shown: [], timed: []};
function drawChart(selection) {
    const {shown, timed} = selection, chart = CHARTS[state.chart], area = $("chart");
    const axes = chart.map ? ["B", "T"] : ["H", "B", "T", "I"];
    const axis = axes.includes(state.x) ? state.x : bestAxis(timed, axes);
    drawn = selection;
    $("chart-axis").value = axis;
    for (const option of $("chart-axis").options)
        option.hidden = !axes.includes(option.value) || (option.value === "I" && !inputVaries);
    $("axis-label").hidden = hasOwnX(chart);
    const panels = chart.map ? mapPanels(shown, axis) : chartPanels(timed, chart, axis);
    const few = allPanels ? panels : panels.slice(0, MOST_PANELS);
    const bounds = timed.some((c) => c.bound) ? " " + (chart.boundNote || "")
        : chart.boundNote ? " This run has no lower bounds." : "";
    $("chart-note").textContent = chart.note + bounds;
    drawLegend(few);
    if (!panels.length) {
        area.replaceChildren(h("p", {class: "empty"}, !timed.length ? "No shown case has a time."
            : timed.every((c) => c.speedup === null) && chart.value === CHARTS.map.value
            ? "The baseline has no time for the shown problems."
            : "Nothing to draw: this picture needs two points per line, or two cases to compare. " +
                "Choose another axis or picture, or show more cases."));
        return;
    }
    const wide = hasMarksAlone(chart) && few.length === 1, gap = 19, room = area.clientWidth || 900;
    area.classList.toggle("one", Boolean(wide));
    const columns = wide ? 1 : Math.max(1, Math.floor((room + gap) / (304 + gap)));
    const width = Math.round(wide ? Math.min(room, 1024) : (room - (columns - 1) * gap) / columns);
    const frame = chart.map || frameOf(few, chart, axis, width);
    area.replaceChildren(
        ...few.map((panel) => (chart.map ? drawMap(panel, axis) : drawPanel(panel, frame))));
    if (few.length < panels.length) {
        const more = h("button", {type: "button"}, `Draw all ${panels.length} panels`);
        more.addEventListener("click", () => {
            allPanels = true;
            drawChart(drawn);
        });
        area.append(note(`These are ${few.length} of ${panels.length} panels: choose sizes to ` +
            "see others. ", more));
    }
}

// Table: by problem, and the fastest first, unless the reader chose a column

const PART = 150;  // rows made at a time
const COLUMNS = [
    ["impl", "Implementation", (c) => c.series.name,
        (c) => h("td", {class: "wrap"}, nameOf(c.series))],
    ...SIZES.map((size) => [size, size + "#", (c) => c[size],
        (c) => h("td", {class: "n size", "data-label": size}, String(c[size]))]),
    ["dtype", "Precision", (c) => c.setting.dtype],
    ["pass", "Pass", (c) => c.setting.pass],
    CASES.some((c) => c.setting.others) && ["others", "Others", (c) => c.setting.others,
        (c) => h("td", {class: "wrap"}, c.setting.others)],
    ["median", "Median#", (c) => c.median, (c) => h("td", {class: "n median"}, ns(c.median),
        c.hasInterval > 0 &&
            h("small", {}, ` ±${(50 * (c.hi - c.lo) / c.median).toFixed(1)} %`))],
    ["step", "Per step#", (c) => c.median / c.T, (c) => numberCell("per step", ns(c.median / c.T))],
    ["speedup", "Speed-up#", (c) => c.speedup,
        (c) => h("td", {class: "n" + (c.rank && " best"), "data-label": "speed-up"},
            times(c.speedup),
            c.rank && h("small", {}, " " + c.rank))],
    ...(CASES.some((c) => c.percentiles) ? [1, 2] : []).map((i) => [
        "p" + PERCENTILES[i], `p${PERCENTILES[i]}#`, (c) => c.percentiles && c.percentiles[i][0],
        (c) => numberCell("p" + PERCENTILES[i], ns(c.percentiles && c.percentiles[i][0]))]),
    CASES.some((c) => c.update) && ["update", "Update#", (c) => c.update,
        (c) => numberCell("update", ns(c.update))],
    ["error", "Error#", (c) => c.error,
        (c) => numberCell("error", c.error === null ? "–" : c.error.toExponential(1))],
    ["samples", "Samples#", (c) => c.samples, (c) => h("td", {class: "n"}, stripOf(c))],
].filter(Boolean).map(([key, label, of, cell = (c) => h("td", {}, of(c))]) =>
    ({key, label, of, cell}));

// How many samples lie at which distance from the median, one bar per percent.
function stripOf(c) {
    const bars = Array.from(c.strip, (digit, i) =>
        (digit > 0 ? `M${2 * i + 1} 16v-${(1.6 * digit).toFixed(1)}` : "")).join("");
    return svg("svg", {class: "strip", viewBox: "0 0 82 16", role: "img",
        "aria-label": plural(c.samples, "sample")}, path("mid", "M41 0v16"), path(null, bars));
}
function sortCases(timed) {
    const column = COLUMNS.find((one) => one.key === state.sort.replace(/^-/, ""));
    if (!column) return timed;
    const sign = state.sort.startsWith("-") ? -1 : 1;
    return timed.map((c) => [column.of(c), c]).sort(([a, p], [b, q]) => {
        if (a === null || b === null) return (a === null) - (b === null) || p.index - q.index;
        return sign * ((a > b) - (a < b)) || p.index - q.index;
    }).map((pair) => pair[1]);
}

let table = {rows: [], made: 0, body: null, more: null};
function makeRows(count) {
    const end = Math.min(table.rows.length, table.made + count);
    const part = document.createDocumentFragment();
    for (; table.made < end; table.made++) {
        const c = table.rows[table.made], before = table.rows[table.made - 1];
        const place = state.sort || !before ? null : before.problem === c.problem ? "same" : "next";
        part.append(h("tr", {tabindex: "0", "data-case": c.index, class: place,
            "aria-expanded": "false"}, COLUMNS.map((column) => column.cell(c))));
    }
    table.body.append(part);
    const left = table.rows.length - table.made;
    table.more.hidden = left === 0;
    table.more.textContent = "Show the other " + plural(left, "case");
}
function headCell({key, label}) {
    const up = state.sort === key, down = state.sort === "-" + key;
    const button = h("button", {type: "button"}, label.replace("#", ""));
    button.addEventListener("click", () => {
        change({sort: up ? "-" + key : down ? "" : key});
        document.querySelector(`#cases th[data-key="${key}"] button`).focus();
    });
    return h("th", {scope: "col", class: label.endsWith("#") && "n", "data-key": key,
        "aria-sort": up ? "ascending" : down ? "descending" : null}, button);
}
function drawTable({timed}) {
    const body = h("tbody", {}), more = h("button", {type: "button", id: "more"});
    more.addEventListener("click", () => makeRows(Infinity));
    table = {rows: sortCases(timed), made: 0, body, more};
    const list = h("table", {id: "cases", class: !state.sort && "grouped"},
        h("thead", {}, h("tr", {}, COLUMNS.map(headCell))), body);
    if (timed.length) $("table").replaceChildren(list, more);
    else $("table").replaceChildren(h("p", {class: "empty"}, "No shown case has a time."));
    makeRows(PART);
    const place = state.open ? table.rows.findIndex((c) => c.place === state.open) : -1;
    if (place >= table.made) makeRows(place - table.made + 1);
    if (place >= 0)
        openRow(body.querySelector(`tr[data-case='${table.rows[place].index}']`), true);
}
function openRow(row, open) {
    const next = row.nextElementSibling, isOpen = next && next.classList.contains("details");
    for (const details of table.body.querySelectorAll("tr.details")) {
        details.previousElementSibling.setAttribute("aria-expanded", "false");
        details.remove();
    }
    if (isOpen && !open) return false;
    row.setAttribute("aria-expanded", "true");
    row.after(h("tr", {class: "details"},
        h("td", {colspan: COLUMNS.length}, detailsOf(CASES[row.dataset.case], true))));
    return true;
}
function toggleRow(row) {
    state.open = openRow(row, false) ? CASES[row.dataset.case].place : "";
    hideCard();
    saveState();
}

// The card about a point or a row; and all details of a case

function detailsOf(c, all) {
    const list = h("dl", {});
    const fact = (name, ...value) => {
        if (value.every((one) => one && one !== "–"))
            list.append(h("dt", {}, name), h("dd", {}, value));
    };
    const percent = (share) => (100 * share).toPrecision(2) + " %";
    const range = (lo, hi) => `${ns(lo)} to ${ns(hi)}`;
    if (!c.timed) fact(c.verdict, c.reason);
    if (c.timed) {
        fact("median", `${ns(c.median)}, ${ns(c.median / c.T)} per step`);
        if (c.lo !== null)
            fact(c.hasInterval ? "95 % interval" : "range of samples", range(c.lo, c.hi));
        if (c.speedup !== null)
            fact("speed-up", `${times(c.speedup)} over ${state.base}${c.rank && ", " + c.rank}`);
        fact("samples", c.samples + (c.blocks > 1 ? ` in ${c.blocks} blocks` : "") +
            (c.calls > 1 ? `, ${digits(c.calls)} calls each ` : " "), stripOf(c));
        for (const [i, [value, lo, hi]] of (c.percentiles || []).entries())
            fact("p" + PERCENTILES[i],
                value ? `${ns(value)}, 95 % interval ${range(lo, hi)}` : "too few calls");
        if (c.percentiles) {
            fact("longest call", ns(c.longest));
            fact("throughput", `${digits(c.perSecond)} calls per second`);
            if (c.late !== null) fact("too late", `${percent(c.late)} of the calls`);
        }
        fact("error", c.error !== null && c.error.toExponential(2) +
            " (norm of the difference to the oracle, relative)" + (c.toleranceUsed === null ? ""
            : `, at most ${percent(c.toleranceUsed)} of what is allowed`));
    }
    fact("ran", c.description);
    fact("kernels", c.kernels);
    if (c.bound)
        fact("lower bound", `${ns(c.bound)}, the median is ${times(c.median / c.bound)} as long`);
    if (c.flops) fact("rate", `${digits(c.flops / c.median)} GFLOP/s`);
    fact("warning", c.warning);
    if (!all) return list;
    fact("stopped by", c.stop);
    fact("fastest sample", ns(c.min));
    fact("5 % to 95 %", range(c.p5, c.p95));
    fact("peak memory", withUnit("bytes", c.peak));
    fact("preparation", ns(c.prepare));
    if (c.update)
        fact("update of the weights", `${ns(c.update)} per step of an optimizer, beyond the call`);
    fact("case", h("code", {}, idOf(c)));
    if (data.run.repeat !== null)
        fact("repeat with", h("code", {class: "repeat"},
            "bench-lstm --sweep --case " + idOf(c) + data.run.repeat));
    return list;
}
function showCard(node) {
    const c = CASES[node.dataset.case], card = $("card"), box = node.getBoundingClientRect();
    card.replaceChildren(h("p", {}, nameOf(c.series)),
        h("p", {class: "where"}, c.setting.heading + " · " + sizesOf(c)), detailsOf(c, false));
    card.hidden = false;
    const isRow = node.tagName === "TR", width = card.offsetWidth, height = card.offsetHeight;
    const left = isRow ? box.right - width - 8 : box.left + box.width / 2 + 14;
    const flip = !isRow && left + width > innerWidth - 8;
    const top = box.bottom + 6 + height > innerHeight - 8 ? box.top - height - 6 : box.bottom + 6;
    card.style.left =
        Math.max(8, Math.min(flip ? box.left - width - 14 : left, innerWidth - width - 8)) + "px";
    card.style.top = Math.max(8, top) + "px";
}
function hideCard() { $("card").hidden = true; }
function watchCard(area) {
    area.addEventListener("pointerover", (event) => {
        const node = event.target.closest(".point[data-case], #cases tr[data-case]");
        if (node && node.getAttribute("aria-expanded") !== "true") showCard(node);
        else hideCard();
    });
    area.addEventListener("pointerleave", hideCard);
}

// What did not run: one line per verdict and reason, failures first, then the most cases

function reasonRow(cases) {
    const EXAMPLES = 60, left = cases.length - EXAMPLES, {verdict, failed, reason} = cases[0];
    const named = h("details", {}, h("summary", {}, "Which cases"));
    named.addEventListener("toggle", () => {
        if (named.children.length > 1) return;  // made already
        const ids = cases.slice(0, EXAMPLES).map((c) => h("div", {}, h("code", {}, idOf(c))));
        named.append(h("div", {class: "examples"}, ids, left > 0 && "and " + left + " more"));
    });
    return h("tr", {class: failed ? "bad" : "none"},
        h("td", {}, h("span", {class: "verdict"}, verdict)),
        h("td", {class: "n"}, String(cases.length)),
        h("td", {}, reason || "no reason was recorded", named),
        h("td", {}, Array.from(new Set(cases.map((c) => c.series.name))).join(", ")));
}
function drawReasons({shown}) {
    const MOST = 100, untimed = shown.filter((c) => !c.timed);
    const list = Array.from(Map.groupBy(untimed, (c) => c.verdict + "\n" + c.reason).values())
        .sort((a, b) => b[0].failed - a[0].failed || b.length - a.length);
    const all = shown.length === CASES.length, missing = data.run.planned - CASES.length;
    const said = untimed.length
        ? pluralHas(untimed.length, all ? "case" : "shown case") + " no time that counts: it did " +
            "not run, failed, or its time is in doubt. Failures come first."
        : !CASES.length ? "This run has no cases."
        : all && missing <= 0 ? "Every case ran and agreed with the oracle."
        : "All shown cases have a time.";
    $("reasons").replaceChildren(h("p", {}, said), missing > 0 ? h("p", {}, `${missing} of the ` +
        `${data.run.planned} planned cases have no row: the run ended before them.`) : "");
    if (untimed.length)
        $("reasons").append(h("table", {class: "reasons"},
            tableHead(["Verdict", "Cases#", "Why", "Implementations"]),
            h("tbody", {}, list.slice(0, MOST).map(reasonRow))));
    if (list.length > MOST)
        $("reasons").append(
            note(plural(list.length - MOST, "more reason") + " are left out: use the filters."));
}

// Regions in which one implementation serves best: the leaves of a small decision tree over the
// problems of a setting. A leaf chooses one series. It costs the sum of log(time of the choice /
// best time) over its problems: nothing where the choice ties with the fastest, and log 4 where it
// has no time. A split must save at least 2 % per problem and a third of the cost.

function costOf(problem, series) {
    const TIE = 1e-6;  // decides between tied series by their medians
    const own = timedOf(problem, series), best = problem.timed[0];
    if (!own) return Math.log(4);
    return own === best ? 0 : own.rank === "tied" ? TIE : Math.log(own.median / best.median);
}
function bestChoice(problems) {
    const sums = SERIES.map((series) => problems.reduce((sum, p) => sum + costOf(p, series), 0));
    const cost = least(sums);
    return {cost, series: SERIES[sums.indexOf(cost)]};
}
// The best split between two values of a size that occur; null: none leaves two problems on both
// sides.
function bestSplit(problems) {
    let best = null;
    for (const size of ["H", "B", "T", "I"])
        for (const at of distinct(problems.map((p) => p[size])).slice(0, -1)) {
            const below = problems.filter((p) => p[size] <= at);
            const above = problems.filter((p) => p[size] > at);
            const cost = bestChoice(below).cost + bestChoice(above).cost;
            if (below.length > 1 && above.length > 1 && (!best || cost < best.cost - 1e-9))
                best = {size, cost, below, above};
        }
    return best;
}
// cuts has the keys "H below" and "H above" for a region that was cut from the others at a size H.
function regionsOf(problems, cuts = {}, depth = 0) {
    const {series, cost} = bestChoice(problems), split = depth < 2 ? bestSplit(problems) : null;
    const saved = split ? cost - split.cost : 0;
    if (!split || saved < 0.02 * problems.length || saved < cost / 3)
        return [{series, problems, cuts}];
    return ["below", "above"].flatMap((side) =>
        regionsOf(split[side], {...cuts, [split.size + " " + side]: true}, depth + 1));
}

// Headline: which implementation is fastest where, in sentences

const strong = (words) => h("strong", {}, words);
// "1.08 to 1.94 times as fast as onednn (median 1.25)"
function spreadWords(ratios, other) {
    const low = digits(least(ratios)), high = digits(most(ratios)), middle = digits(median(ratios));
    if (ratios.length === 1 || low === high) return [strong(middle), ` times as fast as ${other}`];
    return [strong(`${low} to ${high}`), ` times as fast as ${other} (median ${middle})`];
}
// "for B ≤ 8 and H ≥ 256": the sizes that occur on this side of each cut.
function cutWords(problems, cuts) {
    const words = SIZES.map((size) => {
        const values = problems.map((p) => p[size]), low = least(values), high = most(values);
        const above = cuts[size + " above"], below = cuts[size + " below"];
        if (!above && !below) return null;
        if (low === high) return `${size} = ${low}`;
        return size + (above && below ? ` ${low} to ${high}` : above ? ` ≥ ${low}` : ` ≤ ${high}`);
    }).filter(Boolean);
    return words.length ? " for " + words.join(" and ") : "";
}
// Problems of a region that another implementation wins or the chosen one has no time for.
function exceptionWords(problems, series) {
    const MOST = 3;
    const list = problems.filter((p) => {
        const own = timedOf(p, series);
        return !own || (own !== p.timed[0] && own.rank !== "tied");
    });
    const words = list.slice(0, MOST).map((p) => {
        const own = p.cases.find((c) => c.series === series), best = p.timed[0];
        return `T${p.T} B${p.B} H${p.H} (${best.series.name}` + (own && own.timed
            ? ` is ${digits(own.median / best.median)} times as fast)`
            : `; ${series.name}${own ? " is " + own.verdict : " has no row"})`);
    });
    const more = list.length > MOST ? ` and ${list.length - MOST} more` : "";
    return list.length ? ` Exceptions: ${words.join(", ")}${more}.` : "";
}
function regionItem({series, problems, cuts}) {
    const item = h("li", {}, dotOf(series), strong(series.name), cutWords(problems, cuts));
    const own = problems.map((p) => timedOf(p, series)).filter(Boolean);
    const others = (c) => c.problem.timed.find((other) => other.series !== series);
    const compared = own.filter(others), alone = own.length - compared.length;
    const wins = compared.filter((c) => c === c.problem.timed[0] || c.rank === "tied");
    const tied = wins.filter((c) => c.rank === "tied").length;
    const unsure = wins.filter((c) => !c.rank).length;
    const base = SERIES[data.baseline] === series ? null : SERIES[data.baseline];
    const based = base ? own.filter((c) => timedOf(c.problem, base)) : [];
    if (!compared.length && alone === problems.length)
        return add(item, {}, [`: it is the only one with a time in ${plural(alone, "problem")}.`]);
    const overBase = based.map((c) => timedOf(c.problem, base).median / c.median);
    const overNext = compared.map((c) => others(c).median / c.median);
    return add(item, {}, [
        `: fastest in ${wins.length} of ${plural(problems.length - alone, "problem")}`,
        based.length > 0 && [", ", spreadWords(overBase, data.baseline_name)],
        based.length > 0 && based.length < own.length &&
            ` in the ${plural(based.length, "problem")} where both have a time`,
        compared.some((c) => !based.length || others(c).series !== base) &&
            [based.length ? " and " : ", ", spreadWords(overNext, "the next best")],
        ".",
        tied > 0 && ` In ${tied} of them it is tied with another: their intervals overlap.`,
        unsure > 0 && ` In ${unsure} of them that is not certain: there are too few samples or ` +
            "processes for an interval.",
        alone > 0 && ` It is the only one with a time in ${alone} more.`,
        exceptionWords(problems, series)]);
}
function leadSentence() {
    const timed = PROBLEMS.filter((p) => p.timed.length);
    const compared = timed.filter((p) => p.timed.length > 1);
    if (!timed.length) return "No case of this run has a time, so there is nothing to compare.";
    if (!compared.length)
        return "No problem of this run has times of two implementations, so there is nothing " +
            "to compare.";
    const [leader, wins] = Array.from(Map.groupBy(compared, (p) => p.timed[0].series))
        .reduce((a, b) => (b[1].length > a[1].length ? b : a));
    const where = compared.length === 1 ? "the only problem"
        : wins.length === compared.length ? `all ${compared.length} problems`
        : `${wins.length} of the ${compared.length} problems`;
    return `${leader.name} has the smallest median time in ${where} for which at least two ` +
        "implementations have a time.";
}
function drawHeadline() {
    const settings = Array.from(Map.groupBy(PROBLEMS, (p) => p.setting), ([setting, problems]) =>
        ({setting, problems, timed: problems.filter((p) => p.timed.length)}));
    const compares = ({problems}) => problems.some((p) => p.timed.length > 1);
    settings.sort((a, b) => compares(b) - compares(a));  // settings with a choice come first
    $("headline").replaceChildren(h("p", {class: "lead"}, leadSentence()),
        data.prices.length ? h("p", {}, "What other cells cost, and other precisions gain:") : "",
        h("ul", {class: "cells"}, data.prices.map((price) => h("li", {}, price))),
        h("div", {class: "settings"}, settings.map(({setting, problems, timed}) => {
            const untimed = problems.length - timed.length;
            return h("div", {class: "setting"}, h("h3", {}, setting.heading),
                h("ul", {class: "regions"}, timed.length > 0 && regionsOf(timed).map(regionItem),
                    untimed > 0 && h("li", {}, pluralHas(untimed, "problem") + " no time: see ",
                        h("a", {href: "#not-run"}, "what has no time"), ".")));
        })));
}

// Header, what changed since earlier runs, and the machine

function drawHeader() {
    const {run} = data, counts = Map.groupBy(CASES, (c) => c.verdict), warnings = [];
    const shown = data.verdicts.filter(([verdict]) => counts.has(verdict));
    if (!run.finished || run.interrupted)
        warnings.push("This run is incomplete: it was stopped or cut off. The page shows the " +
            "rows that it has.");
    if (run.doubt)
        warnings.push(`The run's file is not sound: ${run.doubt}. No comparison rests on it.`);
    if (!CASES.length) warnings.push("This run has no rows.");
    else if (data.baseline < 0)
        warnings.push(data.baseline_name ? `The baseline ${data.baseline_name} is not in this ` +
            "run, so there are no speed-ups over it."
            : "No case has a time, so there is no baseline.");
    const count = (number, words, kind) =>
        h("span", {class: kind}, strong(String(number)), " " + words);
    $("header").replaceChildren(
        h("p", {class: "machine"},
            `${run.machine}. Run of ${run.started.slice(0, 10) || "an unknown day"}.`),
        h("p", {class: "counts"}, count(CASES.length, CASES.length === 1 ? "case" : "cases"), " ",
            count(PROBLEMS.length, PROBLEMS.length === 1 ? "problem" : "problems"),
            shown.map(([verdict, failure]) =>
                [" ", count(counts.get(verdict).length, verdict,
                    verdict === "ok" ? "ok" : failure ? "bad" : "none")])),
        ...warnings.map((words) => h("p", {class: "warning"}, words)));
}
const CHANGES = {broken: "✗", slower: "▼", inconclusive: "?", faster: "▲", same: "=", gone: "○",
    mended: "✓", new: "+", "still failing": "✗", "not run": "–"};
const isRegression = (c) => ["broken", "slower"].includes(c.change);
function changeRow(c) {
    const kind = isRegression(c) ? "bad" : ["faster", "mended"].includes(c.change) ? "ok" : "none";
    const percent = (value) => (value < 1 ? "−" : "+") + Math.abs(100 * (value - 1)).toFixed(1);
    return h("tr", {class: kind},
        h("td", {}, h("span", {class: "verdict"}, `${CHANGES[c.change] || ""} ${c.change}`)),
        h("td", {class: "n"}, c.ratio === null ? "–" : percent(c.ratio) + " % ",
            c.ratio_lo !== null &&
                h("small", {}, `(${percent(c.ratio_lo)} to ${percent(c.ratio_hi)})`)),
        h("td", {class: "n"}, ns(c.base_median_ns)), h("td", {class: "n"}, ns(c.new_median_ns)),
        h("td", {}, h("code", {}, c.case), c.note && [" ", h("small", {}, c.note)]));
}
function drawChanges() {
    const MOST = 200;
    $("changes-link").hidden = !data.comparisons.length;
    $("changes").replaceChildren(...data.comparisons.map((one) => {
        const bad = one.cases.filter(isRegression);
        const others = one.cases.filter((c) => !isRegression(c));
        const left = others.length - MOST, margin = digits(100 * one.margin);
        return h("section", {class: "compare"}, h("h2", {}, "Against " + one.base),
            h("p", {class: "lead"}, one.verdict),
            one.notes && h("p", {class: "warning"}, one.notes), one.basis && note(one.basis),
            h("table", {class: "reasons"}, tableHead(["Verdict", "Change of time, 95 % interval#",
                "Before#", "Now#", "Case"]),
                h("tbody", {}, bad.concat(others.slice(0, MOST)).map(changeRow))),
            left > 0 && note(plural(left, "more case") + (left === 1 ? ", no regression, is"
                : ", none of them a regression, are"), " left out: ", h("code", {}, "--compare"),
                " lists them."),
            note(`Above 0 % is slower. Slower and faster mean by more than ${margin} %, ` +
                `significant at ${digits(100 * one.level)} % over all cases together; same means ` +
                `within ${margin} %.`));
    }));
}
// Words for keys of the record; other keys are shown as they are.
const KEYS = {
    cpu: "CPU", cores: "CPUs", threads: "CPUs online", physical_cores: "cores that the run may use",
    threads_per_core: "hardware threads per core", l3_domains: "third-level caches",
    l3_bytes: "size of each", numa_nodes: "NUMA nodes", from_system: "known from the system",
    simd: "vector units", governor: "frequency governor", cache_bytes: "largest cache",
    memory_bytes: "memory", version: "bench-lstm", dirty: "uncommitted changes",
    flags: "compiler flags", build_type: "build", max_ns: "sampling time per case, at most",
    min_samples: "samples per case, at least", max_samples: "samples per case, at most",
    precision: "target width of the interval",
};
function factValue(key, value) {
    if (value === null || value === undefined) return h("em", {}, "unknown");
    if (typeof value === "boolean") return value ? "yes" : "no";
    if (typeof value !== "number") return String(value);
    if (key.endsWith("_bytes")) return withUnit("bytes", value);
    if (key.endsWith("_ns")) return value / 1e9 + " s";
    return key === "precision" ? 100 * value + " % of the median" : String(value);
}
// An object's keys as lines of a table, and those of objects inside it. Arrays are left out.
function factRows(object) {
    return Object.entries(object || {}).flatMap(([key, value]) => {
        if (Array.isArray(value)) return [];
        if (value && typeof value === "object") return factRows(value);
        return [h("tr", {}, h("th", {scope: "row"}, KEYS[key] || key),
            h("td", {}, factValue(key, value)))];
    });
}
function drawMachine() {
    const MOST = 20, {run} = data, count = run.machines.length;
    const rows = plural(CASES.length, "row");
    const ending = run.finished && !run.interrupted ? `complete, ${rows}`
        : `incomplete: ${run.interrupted ? "stopped" : "cut off"} after ${rows}`;
    const facts = (caption, object) =>
        h("table", {class: "facts"}, h("caption", {}, caption), h("tbody", {}, factRows(object)));
    const own = {
        records: run.path, started: run.started || null,
        state: ending +
            (run.planned > CASES.length
                ? ` of ${run.planned} planned; --resume continues it` : "") +
            (run.sessions > 1 ? `; in ${run.sessions} sessions` : ""),
        command: run.command ? run.command.join(" ") : null, seed: run.seed, sampler: run.sampler,
        "baseline of speed-ups": (data.baseline_name || "none") +
            (data.baseline_name && data.baseline < 0 ? ", which is not in this run" : ""),
    };
    $("machines").replaceChildren(
        ...run.machines.slice(0, MOST).map(([node, environment], i) =>
            facts(node ? `Machine ${i + 1} of ${count}: ${node}` : "Machine", environment)),
        facts("The run", own), count > MOST ? h("p", {},
            `The other ${count - MOST} machines are in the header of the record.`) : "");
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

drawHeader();
drawHeadline();
drawChanges();
drawMachine();
drawReasons({shown: CASES});
$("app").hidden = !CASES.length;
if (!CASES.length) $("app").before(note("This run has no cases."));
else start();

function start() {
    makeFilters();
    state = stateFromLink(location.hash);
    draw();
    watchCard($("chart"));
    watchCard($("table"));
    $("table").addEventListener("click", (event) => {
        const row = event.target.closest("tbody tr[data-case]");
        if (row && !String(getSelection())) toggleRow(row);
    });
    $("table").addEventListener("keydown", (event) => {
        if (!event.target.matches("tr[data-case]") || !["Enter", " "].includes(event.key)) return;
        event.preventDefault();
        toggleRow(event.target);
    });
    addEventListener("keydown", (event) => {
        if (event.key === "Escape") hideCard();
    });
    addEventListener("scroll", hideCard, {passive: true});
    addEventListener("hashchange", () => {
        if (location.hash && !location.hash.includes("=")) return;  // a link to a section
        state = stateFromLink(location.hash);
        draw();
    });
    // Links to sections leave the state in the address.
    document.addEventListener("click", (event) => {
        const link = event.target.closest("a[href^='#']");
        const to = link && $(link.getAttribute("href").slice(1));
        if (!to || !stateToLink() || event.ctrlKey || event.metaKey || event.shiftKey) return;
        event.preventDefault();
        to.scrollIntoView();
    });
    addEventListener("beforeprint", () => makeRows(Infinity));
    let width = innerWidth;
    addEventListener("resize", () => {
        if (innerWidth === width) return;
        width = innerWidth;
        drawChart(drawn);
    });
}
})();
