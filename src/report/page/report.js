/* Draws the page. The data is JSON in two elements; its words reach the page as text only, never
 * as HTML. */
"use strict";
(() => {
  const report = JSON.parse(document.getElementById("report").textContent);
  const views = JSON.parse(document.getElementById("views").textContent);
  const page = document.getElementById("page");
  const trials = report.trials;
  const byId = new Map(trials.map(t => [t.trial, t]));
  const bestId = report.best ? report.best.trial : 0;
  const large = report.goal === "maximize";
  const charts = []; /* {place, height, option}: drawn anew for another width, or on paper */
  let printing = false;

  /* ---- words and elements ---- */

  function add(parent, tag, text, name) {
    const e = document.createElement(tag);
    if (text !== undefined)
      e.textContent = text;
    if (name)
      e.className = name;
    parent.appendChild(e);
    return e;
  }

  function number(x) {
    if (x === null || x === undefined || x === "" || !isFinite(x))
      return "-";
    const size = Math.abs(x);
    if (x !== 0 && (size >= 1e6 || size < 1e-3))
      return Number(x).toExponential(2).replace(/\.?0+e/, "e");
    return String(Number(Number(x).toPrecision(size >= 1000 ? 6 : 4)));
  }

  const known = x => x !== null && x !== undefined;
  const value = x => number(x) + (views.unit && known(x) ? " " + views.unit : "");

  function duration(s) {
    if (s === null || s === undefined)
      return "-";
    if (s < 60)
      return number(Number(s.toPrecision(3))) + " s";
    const h = Math.floor(s / 3600), m = Math.floor(s % 3600 / 60), r = Math.floor(s % 60);
    const two = x => String(x).padStart(2, "0");
    return h ? h + ":" + two(m) + ":" + two(r) : m + ":" + two(r);
  }

  const words = config =>
    Object.entries(config).filter(([, v]) => v !== null).map(([k, v]) => k + "=" + v).join(" ") ||
      "as submitted";

  const count = (n, noun) => n + " " + noun + (n === 1 ? "" : "s");

  function section(id, title, how) {
    const s = add(page, "section");
    s.id = id;
    add(s, "h2", title);
    if (how)
      add(s, "p", how, "how");
    return s;
  }

  /* ---- plots ---- */

  const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  /* told apart by people who see few colours (Okabe and Ito 2008), and by their shapes by all */
  const hues = () => css("--hues").split(/\s+/);
  const shapes = ["circle", "triangle", "diamond", "rect", "pin", "arrow"];
  const cross = "path://M2,0 L5,3 L8,0 L10,2 L7,5 L10,8 L8,10 L5,7 L2,10 L0,8 L3,5 L0,2 Z";

  function plot(parent, label, height, option) {
    const place = add(parent, "div", undefined, "plot");
    place.setAttribute("role", "img");
    place.setAttribute("aria-label", label);
    const chart = {place, height, option};
    charts.push(chart);
    return chart;
  }

  function draw(c) {
    const old = echarts.getInstanceByDom(c.place);
    if (old)
      old.dispose();
    c.place.style.height = c.height + "px";
    const width = c.place.clientWidth || 600;
    const e = echarts.init(c.place, null, {renderer: "svg", width, height: c.height});
    e.setOption(Object.assign({
      animation: false,
      color: hues(),
      textStyle: {color: css("--ink"), fontFamily: "system-ui, sans-serif"},
    }, c.option(width)));
  }

  const drawAll = () => charts.forEach(draw);

  const axis = (name, more) => Object.assign({
    name, nameLocation: "middle", nameGap: 28,
    nameTextStyle: {color: css("--soft")},
    axisLabel: {color: css("--soft"), hideOverlap: true},
    axisLine: {show: true, lineStyle: {color: css("--soft")}},
    splitLine: {lineStyle: {color: css("--rule"), opacity: .6}},
  }, more);

  const yAxis = (name, more) => axis(name, Object.assign({
    nameLocation: "end", nameGap: 10, nameTextStyle: {color: css("--soft"), align: "left"}}, more));

  /* An axis of values that may be words, with so much room for each. */
  const choices = (values, room) => ({type: "category", data: values.map(number_or_word),
    axisLabel: {color: css("--soft"), hideOverlap: true, width: room, overflow: "truncate"}});

  const legend = more => Object.assign({top: 0, left: 0, type: "scroll", itemGap: 14,
    textStyle: {color: css("--ink")},
                                        inactiveColor: css("--rule")}, more);

  const grid = more => Object.assign({left: 8, right: 18, top: 56, bottom: 34, containLabel: true},
    more);

  /* Whether an axis of these values should be logarithmic. */
  function wide(values) {
    const v = values.filter(x => x !== null && x !== undefined && isFinite(x));
    return v.length > 1 && Math.min(...v) > 0 && Math.max(...v) / Math.min(...v) > 30;
  }

  /* On a logarithmic axis no decade is shown for a single value in it. */
  const scale = values => wide(values)
    ? {type: "log", min: x => Number((.8 * x.min).toPrecision(2)),
      max: x => Number((1.25 * x.max).toPrecision(2)),
       axisLabel: {color: css("--soft"), hideOverlap: true, formatter: number}}
    : {type: "value", scale: true};

  /* Ticks that people who read a clock expect. */
  function clock(longest) {
    const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600,
      43200, 86400];
    return steps.find(s => longest / s <= 8) || 86400 * Math.ceil(longest / 86400 / 8);
  }

  const timeAxis = (name, longest) => axis(name, {type: "value", min: 0, max: longest,
    interval: clock(longest),
    axisLabel: {color: css("--soft"), hideOverlap: true, showMaxLabel: false,
      formatter: duration}});

  const told = t => "trial " + t.trial + ": " +
    (t.value === null ? t.cause || t.status : value(t.value)) + "\n" +
                    words(t.config).replace(/(.{50,}?) /g, "$1\n");

  /* ---- the head ---- */

  function fact(parent, name, text, more) {
    const f = add(parent, "div", undefined, "fact");
    add(f, "span", name);
    add(f, "b", text);
    if (more)
      add(f, "span", more);
  }

  function head() {
    const job = views.job_name;
    add(page, "h1", "Study " + report.study + (known(job) ? " of " + job : ""));
    add(page, "p", (report.complete ? "Ended: " : "Not over: ") +
      (report.stop_reason || "it goes on") + ". Objective: " + report.objective + " (" +
      report.goal + ")." + (report.best && known(job) ?
        " The script best.sh in the study's folder submits the job in the configuration to run " +
        "from now on." : ""), "how");
    const facts = add(page, "div", undefined, "facts");
    if (report.best)
      fact(facts, "the best, trial " + bestId, value(report.best.mean), words(report.best.config) +
           (report.best.measurements > 1 ? "; mean of " + report.best.measurements + " runs" : ""));
    else
      fact(facts, "the best", "none yet");
    fact(facts, "against the job as submitted", report.gain === null ? "unknown" :
      number(report.gain) + " x",
         report.submitted ? value(report.submitted.mean) + " with " +
           words(report.submitted.config) : "");
    fact(facts, "what the search cost", count(report.cost.trials, "trial"),
         duration(report.cost.elapsed_s) + " in all, " + duration(report.cost.run_s) +
           " running, " +
         duration(report.cost.queue_s) + " in the queue");
    fact(facts, "node-hours", number(report.cost.node_hours), number(report.cost.billed_s) +
      " billed seconds");
  }

  /* ---- the best so far ---- */

  const kinds = [ /* status, how it is called, shape */
    ["ok", "measured", "circle"], ["censored", "at least so", "triangle"],
      ["pruned", "stopped early", "diamond"],
    ["poor", "without the quality", "rect"], ["failed", "failed", cross]];

  function course() {
    if (!views.course.length)
      return;
    const s = section("course", "The best so far",
      "Each mark is a trial, in the order in which they ended; the line is the best " +
        "configuration by then, by the mean of " +
      "its runs." + (trials.some(t => t.status === "failed") ?
        " Crosses, at the worst value, are trials that failed." : ""));
    const rows = views.course.map((c, i) => ({c, i: i + 1, t: byId.get(c.trial)}));
    const values = rows.map(r => r.t.value);
    const given = values.filter(x => x !== null);
    const worst = large ? Math.min(...given) : Math.max(...given);
    const marks = kinds.map(([status, name, symbol]) => ({
      name, type: "scatter", symbol, symbolSize: 10, z: 3,
      itemStyle: {color: status === "ok" ? "transparent" : css("--ink"), borderColor: css("--ink"),
        borderWidth: 1.4},
      data: rows.filter(r => r.t.status === status).map(r => ({
        value: [r.i, r.t.value === null ? (given.length ? worst : 0) : r.t.value],
          t: r.t}))})).filter(m => m.data.length);
    plot(s, "values of the trials and the best so far", 340, () => ({
      legend: legend(), grid: grid(),
      xAxis: axis("trials that ended", {type: "value", minInterval: 1, min: 1,
        max: Math.max(rows.length, 2)}),
      yAxis: yAxis(report.objective + (views.unit ? " (" + views.unit + ")" : ""), scale(values)),
      tooltip: {...tip(), formatter: p =>
        p.data.t ? told(p.data.t) : "the best: " + value(p.value[1])},
      series: [{name: "the best so far", type: "line", step: "end", symbol: "none",
        lineStyle: {width: 2.5},
                data: rows.filter(r => r.c.mean !== null).map(r => [r.i, r.c.mean])}, ...marks]}));
  }

  const tip = () => ({renderMode: "richText", confine: true, backgroundColor: css("--fill"),
    borderColor: css("--rule"),
                      textStyle: {color: css("--ink")}});

  /* ---- importance ---- */

  function importance(model, parent) {
    const rows = model.importance.slice().sort((a, b) => a.share - b.share);
    plot(parent, "importance of each parameter for " + model.of, 26 * rows.length + 50, width => ({
      grid: grid({top: 6, right: 60}),
      xAxis: axis("share of what " + model.of + " varies by", {type: "value", min: 0,
        splitNumber: width < 500 ? 2 : 5,
        axisLabel: {color: css("--soft"), formatter: x => Math.round(100 * x) + " %"}}),
      yAxis: axis("", choices(rows.map(r => r.param), Math.min(200, .35 * width))),
      tooltip: {...tip(), formatter: p => p.name + ": " + number(100 * p.value) + " %"},
      series: [{type: "bar", barMaxWidth: 16, data: rows.map(r => r.share),
                label: {show: true, position: "right", color: css("--ink"),
                        formatter: p => Math.round(100 * p.value) + " %"}}]}));
  }

  /* ---- what the model believes ---- */

  function nearest(list, x) {
    const at = list.findIndex(v => String(v) === String(x));
    if (at >= 0 || typeof x !== "number")
      return at;
    return list.reduce((best, v, i) => Math.abs(v - x) < Math.abs(list[best] - x) ? i : best, 0);
  }

  /* Lets choose one of the texts; its value is the number of that. */
  function select(parent, name, texts, at) {
    const choice = add(add(add(parent, "p"), "label", name + " "), "select");
    texts.forEach((text, i) => {
      add(choice, "option", text).value = i;
    });
    choice.value = at;
    return choice;
  }

  /* Where the values in the rows of f pass the level, as lines from one side of a cell to another
   * (marching squares): [x1, y1, x2, y2], in numbers of columns and rows. No line goes through a
   * cell of which a corner is not known. */
  function contour(f, level) {
    const lines = [];
    for (let j = 0; j + 1 < f.ys.length; j++)
      for (let i = 0; i + 1 < f.xs.length; i++) {
        const corners = [[i, j], [i + 1, j], [i + 1, j + 1], [i, j + 1]]
          .map(([x, y]) => [x, y, f.mean[y][x]]);
        if (corners.some(c => c[2] === null))
          continue;
        const ends = corners.map((a, k) => [a, corners[(k + 1) % 4]])
          .filter(([a, b]) => (a[2] < level) !== (b[2] < level))
          .map(([a, b]) => {
            const share = (level - a[2]) / (b[2] - a[2]);
            return [a[0] + share * (b[0] - a[0]), a[1] + share * (b[1] - a[1])];
          });
        for (let k = 0; k + 1 < ends.length; k += 2)
          lines.push([...ends[k], ...ends[k + 1]]);
      }
    return lines;
  }

  /* As many marks for all trials as are told apart: one of a cell, the best before the others. */
  function tried(f) {
    const marks = new Map();
    trials.forEach(t => {
      const i = nearest(f.xs, t.config[f.x]), j = nearest(f.ys, t.config[f.y]);
      const best = t.trial === bestId, key = i + "/" + j;
      if (i >= 0 && j >= 0 && (best || !marks.has(key)))
        marks.set(key, {value: [i, j], t, symbolSize: best ? 13 : 7,
          symbol: best ? "diamond" : t.status === "failed" ? cross : "circle"});
    });
    return [...marks.values()];
  }

  /* The map of one pair: its colours are by rank, and equally many cells lie between two lines, for
   * all good values would look the same beside one that is ten times as bad. */
  function map(f, of, upward, width) {
    const values = f.mean.flat().filter(known).sort((a, b) => a - b);
    const rank = x => values.filter(v => v < x).length / values.length;
    const good = x => upward ? rank(x) : 1 - rank(x);
    const cells = f.mean.flatMap((row, j) => row.flatMap((m, i) => known(m) ? [
      {value: [i, j, good(m)], label: {color: good(m) > .6 ? "#fff" : "#111"}}] : []));
    const numbers = x => typeof x === "number";
    const smooth = f.xs.length > 5 && f.ys.length > 5 && f.xs.every(numbers) && f.ys.every(numbers);
    const sixth = k => values[Math.floor(k * values.length / 6)];
    const levels = smooth ? [1, 2, 3, 4, 5].map(sixth) : [];
    const lines = levels.flatMap(level => contour(f, level).map((line, k, all) => ({
      value: line, ink: good(level) > .5 ? "#fff" : "#111",
      text: k === all.length >> 1 ? number(Number(level.toPrecision(3))) : ""})));
    /* as much as there is room for */
    const left = Math.min(200, .25 * width);
    const figures = (width - left) / f.xs.length > 70 && f.ys.length <= 20;
    const best = upward ? values.length - 1 : 0, worst = values.length - 1 - best;
    return {
      grid: grid({top: 40, bottom: 76}),
      xAxis: axis(f.x, choices(f.xs, Math.max(30, (width - left) / f.xs.length - 4))),
      yAxis: yAxis(f.y, choices(f.ys, left)),
      tooltip: {...tip(), formatter: p =>
        p.seriesType === "heatmap" ? of_cell(f, p.value) : p.data.t ? told(p.data.t) : ""},
      visualMap: {min: 0, max: 1, dimension: 2, calculable: false, orient: "horizontal",
        left: "center", bottom: 0, itemHeight: 120, seriesIndex: 0,
        textStyle: {color: css("--ink")}, text: [number(values[best]), number(values[worst])],
        inRange: {color: ["#f4f7fa", "#9fc4e4", "#0b5394"]}},
      series: [
        {type: "heatmap", data: cells,
          itemStyle: {borderColor: css("--paper"), borderWidth: smooth ? 0 : 1},
          label: {show: figures, fontSize: 11, position: "inside",
            formatter: ({value: [i, j]}) => number(Number(f.mean[j][i].toPrecision(3)))}},
        {type: "custom", data: lines, silent: true, z: 3, encode: {x: [], y: []}, clip: true,
          renderItem: (params, api) => {
            const [x0, y0] = api.coord([0, 0]), [x1, y1] = api.coord([1, 1]);
            const at = (k, from, to) => from + api.value(k) * (to - from);
            const {ink, text} = lines[params.dataIndex];
            const shape = {x1: at(0, x0, x1), y1: at(1, y0, y1),
              x2: at(2, x0, x1), y2: at(3, y0, y1)};
            return {type: "group", children: [
              {type: "line", shape, style: {stroke: ink, lineWidth: 1, opacity: .7}},
              {type: "text", style: {text, x: shape.x1, y: shape.y1, align: "center",
                verticalAlign: "middle", fontSize: 11, fill: ink, lineWidth: 3,
                stroke: ink === "#fff" ? "#2d6ea8" : "#d5e3f0"}}]};
          }},
        {type: "scatter", data: tried(f), symbolOffset: [figures ? -26 : 0, 0], z: 4,
          cursor: "default",
          itemStyle: {color: "#fff", borderColor: "#111", borderWidth: 1.5, opacity: 1}}]};
  }

  function of_cell(f, [i, j]) {
    const sure = number(f.low[j][i]) + " to " + number(f.high[j][i]);
    return f.x + "=" + f.xs[i] + " " + f.y + "=" + f.ys[j] + "\nexpected: " + number(f.mean[j][i]) +
      "\nin two of three cases " + sure;
  }

  function surface(model, parent, surfaces) {
    const names = surfaces.map(f => f.y + " and " + f.x);
    const choice = select(parent, "Parameters", names, 0);
    const upward = model.of === report.objective && large;
    const chart = plot(parent, "expected " + model.of + " by two parameters", 0, width =>
      map(surfaces[choice.value], model.of, upward, width));
    const show = () => {
      const f = surfaces[choice.value];
      chart.height = Math.min(560, Math.max(220, 26 * f.ys.length + 130));
      chart.place.setAttribute("aria-label",
        "expected " + model.of + " by " + f.x + " and " + f.y);
    };
    show();
    choice.addEventListener("change", () => {
      show();
      draw(chart);
    });
  }

  const number_or_word = x => typeof x === "number" ? number(x) : String(x);

  function slices(model, parent) {
    const box = add(parent, "div", undefined, "small");
    const share = new Map(model.importance.map(i => [i.param, i.share]));
    const own = model.of === report.objective;
    const order = (a, b) => share.get(b.param) - share.get(a.param);
    model.slices.slice().sort(order).slice(0, 12).forEach(sl => {
      const cell = add(box, "div");
      const param = views.params.find(p => p.name === sl.param);
      const category = sl.at.some(x => typeof x !== "number") || "choices" in param;
      const told_of = trials.filter(t => own && known(t.value) && known(t.config[sl.param]));
      const points = told_of.map(t => ({
        value: [category ? nearest(sl.at, t.config[sl.param]) : t.config[sl.param], t.value], t}));
      const line = y => sl.at.map((x, i) => [category ? i : x, y[i]]);
      const log = !category && param.log && param.low > 0;
      plot(cell, "expected " + model.of + " by " + sl.param, 210, width => ({
        grid: grid({top: 26, bottom: 28, left: 2, right: 12}),
        xAxis: axis(sl.param, category
          ? {...choices(sl.at, Math.max(30, (width - 50) / sl.at.length - 4)), nameGap: 24}
          : {type: log ? "log" : "value", scale: true, nameGap: 24,
            minInterval: param.type === "int" ? 1 : 0, min: log ? sl.at[0] : "dataMin",
            max: "dataMax",
             axisLabel: {color: css("--soft"), hideOverlap: true, showMaxLabel: true,
               alignMinLabel: "left", alignMaxLabel: "right", formatter: number}}),
        yAxis: yAxis("", scale(sl.mean.concat(points.map(p => p.value[1])))),
        tooltip: {...tip(), formatter: p => p.data.t ? told(p.data.t) : sl.param + "=" +
          number_or_word(category ? sl.at[p.value[0]] : p.value[0]) + ": " + number(p.value[1])},
        series: [
          {type: "line", data: line(sl.mean), symbol: category ? "circle" : "none",
            lineStyle: {width: 2.5}, color: hues()[0]},
          ...[sl.low, sl.high].map(y => ({type: "line", data: line(y), symbol: "none",
            lineStyle: {type: "dashed", width: 1}, color: hues()[0]})),
          {type: "scatter", data: points, symbolSize: 6,
            itemStyle: {color: "transparent", borderColor: css("--ink")}}]}));
    });
  }

  function model(id, m, what) {
    if (!m)
      return;
    if (m.importance.length > 1)
      importance(m, section(id + "importance", "What matters" + what,
        "How much of the variation that the model expects of " + m.of +
          " each parameter has a part in, over all " +
        "configurations that are allowed: the total effect of functional ANOVA, drawn from the " +
          "model. It says nothing of " +
        "parameters that hardly varied among the trials."));
    const surfaces = m.surfaces.filter(f => f.mean.some(row => row.some(known)));
    if (surfaces.length)
      surface(m, section(id + "surface", "Two parameters together" + what,
        "What the model expects of " + m.of + "; all else is as in the best configuration, but " +
        "the layout where that must be another. Dark is good; the colours are by rank. On a line " +
        "all is expected to be equal; cells that are missing are not allowed. Marks are trials " +
        "(whatever their other parameters), a diamond is the best, crosses failed."), surfaces);
    if (m.slices.length)
      slices(m, section(id + "slices", "Each parameter by itself" + what,
        "The line is what the model expects of " + m.of +
          " with all else as in the best configuration; between the dashed " +
        "lines it should be in two of three cases. Marks are trials, which differ in other " +
          "parameters, too."));
  }

  /* ---- parallel coordinates ---- */

  function parallel() {
    const done = trials.filter(t => t.value !== null && t.status !== "failed");
    const differs = (a, b, p) => String(a.config[p.name]) !== String(b.config[p.name]);
    const shown = views.params.filter(p => done.some(t => differs(t, done[0], p)));
    if (done.length < 2 || !shown.length)
      return;
    const s = section("parallel", "All configurations",
      "A line is a trial, from its parameters to its " + report.objective +
        ". The best quarter is drawn solid, the best " +
      "one thick, the others thin and dashed. Drag along an axis to see only those lines that " +
        "pass there.");
    const order = done.slice().sort((a, b) => large ? b.value - a.value : a.value - b.value);
    const place = add(s, "div", undefined, "wide");
    const labels = p => [...new Set((p.choices || []).map(String))];
    const axes = () => shown.map((p, i) => Object.assign(
      {dim: i, name: p.name},
      p.choices ? {type: "category", data: labels(p)}
        : {type: p.log && p.low > 0 ? "log" : "value", min: p.low, max: p.high,
          minInterval: p.type === "int" ? 1 : 0})
    ).concat({dim: shown.length, name: report.objective, scale: true,
              type: wide(done.map(t => t.value)) ? "log" : "value"});
    const row = t => shown.map(p => {
      const x = t.config[p.name];
      return x === null || x === undefined ? "-" : p.choices ? labels(p).indexOf(String(x)) : x;
    }).concat(t.value);
    const chart = plot(place, "parallel coordinates of all trials", 340, width => ({
      parallel: {left: 40, right: 60, top: 40, bottom: 20, parallelAxisDefault: {
        nameTextStyle: {color: css("--ink")}, nameLocation: "end", nameGap: 14,
        axisLabel: {color: css("--ink"), textBorderColor: css("--paper"), textBorderWidth: 4,
          width: Math.max(70, (width - 100) / (shown.length + 1)), overflow: "truncate",
                    formatter: x => number_or_word(isNaN(x) || x === "" ? x : Number(x))},
        axisLine: {lineStyle: {color: css("--soft")}},
          axisTick: {lineStyle: {color: css("--soft")}}}},
      parallelAxis: axes(),
      tooltip: {...tip(), formatter: p => p.data.t ? told(p.data.t) : ""},
      series: [{type: "parallel", smooth: false, z: 1, data: order.slice().reverse().map(t => {
        const good = order.indexOf(t) < Math.max(1, order.length / 4), best = t.trial === bestId;
        return {value: row(t), t, lineStyle: {
          color: best ? css("--ink") : good ? hues()[0] : css("--soft"),
          width: best ? 4 : good ? 2 : 1,
          opacity: best || good ? 1 : .55, type: best || good ? "solid" : "dashed"}};
      })}]}));
    chart.place.style.minWidth = Math.min(90 * (shown.length + 1), 2000) + "px";
  }

  /* ---- the timeline ---- */

  function timeline() {
    const runs = views.runs, end = views.elapsed;
    if (!runs.length)
      return;
    const s = section("timeline", "When each trial ran",
      "A row is a trial. Hollow is its wait in the queue, filled is its run. A striped run did " +
      "not come to its own end: it failed, was stopped, or went on elsewhere.");
    const data = [];
    runs.forEach(r => {
      const t = byId.get(r.trial), over = r.ended === undefined ? end : r.ended;
      const well = r.cause === undefined || r.cause === "ok" || r.cause === "target reached";
      const began = r.started === undefined ? over : r.started;
      data.push({value: [r.submitted, began, r.trial, 0], t, r});
      if (r.started !== undefined)
        data.push({value: [r.started, over, r.trial, well ? 1 : 2], t, r});
    });
    const ids = trials.map(t => t.trial), row = Math.max(4, Math.min(18, 1200 / ids.length));
    const stripes = (x, y, w, h, color) => {
      const lines = [];
      for (let at = x; at < x + w; at += 6)
        lines.push({type: "line", shape: {x1: at, y1: y + h, x2: Math.min(at + h, x + w),
                                          y2: y + h - Math.min(h, x + w - at)},
                    style: {stroke: color, lineWidth: 1.5}});
      return lines;
    };
    plot(s, "timeline of all runs", row * ids.length + 80, () => ({
      grid: grid({top: 8}),
      xAxis: timeAxis("time since the study began", end),
      yAxis: axis("", {type: "category", inverse: true, data: ids.map(String),
        splitLine: {show: false},
        axisLabel: {color: css("--soft"), interval: Math.ceil(18 / row) - 1}}),
      tooltip: {...tip(), formatter: p => {
        const r = p.data.r;
        return "trial " + r.trial + ", run " + r.run + (r.cause ? ": " + r.cause : "") + "\n" +
          (p.value[3] === 0 ? "in the queue for " : "ran for ") +
            duration(p.value[1] - p.value[0]) + "\n" +
          words(p.data.t ? p.data.t.config : {});
      }},
      series: [{type: "custom", encode: {x: [0, 1], y: 2}, data, renderItem: (params, api) => {
        const a = api.coord([api.value(0), String(api.value(2))]),
          b = api.coord([api.value(1), String(api.value(2))]);
        const h = row * .6, kind = api.value(3), y = a[1] - h / 2, w = Math.max(b[0] - a[0], 1);
        const thin = kind === 0 ? h * .35 : h, top = a[1] - thin / 2;
        const bar = {type: "rect", shape: {x: a[0], y: top, width: w, height: thin},
          style: {fill: kind === 1 ? hues()[0] : css("--paper"), lineWidth: 1,
                  stroke: kind === 2 ? css("--ink") : hues()[0]}};
        const over = kind === 2 ? stripes(a[0], y, w, h, css("--ink")) : [];
        return {type: "group", children: [bar, ...over]};
      }}]}));
  }

  /* ---- usage ---- */

  function usage() {
    const ids = [...new Set(views.usage.map(u => u.trial))].sort((a, b) => a - b);
    if (!ids.length)
      return;
    const s = section("usage", "What the roles used",
      "The mean of a role's tasks: CPUs as a share of those that they were given, memory as a " +
        "share of the limit, GPUs as " +
      "the share of time that they were busy.");
    const choice = select(s, "Trial", ids.map(id => id + (id === bestId ? " (the best)" : "")),
      Math.max(0, ids.indexOf(bestId)));
    const kinds = [["cpu", "CPUs", "solid"], ["mem", "memory", "dashed"],
      ["gpu", "GPUs", "dotted"]];
    const chart = plot(s, "usage of the roles over time", 320, () => {
      const id = ids[choice.value], mine = views.usage.filter(u => u.trial === id);
      const roles = [...new Set(mine.map(u => u.role))], series = [];
      const first = (views.runs.find(r => r.trial === id && r.started !== undefined) ||
        {}).started || 0;
      roles.forEach((role, i) => kinds.forEach(([key, name, type]) => {
        const data = mine.filter(u => u.role === role &&
          u.levels[key]).map(u => [u.t - first, 100 * u.levels[key][0]]);
        if (data.length)
          series.push({name: role + ": " + name, type: "line", step: "end", data, symbol: shapes[i],
            symbolSize: 7,
                       color: hues()[i], lineStyle: {type, width: 2}, connectNulls: true});
      }));
      return {
        legend: legend(), grid: grid(),
        xAxis: timeAxis("time since it started", Math.max(1, ...mine.map(u => u.t - first))),
        yAxis: yAxis("%", {type: "value", min: 0, max: x => Math.max(100,
          Math.ceil(x.max / 10) * 10)}),
        tooltip: {...tip(), trigger: "item", formatter: p => p.seriesName + ": " +
          number(p.value[1]) + " % at " +
          duration(p.value[0])},
        series};
    });
    choice.addEventListener("change", () => draw(chart));
  }

  /* ---- the front ---- */

  function front() {
    const seen = trials.filter(t => (t.status === "ok" || t.status === "poor") && !t.parent &&
      !t.cheap && !t.again &&
                                    t.run_s !== null);
    const cost = t => t.billing === null ? null : t.run_s * t.billing;
    const quality = t => views.quality && t.metrics[views.quality] !== undefined ?
      t.metrics[views.quality] : null;
    const pairs = [];
    if (seen.some(t => cost(t) !== null && t.billing !== seen[0].billing))
      pairs.push(["cost (billed seconds)", cost, "billed_s"]);
    if (views.quality && seen.some(t => quality(t) !== null))
      pairs.push([views.quality, quality, "quality"]);
    if (!pairs.length || seen.length < 2)
      return;
    const s = section("front", "What else one may want",
      "Diamonds are the front: trials of which no other is better in one of " +
      (views.quality ? "run time, cost and " + views.quality : "run time and cost") +
      " and no worse in the rest. The number is the trial's.");
    const on = new Set(report.front.map(p => p.trial));
    pairs.forEach(([name, of, key]) => plot(s, "run time and " + name, 320, () => ({
      legend: legend(), grid: grid(),
      xAxis: axis("run time (s)", scale(seen.map(t => t.run_s))),
      yAxis: yAxis(name, scale(seen.map(of))),
      tooltip: {...tip(), formatter: p => p.data.t ? told(p.data.t) : ""},
      series: [
        {name: "the front", type: "scatter", symbol: "diamond", symbolSize: 13, z: 3,
         data: report.front.filter(p => p[key] !== null && p.run_s !== null).map(p => (
           {value: [p.run_s, p[key]], t: byId.get(p.trial)})),
         label: {show: true, position: "right", color: css("--ink"),
           formatter: p => String(p.data.t.trial)},
         labelLayout: {hideOverlap: true}},
        {name: "others", type: "scatter", symbol: "circle", symbolSize: 8,
         itemStyle: {color: "transparent", borderColor: css("--ink"), borderWidth: 1.4},
         data: seen.filter(t => !on.has(t.trial) && of(t) !== null).map(t => (
           {value: [t.run_s, of(t)], t}))}]})));
  }

  /* ---- the table ---- */

  function table() {
    if (!trials.length)
      return;
    const s = section("trials", "All trials");
    const details = add(s, "details");
    details.open = trials.length <= 20;
    add(details, "summary", count(trials.length, "trial"));
    const t = add(add(details, "div", undefined, "table"), "table");
    const heads = add(add(t, "thead"), "tr"), body = add(t, "tbody");
    [["trial"], ["queue"], ["run"], ["nodes"], [report.objective], ["how it ended", "text"],
      ["configuration", "text"]]
      .forEach(([name, kind]) => add(heads, "th", name, kind));
    trials.forEach(x => {
      const row = add(body, "tr", undefined, x.trial === bestId ? "best" : undefined);
      [x.trial, duration(x.queue_s), duration(x.run_s), number(x.nodes),
        value(x.value)].forEach(v => add(row, "td", v));
      const how = (x.cause || x.status) + (x.again ? ", trial " + x.again + " again" : "") +
        (x.parent ? ", from trial " + x.parent : "") + (x.cheap ? ", cheap" : "") +
        (x.trial === bestId ? ", the best" : "");
      const cell = add(row, "td", undefined, "text"), said = [x.text, x.note].filter(known);
      if (said.length) {
        const more = add(cell, "details");
        add(more, "summary", how);
        add(more, "pre", said.join("\n"));
      } else {
        cell.textContent = how;
      }
      add(add(row, "td", undefined, "text"), "code", words(x.config));
    });
  }

  /* ---- all of it ---- */

  head();
  course();
  model("", views.model, "");
  parallel();
  model("speed-", views.speed, ", for speed");
  front();
  timeline();
  usage();
  table();
  add(page, "footer", "dt-tune " + views.dt_tune +
    ". This file needs nothing beside it; its figures are in it as JSON " +
                      "(see dt-tune(1)). Plots by Apache ECharts.");
  drawAll();

  /* Also for a scroll bar that comes and goes. */
  let waiting, drawn = page.clientWidth;
  new ResizeObserver(() => {
    clearTimeout(waiting);
    if (!printing && page.clientWidth !== drawn)
      waiting = setTimeout(() => {
        drawn = page.clientWidth;
        drawAll();
      }, 150);
  }).observe(page);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  addEventListener("beforeprint", () => {
    printing = true;
    document.querySelectorAll("details").forEach(d => { d.open = true; });
    drawAll();
  });
  addEventListener("afterprint", () => {
    printing = false;
    drawAll();
  });
})();
