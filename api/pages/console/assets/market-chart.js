// A chart in percent: one line or its candles with the volume, other lines beside it, gaps of the history, and marks.
import { Bands } from './chart-bands.js';
import { createSeriesMarkers, LineSeries } from './lightweight-charts.js';
import { percent } from './live.js';
import { colors, drawnCandle, openChart, paintChart } from './price-chart.js';

/** Of the width of a chart, and at least half a label of its axis of time, in pixels. */
const ROOM_AT_ENDS = 0.05;
const HALF_LABEL = 26;
/** More prices beside the marks of a chart would cover each other. */
const MAX_MARK_TEXTS = 12;
/** The part of the range before the first value, of the time that has values. */
const ROOM_BEFORE = 0.06;
const MAX_TITLE = 14;
/** The patterns of the lines, in their order: the style sheet has the same for the legend. */
const PATTERNS = [0, 2, 1, 3, 4, 0];
const EMPTY = 'No price of this range is stored yet. Choose a longer range.';

const digits = (value) => String(Number((value * 100).toFixed(2)));
/** A probability with at most two decimals, without zeros at the end. */
const exact = (value) => `${digits(value).replace(/^-?\d+$/, '$&.0')} %`;
/** A price of the axis. The room above 100 and below 0 % has no prices. */
const onAxis = (value) => (value < -1e-9 || value > 1 + 1e-9 ? '' : `${digits(Math.abs(value))} %`);
const figures = (time) => new Date(time * 1_000).toISOString().slice(0, 16).replace('T', ' ');
const short = (text) => (text.length > MAX_TITLE ? `${text.slice(0, MAX_TITLE - 1)}…` : text);
const KIND_WORDS = { gap: 'not complete', unknown: 'unknown', pending: 'not judged yet' };

/** Opens the chart of a page. `hasCandles`: the main line has candles and volume. */
export function openMarketChart(box, legend, { kind: firstKind = 'line', hasCandles = true }) {
  let kind = firstKind;
  let isZoomed = false;
  let found = { line: [], compared: [], candles: [], gaps: { line: [], trades: [] }, firings: [], seconds: 60 };
  /** The times of the axis in their order. */
  let times = [];
  let candlesDrawn = [];
  /** The firings that the alert of the form would have had. */
  let trialMarks = [];
  const alertLines = [];

  const opened = openChart(box, {
    rightOffset: 2,
    pane: 1,
    layout: { panes: { enableResize: false } },
    handleScale: { axisPressedMouseMove: { time: true, price: false } },
  });
  const { chart, candles, volume } = opened;
  const whole = () => (isZoomed ? undefined : { priceRange: { minValue: 0, maxValue: 1 } });
  const shared = {
    priceFormat: { type: 'custom', minMove: 0.0001, formatter: exact, tickmarksFormatter: (all) => all.map(onAxis) },
    autoscaleInfoProvider: (original) => whole() ?? original(),
  };
  const line = chart.addSeries(LineSeries, { ...shared, lineWidth: 2 });
  /** Has no values: it gives each interval of the range a place on the axis, so that a gap has its width. */
  const grid = chart.addSeries(LineSeries, { lastValueVisible: false, priceLineVisible: false });
  candles.applyOptions(shared);
  if (hasCandles) {
    chart.panes()[1]?.setHeight(64);
    // The uppermost label of the axis would be cut.
    volume.priceScale().applyOptions({ scaleMargins: { top: 0.3, bottom: 0 } });
  } else chart.removeSeries(volume);
  line.priceScale().applyOptions({ scaleMargins: { top: 0.06, bottom: 0.04 } });
  const others = [];
  const priceBands = new Bands(placeOf, isShown);
  grid.attachPrimitive(priceBands);
  const volumeBands = new Bands(placeOf, isShown);
  if (hasCandles) volume.attachPrimitive(volumeBands);
  const marked = [line, candles].map((series) => createSeriesMarkers(series, []));

  /** The place of a time on the axis: between two points by the share of the time between them. */
  function placeOf(time) {
    let [low, high] = [0, times.length - 1];
    if (high < 0) return 0;
    if (time <= times[low]) return low;
    if (time >= times[high]) return high;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (times[middle] <= time) low = middle;
      else high = middle;
    }
    return low + (time - times[low]) / (times[high] - times[low]);
  }

  function isShown(from, to) {
    return times.length > 0 && to > times[0] && from < times.at(-1);
  }

  /** A segment has the colour of its first point. */
  const drawnLine = (points) =>
    points.map(({ time, value, gap }) => (gap ? { time, value, color: 'transparent' } : { time, value }));

  function paint() {
    const color = colors();
    paintChart({ chart, candles, volume: hasCandles ? volume : undefined }, candlesDrawn);
    const isCompared = found.compared.length > 0;
    line.applyOptions({
      color: color.lines[0],
      visible: kind === 'line',
      title: isCompared ? short(found.label) : '',
      pointMarkersVisible: false,
    });
    candles.applyOptions({ visible: kind === 'candle', title: isCompared ? short(found.label) : '' });
    for (const [index, each] of others.entries()) {
      each.applyOptions({ color: color.lines[index + 1], lineStyle: PATTERNS[index + 1] });
    }
    priceBands.set(kind === 'line' ? found.gaps.line : found.gaps.trades);
    volumeBands.set(found.gaps.trades);
    drawMarks();
    drawAlerts();
  }

  function show(data, { fit = false } = {}) {
    found = data;
    candlesDrawn = data.candles.map(drawnCandle);
    const values = [data.line, candlesDrawn, ...data.compared.map((each) => each.line)].flat().map(({ time }) => time);
    const now = Math.floor(Date.now() / 1_000);
    const first = Math.min(...values);
    const start = Math.max(data.start, first - Math.max(2 * data.seconds, ROOM_BEFORE * (now - first)));
    const places = [];
    for (let at = Math.ceil(start / data.seconds) * data.seconds; at <= now; at += data.seconds) places.push(at);
    times = values.length === 0 ? [] : [...new Set([...values, ...places])].sort((a, b) => a - b);
    grid.setData(times.map((time) => ({ time })));
    line.setData(drawnLine(data.line));
    candles.setData(candlesDrawn.map(({ volume: _, ...candle }) => candle));
    while (others.length > data.compared.length) chart.removeSeries(others.pop());
    for (const [index, { label, line: points }] of data.compared.entries()) {
      others[index] ??= chart.addSeries(LineSeries, { ...shared, lineWidth: 2, priceLineVisible: false });
      others[index].applyOptions({ title: short(label) });
      others[index].setData(drawnLine(points));
    }
    paint();
    if (fit) showAll();
    box.dataset.drawn = String(data.line.length);
    box.dataset.lines = String(1 + others.length);
    box.dataset.bands = data.gaps.line.map(({ kind: each }) => each).join(' ');
    legend.textContent = values.length === 0 ? EMPTY : '';
  }

  /** All times, with room for the texts at both ends. */
  function showAll() {
    const count = times.length;
    if (count === 0) return;
    const share = HALF_LABEL / Math.max(chart.timeScale().width(), 4 * HALF_LABEL);
    const room = Math.max(1, count * ROOM_AT_ENDS, (count * share) / (1 - 2 * share));
    chart.timeScale().setVisibleLogicalRange({ from: -room / 2, to: count - 1 + room });
  }

  /** The live price is the value of the present interval, so the axis gets one place per interval. */
  function update(value, outcome) {
    const at = found.compared.findIndex(({ outcome_id }) => outcome_id === outcome);
    if (at === -1 && outcome !== found.outcome_id) return;
    const points = at === -1 ? found.line : found.compared[at].line;
    const last = points.at(-1);
    if (!last) return;
    const present = Math.floor(Date.now() / 1_000 / found.seconds) * found.seconds;
    const point = { time: Math.max(last.time, present), value };
    if (point.time === last.time) points[points.length - 1] = point;
    else points.push(point);
    if (point.time > times.at(-1)) times.push(point.time);
    (at === -1 ? line : others[at]).update(point);
  }

  function drawMarks() {
    const { ink, accent } = colors();
    const hasText = trialMarks.length <= MAX_MARK_TEXTS;
    const fired = found.firings.map(({ time, price }, id) => ({
      id: `fired ${id}`,
      time,
      ...(price === undefined ? { position: 'aboveBar' } : { position: 'atPriceMiddle', price }),
      shape: 'square',
      color: accent,
    }));
    const trial = trialMarks.map(({ time, price }, id) => ({
      id: `trial ${id}`,
      time,
      price,
      position: 'atPriceMiddle',
      shape: 'circle',
      color: ink,
      ...(hasText && { text: percent(price) }),
    }));
    // The library does not draw a point without a neighbour.
    const alone = found.line
      .filter(({ gap }, index) => gap && (index === 0 || found.line[index - 1].gap))
      .map(({ time, value }) => ({
        time,
        price: value,
        position: 'atPriceMiddle',
        shape: 'circle',
        size: 0.2,
        color: colors().lines[0],
      }));
    const all = [...fired, ...trial, ...(kind === 'line' ? alone : [])].sort((a, b) => a.time - b.time);
    for (const each of marked) each.setMarkers(all);
    box.dataset.marks = String(trialMarks.length);
    box.dataset.firings = String(fired.length);
  }

  function drawAlerts() {
    const color = colors().accent;
    for (const { series, drawn } of alertLines.splice(0)) series.removePriceLine(drawn);
    for (const link of document.querySelectorAll('[data-alert]')) {
      const options = { price: Number(link.dataset.alert), color, lineStyle: 2, lineWidth: 1, title: 'alert' };
      for (const series of [line, candles]) alertLines.push({ series, drawn: series.createPriceLine(options) });
    }
  }

  const markOf = (id) => {
    const [of, index] = String(id ?? '').split(' ');
    if (of === 'fired') return found.firings[index];
    return of === 'trial' ? { ...trialMarks[index], words: 'would have fired' } : undefined;
  };

  /** The completeness of the history at a point. */
  function gapAt(time) {
    const gaps = kind === 'line' ? found.gaps.line : found.gaps.trades;
    const gap = gaps.find(({ from, to }) => from < time + found.seconds && time < to);
    return gap ? ` · ${KIND_WORDS[gap.kind]}${gap.kind === 'pending' ? '' : `: ${gap.why}`}` : '';
  }

  function textAt(time, seriesData) {
    const at = seriesData.get(kind === 'line' ? line : candles);
    const bar = seriesData.get(volume);
    const traded = bar ? ` · volume ${bar.value.toLocaleString('en-US', { maximumFractionDigits: 2 })}` : '';
    const when = `${figures(time)} UTC`;
    if (!at || (at.value === undefined && at.open === undefined)) return `${when} · no value${traded}${gapAt(time)}`;
    if (kind === 'line') return `${when} · ${percent(at.value)}${traded}${gapAt(time)}`;
    const [open, high, low, close] = [at.open, at.high, at.low, at.close].map(exact);
    return `${when} · O ${open} H ${high} L ${low} C ${close}${traded}${gapAt(time)}`;
  }

  /** The values of the lines at a time, or the last ones, in the legend of the lines. */
  function showLines(seriesData) {
    const all = [line, ...others];
    const points = [found.line, ...found.compared.map((each) => each.line)];
    for (const [index, cell] of [...document.querySelectorAll('[data-line]')].entries()) {
      const value = seriesData ? seriesData.get(all[index])?.value : points[index]?.at(-1)?.value;
      const text = value === undefined ? '–' : percent(value);
      if (cell.textContent !== text) cell.textContent = text;
    }
  }

  chart.subscribeCrosshairMove(({ time, seriesData, hoveredObjectId }) => {
    const mark = markOf(hoveredObjectId);
    showLines(time === undefined ? undefined : seriesData);
    if (mark) {
      const price = mark.price === undefined ? '' : ` · ${percent(mark.price)}`;
      legend.textContent = mark.path
        ? `fired ${figures(mark.time)} UTC${price} · ${mark.words}`
        : `would have fired ${mark.when} UTC${price}`;
    } else legend.textContent = time === undefined ? '' : textAt(time, seriesData);
  });

  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', paint);
  box.querySelector('.fallback')?.remove();
  paint();

  return {
    chart,
    show,
    update,
    choose(chosen) {
      kind = chosen;
      paint();
    },
    zoom(isOn) {
      isZoomed = isOn;
      for (const each of [line, candles, ...others]) {
        each.applyOptions({ autoscaleInfoProvider: shared.autoscaleInfoProvider });
      }
    },
    showMarks(shown) {
      trialMarks = shown;
      drawMarks();
    },
    /** The price at a place of the picture; null outside of the axis. */
    priceAt: (y) => (kind === 'line' ? line : candles).coordinateToPrice(y),
    markOf,
    hasValues: () => times.length > 0,
    span: () => [times[0], times.at(-1)],
    legend: () => [found, ...found.compared].map(({ label }, index) => ({ label, color: colors().lines[index] })),
    isIncomplete: () => found.gaps.line.some(({ kind: each }) => each !== 'pending'),
  };
}
