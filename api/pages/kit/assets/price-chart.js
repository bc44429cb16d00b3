// What the charts of the operator pages and of the console share. Exact figures arrive as text; only the drawing rounds them.
import { CandlestickSeries, ColorType, createChart, HistogramSeries } from './lightweight-charts.js';

/** A chart with candles and volume. `pane` is the place of the volume: 0 over the candles, 1 below them. */
export function openChart(box, { rightOffset, pane, layout, handleScale }) {
  const calm = matchMedia('(prefers-reduced-motion: reduce)').matches;
  const chart = createChart(box, {
    autoSize: true,
    layout: { attributionLogo: false, fontFamily: getComputedStyle(document.body).fontFamily, ...layout },
    timeScale: { timeVisible: true, secondsVisible: false, rightOffset },
    kineticScroll: { mouse: false, touch: !calm },
    // The chart must not capture the scrolling of the page on a phone.
    handleScroll: { vertTouchDrag: false, mouseWheel: false },
    handleScale: { mouseWheel: false, ...handleScale },
  });
  const candles = chart.addSeries(CandlestickSeries, { borderVisible: false });
  const volume = chart.addSeries(
    HistogramSeries,
    {
      ...(pane === 0 && { priceScaleId: '' }),
      priceFormat: { type: 'volume' },
      lastValueVisible: false,
      priceLineVisible: false,
    },
    pane,
  );
  return { chart, candles, volume };
}

/** The colours of the page, which follow the light or dark setting of the system. */
export function colors() {
  const style = getComputedStyle(document.documentElement);
  const named = (name) => style.getPropertyValue(name).trim();
  return {
    card: named('--card'),
    grid: named('--line'),
    soft: named('--ink-soft'),
    series: named('--series'),
    accent: named('--accent'),
    ink: named('--ink'),
    up: named('--up'),
    down: named('--down'),
    warn: named('--warn'),
    lines: [0, 1, 2, 3, 4, 5].map((index) => named(`--series-${index}`)),
  };
}

/** Draws a chart in the colours of the page, with the volume of these candles. */
export function paintChart({ chart, candles, volume }, drawn) {
  const color = colors();
  chart.applyOptions({
    layout: {
      background: { type: ColorType.Solid, color: color.card },
      textColor: color.soft,
      panes: { separatorColor: color.grid },
    },
    grid: { vertLines: { color: color.grid }, horzLines: { color: color.grid } },
    rightPriceScale: { borderColor: color.grid },
    timeScale: { borderColor: color.grid },
  });
  candles.applyOptions({
    upColor: color.up,
    downColor: color.down,
    wickUpColor: color.up,
    wickDownColor: color.down,
  });
  volume?.setData(
    drawn.map((c) => ({ time: c.time, value: c.volume, color: `${c.close >= c.open ? color.up : color.down}80` })),
  );
}

/** The numbers of a candle. */
export function drawnCandle(c) {
  const [open, high, low, close, volume] = [c.open, c.high, c.low, c.close, c.volume].map(Number);
  return { time: c.time ?? c.timestamp, open, high, low, close, volume };
}
