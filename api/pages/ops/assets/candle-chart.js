// Draws the candles of a market page and refreshes them.
import { drawnCandle, openChart, paintChart } from './price-chart.js';

const REFRESH_MS = 15_000;
const MAX_DIGITS = 8;
const PIXELS_PER_CANDLE = 7;

const box = document.getElementById('candle-chart');
const status = document.getElementById('candle-status');
if (box && status) start(box, status);

function start(box, status) {
  const opened = openChart(box, { rightOffset: 3, pane: 0 });
  const { chart, candles, volume } = opened;
  candles.priceScale().applyOptions({ scaleMargins: { top: 0.08, bottom: 0.26 } });
  volume.priceScale().applyOptions({ scaleMargins: { top: 0.8, bottom: 0 } });

  let drawn = [];
  const paint = () => paintChart(opened, drawn);

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
    drawn = exact.map(drawnCandle);
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
