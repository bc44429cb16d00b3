// Follows a stream of the server and states in words whether the page is complete. Hidden tabs close their stream.
const RETRY_MS = 3_000;
/** The server sends a heartbeat this long after the last change. */
const IDLE_MS = 1_000;
/** A heartbeat may arrive this much later than promised. */
const GRACE_MS = 4_000;
/** The first message follows the opening of a stream sooner. */
const FIRST_MS = 7_000;
/** An answer of the server may be late by a second. */
const LATE_MS = 1_000;
/** The page reads its data again at most this often. */
const READ_EVERY_MS = 5_000;
/** The note about a gap stays this long after the page read its data again. */
const NOTE_MS = 5_000;
const TYPES = ['price', 'trade', 'book', 'candle', 'market', 'snapshot', 'heartbeat', 'stale', 'gap', 'lagged'];

/** The words about streams of markets and of events. */
const MARKETS = { changes: 'changes', doubt: 'prices may be old' };
export const EVENTS = { changes: 'events', doubt: 'events may be missing' };

const clock = (at) => new Date(at).toISOString().slice(11, 19);
const minute = (seconds) => new Date(seconds * 1_000).toISOString().slice(0, 16).replace('T', ' ');

/** A range of time with its date, which both ends may share. */
function rangeOf(start, end) {
  const [from, to] = [minute(start), minute(end)];
  return `${from} to ${from.slice(0, 10) === to.slice(0, 10) ? to.slice(11) : to} UTC`;
}

/**
 * Opens a stream. `on` gets every message. `read` reads the data of the page again: after a gap, and when the stream begins at the present
 * although the page is older. A stream with `hasSnapshot` begins with the data of the page. `line` is the element with the state, and
 * `words` are MARKETS or EVENTS. The line names polls of `venues` only, the venues of the page. Without `hasSession` the stream is that of a
 * visitor. `close` ends the stream, its listeners and its timers.
 */
export function follow({
  url,
  types = TYPES,
  line,
  on,
  read,
  hasSnapshot = false,
  hasSession = true,
  words = MARKETS,
  venues: shown,
}) {
  const closing = new AbortController();
  const { signal } = closing;
  let source;
  let cursor = '';
  let heardAt = 0;
  let nextWithin = FIRST_MS;
  let checked = '';
  let state = { text: '', tone: 'idle' };
  let retry;
  let wasOpen = false;
  let isAtPresent = false;
  /** Reads of the data are numbered: the requested ones, those that are done, and the last one without which changes are missing. */
  let requested = 0;
  let done = 0;
  let needed = 0;
  let reading;
  let readAt = Number.NEGATIVE_INFINITY;
  /** Gaps by their id. One that ended has the number of the read that repairs the page. */
  const gaps = new Map();

  const say = (text, tone) => {
    state = { text, tone };
    show();
  };

  const show = () => {
    if (!line) return;
    let { text, tone } = state;
    if (tone === 'good' && done < needed) [text, tone] = ['connected, reading the newest data', 'idle'];
    const all = [...gaps.values()];
    const lasting = all.find(({ turn }) => turn === undefined);
    const ended = all.findLast(({ turn }) => turn !== undefined);
    if (lasting) text += ` · ${lasting.text}`;
    if (ended) text += ` · ${ended.text}, ${ended.turn <= done ? 'data read again' : 'the page reads its data again'}`;
    if (lasting && tone === 'good') tone = 'warn';
    if (line.textContent !== text) line.textContent = text;
    line.dataset.tone = tone;
  };

  const open = () => {
    shut();
    const address = new URL(url, location.href);
    isAtPresent = cursor === '';
    if (!isAtPresent) address.searchParams.set('cursor', cursor);
    source = new EventSource(address);
    for (const type of types) source.addEventListener(type, receive);
    source.onopen = () => expectWithin(FIRST_MS);
    source.onerror = lost;
    if (!wasOpen) say('connecting', 'idle');
  };

  const shut = () => {
    clearTimeout(retry);
    source?.close();
  };

  const expectWithin = (ms) => {
    heardAt = performance.now();
    nextWithin = ms;
  };

  const receive = (event) => {
    if (event.lastEventId) cursor = event.lastEventId;
    const message = JSON.parse(event.data);
    wasOpen = true;
    expectWithin(IDLE_MS);
    if (isAtPresent) {
      isAtPresent = false;
      if (!hasSnapshot) readAgain(true);
    }
    if (event.type === 'heartbeat') {
      const { checked_at, interval_seconds, venues = [] } = message.data;
      checked = checked_at;
      expectWithin(interval_seconds * 1_000);
      const unhealthy = venues.filter(({ venue, healthy }) => !healthy && (shown?.includes(venue) ?? true));
      const names = unhealthy.map(({ venue }) => venue).join(', ');
      if (names) say(`the polls of ${names} fail or are late, ${words.doubt}`, 'warn');
      else say(`live, complete to ${clock(checked)}`, 'good');
    } else if (event.type === 'stale') {
      // The server repeats it as often as a heartbeat, and the next heartbeat states how often that is.
      expectWithin(Number.POSITIVE_INFINITY);
      const since = checked ? clock(checked) : 'the start';
      say(`the server cannot confirm ${words.changes} since ${since}, ${words.doubt}`, 'bad');
    } else if (event.type === 'gap') {
      noteGap(message);
      show();
    }
    on?.(event.type, message);
  };

  const noteGap = ({ venue, market_id: market, data: { reason, gap_id: id, series, start, end } }) => {
    if (reason === 'feed') {
      const markets = gaps.get(id)?.markets ?? new Set();
      if (end === null) markets.add(market);
      else markets.delete(market);
      if (markets.size > 0) {
        const text = `feed gap since ${minute(start)} UTC: changes may be missing until the feed of ${venue} recovers`;
        gaps.set(id, { markets, text });
      } else gaps.set(id, { text: `feed gap ${rangeOf(start, end)}`, turn: readAgain(false) });
    } else if (reason === 'backfill') {
      const text = `older ${series} of ${rangeOf(start, end)} were added or corrected`;
      gaps.set(reason, { text, turn: readAgain(false) });
    } else {
      // The ends of earlier gaps may be among the missing changes.
      gaps.clear();
      const text = reason === 'epoch' ? 'the database was restored' : `${words.changes} were missed`;
      gaps.set(reason, { text, turn: readAgain(true) });
    }
  };

  /** Reads the data of the page again soon. Returns the number of the read. */
  const readAgain = (isNeeded) => {
    requested += 1;
    if (isNeeded) needed = requested;
    reading ??= setTimeout(runRead, Math.max(LATE_MS, readAt + READ_EVERY_MS - performance.now()));
    return requested;
  };

  const runRead = async () => {
    const turn = requested;
    readAt = performance.now();
    let waitMs = READ_EVERY_MS;
    try {
      await read(signal);
      done = turn;
    } catch {
      waitMs = RETRY_MS;
    }
    if (signal.aborted) return;
    for (const gap of gaps.values()) if (gap.turn <= done) gap.until ??= performance.now() + NOTE_MS;
    reading = done < requested ? setTimeout(runRead, waitMs) : undefined;
    show();
  };

  const lost = async () => {
    const broken = source;
    if (broken.readyState !== EventSource.CLOSED) return say('connection lost, connecting again', 'bad');
    say(`no connection, ${words.doubt}`, 'bad');
    let hasEnded = false;
    let reason;
    let isReachable = true;
    try {
      // An EventSource hides the answer, so that the page asks once more.
      const answer = await fetch(broken.url, { signal, headers: { Accept: 'application/json' } });
      hasEnded = hasSession && answer.status === 401;
      if (answer.ok) await answer.body.cancel();
      else reason = (await answer.json().catch(() => ({}))).error?.message;
    } catch {
      isReachable = false;
    }
    // Meanwhile the page closed this stream, was hidden, or opened another one.
    if (signal.aborted || document.hidden || source !== broken) return;
    // The reload leads to the sign-in.
    if (hasEnded) return location.reload();
    if (!isReachable) say(`no connection to the server, ${words.doubt}`, 'bad');
    else if (reason) say(`no stream, ${words.doubt}: ${reason}`, 'bad');
    // A cursor that the server does not know any more would always fail.
    if (isReachable && !wasOpen) cursor = '';
    wasOpen = false;
    retry = setTimeout(open, RETRY_MS);
  };

  const watch = () => {
    const nowMs = performance.now();
    for (const [id, { until }] of gaps) if (nowMs > until && gaps.delete(id)) show();
    if (document.hidden || source?.readyState !== EventSource.OPEN) return;
    const silentMs = nowMs - heardAt;
    if (silentMs <= nextWithin + GRACE_MS) return;
    say(`no heartbeat for ${Math.round(silentMs / 1_000)} s, ${words.doubt}`, 'bad');
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
    clearTimeout(reading);
    shut();
  });
  if (!document.hidden) open();
  return { close: () => closing.abort() };
}

/** Each show costs a layout and, on the page of a market, a drawing of its chart. */
const SHOW_EVERY_MS = 200;

/** Applies the newest value per key in the next frame, and at most every 200 ms, however many changes arrive. */
export function paced(apply) {
  const waiting = new Map();
  let isDue = false;
  let shownAt = Number.NEGATIVE_INFINITY;
  const show = () => {
    isDue = false;
    shownAt = performance.now();
    for (const [each, latest] of waiting) apply(each, latest);
    waiting.clear();
  };
  return (key, value) => {
    waiting.set(key, value);
    if (isDue) return;
    isDue = true;
    const waitMs = shownAt + SHOW_EVERY_MS - performance.now();
    if (waitMs <= 0) requestAnimationFrame(show);
    else setTimeout(() => requestAnimationFrame(show), waitMs);
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
