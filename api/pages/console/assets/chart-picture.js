// A picture of a chart with a caption, as a PNG file.
import { colors } from './price-chart.js';

const EDGE = 16;
const LINE = 22;
const [TITLE_FONT, TEXT_FONT] = ['600 16px', '13px'];
const SWATCH = 14;

const utc = (seconds) => `${new Date(seconds * 1_000).toISOString().slice(0, 16).replace('T', ' ')}`;

/** Lines of a text that fit into a width. */
function wrapped(context, text, width) {
  const lines = [''];
  for (const word of text.split(/\s+/)) {
    const longer = `${lines.at(-1)} ${word}`.trim();
    if (context.measureText(longer).width <= width || lines.at(-1) === '') lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}

/** Draws the chart with its title, outcome, range and time. */
export function drawPicture(chart, { title, range }) {
  const shot = chart.chart.takeScreenshot();
  const ratio = shot.width / chart.chart.chartElement().clientWidth;
  const width = shot.width / ratio;
  const color = colors();
  const family = getComputedStyle(document.body).fontFamily;
  const canvas = document.createElement('canvas');
  const context = canvas.getContext('2d');
  context.font = `${TITLE_FONT} ${family}`;
  const titles = wrapped(context, title, width - 2 * EDGE);
  context.font = `${TEXT_FONT} ${family}`;
  const [from, to] = chart.span();
  const names = chart.legend();
  const rows = [];
  for (const name of names) {
    const needed = SWATCH + 8 + context.measureText(name.label).width + 18;
    const row = rows.at(-1);
    if (row && row.width + needed <= width - 2 * EDGE) {
      row.names.push({ ...name, at: row.width });
      row.width += needed;
    } else rows.push({ names: [{ ...name, at: 0 }], width: needed });
  }
  const notes = wrapped(
    context,
    `${range}: ${utc(from)} to ${utc(to)} UTC${chart.isIncomplete() ? ' · hatched: history not proven complete' : ''}`,
    width - 2 * EDGE,
  );
  const head = EDGE + (titles.length + rows.length) * LINE;
  const foot = (notes.length + 1) * LINE + EDGE;
  canvas.width = Math.round(shot.width);
  canvas.height = Math.round((head + foot) * ratio + shot.height);
  context.scale(ratio, ratio);
  context.fillStyle = color.card;
  context.fillRect(0, 0, width, canvas.height / ratio);
  context.textBaseline = 'middle';
  let y = EDGE / 2 + LINE / 2;
  context.fillStyle = color.ink;
  context.font = `${TITLE_FONT} ${family}`;
  for (const text of titles) {
    context.fillText(text, EDGE, y);
    y += LINE;
  }
  context.font = `${TEXT_FONT} ${family}`;
  for (const row of rows) {
    for (const { label, color: own, at } of row.names) {
      context.fillStyle = own;
      context.fillRect(EDGE + at, y - 2, SWATCH, 4);
      context.fillStyle = color.ink;
      context.fillText(label, EDGE + at + SWATCH + 8, y);
    }
    y += LINE;
  }
  context.drawImage(shot, 0, head, width, shot.height / ratio);
  y = head + shot.height / ratio + LINE / 2 + 4;
  context.fillStyle = color.soft;
  for (const text of notes) {
    context.fillText(text, EDGE, y);
    y += LINE;
  }
  context.fillText('oddswire', EDGE, y);
  const made = `made ${utc(Date.now() / 1_000)} UTC`;
  context.fillText(made, width - EDGE - context.measureText(made).width, y);
  return canvas;
}

/** Offers the picture as a file, named by the page and the range. */
export function savePicture(chart, { range }) {
  if (!chart.hasValues()) return;
  const root = document.querySelector('[data-market], [data-event-id]');
  const id = (root.dataset.market ?? root.dataset.eventId).replaceAll(/[^\w.-]+/g, '_').slice(0, 100);
  const title = document.querySelector('h1').textContent;
  drawPicture(chart, { title, range }).toBlob((blob) => {
    const href = URL.createObjectURL(blob);
    Object.assign(document.createElement('a'), { href, download: `${id}-${range}.png` }).click();
    // The browser has begun the download.
    setTimeout(() => URL.revokeObjectURL(href), 1_000);
  }, 'image/png');
}
