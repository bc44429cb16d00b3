// Draws the candles of a market page and refreshes them. Exact figures arrive as text; only the drawing rounds them.
import { CandlestickSeries, ColorType, createChart, HistogramSeries } from './lightweight-charts.js';

const REFRESH_MS = 15_000;
const MAX_DIGITS = 8;
const PIXELS_PER_CANDLE = 7;

const box = document.getElementById('candle-chart');
const status = document.getElementById('candle-status');
if (box && status) start(box, status);

function start(box, status) {
  const calm = matchMedia('(prefers-reduced-motion: reduce)').matches;
  const chart = createChart(box, {
    autoSize: true,
    layout: { attributionLogo: false, fontFamily: getComputedStyle(document.body).fontFamily },
    timeScale: { timeVisible: true, secondsVisible: false, rightOffset: 3 },
    kineticScroll: { mouse: false, touch: !calm },
    // The chart must not capture the scrolling of the page on a phone.
    handleScroll: { vertTouchDrag: false, mouseWheel: false },
    handleScale: { mouseWheel: false },
  });
  const candles = chart.addSeries(CandlestickSeries, {});
  const volume = chart.addSeries(HistogramSeries, {
    priceScaleId: '',
    priceFormat: { type: 'volume' },
    lastValueVisible: false,
    priceLineVisible: false,
  });
  candles.priceScale().applyOptions({ scaleMargins: { top: 0.08, bottom: 0.26 } });
  volume.priceScale().applyOptions({ scaleMargins: { top: 0.8, bottom: 0 } });

  let drawn = [];
  const paint = () => {
    const color = colors();
    chart.applyOptions({
      layout: { background: { type: ColorType.Solid, color: color.card }, textColor: color.soft },
      grid: { vertLines: { color: color.line }, horzLines: { color: color.line } },
      rightPriceScale: { borderColor: color.line },
      timeScale: { borderColor: color.line },
    });
    candles.applyOptions({
      upColor: color.up,
      downColor: color.down,
      borderVisible: false,
      wickUpColor: color.up,
      wickDownColor: color.down,
    });
    volume.setData(
      drawn.map((c) => ({ time: c.time, value: c.volume, color: c.close >= c.open ? color.upSoft : color.downSoft })),
    );
  };

  let isFirst = true;
  const load = async () => {
    const response = await fetch(box.dataset.source, { headers: { Accept: 'application/json' } });
    if (response.status === 401) throw new Error('The session has ended. Reload the page.');
    if (!response.ok) throw new Error('The candles cannot be loaded.');
    const { candles: exact } = await response.json();
    const digits = Math.max(
      2,
      ...exact.map(({ close, open, high, low }) => Math.max(...[open, high, low, close].map(fraction))),
    );
    const precision = Math.min(MAX_DIGITS, digits);
    // The margin below a low price would show negative prices, which do not exist.
    const formatter = (price) => (price < 0 ? '' : price.toFixed(precision));
    candles.applyOptions({ priceFormat: { type: 'custom', formatter, minMove: 10 ** -precision } });
    drawn = exact.map((c) => ({
      time: c.time,
      open: Number(c.open),
      high: Number(c.high),
      low: Number(c.low),
      close: Number(c.close),
      volume: Number(c.volume),
    }));
    candles.setData(drawn.map(({ volume: _, ...candle }) => candle));
    paint();
    if (isFirst) showLast(chart, box, drawn.length);
    isFirst = false;
    box.dataset.drawn = String(drawn.length);
    showStatus('');
  };

  const showStatus = (text) => {
    if (status.textContent !== text) status.textContent = text;
  };
  const refresh = async () => {
    try {
      if (document.visibilityState === 'visible') await load();
    } catch (error) {
      showStatus(error instanceof TypeError ? 'The candles cannot be loaded: no connection.' : error.message);
    }
    setTimeout(refresh, REFRESH_MS);
  };
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', paint);
  paint();
  refresh();
}

/** Shows as many of the last candles as fit. */
function showLast(chart, box, count) {
  const room = Math.floor(box.clientWidth / PIXELS_PER_CANDLE);
  if (count <= room) chart.timeScale().fitContent();
  else chart.timeScale().setVisibleLogicalRange({ from: count - room, to: count + 2 });
}

function fraction(text) {
  return text.includes('.') ? text.length - text.indexOf('.') - 1 : 0;
}

/** The colours of the page, which follow the light or dark setting of the system. */
function colors() {
  const style = getComputedStyle(document.documentElement);
  const named = (name) => style.getPropertyValue(name).trim();
  const [up, down] = [named('--up'), named('--down')];
  return {
    card: named('--card'),
    line: named('--line'),
    soft: named('--ink-soft'),
    up,
    down,
    upSoft: `${up}80`,
    downSoft: `${down}80`,
  };
}
