// The chart of an event. The script of its table follows the stream.
import { choicesOfAddress, connectControls, showParts } from './chart-controls.js';
import { paced } from './live.js';
import { openMarketChart } from './market-chart.js';

const root = document.querySelector('[data-event-id]');
const box = document.getElementById('market-chart');
const legend = document.querySelector('[data-legend]');
const chart = openMarketChart(box, legend, { hasCandles: false });
let asked = 0;

async function load(options) {
  const turn = ++asked;
  try {
    const answer = await fetch(`${root.dataset.source}/series.json?${choicesOfAddress()}`, {
      headers: { Accept: 'application/json' },
    });
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    const { parts, ...data } = await answer.json();
    // Another choice has its own answer.
    if (turn !== asked) return;
    chart.show(data, options);
    showParts(parts);
  } catch (error) {
    legend.textContent = `The newest figures cannot be read (${error.message}). Reload the page.`;
  }
}

const showPrice = paced((outcome, price) => chart.update(Number(price), outcome));
document.addEventListener('market-price', ({ detail: { outcome, price } }) => showPrice(outcome, price));
document.addEventListener('markets-read', () => load());
connectControls({ chart, load });
load({ fit: true });
