// Follows a stream of the server and states in words whether it is complete. Hidden tabs close their stream.
const RETRY_MS = 3_000;
/** A heartbeat may arrive this much later than promised. */
const GRACE_MS = 4_000;
const TYPES = ['price', 'trade', 'book', 'candle', 'market', 'snapshot', 'heartbeat', 'stale', 'gap', 'lagged'];

const clock = (at) => new Date(at).toISOString().slice(11, 19);

/**
 * Opens a stream. `on` gets every message; `onLost` is called when changes were missed and the page must read the present state.
 * `line` is the element with the state. `close` ends the stream, its listeners and its timers.
 */
export function follow({ url, types = TYPES, line, on, onLost }) {
  const closing = new AbortController();
  const { signal } = closing;
  let source;
  let cursor = '';
  let heard = 0;
  let interval = 15_000;
  let checked = '';
  let note = '';
  let retry;
  let wasOpen = false;

  const say = (text, tone) => {
    const full = note === '' ? text : `${text} · ${note}`;
    if (line && line.textContent !== full) line.textContent = full;
    if (line) line.dataset.tone = tone;
  };

  const open = () => {
    shut();
    const address = new URL(url, location.href);
    if (cursor !== '') address.searchParams.set('cursor', cursor);
    source = new EventSource(address);
    for (const type of types) source.addEventListener(type, receive);
    source.onerror = lost;
    if (!wasOpen) say('connecting', 'idle');
  };

  const shut = () => {
    clearTimeout(retry);
    source?.close();
  };

  const receive = (event) => {
    if (event.lastEventId) cursor = event.lastEventId;
    const message = JSON.parse(event.data);
    heard = performance.now();
    wasOpen = true;
    if (event.type === 'heartbeat') {
      ({ checked_at: checked } = message.data);
      interval = message.data.interval_seconds * 1_000;
      const silent = (message.data.venues ?? []).filter(({ healthy }) => !healthy).map(({ venue }) => venue);
      if (silent.length > 0) say(`${silent.join(', ')} does not answer, prices may be old`, 'warn');
      else say(`live, complete to ${clock(checked)}`, 'good');
    } else if (event.type === 'stale') {
      say(
        `the server cannot confirm changes since ${checked ? clock(checked) : 'the start'}, prices may be old`,
        'bad',
      );
    } else if (event.type === 'gap') {
      const { start, end } = message.data;
      const range = start && end ? `${clock(start * 1_000).slice(0, 5)} to ${clock(end * 1_000).slice(0, 5)}` : '';
      note = range ? `gap ${range}, history read again` : 'changes were missed, prices read again';
      onLost?.(message);
    }
    on?.(event.type, message);
  };

  const lost = async () => {
    const broken = source;
    if (broken.readyState !== EventSource.CLOSED) return say('connection lost, connecting again', 'bad');
    say('no connection, prices may be old', 'bad');
    let hasEnded = false;
    let isReachable = true;
    try {
      const answer = await fetch('/console/session.json', { signal, headers: { Accept: 'application/json' } });
      hasEnded = answer.status === 401;
    } catch {
      isReachable = false;
    }
    // Meanwhile the page closed this stream, was hidden, or opened another one.
    if (signal.aborted || document.hidden || source !== broken) return;
    // The reload leads to the sign-in.
    if (hasEnded) return location.reload();
    if (!isReachable) say('no connection to the server, prices may be old', 'bad');
    // A cursor that the server does not know any more would fail for ever.
    if (cursor !== '' && !wasOpen) cursor = '';
    wasOpen = false;
    retry = setTimeout(open, RETRY_MS);
  };

  const watch = () => {
    if (document.hidden || source?.readyState !== EventSource.OPEN || heard === 0) return;
    const silent = performance.now() - heard;
    if (silent > interval + GRACE_MS) {
      say(`no heartbeat for ${Math.round(silent / 1_000)} s, prices may be old`, 'bad');
    }
  };
  const watching = setInterval(watch, 1_000);

  const showOrHide = () => {
    if (!document.hidden) return open();
    shut();
    say('paused while the page is hidden', 'idle');
  };
  document.addEventListener('visibilitychange', showOrHide, { signal });
  addEventListener('pagehide', shut, { signal });
  addEventListener('pageshow', (event) => event.persisted && !document.hidden && open(), { signal });
  signal.addEventListener('abort', () => {
    clearInterval(watching);
    shut();
  });
  if (!document.hidden) open();
  return { close: () => closing.abort() };
}

/** Applies the newest value per key once per frame, however many changes arrive. */
export function perFrame(apply) {
  const waiting = new Map();
  let isDue = false;
  return (key, value) => {
    waiting.set(key, value);
    if (isDue) return;
    isDue = true;
    requestAnimationFrame(() => {
      isDue = false;
      for (const [each, latest] of waiting) apply(each, latest);
      waiting.clear();
    });
  };
}

export const percent = (price) => `${(Number(price) * 100).toFixed(1)} %`;

/** The price of an alert at a place of a chart: at most three decimals, between 0 and 1, both excluded. */
export const alertPrice = (price) => Math.min(0.999, Math.max(0.001, price)).toFixed(3).replace(/0+$/, '');

/** Writes a changed text into a cell, which flashes once. */
export function flash(cell, text) {
  if (cell.textContent === text) return;
  cell.textContent = text;
  cell.classList.remove('flashed');
  requestAnimationFrame(() => cell.classList.add('flashed'));
}

/** The change of a probability in points, in the form of the server. */
export function showChange(cell, from, price) {
  if (from === '' || from === undefined) return;
  const points = (Number(price) - Number(from)) * 100;
  const size = Math.abs(points).toFixed(1);
  const tone = size === '0.0' ? 'muted' : points > 0 ? 'up' : 'down';
  const text = size === '0.0' ? '0.0 pt' : points > 0 ? `▲ +${size} pt` : `▼ −${size} pt`;
  if (cell.textContent === text) return;
  const span = document.createElement('span');
  span.className = `num ${tone}`;
  span.textContent = text;
  cell.replaceChildren(span);
}
